import { describe, expect, test } from 'vitest';
import type { TokenClasses } from '../../schemas/inner.ts';
import { readUsage } from './usage.ts';
import type { WireUsage } from './wire.ts';

const prompt = (details: object, more: object = {}): WireUsage => ({
  prompt_tokens: 100,
  completion_tokens: 10,
  total_tokens: 110,
  prompt_tokens_details: { ...details },
  ...more,
});
const completion = (details: object, more: object = {}): WireUsage => ({
  prompt_tokens: 100,
  completion_tokens: 10,
  total_tokens: 110,
  completion_tokens_details: { ...details },
  ...more,
});

describe('token classes', () => {
  test.each<[string, WireUsage, TokenClasses | undefined]>([
    ['are two without details', { prompt_tokens: 3, completion_tokens: 2 }, { in_uncached: 3, out_text: 2 }],
    ['are unknown for an empty object', {}, undefined],
    ['are unknown for invalid counts', { prompt_tokens: null, completion_tokens: 'x', total_tokens: -1 }, undefined],
    [
      'derive a missing count from the total',
      { completion_tokens: 2, total_tokens: 5 },
      { in_uncached: 3, out_text: 2 },
    ],
    ['keep a reported zero', prompt({ cached_tokens: 0 }), { in_cache_read: 0, in_uncached: 100, out_text: 10 }],
    [
      'subtract cached tokens from the prompt',
      prompt({ cached_tokens: 40 }),
      { in_cache_read: 40, in_uncached: 60, out_text: 10 },
    ],
    [
      'include the cache under its other names',
      prompt({}, { num_cached_tokens: 40 }),
      { in_cache_read: 40, in_uncached: 60, out_text: 10 },
    ],
    [
      'include DeepSeek’s hits, and a miss is no write',
      prompt({}, { prompt_cache_hit_tokens: 40, prompt_cache_miss_tokens: 60 }),
      { in_cache_read: 40, in_uncached: 60, out_text: 10 },
    ],
    [
      'include the singular name of the details',
      { prompt_tokens: 100, completion_tokens: 10, prompt_token_details: { cached_tokens: 1 } },
      { in_cache_read: 1, in_uncached: 99, out_text: 10 },
    ],
    [
      'are disjoint: writes, audio and images as well',
      prompt({ cached_tokens: 10, cache_write_tokens: 20, audio_tokens: 30, image_tokens: 15 }),
      { in_cache_read: 10, in_cache_write_5m: 20, in_audio: 30, in_image: 15, in_uncached: 25, out_text: 10 },
    ],
    [
      'do not exceed the prompt if read and write overlap',
      prompt({ cached_tokens: 99, cache_write_tokens: 99 }),
      { in_cache_read: 99, in_cache_write_5m: 1, in_uncached: 0, out_text: 10 },
    ],
    [
      'subtract reasoning from the completion',
      completion({ reasoning_tokens: 4 }),
      { in_uncached: 100, out_reasoning: 4, out_text: 6 },
    ],
    [
      'do not exceed the completion',
      completion({ reasoning_tokens: 11 }),
      { in_uncached: 100, out_reasoning: 10, out_text: 0 },
    ],
    [
      'count the gap of the total as reasoning (Google’s compatible endpoint)',
      { prompt_tokens: 35, completion_tokens: 12, total_tokens: 109 },
      { in_uncached: 35, out_reasoning: 62, out_text: 12 },
    ],
    [
      'count reasoning once if it is reported outside the completion (xAI)',
      completion({ reasoning_tokens: 227 }, { completion_tokens: 26, total_tokens: 353 }),
      { in_uncached: 100, out_reasoning: 227, out_text: 26 },
    ],
    [
      'count predictions inside the completion, and audio and image output separately',
      completion({ audio_tokens: 3, image_tokens: 2, rejected_prediction_tokens: 4 }),
      { in_uncached: 100, out_audio: 3, out_image: 2, out_text: 5 },
    ],
    [
      'are read from numbers in strings too',
      {
        prompt_tokens: '100',
        completion_tokens: '10',
        total_tokens: '110',
        prompt_tokens_details: { cached_tokens: '9' },
      },
      { in_cache_read: 9, in_uncached: 91, out_text: 10 },
    ],
    [
      'count searches',
      prompt({}, { num_search_queries: 2 }),
      { in_uncached: 100, out_text: 10, counts: { web_search: 2 } },
    ],
  ])('%s', (_rule, usage, expected) => {
    expect(readUsage(usage)).toEqual(expected);
  });

  test('cached tokens of a header count if the body states none', () => {
    expect(readUsage(prompt({}), 30)?.in_cache_read).toBe(30);
    expect(readUsage(prompt({ cached_tokens: 5 }), 30)?.in_cache_read).toBe(5);
  });
});
