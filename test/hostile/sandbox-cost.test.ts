/**
 * The cost that a caller can cause in the sandbox is bounded, because it runs in the process that serves all callers.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { answerTo } from '../../sandbox/answer.ts';
import { readFaults } from '../../sandbox/faults.ts';
import { limits } from '../../sandbox/limits.ts';
import type { Prompt } from '../../sandbox/prompt.ts';
import { startGateway, type TestGateway } from '../harness.ts';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway.stop());

test.each([
  ['numbers of one vector', { input: 'x', dimensions: limits.dimensions_max + 1 }],
  ['numbers in all', { input: Array.from({ length: 100 }, () => 'x'), dimensions: 4_000 }],
])('embeddings of too many %s are refused with advice', async (_what, body) => {
  const response = await gateway.call('POST', '/embeddings', { model: 'sandbox/embed', ...body });
  expect(response.status).toBe(400);
  expect(await response.text()).toMatch(/fewer/);
});

test('embeddings up to the bound are made', async () => {
  const body = { model: 'sandbox/embed', input: 'x', dimensions: limits.dimensions_max };
  const response = await gateway.call('POST', '/embeddings', body);
  const { data } = (await response.json()) as { data: { embedding: number[] }[] };
  expect(data[0]?.embedding).toHaveLength(limits.dimensions_max);
});

const prompt: Prompt = {
  user_text: 'x',
  images: 0,
  files: 0,
  tool_results: [],
  prefill: '',
  tools: [],
  tool_choice: 'auto',
  parallel: true,
  schema: undefined,
  reasoning: false,
  tokens_max: 50,
  stop: [],
  conversation: 'c',
  input_tokens: 1,
  cache_prefixes: [],
};

test('a story is generated as far as it is sent, and reports that it was cut', () => {
  const story = answerTo(prompt, 'story', readFaults({ tokens: limits.tokens_max }, {}, {}));
  expect([story.output_tokens, story.finish]).toEqual([50, 'length']);
  const short = answerTo(prompt, 'story', readFaults({ tokens: 50 }, {}, {}));
  expect([short.output_tokens, short.finish]).toEqual([50, 'stop']);
});

test('all calls of an answer share a bound of argument values', () => {
  const items = { type: 'array', minItems: 100, items: { type: 'array', minItems: 100, items: { type: 'integer' } } };
  const parameters = { properties: { a: items }, required: ['a'] };
  const tools = Array.from({ length: 500 }, (_, nth) => ({ name: `f${nth}`, parameters }));
  const request = { ...prompt, tools, tokens_max: 10_000_000 } as unknown as Prompt;
  const { blocks } = answerTo(request, 'tools', readFaults({}, {}, {}));
  const chars = blocks.reduce((sum, { pieces }) => sum + pieces.join('').length, 0);
  expect(chars).toBeLessThan(500 * 3_000);
});
