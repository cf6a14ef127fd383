import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { endpoint, model, ONE, PROVIDERS, planned, TWO } from '../../test/routing/routing-fixture.ts';
import type { Model } from '../catalog/model.ts';
import { GatewayError } from '../errors.ts';
import { limits } from '../limits.ts';
import { endpointParameters } from '../schemas/endpoint.ts';
import type { ChatRequest, InnerPart, ProviderPreferences } from '../schemas/inner.ts';
import { createHealth, type Health } from './health.ts';
import { type PlanContext, plan, unsupportedParameters } from './plan.ts';

function planFor(
  provider: ProviderPreferences | undefined,
  more: {
    request?: Partial<ChatRequest>;
    models?: Model[];
    health?: Health;
    allow_unpriced?: boolean;
    prefers?: PlanContext['prefers'];
  } = {},
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
    draw: 0,
    allow_unpriced: more.allow_unpriced ?? false,
    prefers: more.prefers,
  });
}
const tags = (result: ReturnType<typeof plan>) =>
  result.attempts.map((candidate) => `${candidate.model.id}@${candidate.endpoint.tag}`);

test.each<[string, ProviderPreferences | undefined, string[]]>([
  ['cheapest first, without unpriced endpoints', undefined, ['beta', 'beta/turbo', 'alpha']],
  ['order is first, and the rest follow', { order: ['alpha'] }, ['alpha', 'beta', 'beta/turbo']],
  ['order takes display names in any case', { order: ['ALPHA ai'] }, ['alpha', 'beta', 'beta/turbo']],
  ['order of a tag', { order: ['beta/turbo'] }, ['beta/turbo', 'beta', 'alpha']],
  ['order of a base slug takes all its endpoints', { order: ['beta', 'alpha'] }, ['beta', 'beta/turbo', 'alpha']],
  ['an unknown name in order is ignored', { order: ['nobody', 'alpha'] }, ['alpha', 'beta', 'beta/turbo']],
  ['no fallbacks: only the first', { allow_fallbacks: false }, ['beta']],
  [
    'no fallbacks with order: only those of the order',
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
  expect(tags(planFor(preferences))).toEqual(expected.map((tag) => `a/one@${tag}`));
});

describe('models', () => {
  test('share the plan, whatever the number of endpoints of the first', () => {
    const of = (id: string, count: number) =>
      model(
        id,
        Array.from({ length: count }, (_, at) => endpoint(id, 'alpha', at + 1, { tag: `alpha/${at}` })),
      );
    const tried = (...counts: number[]) => {
      const models = counts.map((count, at) => of(`a/${at}`, count));
      const { attempts } = planned({}, { models });
      return models.map((one) => attempts.filter((candidate) => candidate.model === one).length);
    };
    expect(tried(30)).toEqual([16]);
    expect(tried(30, 1)).toEqual([15, 1]);
    expect(tried(1, 30)).toEqual([1, 15]);
    expect(tried(12, 12, 12)).toEqual([8, 4, 4]);
    expect(tried(8, 8)).toEqual([8, 8]);
    expect(tried(...Array.from({ length: 20 }, () => 1))).toEqual([...Array(16).fill(1), 0, 0, 0, 0]);
  });

  test('of a router are examined beyond the attempt bound if the first ones do not fill the plan', () => {
    const many = Array.from({ length: 40 }, (_, at) =>
      model(`a/${at}`, [endpoint(`a/${at}`, at === 39 ? 'gamma' : at < 20 ? 'alpha' : 'beta', 1)]),
    );
    const among = (provider: ProviderPreferences) => {
      const result = planned({ provider }, { models: many, strategy: 'auto' });
      return { looked: result.candidates.length, tried: result.attempts.map((one) => one.model.id) };
    };
    expect(among({})).toEqual({ looked: 16, tried: many.slice(0, 16).map(({ id }) => id) });
    expect(among({ only: ['beta'] })).toEqual({ looked: 40, tried: many.slice(20, 36).map(({ id }) => id) });
    expect(among({ only: ['gamma'] })).toEqual({ looked: 40, tried: ['a/39'] });
    expect(() => among({ only: ['nobody'] })).toThrow(expect.objectContaining({ status: 404 }));
  });
  test('are tried in order, each with its providers', () => {
    expect(tags(planFor(undefined, { models: [TWO, ONE] }))).toEqual([
      'a/two@alpha',
      'a/one@beta',
      'a/one@beta/turbo',
      'a/one@alpha',
    ]);
  });
  test('stay fallbacks if provider fallbacks are disabled', () => {
    expect(tags(planFor({ allow_fallbacks: false }, { models: [ONE, TWO] }))).toEqual(['a/one@beta', 'a/two@alpha']);
  });
});

test('an endpoint in a cool-down is last but not excluded, and the client’s own order is kept', () => {
  const health = createHealth();
  health.failed('beta|a/one', 'unavailable', undefined, 900);
  expect(tags(planFor(undefined, { health }))).toEqual(['a/one@beta/turbo', 'a/one@alpha', 'a/one@beta']);
  expect(tags(planFor({ only: ['beta'], ignore: ['beta/turbo'] }, { health }))).toEqual(['a/one@beta']);
  expect(tags(planFor({ order: ['beta'] }, { health }))[0]).toBe('a/one@beta/turbo');
});

test('the endpoint of the conversation’s state precedes cheaper ones, but not the client’s own order', () => {
  const prefers: PlanContext['prefers'] = ({ provider }) => provider.slug === 'alpha';
  expect(tags(planFor(undefined, { prefers }))).toEqual(['a/one@alpha', 'a/one@beta', 'a/one@beta/turbo']);
  expect(tags(planFor({ order: ['beta'] }, { prefers }))).toEqual(['a/one@beta', 'a/one@beta/turbo', 'a/one@alpha']);
  const health = createHealth();
  health.failed('alpha|a/one', 'unavailable', undefined, 900);
  expect(tags(planFor(undefined, { prefers, health }))[2]).toBe('a/one@alpha');
});

test('require_parameters excludes endpoints that lack one', () => {
  expect(tags(planFor({ require_parameters: true }, { request: { top_k: 5 } }))).toEqual([
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
  ['an output bound, which is never unsupported', { max_tokens: 5, max_completion_tokens: 5 }, []],
  ['a null', { top_k: null }, []],
])('%s is supported by %s', (_title, request, supportedParameters) => {
  const able = endpoint('a/able', 'alpha', 1, { supported_parameters: supportedParameters });
  expect(unsupportedParameters({ messages: [], ...request }, able)).toEqual([]);
});

test('every other parameter is unsupported if it is not listed', () => {
  const request = { messages: [], tools: [], tool_choice: 'auto', reasoning: {}, seed: 1, prediction: {} };
  const none = endpoint('a/none', 'alpha', 1, { supported_parameters: [] });
  expect(unsupportedParameters(request as unknown as ChatRequest, none).toSorted()).toEqual([
    'prediction',
    'reasoning',
    'seed',
    'tool_choice',
    'tools',
  ]);
});

test('unsupported parameters are listed in a fixed order', () => {
  const none = endpoint('a/none', 'alpha', 1, { supported_parameters: [] });
  const request: Partial<ChatRequest> = { seed: 1, top_k: 5, temperature: 1, tools: [], stop: 'x' };
  const turned = Object.fromEntries(Object.entries(request).reverse());
  const unsupported = unsupportedParameters({ messages: [], ...request }, none);
  expect(unsupported).toEqual(endpointParameters.filter((name) => name in request));
  expect(unsupportedParameters({ ...turned, messages: [] }, none)).toEqual(unsupported);
});

test('an unknown training policy is not a refusal to train, and unknown retention is not zero retention', () => {
  const priced = model('a/x', [endpoint('a/x', 'gamma', 1), endpoint('a/x', 'alpha', 2)]);
  expect(tags(planFor({ data_collection: 'deny' }, { models: [priced] }))).toEqual(['a/x@alpha']);
  expect(tags(planFor({ zdr: true }, { models: [priced] }))).toEqual(['a/x@alpha']);
});

test('the ranking price weights three prompt tokens to one completion token', () => {
  const priced = (provider: string, prompt: number, completion: number) =>
    endpoint('a/x', provider, 1, { pricing: { prompt, completion } });
  const one = model('a/x', [priced('alpha', 10, 10), priced('beta', 9, 14), priced('gamma', 5, 24)]);
  expect(tags(planFor(undefined, { models: [one] }))).toEqual(['a/x@gamma', 'a/x@alpha', 'a/x@beta']);
});

test.each<[string, ProviderPreferences['max_price'], string[]]>([
  ['per request, in USD', { request: 0.001 }, ['alpha']],
  ['per image, in USD', { image: 0.001 }, ['alpha']],
  ['an equal price is not above it', { request: 0.002, image: 0.002 }, ['alpha', 'beta']],
])('max_price excludes more expensive endpoints: %s', (_title, maxPrice, expected) => {
  const priced = (provider: string, each: number) =>
    endpoint('a/x', provider, 1, { pricing: { prompt: 1, completion: 1, request: each, image: each } });
  const one = model('a/x', [priced('alpha', 1_000_000_000), priced('beta', 2_000_000_000)]);
  expect(tags(planFor({ max_price: maxPrice }, { models: [one] }))).toEqual(expected.map((tag) => `a/x@${tag}`));
});

test('an invalid max_price is a 400', () => {
  expect(() => planFor({ max_price: { prompt: -1 } })).toThrow(expect.objectContaining({ status: 400 }));
});

test('a plan has at most the bound of endpoints', () => {
  const many = Array.from({ length: limits.attempts_max + 3 }, (_, n) =>
    endpoint('a/x', 'alpha', n, { tag: `alpha/${n}` }),
  );
  expect(planFor(undefined, { models: [model('a/x', many)] }).attempts).toHaveLength(limits.attempts_max);
});

test('a request for one model has the strategy direct, for several fallback', () => {
  expect(planFor(undefined).strategy).toBe('direct');
  expect(planFor(undefined, { models: [ONE, TWO] }).strategy).toBe('fallback');
});

test('a model without the requested output modality is excluded', () => {
  const speaking = model('a/speaks', [endpoint('a/speaks', 'alpha', 1)], { output_modalities: ['text', 'audio'] });
  const request = { modalities: ['text', 'audio'] };
  expect(tags(planFor(undefined, { request, models: [ONE, speaking] }))).toEqual(['a/speaks@alpha']);
});

test('404 of `only` names the available and the requested providers', () => {
  expect(() => planFor({ only: ['nobody'] })).toThrow(
    expect.objectContaining({
      metadata: expect.objectContaining({
        available_providers: ['alpha', 'beta', 'gamma'],
        requested_providers: ['nobody'],
      }),
    }),
  );
});

test('unpriced endpoints are used if the operator allows it', () => {
  expect(tags(planFor({ only: ['gamma'] }, { allow_unpriced: true }))).toEqual(['a/one@gamma']);
});

test.each<[string, InnerPart]>([
  ['image', { type: 'image_url', image_url: { url: 'data:image/png;base64,' } }],
  ['audio', { type: 'input_audio', input_audio: { data: '', format: 'wav' } }],
  ['video', { type: 'video_url', video_url: { url: 'data:video/mp4;base64,' } }],
])('a model or endpoint without support for %s is excluded', (kind, part) => {
  const image = { role: 'user' as const, content: [part] };
  const media = { input_modalities: ['text', kind] };
  const seeing = model('a/sees', [endpoint('a/sees', 'beta', 1), endpoint('a/sees', 'alpha', 2, media)], media);
  expect(tags(planFor(undefined, { request: { messages: [image] }, models: [ONE, seeing] }))).toEqual(['a/sees@alpha']);
});

test.each<[string, ProviderPreferences, string]>([
  ['only', { only: ['nobody'] }, 'Filter by Allowed Providers'],
  ['ignore', { ignore: ['alpha', 'beta'] }, 'Filter by Ignored Providers'],
  ['max_price', { max_price: { completion: 0 } }, 'Filter by Max Price'],
  ['quantizations', { quantizations: ['int4'] }, 'Filter by Quantization'],
  ['order without fallbacks', { order: ['nobody'], allow_fallbacks: false }, 'Filter by Provider Order'],
])('a 404 names the step that excluded the last endpoint: %s', (_title, preferences, step) => {
  const failure = (() => {
    try {
      return planFor(preferences);
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

test('a plan is a permutation of the allowed endpoints, and has a reason for all others', () => {
  const slug = fc.constantFrom<string[]>('alpha', 'beta', 'gamma', 'beta/turbo', 'nobody');
  const list = fc.option(fc.array(slug, { maxLength: 3 }), { nil: undefined });
  fc.assert(
    fc.property(list, list, list, fc.boolean(), (order, only, ignore, allowFallbacks) => {
      const preferences = {
        ...(order && { order }),
        ...(only && { only }),
        ...(ignore && { ignore }),
        allow_fallbacks: allowFallbacks,
      };
      let result: ReturnType<typeof plan>;
      try {
        result = planFor(preferences, { models: [ONE, TWO] });
      } catch (error) {
        expect((error as GatewayError).status).toBe(404);
        return;
      }
      expect(new Set(result.attempts).size).toBe(result.attempts.length);
      for (const attempt of result.attempts) {
        expect(attempt.excluded).toBeUndefined();
        const { slug: provider } = attempt.provider;
        if (only?.length) expect(only.includes(provider) || only.includes(attempt.endpoint.tag)).toBe(true);
        expect(ignore?.includes(provider) || ignore?.includes(attempt.endpoint.tag)).not.toBe(true);
      }
      for (const candidate of result.candidates) {
        const leftOut = !result.attempts.includes(candidate);
        if (leftOut && allowFallbacks) expect(candidate.excluded?.reason).toBeTruthy();
      }
    }),
  );
});
