import { describe, expect, test } from 'vitest';
import { makerOf, normalise, readListingId, splitVariant } from './identity.ts';

describe('spellings of one name are normalised alike', () => {
  test.each([
    [['Meta-Llama-3.1-8B-Instruct', 'llama3-1-8b-instruct', 'llama-3.1-8b', 'Llama 3.1 8B Instruct']],
    [['claude-opus-4-5', 'claude-opus-4.5', 'claude-opus-4-5-20251101', 'Claude Opus 4.5 (latest)']],
    [['Qwen2.5-72B-Instruct', 'qwen-2.5-72b-instruct', 'qwen2-5-72b-instruct']],
    [['Qwen3-235B-A22B-Instruct-2507', 'qwen3-235b-a22b-2507']],
    [['Llama-4-Maverick-17B-128E-Instruct', 'llama4-maverick-17b-instruct', 'llama-4-maverick']],
    [['DeepSeek-V3-1', 'deepseek-v3.1', 'deepseek-chat-v3.1']],
    [['zai-glm-4.7', 'GLM-4.7', 'Z.AI GLM-4.7']],
    [['gemma-3-27b-it', 'gemma3:27b']],
  ])('%j', (names) => {
    expect(new Set(names.map(normalise)).size).toBe(1);
  });
});

describe('different models stay different', () => {
  test.each([
    ['gpt-4', 'gpt-4-turbo'],
    ['gpt-4o', 'gpt-4o-mini'],
    ['gpt-4o', 'gpt-4o-2024-05-13'],
    ['gpt-3.5-turbo', 'gpt-3.5-turbo-instruct'],
    ['deepseek-r1', 'deepseek-r1-distill-qwen-32b'],
    ['deepseek-r1', 'deepseek-r1-0528'],
    ['deepseek-v3', 'deepseek-v3.1'],
    ['qwen3-235b-a22b', 'qwen3-235b-a22b-2507'],
    ['qwen3-next-80b-a3b-instruct', 'qwen3-next-80b-a3b-thinking'],
    ['kimi-k2', 'kimi-k2-0905'],
    ['claude-3-5-sonnet', 'claude-3-7-sonnet'],
    ['glm-5', 'glm-5-turbo'],
    ['llama-3.1-70b', 'llama-3.1-7b'],
  ])('%s is not %s', (one, other) => {
    expect(normalise(one)).not.toBe(normalise(other));
  });
});

test.each([
  ['amazon-bedrock', 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0', 'anthropic', 'claude-sonnet-4-5-20250929', 'eu'],
  ['amazon-bedrock', 'nvidia.nemotron-nano-9b-v2', 'nvidia', 'nemotron-nano-9b-v2', undefined],
  ['amazon-bedrock', 'amazon.nova-lite-v1:0', 'amazon', 'nova-lite', undefined],
  ['fireworks', 'accounts/fireworks/models/kimi-k2p7-code', undefined, 'kimi-k2.7-code', undefined],
  ['cloudflare', '@cf/meta/llama-3.1-8b-instruct-fp8', 'meta-llama', 'llama-3.1-8b-instruct-fp8', undefined],
  ['google-vertex', 'openai/gpt-oss-120b-maas', 'openai', 'gpt-oss-120b', undefined],
  ['deepinfra', 'zai-org/GLM-4.6', 'z-ai', 'GLM-4.6', undefined],
  ['openai', 'gpt-4o', undefined, 'gpt-4o', undefined],
])('%s lists %s', (provider, id, author, bare, region) => {
  expect(readListingId(provider, id)).toEqual({ author, bare, region });
});

test('a suffix of a host is its variant', () => {
  expect(splitVariant('llama 3 3 70 b turbo')).toEqual({ name: 'llama 3 3 70 b', variant: 'turbo' });
  expect(splitVariant('qwen 3 32 b fp 8')).toEqual({ name: 'qwen 3 32 b', variant: 'fp8', quantization: 'fp8' });
  expect(splitVariant('glm 5 nvfp 4')).toEqual({ name: 'glm 5', variant: 'nvfp4', quantization: 'fp4' });
  expect(splitVariant('glm 5')).toBeUndefined();
});

test('the maker follows from the first words, or is unknown', () => {
  expect(makerOf(normalise('Meta-Llama-3-8B'))).toBe('meta-llama');
  expect(makerOf(normalise('o3-mini'))).toBe('openai');
  expect(makerOf(normalise('model-router'))).toBeUndefined();
});
