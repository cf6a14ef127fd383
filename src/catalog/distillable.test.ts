import { expect, test } from 'vitest';
import { isDistillable } from './distillable.ts';

test.each([
  'deepseek/deepseek-r1',
  'deepseek/deepseek-chat-v3.1',
  'deepseek/deepseek-v3.2',
  'openai/gpt-oss-20b',
  'qwen/qwen3-30b-a3b-instruct-2507',
  'qwen/qwen3-next-80b-a3b-thinking',
  'z-ai/glm-4.5-air',
])('models may be trained on the output of %s', (id) => {
  expect(isDistillable(id)).toBe(true);
});

test.each([
  'openai/gpt-5',
  'anthropic/claude-sonnet-5',
  'deepseek/deepseek-r1-distill-llama-70b',
  // Its licence was not found.
  'deepseek/deepseek-chat-v3-0324',
  'qwen/qwen3-7b',
  'qwen/qwen3-max',
  'qwen/qwen3-coder-plus',
  'z-ai/glm-4.5v',
])('the licence of %s is unknown', (id) => {
  expect(isDistillable(id)).toBeUndefined();
});
