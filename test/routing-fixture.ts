import type { Endpoint, Model } from '../src/catalog/model.ts';
import type { Provider } from '../src/providers/provider.ts';

/** Three providers of different data policies. */
export const PROVIDERS: Record<string, Provider> = Object.fromEntries(
  (
    [
      ['alpha', 'Alpha AI', false, 0],
      ['beta', 'Beta', true, 30],
      ['gamma', 'Gamma', 'unknown', 'unknown'],
    ] as const
  ).map(([slug, name, training, retention_days]) => [
    slug,
    {
      slug,
      name,
      dialect: 'openai-chat',
      base_url: 'http://127.0.0.1:1/v1',
      credential: undefined,
      quirks: {},
      data_policy: { training, retention_days },
      abort_stops_billing: true,
      headers: {},
    } satisfies Provider,
  ]),
);

/** An endpoint at a price for prompt and completion alike. */
export function endpoint(
  model: string,
  provider: string,
  prompt: number | undefined,
  extra: Partial<Endpoint> = {},
): Endpoint {
  const tag = extra.tag ?? provider;
  return {
    id: `${tag}|${model}`,
    model,
    provider,
    tag,
    upstream_model: 'm',
    context_length: 1000,
    max_completion_tokens: undefined,
    max_prompt_tokens: undefined,
    pricing: prompt === undefined ? {} : { prompt, completion: prompt },
    supported_parameters: undefined,
    quantization: 'unknown',
    supports_implicit_caching: false,
    input_modalities: ['text'],
    quirks: {},
    ...extra,
  };
}

/** A model with these endpoints. */
export function model(id: string, endpoints: Endpoint[], extra: Partial<Model> = {}): Model {
  return {
    id,
    canonical_slug: id,
    name: id,
    description: '',
    created: 0,
    context_length: 1000,
    input_modalities: ['text'],
    output_modalities: ['text'],
    tokenizer: 'Other',
    instruct_type: null,
    knowledge_cutoff: null,
    expiration_date: null,
    model_hub_id: null,
    endpoints,
    ...extra,
  };
}

/** A model that every provider has. */
export const ONE = model('a/one', [
  endpoint('a/one', 'alpha', 300, { quantization: 'fp8', supported_parameters: ['temperature'] }),
  endpoint('a/one', 'beta', 100),
  endpoint('a/one', 'beta', 200, { tag: 'beta/turbo' }),
  endpoint('a/one', 'gamma', undefined),
]);
/** A model of one provider. */
export const TWO = model('a/two', [endpoint('a/two', 'alpha', 50)]);
