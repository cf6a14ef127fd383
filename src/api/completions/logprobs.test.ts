import { expect, test } from 'vitest';
import type { JsonObject } from '../../schemas/json.ts';
import { createLogprobs, wholeLogprobs } from './logprobs.ts';

const tokens = (count: number) =>
  Array.from({ length: count }, (_, at) => ({
    token: `t${at}`,
    logprob: -at,
    bytes: null,
    top_logprobs: [{ token: 'other', logprob: -9, bytes: null }],
  }));

test('many tokens of a whole answer are converted in several turns, with one result', () => {
  const content = tokens(4_500);
  const work = wholeLogprobs({ content });
  let turns = 0;
  for (;;) {
    const { done, value } = work.next();
    if (done === true) {
      expect(value).toEqual(createLogprobs()({ content }));
      break;
    }
    turns += 1;
  }
  expect(turns).toBe(5);
});

test('entries that are no tokens are converted, and do not fail', () => {
  const content = [null, { token: null, logprob: 'x', top_logprobs: [null, { token: 7 }] }, ...tokens(1)];
  expect(createLogprobs()({ content } as unknown as JsonObject)).toEqual({
    tokens: ['', '', 't0'],
    token_logprobs: [null, null, -0],
    top_logprobs: [{ '': null }, { '': null }, { other: -9, t0: -0 }],
    text_offset: [0, 0, 0],
  });
});
