import { expect, test } from 'vitest';
import { model } from '../../test/routing/routing-fixture.ts';
import { familyOf, latestModels } from './families.ts';

test.each([
  ['anthropic/claude-sonnet-4.5', 'anthropic/claude-sonnet'],
  ['anthropic/claude-opus-4', 'anthropic/claude-opus'],
  ['openai/gpt-5', 'openai/gpt'],
  ['openai/gpt-4o', 'openai/gpt'],
  ['openai/gpt-4o-2024-08-06', 'openai/gpt'],
  ['openai/gpt-5.4-mini', 'openai/gpt-mini'],
  ['openai/o3', 'openai/o3'],
  ['google/gemini-3-flash-preview', 'google/gemini-flash'],
  ['google/gemini-2.5-flash-lite', 'google/gemini-flash-lite'],
  ['moonshotai/kimi-k2-0905', 'moonshotai/kimi'],
  ['deepseek/deepseek-v3.2-exp', 'deepseek/deepseek'],
  ['meta-llama/llama-3.3-70b-instruct', 'meta-llama/llama-70b-instruct'],
  ['mistralai/mistral-small-3.2-24b-instruct', 'mistralai/mistral-small-24b-instruct'],
  ['x-ai/grok-4-fast', 'x-ai/grok-fast'],
])('%s is in the family %s', (id, family) => {
  expect(familyOf(id)).toBe(family);
});

const made = (id: string, created: number, extra = {}) => model(id, [], { created, ...extra });

test('an alias is the newest text model of its family, without variants', () => {
  const models = [
    made('a/fast-2', 20),
    made('a/fast-3', 30),
    made('a/fast-3:free', 40),
    made('a/fast-9', 90, { output_modalities: ['embeddings'] }),
    made('a/fast-mini-9', 90),
  ];
  const latest = latestModels(models);
  expect(latest.get('~a/fast-latest')?.id).toBe('a/fast-3');
  expect(latest.get('~a/fast-mini-latest')?.id).toBe('a/fast-mini-9');
  expect([...latest.keys()]).toHaveLength(2);
});

test('an expired model is used as alias only if there is no other', () => {
  const models = [
    made('a/fast-3', 30, { is_expired: true }),
    made('a/fast-2', 20),
    made('a/slow-2', 2, { is_expired: true }),
  ];
  expect(latestModels(models).get('~a/fast-latest')?.id).toBe('a/fast-2');
  expect(latestModels([...models].reverse()).get('~a/fast-latest')?.id).toBe('a/fast-2');
  expect(latestModels(models).get('~a/slow-latest')?.id).toBe('a/slow-2');
});

test('of models with the same creation time the same one is selected', () => {
  const models = [made('a/fast-3', 30), made('a/fast-2', 30)];
  expect(latestModels(models).get('~a/fast-latest')?.id).toBe('a/fast-3');
  expect(latestModels([...models].reverse()).get('~a/fast-latest')?.id).toBe('a/fast-3');
});

test('aliases are computed once for a list of models', () => {
  const models = [made('a/fast-3', 30)];
  expect(latestModels(models)).toBe(latestModels(models));
});
