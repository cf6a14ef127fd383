import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { endpoint, model } from '../../test/routing/routing-fixture.ts';
import type { ChatRequest } from '../schemas/inner.ts';
import { matchesPattern } from '../schemas/model-pattern.ts';
import { needsOf } from './needs.ts';
import type { NoEndpoint } from './refusal.ts';
import { autoModels, freeChoice, freeModels, MODEL_PATTERN_CHARS_MAX, MODEL_PATTERNS_MAX } from './router-models.ts';

const BEST = model('a/best', [endpoint('a/best', 'alpha', 100, { context_length: 1_000 })]);
const LONG = model('b/long', [
  endpoint('b/long', 'alpha', 10, { context_length: 100_000, supported_parameters: ['tools'] }),
]);
const SEES = model(
  'b/sees',
  [
    endpoint('b/sees', 'alpha', 50, {
      context_length: 1_000,
      input_modalities: ['text', 'image'],
      supported_parameters: ['structured_outputs'],
    }),
  ],
  { input_modalities: ['text', 'image'] },
);
const ALL = [BEST, LONG, SEES];

const request = (more: Partial<ChatRequest> = {}): ChatRequest => ({
  messages: [{ role: 'user', content: 'x' }],
  ...more,
});
const choice = (more: Partial<ChatRequest> = {}, home?: string, draw = 0) => {
  const routed = request(more);
  return { request: routed, needs: needsOf(routed), draw, home };
};
const ids = (models: readonly { id: string }[]) => models.map(({ id }) => id);
const plugin = (options: Record<string, unknown>) =>
  ({ plugins: [{ id: 'auto-router', ...options }] }) as Partial<ChatRequest>;
const image = [{ role: 'user' as const, content: [{ type: 'image_url' as const, image_url: { url: 'data:,' } }] }];

describe('the auto router', () => {
  test.each<[string, Partial<ChatRequest>, string[]]>([
    ['the operator’s order', {}, ['a/best', 'b/long', 'b/sees']],
    ['images', { messages: image }, ['b/sees']],
    ['tools', { tools: [{ type: 'function', function: { name: 'f' } }] }, ['a/best', 'b/long']],
    [
      'a schema',
      { response_format: { type: 'json_schema', json_schema: { name: 'a', schema: {} } } },
      ['a/best', 'b/sees'],
    ],
    ['a long prompt', { messages: [{ role: 'user', content: 'x'.repeat(8_000) }] }, ['b/long']],
    ['a long answer', { max_tokens: 5_000 }, ['b/long']],
    ['models of one author', plugin({ allowed_models: ['b/*'] }), ['b/long', 'b/sees']],
    ['all but models of one author', plugin({ excluded_models: ['b/*'] }), ['a/best']],
    [
      'allowed models without the excluded ones',
      plugin({ allowed_models: ['b/*'], excluded_models: ['*/long'] }),
      ['b/sees'],
    ],
    ['no pattern at all', plugin({ allowed_models: [] }), ['a/best', 'b/long', 'b/sees']],
    ['a disabled plugin', plugin({ allowed_models: ['b/*'], enabled: false }), ['a/best', 'b/long', 'b/sees']],
    ['quality alone', plugin({ cost_quality_tradeoff: 0 }), ['a/best', 'b/long', 'b/sees']],
    ['cost alone', plugin({ cost_quality_tradeoff: 10 }), ['b/long', 'b/sees', 'a/best']],
    [
      'the lowest cost tier, over the tradeoff',
      plugin({ cost_tier: 'low', cost_quality_tradeoff: 0 }),
      ['b/long', 'b/sees', 'a/best'],
    ],
    ['the highest cost tier', plugin({ cost_tier: 'max' }), ['a/best', 'b/long', 'b/sees']],
    ['quality and cost alike', plugin({ cost_quality_tradeoff: 5 }), ['b/long', 'a/best', 'b/sees']],
  ])('selects suitable models: %s', (_title, more, expected) => {
    expect(ids(autoModels(ALL, choice(more)))).toEqual(expected);
  });

  test('keeps the model of a conversation while it is suitable', () => {
    expect(ids(autoModels(ALL, choice({}, 'b/sees')))).toEqual(['b/sees', 'a/best', 'b/long']);
    expect(ids(autoModels(ALL, choice({ max_tokens: 5_000 }, 'b/sees')))).toEqual(['b/long']);
  });

  test('keeps the model named by the last answer, if it is pinned and allowed', () => {
    const messages = [
      { role: 'assistant', content: 'x', model: 'b/sees' },
      { role: 'user', content: 'y' },
    ] as unknown as ChatRequest['messages'];
    const pinned = (options: object) =>
      ids(autoModels(ALL, choice({ messages, ...plugin({ pin_model: true, ...options }) })));
    expect(pinned({})).toEqual(['b/sees', 'a/best', 'b/long']);
    expect(pinned({ pin_model: false })).toEqual(['a/best', 'b/long', 'b/sees']);
    expect(pinned({ excluded_models: ['b/sees'] })).toEqual(['a/best', 'b/long']);
  });

  test('is a 404 if no model is suitable', () => {
    const error = expect.objectContaining({
      status: 404,
      message: 'No models match your request and model restrictions',
    });
    expect(() => autoModels(ALL, choice(plugin({ allowed_models: ['c/*'] })))).toThrow(error);
    expect(() => autoModels([], choice())).toThrow(error);
  });

  test.each<[string, string, () => unknown]>([
    ['Initial Endpoints', 'model', () => autoModels([], choice())],
    ['Initial Endpoints', 'model', () => freeChoice([], choice())],
    ['Filter by Allowed Models', 'plugins', () => autoModels(ALL, choice(plugin({ allowed_models: ['c/*'] })))],
    ['Filter by Request', 'model', () => autoModels(ALL, choice({ max_tokens: 500_000 }))],
    ['Filter by Free Endpoints', 'model', () => freeChoice(ALL, choice())],
    [
      'Filter by Request',
      'model',
      () => freeChoice([model('a/1', [endpoint('a/1', 'alpha', 0)])], choice({ modalities: ['audio'] })),
    ],
  ])('names the step that excluded the last model: %s', (step, field, choose) => {
    try {
      choose();
      expect.unreachable();
    } catch (error) {
      const { metadata, plan } = error as NoEndpoint;
      expect(metadata).toMatchObject({ failed_routing_step: step, constraint: { field }, routing_funnel: plan.funnel });
      expect(plan.funnel.find(({ endpoint_count: endpointCount }) => endpointCount === 0)?.step).toBe(step);
    }
  });

  test('leaves the number of tried models to the plan', () => {
    const many = Array.from({ length: 40 }, (_, at) => model(`a/${at}`, [endpoint(`a/${at}`, 'alpha', 0)]));
    expect(autoModels(many, choice())).toHaveLength(40);
    expect(freeChoice(many, choice())).toHaveLength(40);
  });

  test.each([
    [{ allowed_models: 'b/*' }],
    [{ allowed_models: [1] }],
    [{ allowed_models: Array(MODEL_PATTERNS_MAX + 1).fill('a') }],
    [{ allowed_models: ['x'.repeat(MODEL_PATTERN_CHARS_MAX + 1)] }],
    [{ allowed_models: Array(65).fill('x'.repeat(1_024)) }],
    [{ excluded_models: 'b/*' }],
    [{ excluded_models: [1] }],
    [{ cost_tier: 'cheap' }],
    [{ cost_tier: 'constructor' }],
    [{ pin_model: 'yes' }],
    [{ cost_quality_tradeoff: 11 }],
    [{ cost_quality_tradeoff: 'much' }],
  ])('refuses wrong options', (options) => {
    expect(() => autoModels(ALL, choice(plugin(options)))).toThrow(expect.objectContaining({ status: 400 }));
  });
});

describe('the free router', () => {
  const free = (id: string, extra = {}) => model(id, [endpoint(id, 'alpha', 0, extra)]);
  const three = [free('a/1'), free('a/2', { supported_parameters: [] }), free('a/3')];

  test('draws evenly among suitable models, and the others follow', () => {
    const drawn = (draw: number, more: Partial<ChatRequest> = {}) =>
      ids(freeChoice(three, choice(more, undefined, draw)));
    expect(drawn(0)).toEqual(['a/1', 'a/2', 'a/3']);
    expect(drawn(0.34)).toEqual(['a/2', 'a/3', 'a/1']);
    expect(drawn(0.999)[0]).toBe('a/3');
    const tools = { tools: [{ type: 'function' as const, function: { name: 'f' } }] };
    expect(drawn(0.49, tools)).toEqual(['a/1', 'a/3']);
    expect(drawn(0.51, tools)).toEqual(['a/3', 'a/1']);
  });

  test('considers free endpoints alone: abilities of a priced endpoint of the same model do not count', () => {
    const half = model('a/half', [
      endpoint('a/half', 'alpha', 0, { supported_parameters: [], context_length: 1_000 }),
      endpoint('a/half', 'beta', 1),
    ]);
    const tools = { tools: [{ type: 'function' as const, function: { name: 'f' } }] };
    const long = { messages: [{ role: 'user' as const, content: 'x'.repeat(8_000) }] };
    const models = [half, free('a/whole', { context_length: 100_000 })];
    expect(ids(freeChoice(models, choice()))).toEqual(['a/half', 'a/whole']);
    expect(ids(freeChoice(models, choice(tools)))).toEqual(['a/whole']);
    expect(ids(freeChoice(models, choice(long)))).toEqual(['a/whole']);
  });

  test('selects the models with a free endpoint', () => {
    const priced = model('a/paid', [endpoint('a/paid', 'alpha', 1)]);
    const fee = model('a/fee', [endpoint('a/fee', 'alpha', 0, { pricing: { prompt: 0, completion: 0, request: 5 } })]);
    const unknown = model('a/unknown', [endpoint('a/unknown', 'alpha', undefined)]);
    const half = model('a/half', [endpoint('a/half', 'alpha', 1), endpoint('a/half', 'beta', 0)]);
    expect(ids(freeModels([priced, fee, unknown, half, ...three]))).toEqual(['a/half', 'a/1', 'a/2', 'a/3']);
  });
});

describe('patterns', () => {
  test.each<[string, string, boolean]>([
    ['a/x', 'a/x', true],
    ['a/x', 'a/xy', false],
    ['a/x', '*', true],
    ['a/x', 'a/*', true],
    ['a/x', '*x', true],
    ['a/x', '*y', false],
    ['a/x-mini-2', 'a/*mini*', true],
    ['aba', 'ab*ba', false],
    ['abba', 'ab*ba', true],
    ['A/x', 'a/*', false],
    ['a.x', 'a?x', false],
  ])('%s and %s: %j', (name, pattern, expected) => {
    expect(matchesPattern(name, pattern)).toBe(expected);
  });

  test('match like the corresponding regular expression', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', '*', '.'), maxLength: 12 });
    fc.assert(
      fc.property(text, text, (name, pattern) => {
        const source = pattern.replaceAll('.', '\\.').replaceAll('*', '[^]*');
        expect(matchesPattern(name, pattern)).toBe(new RegExp(`^${source}$`).test(name));
      }),
    );
  });
});
