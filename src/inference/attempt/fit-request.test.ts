import { describe, expect, test } from 'vitest';
import type { Endpoint } from '../../catalog/model.ts';
import type { ChatRequest } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { fitRequest } from './prepare-attempt.ts';

const endpoint = { max_completion_tokens: 10, supported_parameters: ['tools', 'temperature'] } as unknown as Endpoint;
const fitted = (request: Partial<ChatRequest>) => fitRequest({ messages: [], ...request }, endpoint);
const called = { type: 'function' as const, function: { name: 'f' } };

test('a request that fits is the same object', () => {
  const request: ChatRequest = { messages: [], temperature: 1, tools: [called], max_tokens: 10 };
  expect(fitRequest(request, endpoint)).toEqual({ request, report: [] });
  expect(fitRequest(request, endpoint).request).toBe(request);
});

test('unsupported parameters are dropped, a bound above the endpoint’s is lowered, and both are reported', () => {
  const original = { messages: [], seed: 1, max_tokens: 11, max_completion_tokens: 12 };
  const { request, report } = fitRequest(original, endpoint);
  expect(request).toEqual({ messages: [], max_tokens: 10, max_completion_tokens: 10 });
  expect(report.map(({ kind, field }) => `${kind} ${field}`)).toEqual([
    'dropped seed',
    'clamped max_completion_tokens',
    'clamped max_tokens',
  ]);
  expect(original.seed).toBe(1);
});

test('parameters that bill several answers for one are dropped', () => {
  const { request, report } = fitted({ best_of: 20, num_return_sequences: 3 });
  expect(request).toEqual({ messages: [] });
  expect(report.map(({ field }) => field)).toEqual(['best_of', 'num_return_sequences']);
});

test('server tools and a choice of them are dropped', () => {
  const choice = { type: 'gateway:web_search' };
  const { request, report } = fitted({ tools: [{ type: 'gateway:web_search' }, called], tool_choice: choice });
  expect(request).toEqual({ messages: [], tools: [called] });
  expect(report.map(({ field }) => field)).toEqual(['tools[0]', 'tool_choice']);
  expect(fitted({ tools: [{ type: 'gateway:web_search' }], tool_choice: 'auto' }).request).toEqual({
    messages: [],
    tools: null,
  });
});

test('a choice among the remaining tools stays', () => {
  const toolChoice = { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: [called] } };
  expect(fitted({ tools: [{ type: 'gateway:web_search' }, called], tool_choice: toolChoice }).request.tool_choice).toBe(
    toolChoice,
  );
});

test('native tools are kept for the dialect', () => {
  const native = { type: 'native' as const, wire: 'anthropic-messages' as const, block: { type: 'x' } };
  expect(fitted({ tools: [native, { type: 'gateway:web_search' }] }).request.tools).toEqual([native]);
});

test('a service tier is sent if its price is known or not above the default price', () => {
  const pricing = { prompt: 1, completion: 1 };
  const priced = { ...endpoint, supported_parameters: undefined, pricing, service_tiers: { fast: { pricing } } };
  const tierOf = (serviceTier: string) => {
    const { request, report } = fitRequest({ messages: [], service_tier: serviceTier }, priced);
    return [request.service_tier, ...report.map(({ kind, field }) => `${kind} ${field}`)];
  };
  expect(tierOf('fast')).toEqual(['fast']);
  expect(tierOf('flex')).toEqual(['flex']);
  expect(tierOf('priority')).toEqual([undefined, 'dropped service_tier']);
});

describe('under a spend limit', () => {
  const messages = [{ role: 'user' as const, content: 'Hi' }];
  const spend = { default_tokens: 500 };
  const bounded = (maxCompletionTokens: number | undefined) => ({
    ...endpoint,
    max_completion_tokens: maxCompletionTokens,
  });

  test('a request without an output bound gets the default, or the endpoint’s own bound if that is lower', () => {
    const fitted = fitRequest({ messages }, bounded(undefined), spend);
    expect(fitted.request.max_tokens).toBe(500);
    expect(fitted.report).toMatchObject([{ kind: 'changed', field: 'max_tokens' }]);
    expect(fitRequest({ messages }, bounded(100), spend).request.max_tokens).toBe(100);
  });

  test('without a configured default, the output bound is the model’s maximum or what a share of the limit pays for', () => {
    const request = { messages };
    const whole = fitRequest(request, bounded(64_000), { default_tokens: undefined });
    expect(whole).toMatchObject({ request: { max_tokens: 64_000 }, is_default_bound: true });
    expect(whole.report).toMatchObject([
      { kind: 'changed', field: 'max_tokens', reason: expect.stringContaining("64000, the model's maximum:") },
    ]);
    const part = fitRequest(request, bounded(64_000), { default_tokens: undefined, paid_tokens: 900 });
    expect(part).toMatchObject({ request: { max_tokens: 900 }, is_default_bound: true });
    expect(part.report[0]?.reason).toContain('900, the tokens that 25 % of the rest of the spend limit pays for:');
    expect(fitRequest(request, bounded(64_000), spend)).not.toHaveProperty('is_default_bound');
    const named = fitRequest({ messages, max_tokens: 9 }, bounded(64_000), { default_tokens: undefined });
    expect(named).not.toHaveProperty('is_default_bound');
  });

  test('a bound within the limits is unchanged', () => {
    const request = { messages, max_tokens: 100 };
    expect(fitRequest(request, bounded(undefined), { ...spend, paid_tokens: 100 })).toEqual({ request, report: [] });
  });

  test('an output bound is lowered to the paid tokens, in both of its fields', () => {
    const request = { messages, max_tokens: 900, max_completion_tokens: 800 };
    const { request: lowered, report } = fitRequest(request, bounded(undefined), { ...spend, paid_tokens: 60 });
    expect(lowered).toMatchObject({ max_tokens: 60, max_completion_tokens: 60 });
    const reason = 'the spend limit pays for 60 output tokens';
    expect(report).toEqual([{ kind: 'clamped', field: 'max_completion_tokens', reason }]);
    expect(request).toMatchObject({ max_tokens: 900, max_completion_tokens: 800 });
  });
});

describe("Anthropic's own tools under a spend limit", () => {
  const native = (block: JsonObject) => ({
    type: 'native' as const,
    wire: 'anthropic-messages' as const,
    block,
  });
  const search = native({ type: 'web_search_20250305', name: 'web_search' });
  const bounded = native({ type: 'web_search_20250305', name: 'web_search', max_uses: 2 });
  const bash = native({ type: 'bash_20250124', name: 'bash' });
  const advisor = native({ type: 'advisor_20260301', name: 'advisor', model: 'claude-opus-5' });
  const original: ChatRequest = { messages: [], tools: [called, search, bounded, bash, advisor], max_tokens: 5 };

  test('get a bound on their searches, and tools that call another model are dropped', () => {
    const { request, report } = fitRequest(original, endpoint, { default_tokens: 5 });
    expect(request.tools).toEqual([called, native({ ...search.block, max_uses: 10 }), bounded, bash]);
    expect(report.map(({ kind, field }) => `${kind} ${field}`)).toEqual([
      'changed tools[1].max_uses',
      'dropped tools[4]',
    ]);
    expect(search.block).not.toHaveProperty('max_uses');
  });

  test('pass unchanged without a spend limit', () => {
    expect(fitRequest(original, endpoint).request).toBe(original);
  });

  test('get bounds also if they are declared inside the conversation', () => {
    const added = (tool: { block: JsonObject }) => ({
      type: 'tool_addition',
      tool: { type: 'tool_definition', definition: tool.block },
    });
    const instruction = { type: 'text' as const, text: 'Now you may.' };
    const compaction = (...tools: { block: JsonObject }[]) =>
      native({ type: 'compaction', content: 'x', tool_changes: tools.map(added) });
    const messages: ChatRequest['messages'] = [
      { role: 'user', content: 'x' },
      { role: 'system', content: [instruction, native(added(search)), native(added(advisor)), native(added(bash))] },
      {
        role: 'assistant',
        content: 'y',
        ext: { wire: 'anthropic-messages', rest: {}, natives: [compaction(advisor, search)] },
      },
    ];
    const { request, report } = fitRequest({ messages, max_tokens: 5 }, endpoint, { default_tokens: 5 });
    const bound = native({ ...search.block, max_uses: 10 });
    expect(request.messages).toEqual([
      messages[0],
      { role: 'system', content: [instruction, native(added(bound)), native(added(bash))] },
      { ...messages[2], ext: { ...messages[2]!.ext, natives: [compaction(bound)] } },
    ]);
    expect(request.messages[0]).toBe(messages[0]);
    expect(report.map(({ kind, field }) => `${kind} ${field}`)).toEqual([
      'changed messages[1].max_uses',
      'dropped messages[1]',
      'dropped messages[2]',
      'changed messages[2].max_uses',
    ]);
    expect(fitRequest({ messages, max_tokens: 5 }, endpoint).request.messages).toBe(messages);
    for (const message of messages.slice(1)) {
      const alone = fitRequest({ messages: [message], max_tokens: 5 }, endpoint, { default_tokens: 5 });
      expect(alone.report).toHaveLength(2);
    }
  });
});
