import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Endpoint, Model } from '../catalog/model.ts';
import { GatewayError } from '../errors.ts';
import { limits } from '../limits.ts';
import type { Provider } from '../providers/provider.ts';
import type { ChatRequest, InnerPart, ProviderPreferences } from '../schemas/inner.ts';
import { createHealth, type Health } from './health.ts';
import type { OwnCredential } from './own-credential.ts';
import { healthId, plan, unsupportedParameters } from './plan.ts';

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

test.each<[string, Partial<ChatRequest>, string[]]>([
  ['tool_choice', { tool_choice: 'auto' }, ['tools']],
  ['parallel_tool_calls', { parallel_tool_calls: false }, ['tools']],
  ['response_format', { response_format: { type: 'json_object' } }, ['structured_outputs']],
  ['reasoning_effort', { reasoning_effort: 'low' }, ['reasoning']],
  ['include_reasoning', { include_reasoning: true }, ['reasoning']],
  ['an output bound, which is never missing', { max_tokens: 5, max_completion_tokens: 5 }, []],
  ['a null', { top_k: null }, []],
])('%s is supported by %s', (_title, request, supported_parameters) => {
  const able = endpoint('a/able', 'alpha', 1, { supported_parameters });
  expect(unsupportedParameters({ messages: [], ...request }, able)).toEqual([]);
});

test('every other parameter counts as missing where it is not listed', () => {
  const request = { messages: [], tools: [], tool_choice: 'auto', reasoning: {}, seed: 1, prediction: {} };
  const none = endpoint('a/none', 'alpha', 1, { supported_parameters: [] });
  expect(unsupportedParameters(request as unknown as ChatRequest, none).sort()).toEqual([
    'prediction',
    'reasoning',
    'seed',
    'tool_choice',
    'tools',
  ]);
});

test('a provider that does not say whether it trains is not one that does not, unknown retention is not none', () => {
  const priced = model('a/x', [endpoint('a/x', 'gamma', 1), endpoint('a/x', 'alpha', 2)]);
  expect(tags(ask({ data_collection: 'deny' }, { models: [priced] }))).toEqual(['a/x@alpha']);
  expect(tags(ask({ zdr: true }, { models: [priced] }))).toEqual(['a/x@alpha']);
});

test('rank counts three prompt tokens to one of completion', () => {
  const priced = (provider: string, prompt: number, completion: number) =>
    endpoint('a/x', provider, 1, { pricing: { prompt, completion } });
  const one = model('a/x', [priced('alpha', 10, 10), priced('beta', 9, 14), priced('gamma', 5, 24)]);
  expect(tags(ask(undefined, { models: [one] }))).toEqual(['a/x@gamma', 'a/x@alpha', 'a/x@beta']);
});

test.each<[string, ProviderPreferences['max_price'], string[]]>([
  ['request, in USD each', { request: 0.001 }, ['alpha']],
  ['image, in USD each', { image: 0.001 }, ['alpha']],
  ['a price that is not above it', { request: 0.002, image: 0.002 }, ['alpha', 'beta']],
])('max_price of a %s', (_title, max_price, expected) => {
  const priced = (provider: string, each: number) =>
    endpoint('a/x', provider, 1, { pricing: { prompt: 1, completion: 1, request: each, image: each } });
  const one = model('a/x', [priced('alpha', 1_000_000_000), priced('beta', 2_000_000_000)]);
  expect(tags(ask({ max_price }, { models: [one] }))).toEqual(expected.map((tag) => `a/x@${tag}`));
});

test('a max_price that is no price is a 400', () => {
  expect(() => ask({ max_price: { prompt: -1 } })).toThrow(expect.objectContaining({ status: 400 }));
});

test('no more endpoints are tried than the bound', () => {
  const many = Array.from({ length: limits.attempts_max + 3 }, (_, n) =>
    endpoint('a/x', 'alpha', n, { tag: `alpha/${n}` }),
  );
  expect(ask(undefined, { models: [model('a/x', many)] }).attempts).toHaveLength(limits.attempts_max);
});

test('a request for one model is direct, for several it falls back', () => {
  expect(ask(undefined).strategy).toBe('direct');
  expect(ask(undefined, { models: [ONE, TWO] }).strategy).toBe('fallback');
});

test('a model that does not make the wanted output is left out', () => {
  const speaking = model('a/speaks', [endpoint('a/speaks', 'alpha', 1)], { output_modalities: ['text', 'audio'] });
  const request = { modalities: ['text', 'audio'] };
  expect(tags(ask(undefined, { request, models: [ONE, speaking] }))).toEqual(['a/speaks@alpha']);
});

test('404 of `only` names the providers that there are and those that were asked for', () => {
  expect(() => ask({ only: ['nobody'] })).toThrow(
    expect.objectContaining({
      metadata: expect.objectContaining({
        available_providers: ['alpha', 'beta', 'gamma'],
        requested_providers: ['nobody'],
      }),
    }),
  );
});

test('unpriced endpoints serve where the operator allows it', () => {
  expect(tags(ask({ only: ['gamma'] }, { allow_unpriced: true }))).toEqual(['a/one@gamma']);
});

test.each<[string, InnerPart]>([
  ['image', { type: 'image_url', image_url: { url: 'data:image/png;base64,' } }],
  ['audio', { type: 'input_audio', input_audio: { data: '', format: 'wav' } }],
  ['video', { type: 'video_url', video_url: { url: 'data:video/mp4;base64,' } }],
])('a model or a host that does not take %s gets none', (kind, part) => {
  const image = { role: 'user' as const, content: [part] };
  const media = { input_modalities: ['text', kind] };
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

describe('own credentials', () => {
  const own = (id: string, provider: string, over: Partial<OwnCredential> = {}): OwnCredential => ({
    id,
    version: 1,
    provider,
    label: 'l',
    name: null,
    is_fallback: false,
    allow_shared_fallback: true,
    sort_order: 0,
    allowed_models: null,
    allowed_api_key_hashes: null,
    allowed_user_ids: null,
    unusable: undefined,
    secret: () => 's',
    ...over,
  });
  const planned = (
    credentials: OwnCredential[],
    provider?: ProviderPreferences,
    { models = [ONE], health = createHealth() }: { models?: Model[]; health?: Health } = {},
  ) => {
    const request = { messages: [{ role: 'user' as const, content: 'x' }], ...(provider ? { provider } : {}) };
    const found = plan(request, {
      models,
      provider: (slug) =>
        slug === 'gamma' ? ({ ...PROVIDERS['gamma'], is_own_only: true } as Provider) : PROVIDERS[slug],
      health,
      now_ms: 1000,
      allow_unpriced: true,
      own: credentials,
      caller: { key_hash: 'k', user_id: 'u' },
    });
    return { ...found, names: found.attempts.map((one) => `${one.own?.id ?? 'shared'}@${one.endpoint.tag}`) };
  };
  const SHARED = ['shared@beta', 'shared@beta/turbo', 'shared@alpha'];

  test.each<[string, OwnCredential[], ProviderPreferences | undefined, string[]]>([
    ['stand before all others', [own('1', 'alpha')], undefined, ['1@alpha', ...SHARED]],
    ['stand at every endpoint of their provider', [own('1', 'beta')], undefined, ['1@beta', '1@beta/turbo', ...SHARED]],
    [
      'stand in sort_order at each endpoint',
      [own('2', 'beta', { sort_order: 2 }), own('1', 'beta', { sort_order: 1 })],
      { ignore: ['alpha', 'beta/turbo'] },
      ['1@beta', '2@beta', 'shared@beta'],
    ],
    [
      'keep the order of the client among them, and before it',
      [own('1', 'alpha'), own('2', 'beta')],
      { order: ['alpha'], ignore: ['beta/turbo'] },
      ['1@alpha', '2@beta', 'shared@alpha', 'shared@beta'],
    ],
    ['stand behind as fallbacks', [own('1', 'alpha', { is_fallback: true })], undefined, [...SHARED, '1@alpha']],
    ['open a provider that has no other', [own('1', 'gamma')], { only: ['gamma'] }, ['1@gamma']],
    [
      'close the shared endpoints of every provider',
      [own('1', 'alpha', { allow_shared_fallback: false })],
      undefined,
      ['1@alpha'],
    ],
    [
      'close them where one of two does',
      [own('1', 'alpha'), own('2', 'alpha', { allow_shared_fallback: false })],
      undefined,
      ['1@alpha', '2@alpha'],
    ],
    [
      'close nothing as fallbacks',
      [own('1', 'alpha', { is_fallback: true, allow_shared_fallback: false })],
      undefined,
      [...SHARED, '1@alpha'],
    ],
    [
      'close nothing where the client goes elsewhere',
      [own('1', 'alpha', { allow_shared_fallback: false })],
      { only: ['beta'] },
      ['shared@beta', 'shared@beta/turbo'],
    ],
    ['of other keys are not there', [own('1', 'alpha', { allowed_api_key_hashes: ['x'] })], undefined, SHARED],
    ['of other users are not there', [own('1', 'alpha', { allowed_user_ids: ['x'] })], undefined, SHARED],
    ['for other models are not there', [own('1', 'alpha', { allowed_models: ['a/two'] })], undefined, SHARED],
    ['of providers that do not serve the model change nothing', [own('1', 'nobody')], undefined, SHARED],
    [
      'without fallbacks: those of the first endpoint',
      [own('1', 'beta'), own('2', 'beta')],
      { allow_fallbacks: false },
      ['1@beta', '2@beta'],
    ],
  ])('%s', (_title, credentials, preferences, expected) => {
    expect(planned(credentials, preferences).names).toEqual(expected);
  });

  test('close each model by itself', () => {
    const closed = own('1', 'beta', { allow_shared_fallback: false });
    expect(planned([closed], undefined, { models: [ONE, TWO] }).names).toEqual([
      '1@beta',
      '1@beta/turbo',
      'shared@alpha',
    ]);
  });

  test('that cannot be used say why, and the funnel counts endpoints, not credentials', () => {
    const dead = own('1', 'alpha', { unusable: 'it is dead', allow_shared_fallback: false });
    try {
      planned([dead, own('2', 'alpha', { is_fallback: true, unusable: 'it is dead too' })]);
      expect.unreachable();
    } catch (error) {
      expect(error).toMatchObject({ status: 404 });
      const { candidates, funnel } = (error as { plan: ReturnType<typeof plan> }).plan;
      expect(candidates.map(({ excluded }) => excluded?.reason)).toContain('it is dead too');
      expect(funnel.map(({ endpoint_count }) => endpoint_count)).toEqual(
        funnel.map(({ step }) => (step === 'Filter by Own Credentials' ? 0 : 3)),
      );
    }
  });

  test('that fail stand behind others, and nobody else’s stand elsewhere for it; a rotated one starts afresh', () => {
    const health = createHealth();
    const [one, two] = [own('1', 'beta'), own('2', 'alpha')];
    const [first] = planned([one, two]).attempts;
    if (first === undefined) throw new Error('nothing is planned');
    health.failed(healthId(first), 'credential', undefined, 1000);
    expect(planned([one, two], undefined, { health }).names.slice(0, 3)).toEqual(['1@beta/turbo', '2@alpha', '1@beta']);
    expect(planned([own('3', 'beta')], undefined, { health }).names[0]).toBe('3@beta');
    expect(planned([], undefined, { health }).names).toEqual(SHARED);
    expect(planned([own('1', 'beta', { version: 2 }), two], undefined, { health }).names[0]).toBe('1@beta');
  });
});
