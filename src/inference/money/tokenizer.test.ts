import { encode as encodeOlder } from 'gpt-tokenizer/encoding/cl100k_base';
import { encode } from 'gpt-tokenizer/encoding/o200k_base';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { limits } from '../../limits.ts';
import type { Candidate } from '../../routing/plan.ts';
import { createTokenizer, type Tokenizer } from './tokenizer.ts';

let tokenizer: Tokenizer;
beforeAll(() => {
  tokenizer = createTokenizer();
});
afterAll(() => tokenizer.stop());

const candidate = (upstreamModel: string, family = 'GPT') =>
  ({ model: { tokenizer: family }, endpoint: { upstream_model: upstreamModel } }) as unknown as Candidate;
const TEXTS = [
  'Plain prose, with a comma. And another sentence.',
  'const sum = (a, b) => a + b; // 12345',
  '人工智能 über ☕ 🌍',
  '<|endoftext|> is a text here',
  'x'.repeat(2_000),
  `${'ab'.repeat(300)} ${'12'.repeat(300)}`,
];

test.each([
  ['gpt-4o-2024-08-06', encode],
  ['gpt-5.1', encode],
  ['gpt-4.1-mini', encode],
  ['openai/gpt-oss-120b', encode],
  ['o3', encode],
  ['gpt-4', encodeOlder],
  ['gpt-4-turbo', encodeOlder],
  ['gpt-4-0613', encodeOlder],
  ['gpt-3.5-turbo', encodeOlder],
] as const)(
  '%s is counted with its own vocabulary: at least the exact count, and at most about 10 % more',
  async (model, exact) => {
    for (const text of TEXTS) {
      const expected = exact(text, { disallowedSpecial: new Set() }).length;
      const counted = await tokenizer.count(text, candidate(model));
      expect(counted).toBeGreaterThanOrEqual(expected);
      expect(counted).toBeLessThanOrEqual(expected * 1.1 + 2);
    }
  },
);

test('models of other families and very long texts are not counted', async () => {
  expect(await tokenizer.count('Hello', candidate('claude-sonnet-4-5', 'Claude'))).toBeUndefined();
  expect(await tokenizer.count('x'.repeat(limits.tokenized_chars_max + 1), candidate('gpt-4o'))).toBeUndefined();
});

test('counts above the bound of the queue are skipped', async () => {
  const counts = Array.from({ length: limits.tokenizer_waiting_max + 5 }, () =>
    tokenizer.count('Hello', candidate('o3')),
  );
  const results = await Promise.all(counts);
  expect(results.filter((tokens) => tokens === undefined)).toHaveLength(5);
  expect(results.filter((tokens) => tokens === 2)).toHaveLength(limits.tokenizer_waiting_max);
});
