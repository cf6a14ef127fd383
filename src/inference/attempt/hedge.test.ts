import { expect, test } from 'vitest';
import type { Health } from '../../routing/health.ts';
import { CallCancellation, type Cancellation } from '../call.ts';
import { createHedgeShare, first, lateAfter, run, within } from './hedge.ts';

test('an endpoint is late after its 95th latency percentile, never at once, and never without enough samples', () => {
  const of = (latencyMs: object | null, isLatencyThin?: true) =>
    ({ performance: () => ({ latency_ms: latencyMs, is_latency_thin: isLatencyThin }) }) as unknown as Health;
  expect(lateAfter(of(null), 'x', 0)).toBeUndefined();
  expect(lateAfter(of({ p50: 100, p75: 200, p90: 1_000, p99: 1_900 }, true), 'x', 0)).toBeUndefined();
  expect(lateAfter(of({ p50: 1, p75: 2, p90: 3, p99: 4 }), 'x', 0)).toBe(20);
  expect(lateAfter(of({ p50: 100, p75: 200, p90: 1_000, p99: 1_900 }), 'x', 0)).toBe(1_500);
});

test('a configured share of the calls is hedged, with a bounded number in a row', () => {
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

test('a share of zero hedges no call', () => {
  const share = createHedgeShare(() => 0);
  share.earn();
  expect(share.take()).toBe(false);
});

test('an abandoned send is cancelled, and its late answer is closed and counted', async () => {
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

test('an abandoned send that does not react to its cancellation is awaited for a bounded time only', async () => {
  const runner = run<string>(new CallCancellation(), () => new Promise(() => {}));
  expect(await runner.abandon(() => ({}))).toBeNull();
});

test('a client that disconnects ends both sends', async () => {
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
  ['while the client waits', false],
  ['after the client disconnected', true],
])('a shutdown of the gateway reaches both sends: %s', (_name, hasLeft) => {
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
