import { expect, test } from 'vitest';
import type { Health } from '../../routing/health.ts';
import { CallCancellation, type Cancellation } from '../call.ts';
import { createHedgeShare, first, lateAfter, run, within } from './hedge.ts';

test('an endpoint is late after its 95th percentile, never at once, and never where little is known of it', () => {
  const of = (latencyMs: object | null, isLatencyThin?: true) =>
    ({ performance: () => ({ latency_ms: latencyMs, is_latency_thin: isLatencyThin }) }) as unknown as Health;
  expect(lateAfter(of(null), 'x', 0)).toBeUndefined();
  expect(lateAfter(of({ p50: 100, p75: 200, p90: 1_000, p99: 1_900 }, true), 'x', 0)).toBeUndefined();
  expect(lateAfter(of({ p50: 1, p75: 2, p90: 3, p99: 4 }), 'x', 0)).toBe(20);
  expect(lateAfter(of({ p50: 100, p75: 200, p90: 1_000, p99: 1_900 }), 'x', 0)).toBe(1_500);
});

test('of many calls that could be hedged a share is, with a bounded number in a row', () => {
  const share = createHedgeShare(() => 0.1);
  let hedged = 0;
  for (let nth = 0; nth < 1_000; nth += 1) {
    share.earn();
    if (share.take()) hedged += 1;
  }
  expect(hedged).toBe(101);
  for (let nth = 0; nth < 1_000; nth += 1) share.earn();
  let inARow = 0;
  while (share.take()) inARow += 1;
  expect(inARow).toBe(10);
});

test('a share of nothing hedges nothing', () => {
  const share = createHedgeShare(() => 0);
  share.earn();
  expect(share.take()).toBe(false);
});

test('what is given up hears of it, and an answer that comes all the same is closed and counted', async () => {
  const call = new CallCancellation();
  const runner = run<string>(call, (own) => new Promise((resolve) => own.onCancel(() => resolve('late'))));
  expect(await within(runner, 5)).toBeUndefined();
  const closed: string[] = [];
  const used = await runner.abandon((value) => {
    closed.push(value);
    return { out_text: 3 };
  });
  expect([closed, used]).toEqual([['late'], { out_text: 3 }]);
  expect(call.cancelled).toBe(false);
});

test('what does not heed being given up is not waited for long', async () => {
  const runner = run<string>(new CallCancellation(), () => new Promise(() => {}));
  expect(await runner.abandon(() => ({}))).toBeNull();
});

test('a client that leaves ends both', async () => {
  const call = new CallCancellation();
  const sendUntilCancelled = (own: Cancellation) =>
    new Promise<string>((_, reject) => own.onCancel(() => reject(new Error('gone'))));
  const [one, two] = [run(call, sendUntilCancelled), run(call, sendUntilCancelled)];
  call.cancel();
  expect(await first(one, two)).toBe(one);
  await two.done;
  expect([one.sent, two.sent]).toMatchObject([{ error: { message: 'gone' } }, { error: { message: 'gone' } }]);
});

test.each([
  ['at once', false],
  ['where its client had left before', true],
])('a stop of the gateway is told to both sends: %s', (_name, hasLeft) => {
  const call = new CallCancellation();
  const stops: boolean[] = [];
  for (const _send of ['one', 'other']) {
    run<never>(call, (own) => {
      own.onStop(() => stops.push(own.stopped));
      return new Promise(() => {});
    });
  }
  if (hasLeft) call.cancel();
  call.stop();
  expect(stops).toEqual([!hasLeft, !hasLeft]);
  expect(call).toMatchObject({ cancelled: true, stopped: !hasLeft });
});
