import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { nextTurn, noteArrival } from './next-turn.ts';

/** Time passes only as steps take it. */
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

function pass(ms: number): void {
  vi.advanceTimersByTime(ms);
}

/** How many of these steps are served in each turn of the event loop. */
async function served(requests: number, step: () => Promise<void>, between = () => {}): Promise<number[]> {
  let done = 0;
  const countedStep = async () => {
    await step();
    done += 1;
  };
  const all = Promise.all(Array.from({ length: requests }, countedStep));
  const counts: number[] = [];
  for (let before = 0; done < requests; before = done) {
    between();
    await turn();
    counts.push(done - before);
  }
  await all;
  return counts;
}

test('long steps of many requests are divided among turns of the event loop, in order', async () => {
  const order: number[] = [];
  let begun = 0;
  const counts = await served(20, async () => {
    const nth = begun;
    begun += 1;
    await nextTurn();
    pass(6);
    order.push(nth);
  });
  expect(Math.max(...counts)).toBe(2);
  expect(order).toEqual(Array.from({ length: 20 }, (_, nth) => nth));
});

test('short steps of many requests share a turn', async () => {
  expect(await served(200, () => nextTurn())).toHaveLength(1);
});

test('a step that waits for events is counted with their time', async () => {
  expect(Math.max(...(await served(20, () => nextTurn(5))))).toBe(2);
});

test('a step longer than a turn is served', async () => {
  const counts = await served(3, () => nextTurn().then(() => pass(100)));
  expect(counts.filter((count) => count > 0)).toEqual([1, 1, 1]);
});

test('while connections arrive, steps wait, and are served some of the time', async () => {
  const counts = await served(
    4,
    () => nextTurn().then(() => pass(10)),
    () => {
      noteArrival();
      pass(10);
    },
  );
  expect(counts.filter((count) => count > 0)).toEqual([1, 1, 1, 1]);
  expect(counts.length).toBeGreaterThan(12);
});
