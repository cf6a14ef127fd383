import { expect, test } from 'vitest';
import { limits } from '../limits.ts';
import { coalesced } from './coalesced.ts';

const { answers_made_burst: burst, answer_made_ms_max: mostMs } = limits;

test('concurrent callers share one answer', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  let made = 0;
  const get = coalesced(async () => {
    made += 1;
    await promise;
    return made;
  });
  const answers = Array.from({ length: 100 }, get);
  resolve();
  expect(new Set(await Promise.all(answers))).toEqual(new Set([1]));
  expect(made).toBe(1);
});

test.each([
  ['a tenth of the time', 20, 200],
  ['once a second if that is more often', 500, mostMs],
])('an answer is made for each of a few calls, then for %s, whatever the name', async (_, takesMs, everyMs) => {
  let nowMs = 0;
  let made = 0;
  const get = coalesced(
    async () => {
      made += 1;
      await undefined;
      nowMs += takesMs;
      return made;
    },
    () => nowMs,
  );
  const askOften = async () => {
    for (let count = 0; count < 1_000; count += 1) await get();
  };
  await askOften();
  const first = made;
  expect(first).toBeGreaterThanOrEqual(burst);
  nowMs += 5 * everyMs;
  await askOften();
  expect(made - first).toBeGreaterThanOrEqual(5);
  // While these were made, some more were earned: half of the time at most.
  expect(made - first).toBeLessThanOrEqual(10);
});

test('later callers do not get a failure', async () => {
  let fails = true;
  const get = coalesced(() => {
    if (fails) throw new Error('no');
    return 'made';
  });
  await expect(get()).rejects.toThrow('no');
  fails = false;
  expect(await get()).toBe('made');
});
