import { expect, test } from 'vitest';
import { deferred } from '../deferred.ts';
import { GroupSync } from './group-sync.ts';

/** Syncs that end when the test says so. */
function scripted() {
  const running: { done: () => void; fail: (error: Error) => void }[] = [];
  const failures: Error[] = [];
  let begun = 0;
  const syncs = new GroupSync({
    sync: () => {
      begun++;
      return new Promise<void>((done, fail) => void running.push({ done, fail }));
    },
    onFailure: (error) => void failures.push(error),
  });
  /** Writes one attempt and reports whether it is durable. */
  const attempt = () => {
    const state = { is_durable: false, error: undefined as Error | undefined };
    const durable = deferred();
    durable.promise.then(
      () => {
        state.is_durable = true;
      },
      (error: Error) => {
        state.error = error;
      },
    );
    syncs.cover(durable);
    return state;
  };
  const end = async () => {
    for (const { done } of running.splice(0)) done();
    await new Promise(setImmediate);
  };
  return { syncs, attempt, end, running, failures, begun: () => begun };
}

test('an attempt is synced immediately if no sync is running, at any rate', async () => {
  const { attempt, begun, end } = scripted();
  for (let index = 1; index <= 200; index++) {
    const state = attempt();
    expect(begun()).toBe(index);
    expect(state.is_durable).toBe(false);
    await end();
    expect(state.is_durable).toBe(true);
  }
});

test('attempts that are written during a sync share the next one, and none is durable before its end', async () => {
  const { attempt, begun, end } = scripted();
  const first = attempt();
  const others = [attempt(), attempt(), attempt()];
  expect(begun()).toBe(1);
  await end();
  expect([first, ...others].map(({ is_durable }) => is_durable)).toEqual([true, false, false, false]);
  expect(begun()).toBe(2);
  await end();
  expect(others.map(({ is_durable }) => is_durable)).toEqual([true, true, true]);
  expect(begun()).toBe(2);
});

test('a close waits for the running sync and for the one that follows it', async () => {
  const { attempt, end, syncs } = scripted();
  const states = [attempt(), attempt()];
  let isClosed = false;
  const closed = syncs.close().then(() => {
    isClosed = true;
  });
  await end();
  expect(isClosed).toBe(false);
  await end();
  await closed;
  expect(states.map(({ is_durable }) => is_durable)).toEqual([true, true]);
});

test('a failed sync makes none of its waiting attempts durable', async () => {
  const { attempt, failures, running } = scripted();
  const state = attempt();
  for (const { fail } of running.splice(0)) fail(new Error('the disk is gone'));
  await new Promise(setImmediate);
  expect(state).toEqual({ is_durable: false, error: new Error('the disk is gone') });
  expect(failures).toHaveLength(1);
});
