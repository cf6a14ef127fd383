import { describe, expect, test } from 'vitest';
import { endpoint, model, planned, refused, tagsOf } from '../../test/routing/routing-fixture.ts';
import type { ChatRequest, ProviderPreferences } from '../schemas/inner.ts';
import { rules } from './rules.ts';

const json = (type: 'json_object' | 'json_schema') =>
  (type === 'json_object' ? { type } : { type, json_schema: { name: 'a', schema: {} } }) as NonNullable<
    ChatRequest['response_format']
  >;
const tools = [{ type: 'function' as const, function: { name: 'f' } }];

describe('quantizations', () => {
  const formats = ['fp4', 'fp8', 'bf16', 'unknown'];
  const quantized = model(
    'a/x',
    formats.map((quantization, n) => endpoint('a/x', 'alpha', n + 1, { quantization, tag: `alpha/${quantization}` })),
  );
  test.each<[string[], string[]]>([
    [['fp4'], ['fp4']],
    [
      ['unknown', 'bf16', 'int2'],
      ['bf16', 'unknown'],
    ],
  ])('%j allow the endpoints %j', (quantizations, expected) => {
    const result = planned({ provider: { quantizations } }, { models: [quantized] });
    expect(tagsOf(result)).toEqual(expected.map((name) => `alpha/${name}`));
  });
});

test('only models whose author allows distillation are used', () => {
  const open = model('a/open', [endpoint('a/open', 'alpha', 1)], { is_distillable: true });
  const closed = model('a/closed', [endpoint('a/closed', 'alpha', 1)], { is_distillable: false });
  const unknown = model('a/unknown', [endpoint('a/unknown', 'alpha', 1)]);
  const provider = { enforce_distillable_text: true };
  const result = planned({ provider }, { models: [closed, unknown, open] });
  expect(result.attempts.map((one) => one.model.id)).toEqual(['a/open']);
});

test('a prompt that cannot fit is not sent, and one that may fit is sent', () => {
  const small = model('a/x', [endpoint('a/x', 'alpha', 1, { context_length: 100 })]);
  const plugins = [{ id: 'context-compression', enabled: false }];
  const of = (chars: number): Partial<ChatRequest> => ({
    messages: [{ role: 'user', content: 'x'.repeat(chars) }],
    plugins,
  });
  expect(tagsOf(planned(of(100 * 128 + 127), { models: [small] }))).toEqual(['alpha']);
  const refusal = refused(of(101 * 128), { models: [small] });
  expect(refusal).toMatchObject({ status: 400, message: expect.stringMatching(/shorten it.*context-compression/) });
  expect(refusal.metadata).toMatchObject({ failed_routing_step: 'Filter by Context Length' });
});

describe('a prompt that may be shortened', () => {
  const of = (tokens: number, more: Partial<ChatRequest> = {}): Partial<ChatRequest> => ({
    messages: [{ role: 'user', content: 'x'.repeat(tokens * 4) }],
    ...more,
  });
  const sized = (...lengths: number[]) =>
    model(
      'a/x',
      lengths.map((contextLength, n) =>
        endpoint('a/x', 'alpha', n + 1, { context_length: contextLength, tag: `alpha/${contextLength}` }),
      ),
    );
  const on = { plugins: [{ id: 'context-compression' }] };

  test('is sent to an endpoint with a small context that holds at least half of it, by default', () => {
    expect(tagsOf(planned(of(8_000), { models: [sized(4_000)] }))).toEqual(['alpha/4000']);
    expect(tagsOf(planned(of(8_001), { models: [sized(4_000, 8_192)] }))).toEqual(['alpha/8192']);
  });
  test('is sent to the largest context if none holds half of it', () => {
    expect(tagsOf(planned(of(900_000), { models: [sized(1_000, 8_192)] }))).toEqual(['alpha/8192']);
    expect(tagsOf(planned(of(900_000, on), { models: [sized(1_000, 100_000, 8_192)] }))).toEqual(['alpha/100000']);
  });
  test('is shortened for a larger context only on request, also in the older form', () => {
    const models = [sized(10_000)];
    expect(refused(of(400_000), { models }).status).toBe(400);
    expect(tagsOf(planned(of(400_000, on), { models }))).toEqual(['alpha/10000']);
    expect(tagsOf(planned(of(400_000, { transforms: ['middle-out'] }), { models }))).toEqual(['alpha/10000']);
    expect(refused(of(900_000, { transforms: [] }), { models: [sized(8_000)] }).status).toBe(400);
  });
});

test('files for the model’s own parser are sent to endpoints that accept files', () => {
  const both = model('a/x', [
    endpoint('a/x', 'alpha', 1, { tag: 'alpha/text' }),
    endpoint('a/x', 'alpha', 2, { tag: 'alpha/files', input_modalities: ['text', 'file'] }),
  ]);
  const file = { type: 'file' as const, file: { file_data: 'data:application/pdf;base64,' } };
  const filesRequest = (engine: string) => ({
    messages: [{ role: 'user' as const, content: [file] }],
    plugins: [{ id: 'file-parser', pdf: { engine } }],
  });
  expect(tagsOf(planned(filesRequest('native'), { models: [both] }))).toEqual(['alpha/files']);
  expect(tagsOf(planned(filesRequest('pdf-text'), { models: [both] }))).toEqual(['alpha/text', 'alpha/files']);
});

describe('a parameter of a request', () => {
  const able = (names: string[], tag: string, price = 9) =>
    endpoint('a/x', 'alpha', price, { supported_parameters: names, tag });
  const one = model('a/x', [
    able(['temperature'], 'alpha/plain', 1),
    able(['tools', 'tool_choice'], 'alpha/tools', 2),
    able(['response_format'], 'alpha/json', 3),
    able(['structured_outputs', 'verbosity'], 'alpha/schema', 4),
  ]);
  test.each<[string, Partial<ChatRequest>, string[]]>([
    ['tools', { tools }, ['alpha/tools']],
    ['no tools', { tools: [] }, ['alpha/plain', 'alpha/tools', 'alpha/json', 'alpha/schema']],
    ['a JSON object', { response_format: json('json_object') }, ['alpha/json', 'alpha/schema']],
    ['a JSON schema', { response_format: json('json_schema') }, ['alpha/schema']],
    ['a verbosity', { verbosity: 'low' }, ['alpha/schema']],
    ['plain text', { response_format: { type: 'text' } }, ['alpha/plain', 'alpha/tools', 'alpha/json', 'alpha/schema']],
    ['a temperature', { temperature: 1 }, ['alpha/plain', 'alpha/tools', 'alpha/json', 'alpha/schema']],
  ])('%s: endpoints that support it are preferred', (_title, request, expected) => {
    expect(tagsOf(planned(request, { models: [one] }))).toEqual(expected);
  });

  test('is dropped if no endpoint supports it', () => {
    const none = model('a/y', [able(['temperature'], 'alpha/a'), able(['top_p'], 'alpha/b')]);
    expect(tagsOf(planned({ tools }, { models: [none] }))).toHaveLength(2);
    const result = planned({ tools }, { models: [one, none] });
    expect(tagsOf(result)).toEqual(['alpha/tools', 'alpha/a', 'alpha/b']);
  });

  test('does not exclude an endpoint that the client named in order', () => {
    const result = planned({ tools, provider: { order: ['alpha/plain'] } }, { models: [one] });
    expect(tagsOf(result)).toEqual(['alpha/plain', 'alpha/tools']);
  });

  test('is the reason of an excluded endpoint', () => {
    const { candidates, funnel } = planned({ tools }, { models: [one] });
    expect(candidates[0]?.excluded).toEqual({
      step: 'Filter by Tool Compatibility',
      reason: 'it does not support tools, but others do',
    });
    expect(funnel.at(-1)).toEqual({ step: 'Filter by Tool Compatibility', endpoint_count: 1 });
  });

  test.each<[string, Partial<ChatRequest>, string[]]>([
    ['a JSON schema', { response_format: json('json_schema') }, ['alpha/schema']],
    ['tools with a temperature', { tools, temperature: 1 }, []],
  ])('with require_parameters %s must be supported', (_title, request, expected) => {
    const strict = { ...request, provider: { require_parameters: true } };
    if (expected.length > 0) expect(tagsOf(planned(strict, { models: [one] }))).toEqual(expected);
    else expect(refused(strict, { models: [one] }).status).toBe(404);
  });

  test('a price equal to the maximum is not above it, with any decimal fraction', () => {
    for (let thousandths = 1; thousandths < 5_000; thousandths += 1) {
      const usd = thousandths / 1_000;
      const pricing = { prompt: thousandths * 1_000, completion: 0, request: thousandths * 1e9 };
      const at = model('a/x', [endpoint('a/x', 'alpha', 1, { pricing })]);
      expect(
        tagsOf(planned({ provider: { max_price: { prompt: usd, request: `${usd}` } } }, { models: [at] })),
      ).toEqual(['alpha']);
      expect(refused({ provider: { max_price: { prompt: usd - 1e-6 } } }, { models: [at] }).status).toBe(404);
    }
    const cheaper = model('a/x', [
      endpoint('a/x', 'alpha', 1, { pricing: { prompt: 1_150_000, completion: 0, discount: 0.1 } }),
    ]);
    expect(tagsOf(planned({ provider: { max_price: { prompt: 1.035 } } }, { models: [cheaper] }))).toEqual(['alpha']);
  });

  test.each<[Partial<ChatRequest>]>([
    [{ tools: [] }],
    [{ stop: [] }],
    [{ logit_bias: {} }],
    [{ response_format: { type: 'text' } }],
  ])('%j requires no parameter support', (request) => {
    const none = model('a/x', [endpoint('a/x', 'alpha', 1, { supported_parameters: [] })]);
    expect(tagsOf(planned({ ...request, provider: { require_parameters: true } }, { models: [none] }))).toEqual([
      'alpha',
    ]);
  });

  test('an output bound selects endpoints that allow it, or all if none does', () => {
    const bounded = model('a/x', [
      endpoint('a/x', 'alpha', 1, { max_completion_tokens: 100 }),
      endpoint('a/x', 'beta', 2, { max_completion_tokens: 500 }),
      endpoint('a/x', 'gamma', 3),
    ]);
    const planFor = (maxTokens: number, ignore: string[] = []) =>
      tagsOf(planned({ max_tokens: maxTokens, provider: { ignore } }, { models: [bounded] }));
    expect(planFor(100)).toEqual(['alpha', 'beta', 'gamma']);
    expect(planFor(101)).toEqual(['beta', 'gamma']);
    expect(planFor(900)).toEqual(['gamma']);
    expect(planFor(900, ['gamma'])).toEqual(['alpha', 'beta']);
  });
});

test('a price tier for the length of the prompt makes an endpoint not free', () => {
  const free = model('a/x', [
    endpoint('a/x', 'alpha', 0, { price_tiers: [{ prompt_tokens_over: 100, price: { prompt: 1, completion: 1 } }] }),
    endpoint('a/x', 'beta', 0),
  ]);
  const by = (chars: number) => {
    const messages = [{ role: 'user' as const, content: 'x'.repeat(chars) }];
    return tagsOf(planned({ messages }, { models: [free], variants: new Map([[free, { free: true }]]) }));
  };
  expect([by(400), by(404)]).toEqual([['alpha', 'beta'], ['beta']]);
});

describe('a refusal', () => {
  const one = model('a/x', [
    endpoint('a/x', 'beta', 1, { context_length: 10, supported_parameters: [], quantization: 'fp8' }),
  ]);
  const image = { role: 'user' as const, content: [{ type: 'image_url' as const, image_url: { url: 'data:,' } }] };
  const cohere = model('a/x', [endpoint('a/x', 'beta', 1, { dialect: 'cohere-chat' })]);
  const unpriced = model('a/x', [endpoint('a/x', 'beta', undefined)]);
  const by = (provider: ProviderPreferences): Parameters<typeof planned> => [{ provider }, { models: [one] }];
  const cases: Record<string, [string, ...Parameters<typeof planned>]> = {
    'Filter by Operation': ['model', {}, { models: [one], refuses: () => 'it is for something else' }],
    'Filter by Input Modalities': ['messages', { messages: [image] }, { models: [one] }],
    'Filter by Model Output Modalities': ['modalities', { modalities: ['audio'] }, { models: [one] }],
    'Filter by Context Length': [
      'messages',
      { messages: [{ role: 'user', content: 'x'.repeat(2_000) }], transforms: [] },
      { models: [one] },
    ],
    'Filter by Known Price': ['model', {}, { models: [unpriced] }],
    'Filter by Free Endpoints': ['model', {}, { models: [one], variants: new Map([[one, { free: true }]]) }],
    'Filter by Distillable Models': ['provider.enforce_distillable_text', ...by({ enforce_distillable_text: true })],
    'Filter by Allowed Providers': ['provider.only', ...by({ only: ['alpha'] })],
    'Filter by Ignored Providers': ['provider.ignore', ...by({ ignore: ['beta'] })],
    'Filter by Guardrails': ['model', {}, { models: [one], restricts: () => 'a guardrail leaves it out' }],
    'Filter by Data Policy': ['provider.data_collection', ...by({ data_collection: 'deny' })],
    'Filter by Zero Data Retention': ['provider.zdr', ...by({ zdr: true })],
    'Filter by Parameters': [
      'provider.require_parameters',
      { seed: 1, provider: { require_parameters: true } },
      { models: [one] },
    ],
    'Filter by Quantization': ['provider.quantizations', ...by({ quantizations: ['bf16'] })],
    'Filter by Max Price': ['provider.max_price', ...by({ max_price: { prompt: 0 } })],
    'Filter by Number of Answers': ['n', { n: 2 }, { models: [cohere] }],
    'Filter by Provider Order': ['provider.order', ...by({ order: ['alpha'], allow_fallbacks: false })],
    'Initial Endpoints': ['model', {}, { models: [model('a/none', [])] }],
  };

  test.each(Object.entries(cases))('by “%s” names the field that the caller can change', (step, [field, ...args]) => {
    const { status, message, metadata, plan } = refused(...args);
    const statuses: Record<string, number> = {
      'Filter by Context Length': 400,
      'Filter by Number of Answers': 400,
      'Filter by Guardrails': 403,
    };
    expect(status).toBe(statuses[step] ?? 404);
    expect(message).toMatch(/\w/);
    expect(metadata).toMatchObject({ failed_routing_step: step, constraint: { field } });
    expect(plan.funnel.find((entry) => entry.endpoint_count === 0)?.step).toBe(step);
    expect(plan.candidates.every(({ excluded }) => excluded !== undefined)).toBe(true);
  });

  test('has a case here for every rule', () => {
    expect(rules.map(({ step }) => step).filter((step) => !Object.hasOwn(cases, step))).toEqual([]);
  });
});
