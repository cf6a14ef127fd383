import { expect, test } from 'vitest';
import { limits } from '../limits.ts';
import { coalesced } from './coalesced.ts';

const { answers_made_burst: burst, answer_made_ms: every_ms } = limits;

test('all who ask while an answer is made get that one', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  let made = 0;
  const ask = coalesced(async () => {
    made += 1;
    await promise;
    return made;
  });
  const asked = Array.from({ length: 100 }, ask);
  resolve();
  expect(new Set(await Promise.all(asked))).toEqual(new Set([1]));
  expect(made).toBe(1);
});

test('an answer is made anew for each of a few, then once in a while, whatever is asked', async () => {
  let now_ms = 0;
  let made = 0;
  const ask = coalesced(
    () => {
      made += 1;
      return made;
    },
    () => now_ms,
  );
  for (let count = 1; count <= burst; count += 1) expect(await ask()).toBe(count);
  for (let count = 0; count < 1_000; count += 1) expect(await ask()).toBe(burst);
  now_ms = 5 * every_ms;
  for (let count = 0; count < 1_000; count += 1) await ask();
  expect(made).toBe(burst + 5);
  now_ms = 1_000 * every_ms;
  for (let count = 0; count < 1_000; count += 1) await ask();
  expect(made).toBe(2 * burst + 5);
});

test('a failure is not given to those who ask later', async () => {
  let fails = true;
  const ask = coalesced(() => {
    if (fails) throw new Error('no');
    return 'made';
  });
  await expect(ask()).rejects.toThrow('no');
  fails = false;
  expect(await ask()).toBe('made');
});
