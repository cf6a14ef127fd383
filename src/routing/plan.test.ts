import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Endpoint, Model } from '../catalog/model.ts';
import { GatewayError } from '../errors.ts';
import type { Provider } from '../providers/provider.ts';
import type { ChatRequest, ProviderPreferences } from '../schemas/inner.ts';
import { createHealth, type Health } from './health.ts';
import { plan } from './plan.ts';

const PROVIDERS: Record<string, Provider> = Object.fromEntries(
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

function endpoint(
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

function model(id: string, endpoints: Endpoint[], extra: Partial<Model> = {}): Model {
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

const ONE = model('a/one', [
  endpoint('a/one', 'alpha', 300, { quantization: 'fp8', supported_parameters: ['temperature'] }),
  endpoint('a/one', 'beta', 100),
  endpoint('a/one', 'beta', 200, { tag: 'beta/turbo' }),
  endpoint('a/one', 'gamma', undefined),
]);
const TWO = model('a/two', [endpoint('a/two', 'alpha', 50)]);

function ask(
  provider: ProviderPreferences | undefined,
  more: { request?: Partial<ChatRequest>; models?: Model[]; health?: Health; allow_unpriced?: boolean } = {},
) {
  const request = {
    messages: [{ role: 'user' as const, content: 'x' }],
    ...more.request,
    ...(provider ? { provider } : {}),
  };
  return plan(request, {
    models: more.models ?? [ONE],
    provider: (slug) => PROVIDERS[slug],
    health: more.health ?? createHealth(),
    now_ms: 1000,
    allow_unpriced: more.allow_unpriced ?? false,
  });
}
const tags = (found: ReturnType<typeof plan>) =>
  found.attempts.map((candidate) => `${candidate.model.id}@${candidate.endpoint.tag}`);

test.each<[string, ProviderPreferences | undefined, string[]]>([
  ['cheapest first, unpriced never', undefined, ['beta', 'beta/turbo', 'alpha']],
  ['order goes first, the rest follow', { order: ['alpha'] }, ['alpha', 'beta', 'beta/turbo']],
  ['order takes display names in any case', { order: ['ALPHA ai'] }, ['alpha', 'beta', 'beta/turbo']],
  ['order of a tag', { order: ['beta/turbo'] }, ['beta/turbo', 'beta', 'alpha']],
  ['order of a base slug takes all its endpoints', { order: ['beta', 'alpha'] }, ['beta', 'beta/turbo', 'alpha']],
  ['a name in order that is not there is passed over', { order: ['nobody', 'alpha'] }, ['alpha', 'beta', 'beta/turbo']],
  ['no fallbacks: only the first', { allow_fallbacks: false }, ['beta']],
  [
    'no fallbacks with order: only those',
    { order: ['alpha', 'beta/turbo'], allow_fallbacks: false },
    ['alpha', 'beta/turbo'],
  ],
  ['only', { only: ['beta'] }, ['beta', 'beta/turbo']],
  ['ignore', { ignore: ['Beta'] }, ['alpha']],
  ['only and ignore', { only: ['beta'], ignore: ['beta/turbo'] }, ['beta']],
  ['no training', { data_collection: 'deny' }, ['alpha']],
  ['zero retention', { zdr: true }, ['alpha']],
  ['quantizations', { quantizations: ['fp8'] }, ['alpha']],
  ['max_price, in USD per million', { max_price: { prompt: 0.0002 } }, ['beta', 'beta/turbo']],
])('%s', (_title, preferences, expected) => {
  expect(tags(ask(preferences))).toEqual(expected.map((tag) => `a/one@${tag}`));
});

describe('models', () => {
  test('are tried in order, each with its providers', () => {
    expect(tags(ask(undefined, { models: [TWO, ONE] }))).toEqual([
      'a/two@alpha',
      'a/one@beta',
      'a/one@beta/turbo',
      'a/one@alpha',
    ]);
  });
  test('stay fallbacks when a provider may not fall back', () => {
    expect(tags(ask({ allow_fallbacks: false }, { models: [ONE, TWO] }))).toEqual(['a/one@beta', 'a/two@alpha']);
  });
});

test('an endpoint that cools down comes last, but comes; the client’s own order is kept', () => {
  const health = createHealth();
  health.failed('beta|a/one', 'unavailable', undefined, 900);
  expect(tags(ask(undefined, { health }))).toEqual(['a/one@beta/turbo', 'a/one@alpha', 'a/one@beta']);
  expect(tags(ask({ only: ['beta'], ignore: ['beta/turbo'] }, { health }))).toEqual(['a/one@beta']);
  expect(tags(ask({ order: ['beta'] }, { health }))[0]).toBe('a/one@beta/turbo');
});

test('require_parameters leaves out endpoints that lack one', () => {
  expect(tags(ask({ require_parameters: true }, { request: { top_k: 5 } }))).toEqual([
    'a/one@beta',
    'a/one@beta/turbo',
  ]);
});

test('unpriced endpoints serve where the operator allows it', () => {
  expect(tags(ask({ only: ['gamma'] }, { allow_unpriced: true }))).toEqual(['a/one@gamma']);
});

test('a model or a host that does not take images gets none', () => {
  const image = {
    role: 'user' as const,
    content: [{ type: 'image_url' as const, image_url: { url: 'data:image/png;base64,' } }],
  };
  const media = { input_modalities: ['text', 'image'] };
  const seeing = model('a/sees', [endpoint('a/sees', 'beta', 1), endpoint('a/sees', 'alpha', 2, media)], media);
  expect(tags(ask(undefined, { request: { messages: [image] }, models: [ONE, seeing] }))).toEqual(['a/sees@alpha']);
});

test.each<[string, ProviderPreferences, string]>([
  ['only', { only: ['nobody'] }, 'Filter by Allowed Providers'],
  ['ignore', { ignore: ['alpha', 'beta'] }, 'Filter by Ignored Providers'],
  ['max_price', { max_price: { completion: 0 } }, 'Filter by Max Price'],
  ['quantizations', { quantizations: ['int4'] }, 'Filter by Quantization'],
  ['order without fallbacks', { order: ['nobody'], allow_fallbacks: false }, 'Filter by Provider Order'],
])('404 names the step that left nothing: %s', (_title, preferences, step) => {
  const failure = (() => {
    try {
      return ask(preferences);
    } catch (error) {
      return error;
    }
  })() as GatewayError;
  expect(failure).toBeInstanceOf(GatewayError);
  expect(failure.status).toBe(404);
  expect(failure.metadata).toMatchObject({ failed_routing_step: step });
  const funnel = failure.metadata?.['routing_funnel'] as { step: string; endpoint_count: number }[];
  expect(funnel.at(0)).toEqual({ step: 'Initial Endpoints', endpoint_count: 4 });
  expect(funnel.find((entry) => entry.step === step)?.endpoint_count).toBe(0);
});

test('a plan is a permutation of endpoints that no filter forbids, and explains all the others', () => {
  const slug = fc.constantFrom<string[]>('alpha', 'beta', 'gamma', 'beta/turbo', 'nobody');
  const list = fc.option(fc.array(slug, { maxLength: 3 }), { nil: undefined });
  fc.assert(
    fc.property(list, list, list, fc.boolean(), (order, only, ignore, allow_fallbacks) => {
      const preferences = {
        ...(order && { order }),
        ...(only && { only }),
        ...(ignore && { ignore }),
        allow_fallbacks,
      };
      let found: ReturnType<typeof plan>;
      try {
        found = ask(preferences, { models: [ONE, TWO] });
      } catch (error) {
        expect((error as GatewayError).status).toBe(404);
        return;
      }
      expect(new Set(found.attempts).size).toBe(found.attempts.length);
      for (const attempt of found.attempts) {
        expect(attempt.excluded).toBeUndefined();
        const { slug: provider } = attempt.provider;
        if (only?.length) expect(only.includes(provider) || only.includes(attempt.endpoint.tag)).toBe(true);
        expect(ignore?.includes(provider) || ignore?.includes(attempt.endpoint.tag)).not.toBe(true);
      }
      for (const candidate of found.candidates) {
        const left_out = !found.attempts.includes(candidate);
        if (left_out && allow_fallbacks) expect(candidate.excluded?.reason).toBeTruthy();
      }
    }),
  );
});
