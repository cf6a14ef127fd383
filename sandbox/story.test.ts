import { expect, test } from 'vitest';
import { STORY_TOKENS, storyTokens } from './story.ts';
import { tokensOf } from './tokens.ts';

test('a story has exactly the requested number of tokens', () => {
  for (const tokens of [0, 1, 13, 500]) {
    const story = storyTokens('once', tokens);
    expect(story).toHaveLength(tokens);
    expect(tokensOf(story.join(''))).toEqual(story);
  }
});

test('the same seed makes the same story, another seed another story', () => {
  expect(storyTokens('once', 40)).toEqual(storyTokens('once', 40));
  expect(storyTokens('once', 40)).not.toEqual(storyTokens('twice', 40));
});

test('a story of the usual length is complete for every seed', () => {
  expect(STORY_TOKENS).toBe(200);
  for (let seed = 0; seed < 200; seed += 1) {
    const story = storyTokens(`seed ${seed}`, STORY_TOKENS).join('');
    expect(story).toMatch(/^The winter storm /);
    expect(story).toMatch(/ still brings the kite\.$/);
  }
  expect(storyTokens('once', STORY_TOKENS + 1).at(-1)).toBe('\n\nThe');
});

test('a story has characters of two, three and four bytes, which small chunks split', () => {
  const bytes = new Set([...storyTokens('once', STORY_TOKENS).join('')].map((char) => Buffer.byteLength(char)));
  expect([...bytes].sort()).toEqual([1, 2, 3, 4]);
});
