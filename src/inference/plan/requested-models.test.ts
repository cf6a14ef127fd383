import { describe, expect, test } from 'vitest';
import { endpoint, model, PROVIDERS } from '../../../test/routing/routing-fixture.ts';
import type { ChatRequest } from '../../schemas/inner.ts';
import { type Lookup, requestedModels } from './requested-models.ts';

const made = (id: string, price = 1, extra = {}) => model(id, [endpoint(id, 'alpha', price)], extra);
const MODELS = [
  made('a/fast-2', 1, { created: 2, canonical_slug: 'a/fast-2-20260101' }),
  made('a/fast-1', 1, { created: 1 }),
  made('a/fast-1:free', 0),
  made('b/gift', 0),
  made('b/vectors', 1, { output_modalities: ['embeddings'] }),
];

function ask(request: Partial<ChatRequest>, over: Partial<Lookup> = {}) {
  const byId = new Map(MODELS.flatMap((one) => [[one.canonical_slug, one] as const, [one.id, one] as const]));
  const requested = requestedModels(
    { messages: [{ role: 'user', content: 'x' }], ...request },
    {
      catalog: { find: (id) => byId.get(id), models: () => MODELS, provider: (slug) => PROVIDERS[slug] },
      defaultModel: () => undefined,
      routers: { auto_models: ['a/fast-2', 'a/gone', 'a/fast-1'], free_models: 'all' },
      draw: () => 0,
      home: () => undefined,
      ...over,
    },
  );
  const [first] = requested.models;
  return { ...requested, ids: requested.models.map(({ id }) => id), variant: requested.variants?.get(first as never) };
}

describe('a requested name', () => {
  test.each<[string, string[], string, object | undefined]>([
    ['a/fast-1', ['a/fast-1'], 'direct', undefined],
    ['a/fast-2-20260101', ['a/fast-2'], 'alias', undefined],
    ['a/fast-1:free', ['a/fast-1:free'], 'direct', undefined],
    ['a/fast-2:free', ['a/fast-2'], 'direct', { free: true }],
    ['a/fast-1:free:exacto', ['a/fast-1:free'], 'direct', { sort: 'exacto' }],
    ['~a/fast-latest', ['a/fast-2'], 'latest', undefined],
    ['~a/fast-latest:nitro', ['a/fast-2'], 'latest', { sort: 'throughput', tiers: ['priority', 'fast'] }],
    ['gateway/auto', ['a/fast-2', 'a/fast-1'], 'auto', undefined],
    ['openrouter/auto', ['a/fast-2', 'a/fast-1'], 'auto', undefined],
    ['gateway/free', ['a/fast-1:free', 'b/gift'], 'free', { free: true }],
    ['gateway/auto:floor', ['a/fast-2', 'a/fast-1'], 'auto', { sort: 'price', tiers: ['flex'] }],
    ['openrouter/free:exacto', ['a/fast-1:free', 'b/gift'], 'free', { sort: 'exacto', free: true }],
  ])('%s', (name, ids, strategy, variant) => {
    expect(ask({ model: name })).toMatchObject({ ids, strategy, requested: name });
    expect(ask({ model: name }).variant).toEqual(variant);
  });

  test.each(['a/nobody', 'a/fast-1:unknown', '~a/slow-latest', 'gateway/other'])('%s is not a model', (name) => {
    expect(() => ask({ models: ['a/fast-1', name] })).toThrow(
      expect.objectContaining({
        status: 400,
        metadata: { field: 'models[1]' },
        message: expect.stringContaining(name),
      }),
    );
  });

  test('of a router without models is skipped if there are other names', () => {
    const nothing = { routers: { auto_models: ['a/gone'], free_models: 'all' as const } };
    expect(ask({ models: ['gateway/auto', 'a/fast-1'] }, nothing)).toMatchObject({
      ids: ['a/fast-1'],
      requested: 'gateway/auto',
      names: [
        { name: 'gateway/auto', models: [] },
        { name: 'a/fast-1', models: [MODELS[1]] },
      ],
    });
    for (const models of [['gateway/auto'], ['gateway/auto', 'openrouter/auto']]) {
      expect(() => ask({ models }, nothing)).toThrow(
        expect.objectContaining({
          status: 404,
          metadata: expect.objectContaining({ failed_routing_step: 'Initial Endpoints' }),
        }),
      );
    }
  });

  test('of a model that is listed twice is not a fallback list', () => {
    expect(ask({ model: 'a/fast-2-20260101', models: ['a/fast-2'] })).toMatchObject({
      ids: ['a/fast-2'],
      strategy: 'alias',
    });
    expect(ask({ model: 'a/fast-2-20260101', models: ['a/fast-1'] }).strategy).toBe('fallback');
  });

  test('of a batch variant is a 404, of an embedding model a 400', () => {
    expect(() => ask({ model: 'a/fast-1:batch' })).toThrow(expect.objectContaining({ status: 404 }));
    expect(() => ask({ model: 'b/vectors' })).toThrow(expect.objectContaining({ status: 400 }));
  });

  test.each(['gateway/free'])('%s must be configured', (name) => {
    const routers = { auto_models: undefined, free_models: undefined };
    expect(() => ask({ model: name }, { routers })).toThrow(expect.objectContaining({ status: 400 }));
  });
});

describe('several names', () => {
  test('are tried in order, each model once', () => {
    const result = ask({ model: 'a/fast-1', models: ['gateway/auto', 'b/gift', 'a/fast-1'] });
    expect(result).toMatchObject({ ids: ['a/fast-1', 'a/fast-2', 'b/gift'], strategy: 'fallback' });
    expect(result.requested).toBe('a/fast-1');
  });
  test('of a free variant and then of its model select the free endpoints first and the priced ones second', () => {
    const both = model('a/both', [endpoint('a/both', 'alpha', 0), endpoint('a/both', 'beta', 1)]);
    const catalog = {
      find: (id: string) => (id === both.id ? both : MODELS.find((one) => one.id === id)),
      models: () => [both, ...MODELS],
      provider: (slug: string) => PROVIDERS[slug],
    };
    const turns = (models: string[]) => {
      const result = ask({ models }, { catalog });
      return result.models.map((one) => [
        one.id,
        result.variants?.get(one)?.free === true ? 'free' : one.endpoints.map(({ provider }) => provider).join(),
      ]);
    };
    const rest = ['a/both', 'beta'];
    expect(turns(['a/both:free', 'a/both'])).toEqual([['a/both', 'free'], rest]);
    expect(turns(['a/both:free', 'a/both:free', 'a/both', 'a/both'])).toEqual([['a/both', 'free'], rest]);
    expect(turns(['gateway/free', 'a/both'])).toEqual([
      ['a/both', 'free'],
      ['a/fast-1:free', 'free'],
      ['b/gift', 'free'],
      rest,
    ]);
    expect(turns(['a/fast-2:free', 'a/fast-2'])).toEqual([
      ['a/fast-2', 'free'],
      ['a/fast-2', 'alpha'],
    ]);
    expect(turns(['a/both', 'a/both:free'])).toEqual([['a/both', 'alpha,beta']]);
    expect(turns(['b/gift:free', 'b/gift'])).toEqual([['b/gift', 'free']]);
  });
  test('keep the variant of each name', () => {
    const result = ask({ models: ['a/fast-1:floor', 'a/fast-2'] });
    expect(result.models.map((one) => result.variants?.get(one)?.sort)).toEqual(['price', undefined]);
    expect(ask({ models: ['a/fast-1:floor', 'a/fast-1:nitro'] }).variant).toMatchObject({ sort: 'price' });
  });
});

describe('a request without a model', () => {
  test('gets the default, with the variant of its name', () => {
    expect(ask({}, { defaultModel: () => 'a/fast-1:nitro' })).toMatchObject({ ids: ['a/fast-1'] });
    expect(ask({ models: ['b/gift'] }, { defaultModel: () => 'a/fast-1' }).ids).toEqual(['b/gift']);
  });
  test('without a default is answered by the enabled models, newest first', () => {
    const routers = { auto_models: undefined, free_models: undefined };
    expect(ask({}, { routers })).toMatchObject({ ids: expect.arrayContaining(['a/fast-1']), strategy: 'auto' });
    expect(ask({}, { routers }).ids[0]).toBe('a/fast-2');
  });
  test('is a 400 if no model is enabled', () => {
    const routers = { auto_models: undefined, free_models: undefined };
    const catalog = { find: () => undefined, models: () => [], provider: () => undefined };
    expect(() => ask({}, { routers, catalog })).toThrow(expect.objectContaining({ status: 400 }));
  });
});

describe(':thinking', () => {
  test('enables reasoning if the request does not mention it', () => {
    expect(ask({ model: 'a/fast-1:thinking' }).variant).toEqual({ sends: { reasoning: { enabled: true } } });
    expect(ask({ model: 'a/fast-1:thinking', reasoning: { effort: 'low' } }).variant).toEqual({});
    expect(ask({ model: 'a/fast-1:thinking', reasoning_effort: 'none' }).variant).toEqual({});
  });
});

describe(':online', () => {
  test('adds the plugin web, unless the request mentions it', () => {
    expect(ask({ model: 'a/fast-1:online' }).request?.plugins).toEqual([{ id: 'web' }]);
    expect(ask({ model: 'a/fast-1:online', plugins: [{ id: 'web', max_results: 3 }] }).request).toBeUndefined();
    expect(ask({ model: 'a/fast-1:online', plugins: [{ id: 'web', enabled: false }] }).request).toBeUndefined();
    expect(ask({ model: 'a/fast-1' }).request).toBeUndefined();
  });
});

test('an output bound must be below the context length of the models', () => {
  expect(() => ask({ model: 'a/fast-1', max_tokens: 1_000 })).toThrow(expect.objectContaining({ status: 400 }));
  expect(ask({ model: 'a/fast-1', max_tokens: 999 }).ids).toEqual(['a/fast-1']);
});
