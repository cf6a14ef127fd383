import { expect, test } from 'vitest';
import { deferred } from '../deferred.ts';
import type { LedgerClock } from '../ledger-clock.ts';
import { GroupSync } from './group-sync.ts';

/** Syncs that end when the test says so, with a clock that the test moves. */
function scripted() {
  let nowMs = 0;
  const timers = new Map<number, { run: () => void; at: number }>();
  let next = 0;
  const clock: LedgerClock = {
    now: () => nowMs,
    monotonic: () => nowMs,
    setTimeout: (run, delayMs) => {
      timers.set(++next, { run, at: nowMs + delayMs });
      return next;
    },
    clearTimeout: (timer) => void timers.delete(timer as number),
    setInterval: () => undefined,
    clearInterval: () => {},
    setImmediate: (run) => void setImmediate(run),
  };
  const running: { done: () => void; fail: (error: Error) => void }[] = [];
  const failures: Error[] = [];
  let begun = 0;
  const syncs = new GroupSync({
    clock,
    sync: () => {
      begun++;
      return new Promise<void>((done, fail) => void running.push({ done, fail }));
    },
    onFailure: (error) => void failures.push(error),
  });
  const pass = (ms: number) => {
    nowMs += ms;
    for (const [timer, { run, at }] of timers) {
      if (at > nowMs) continue;
      timers.delete(timer);
      run();
    }
  };
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
    syncs.attempts(1, durable);
    return state;
  };
  const end = async () => {
    for (const { done } of running.splice(0)) done();
    await new Promise(setImmediate);
  };
  /** A load of one attempt a millisecond, each synced at once. */
  const warm = async () => {
    for (let index = 0; index < 100; index++) {
      pass(1);
      attempt();
      void syncs.now();
      await end();
      await end();
    }
    begun = 0;
  };
  return { syncs, pass, attempt, end, warm, running, failures, begun: () => begun };
}

test('without load an attempt is synced immediately', async () => {
  const { attempt, begun, end, pass } = scripted();
  for (let index = 1; index <= 5; index++) {
    pass(100);
    const state = attempt();
    expect(begun()).toBe(index);
    expect(state.is_durable).toBe(false);
    await end();
    expect(state.is_durable).toBe(true);
  }
});

test('under low load attempts share a sync, and none is durable before it ends', async () => {
  const { attempt, begun, end, pass, warm } = scripted();
  await warm();
  const states = [attempt()];
  pass(1);
  states.push(attempt());
  expect(begun()).toBe(0);
  pass(0.5);
  states.push(attempt());
  expect(begun()).toBe(1);
  expect(states.map(({ is_durable }) => is_durable)).toEqual([false, false, false]);
  await end();
  expect(states.map(({ is_durable }) => is_durable)).toEqual([true, true, true]);
});

test('a single attempt is synced when its wait is over', async () => {
  const { attempt, begun, end, pass, warm } = scripted();
  await warm();
  const state = attempt();
  expect(begun()).toBe(0);
  pass(2);
  expect(begun()).toBe(1);
  await end();
  expect(state.is_durable).toBe(true);
});

test('an attempt that is written during a sync is durable only after the next one', async () => {
  const { attempt, end } = scripted();
  const first = attempt();
  const second = attempt();
  await end();
  expect([first.is_durable, second.is_durable]).toEqual([true, false]);
  await end();
  expect(second.is_durable).toBe(true);
});

test('an explicit sync or a close does not wait for other attempts', async () => {
  for (const way of ['now', 'close'] as const) {
    const { attempt, begun, end, syncs, warm } = scripted();
    await warm();
    const state = attempt();
    expect(begun()).toBe(0);
    const synced = syncs[way]();
    expect(begun()).toBe(1);
    await end();
    await synced;
    expect(state.is_durable).toBe(true);
  }
});

test('a failed sync makes none of its waiting attempts durable', async () => {
  const { attempt, failures, running } = scripted();
  const state = attempt();
  for (const { fail } of running.splice(0)) fail(new Error('the disk is gone'));
  await new Promise(setImmediate);
  expect(state).toEqual({ is_durable: false, error: new Error('the disk is gone') });
  expect(failures).toHaveLength(1);
});
