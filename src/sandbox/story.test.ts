import { expect, test } from 'vitest';
import { storyTokens } from './story.ts';
import { tokensOf } from './tokens.ts';

test('a story has exactly the tokens asked for', () => {
  for (const tokens of [0, 1, 13, 500]) {
    const story = storyTokens('once', tokens);
    expect(story).toHaveLength(tokens);
    expect(tokensOf(story.join(''))).toEqual(story);
  }
});

test('the same seed tells the same story, another seed another', () => {
  expect(storyTokens('once', 40)).toEqual(storyTokens('once', 40));
  expect(storyTokens('once', 40)).not.toEqual(storyTokens('twice', 40));
});
