import { expect, test } from 'vitest';
import { StoreWait, StoreWaitExceeded } from './store-wait.ts';

/** A clock that only reads advance. */
function setUp(maxMs: number) {
  let nowMs = 0;
  const wait = new StoreWait(maxMs, () => nowMs);
  const read = async (ms: number) => {
    await Promise.resolve();
    nowMs += ms;
    return 'read';
  };
  return { wait, read };
}

test('all reads of a request share one bound', async () => {
  const { wait, read } = setUp(1_000);
  expect(await wait.within(read(400))).toBe('read');
  expect(await wait.within(read(400))).toBe('read');
  expect(wait.remainingMs()).toBe(200);
  expect(await wait.within(read(400))).toBe('read');
  expect(wait.remainingMs()).toBe(0);
  await expect(wait.within(read(0))).rejects.toThrow(StoreWaitExceeded);
});

test('a read is abandoned when the remaining time is over', async () => {
  const { wait, read } = setUp(1_000);
  await wait.within(read(990));
  await expect(wait.within(new Promise(() => {}))).rejects.toMatchObject({
    status: 503,
    headers: { 'retry-after': '1' },
  });
});

test('time without a read does not count', async () => {
  const { wait, read } = setUp(1_000);
  await read(5_000);
  expect(wait.remainingMs()).toBe(1_000);
});

test('concurrent reads count once', async () => {
  const { wait, read } = setUp(1_000);
  await Promise.all([wait.within(read(300)), wait.within(read(0)), wait.within(read(0))]);
  expect(wait.remainingMs()).toBe(700);
});

test('a renewal restores the full bound', async () => {
  const { wait, read } = setUp(1_000);
  await wait.within(read(1_000));
  wait.renew();
  expect(await wait.within(read(400))).toBe('read');
  expect(wait.remainingMs()).toBe(600);
});

test('a failure of an abandoned read is ignored', async () => {
  const { wait, read } = setUp(1_000);
  await wait.within(read(1_000));
  const { promise, reject } = Promise.withResolvers<never>();
  await expect(wait.within(promise)).rejects.toThrow(StoreWaitExceeded);
  reject(new Error('late'));
  await new Promise((resolve) => setImmediate(resolve));
});
