import Type from 'typebox';
import { parameters, quantizations } from '../../schemas/endpoint.ts';
import { wires } from '../../schemas/inner.ts';
import { categories, inputModalities, outputModalities, tokenizers } from '../../schemas/model.ts';
import { tokenPrices, unitPrices } from '../../schemas/prices.ts';
import { byName, group, listOfGroups, required, setting } from './declare.ts';
import { quirks } from './quirks.ts';
import { count, day, flag, fraction, integer, list, listOf, oneOf, pattern, strict, text } from './values.ts';

const price = (per: string) =>
  Type.Union([Type.Number({ minimum: 0 }), Type.String({ pattern: '^\\d+(\\.\\d+)?$' })], {
    description: `a price in USD ${per}, 0 or more`,
  });
const prices = <Name extends string>(all: readonly Name[], per: string) =>
  Object.fromEntries(all.map((name) => [name, Type.Optional(price(per))])) as Record<
    Name,
    ReturnType<typeof Type.Optional<ReturnType<typeof price>>>
  >;

const listPrices = {
  ...prices(tokenPrices, 'per million tokens'),
  ...prices(unitPrices, 'each'),
  discount: Type.Optional(fraction),
};

const withTiers = {
  ...listPrices,
  tiers: Type.Optional(
    list(
      Type.Object(
        { over: integer(1, 1_000_000_000, 'a number of tokens'), ...listPrices },
        { ...strict, description: 'an object with over and prices in USD' },
      ),
      'a list of prices for prompts over some length',
      { minItems: 1 },
    ),
  ),
};

const withServiceTiers = {
  ...withTiers,
  service_tiers: Type.Optional(
    Type.Record(Type.String(), Type.Object(withTiers, { ...strict, description: 'an object of prices in USD' }), {
      description: 'an object of prices by the name of a service tier',
    }),
  ),
};

/** The members are the rows of the table in `docs/guides/prices.md`. */
export const pricing = Type.Object(
  {
    per: Type.Optional(oneOf(['million', 'token'])),
    ...withServiceTiers,
    changes: Type.Optional(
      list(
        Type.Object(
          {
            from: pattern(
              '^\\d{4}-\\d\\d-\\d\\d(T\\d\\d:\\d\\d(:\\d\\d)?(Z|[+-]\\d\\d:\\d\\d))?$',
              'a day such as 2027-01-31, which begins in UTC, or a time such as 2027-01-31T09:00:00Z',
            ),
            ...withServiceTiers,
          },
          { ...strict, description: 'an object with from and prices in USD' },
        ),
        'a list of later prices',
        { minItems: 1 },
      ),
    ),
  },
  { ...strict, description: 'an object of prices in USD' },
);

export const endpoint = group(
  {
    provider: required(text('the slug of a provider'), { sentence: 'the slug of the provider' }),
    variant: setting(pattern('^[a-z0-9][a-z0-9._-]*$', 'a short name such as turbo or eu-west'), {
      sentence: 'distinguishes two endpoints of one provider',
    }),
    upstream_model: required(text("the provider's name of the model"), {
      sentence: "the provider's name of the model",
    }),
    dialect: setting(oneOf(wires), {
      sentence: 'the API of this endpoint',
      defaultText: "the provider's",
    }),
    pricing: setting(pricing, {
      sentence: 'prices in USD, of tokens per million; the keys are in [Prices](prices.md#keys-of-pricing)',
      defaultText: 'the price is unknown',
    }),
    context_length: setting(count, { sentence: 'tokens of prompt and answer together', defaultText: "the model's" }),
    max_completion_tokens: setting(count, { sentence: 'the most tokens of an answer' }),
    max_prompt_tokens: setting(count, { sentence: 'the most tokens of a prompt' }),
    supported_parameters: setting(list(oneOf(parameters), 'a list of parameter names'), {
      sentence: 'the parameters of requests that the endpoint accepts, such as `[temperature, tools]`',
      defaultText: 'all',
    }),
    supports_implicit_caching: setting(flag, {
      sentence: 'whether it caches prompts without a cache breakpoint in the request',
    }),
    quantization: setting(oneOf(quantizations), { sentence: 'the precision of its weights' }),
    quirks: setting(quirks, { sentence: 'as of a provider, for this endpoint' }),
  },
  { description: 'an object with provider and upstream_model', sentence: 'an endpoint' },
);

export const model = group(
  {
    canonical_slug: setting(pattern('^[^/\\s]+/\\S+$', 'a name as author/slug'), {
      sentence: 'the lasting name of this version of the model',
      defaultText: 'the id',
    }),
    name: setting(text(), { sentence: 'the display name' }),
    description: setting(text(), { sentence: 'the description of the model' }),
    created: setting(integer(0, 100_000_000_000, 'a time in Unix seconds'), {
      sentence: 'when the model was published',
      defaultText: 'the start of the gateway',
    }),
    context_length: setting(count, { sentence: 'tokens of prompt and answer together' }),
    input_modalities: setting(listOf(inputModalities), { sentence: 'the input modalities', defaultText: '`[text]`' }),
    output_modalities: setting(listOf(outputModalities), {
      sentence: 'the output modalities',
      defaultText: '`[text]`',
    }),
    tokenizer: setting(oneOf(tokenizers), { sentence: 'the family of its tokenizer' }),
    knowledge_cutoff: setting(day, { sentence: 'the last day that its training data covers' }),
    expiration_date: setting(day, { sentence: 'the last day on which the model is served' }),
    model_hub_id: setting(text(), { sentence: 'the id of its weights at a model hub' }),
    distillable: setting(flag, { sentence: 'whether its answers may be used to train other models' }),
    categories: setting(list(oneOf(categories), `a list of ${categories.join(', ')}`), {
      sentence: 'the subject areas of the model, as in `GET /models`',
      defaultText: 'derived from the name',
    }),
    endpoints: listOfGroups(endpoint, {
      description: 'a list of one endpoint or more',
      minItems: 1,
      sentence: 'where the model is served; replaces the bundled endpoints of the model at these providers',
    }),
  },
  { description: 'an object that describes a model', sentence: 'a model' },
);

export const models = byName(model, 'author/slug', {
  description: 'an object of models by author/slug',
  sentence:
    'models that are declared, and changes of bundled ones; see [Prices](prices.md), [Embeddings](embeddings.md) and [Speech to text](speech-to-text.md)',
  takesEffect: 'at once',
});
