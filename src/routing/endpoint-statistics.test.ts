import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { limits } from '../limits.ts';
import type { BucketRow, Sample } from './endpoint-bucket.ts';
import { createEndpointStatistics, type EndpointStatistics } from './endpoint-statistics.ts';
import { PERCENTILE_CALLS_MIN, UPTIME_CALLS_MIN } from './endpoint-windows.ts';

const MINUTE = 60_000;
/** A midnight, so that quarters of an hour start at round times. */
const T0 = Date.UTC(2026, 0, 1);

const success: Sample = { result: 'success' };
const error: Sample = { result: 'error' };
const streamed = (latencyMs: number, tokensPerSecond = 50): Sample => ({
  result: 'success',
  is_streamed: true,
  latency_ms: latencyMs,
  tokens_per_second: tokensPerSecond,
});

function observeMany(statistics: EndpointStatistics, sample: Sample, count: number, nowMs: number): void {
  for (let n = 0; n < count; n += 1) statistics.observe('e', sample, nowMs);
}

/** The rows that a process has to write, as another process reads them. */
function rowsOf(statistics: EndpointStatistics, run: string): (BucketRow & { run: string })[] {
  return statistics.unwritten(10_000).map((row) => ({ ...row, run }));
}

describe('uptime', () => {
  test('is the share of successes among successes and errors, in percent', () => {
    const statistics = createEndpointStatistics();
    observeMany(statistics, success, 15, T0);
    observeMany(statistics, error, 5, T0);
    const uptime = { uptime_last_5m: 75, uptime_last_30m: 75, uptime_last_1d: 75 };
    expect(statistics.figures('e', T0)).toMatchObject(uptime);
    expect(statistics.performance('e', T0)).toMatchObject({ uptime_5m: 75, uptime_30m: 75, uptime_1d: 75 });
  });

  test('ignores rate limits, and samples without a result', () => {
    const statistics = createEndpointStatistics();
    observeMany(statistics, success, 10, T0);
    observeMany(statistics, { result: 'rate_limited' }, 50, T0);
    observeMany(statistics, { result: undefined, latency_ms: 5 }, 50, T0);
    expect(statistics.figures('e', T0).uptime_last_5m).toBe(100);
  });

  test('is not reported for few calls', () => {
    const statistics = createEndpointStatistics();
    observeMany(statistics, error, UPTIME_CALLS_MIN - 1, T0);
    expect(statistics.figures('e', T0).uptime_last_1d).toBeNull();
    observeMany(statistics, error, 1, T0);
    expect(statistics.figures('e', T0).uptime_last_1d).toBe(0);
    expect(statistics.figures('other', T0).uptime_last_1d).toBeNull();
  });

  test.each([
    ['uptime_last_5m', 4, 5],
    ['uptime_last_30m', 29, 30],
    ['uptime_last_1d', 23 * 60 + 44, 24 * 60],
  ] as const)('%s covers the time of its name', (name, insideMinutes, outsideMinutes) => {
    const statistics = createEndpointStatistics();
    observeMany(statistics, error, 20, T0);
    expect(statistics.figures('e', T0 + insideMinutes * MINUTE)[name]).toBe(0);
    expect(statistics.figures('e', T0 + outsideMinutes * MINUTE)[name]).toBeNull();
  });
});

describe('percentiles', () => {
  test('are listed from the first call on, with the number of calls, at a precision of one percent', () => {
    const statistics = createEndpointStatistics();
    expect(statistics.figures('e', T0)).toMatchObject({ latency_last_30m: null, samples_last_30m: 0 });
    statistics.observe('e', streamed(200, 40), T0);
    expect(statistics.figures('e', T0)).toMatchObject({
      latency_last_30m: { p50: expect.closeTo(200, -1), p99: expect.closeTo(200, -1) },
      throughput_last_30m: { p50: expect.closeTo(40, 0) },
      samples_last_30m: 1,
    });
    for (let n = 2; n < PERCENTILE_CALLS_MIN; n += 1) statistics.observe('e', streamed(200, 40), T0);
    expect(statistics.figures('e', T0).samples_last_30m).toBe(PERCENTILE_CALLS_MIN - 1);
    expect(statistics.performance('e', T0)).toMatchObject({
      latency_ms: { p50: expect.closeTo(200, -1) },
      throughput: { p50: expect.closeTo(40, 0) },
      is_latency_thin: true,
    });
    const later = T0 + limits.performance_fresh_ms;
    statistics.observe('e', streamed(200, 40), later);
    expect(statistics.performance('e', later)).not.toHaveProperty('is_latency_thin');
    const { latency_last_30m: latencyLast30m, throughput_last_30m: throughputLast30m } = statistics.figures('e', T0);
    for (const value of Object.values(latencyLast30m ?? {})) expect(Math.abs(value - 200)).toBeLessThan(4);
    for (const value of Object.values(throughputLast30m ?? {})) expect(Math.abs(value - 40)).toBeLessThan(1);
  });

  test('cover half an hour', () => {
    const statistics = createEndpointStatistics();
    observeMany(statistics, streamed(200), 10, T0);
    expect(statistics.figures('e', T0 + 29 * MINUTE).latency_last_30m).not.toBeNull();
    expect(statistics.figures('e', T0 + 30 * MINUTE).latency_last_30m).toBeNull();
  });

  test('of throughput are lower bounds, and those of latency upper bounds', () => {
    const statistics = createEndpointStatistics();
    for (let n = 1; n <= 100; n += 1) statistics.observe('e', streamed(n, n), T0);
    const { latency_last_30m: latencyLast30m, throughput_last_30m: throughputLast30m } = statistics.figures('e', T0);
    expect(latencyLast30m?.p90).toBeGreaterThan(85);
    expect(throughputLast30m?.p90).toBeLessThan(12);
    expect(statistics.performance('e', T0)).toMatchObject({
      latency_ms: latencyLast30m,
      throughput: throughputLast30m,
    });
  });

  test('for routing cover five minutes, or thirty if these have few samples', () => {
    const statistics = createEndpointStatistics();
    for (let n = 0; n < 20; n += 1) statistics.observe('e', streamed(1000), T0);
    const later = T0 + 10 * MINUTE;
    for (let n = 1; n < PERCENTILE_CALLS_MIN; n += 1) statistics.observe('e', streamed(10), later);
    expect(statistics.performance('e', later).latency_ms?.p50).toBeGreaterThan(900);
    statistics.observe('e', streamed(10), later);
    const fresh = later + limits.performance_fresh_ms;
    expect(statistics.performance('e', fresh).latency_ms?.p99).toBeLessThan(11);
  });

  test('are listed for the whole time also after routing used the last minutes alone', () => {
    const statistics = createEndpointStatistics();
    observeMany(statistics, streamed(1000), 30, T0);
    const later = T0 + 10 * MINUTE;
    observeMany(statistics, streamed(10), 10, later);
    expect(statistics.performance('e', later).latency_ms?.p99).toBeLessThan(11);
    expect(statistics.figures('e', later).latency_last_30m?.p50).toBeGreaterThan(900);
  });

  test('are of streamed answers, or of whole answers if there are none', () => {
    const statistics = createEndpointStatistics();
    const whole: Sample = { result: 'success', is_streamed: false, latency_ms: 5000, tokens_per_second: 3 };
    observeMany(statistics, whole, 10, T0);
    expect(statistics.figures('e', T0).latency_last_30m?.p50).toBeGreaterThan(4900);
    observeMany(statistics, streamed(100), 10, T0);
    expect(statistics.figures('e', T0).latency_last_30m?.p99).toBeLessThan(102);
  });
});

test('samples from a clock far in the future are not counted now, and not kept', () => {
  const statistics = createEndpointStatistics();
  const other = createEndpointStatistics();
  observeMany(statistics, success, 10, T0);
  observeMany(other, error, 10, T0 + MINUTE);
  const rows = () => other.unwritten(10).map((row) => ({ ...row, run: 'other' }));
  statistics.merge(rows());
  expect(statistics.figures('e', T0)).toMatchObject({ uptime_last_5m: 50, uptime_last_1d: 50 });
  const ahead = createEndpointStatistics();
  observeMany(ahead, error, 10, T0 + 60 * MINUTE);
  statistics.merge(ahead.unwritten(10).map((row) => ({ ...row, run: 'ahead' })));
  observeMany(statistics, error, 10, T0 + 60 * MINUTE);
  expect(statistics.figures('e', T0)).toMatchObject({ uptime_last_5m: 50, uptime_last_1d: 50 });
  statistics.sweep(T0);
  observeMany(statistics, success, 10, T0 + 60 * MINUTE);
  expect(statistics.figures('e', T0 + 60 * MINUTE)).toMatchObject({ uptime_last_5m: 100 });
});

test('the share of valid tool calls is reported for enough of them', () => {
  const statistics = createEndpointStatistics();
  statistics.observe('e', { result: 'success', tool_calls: 4, tool_calls_valid: 4 }, T0);
  expect(statistics.performance('e', T0).tool_success).toBeNull();
  statistics.observe('e', { result: 'success', tool_calls: 6, tool_calls_valid: 4 }, T0);
  expect(statistics.performance('e', T0 + 1000).tool_success).toBe(0.8);
});

test('the performance for routing is computed once a second', () => {
  const statistics = createEndpointStatistics();
  observeMany(statistics, success, 10, T0);
  const performance = statistics.performance('e', T0);
  observeMany(statistics, error, 10, T0);
  expect(statistics.performance('e', T0 + limits.performance_fresh_ms - 1)).toBe(performance);
  expect(statistics.performance('e', T0 + limits.performance_fresh_ms).uptime_5m).toBe(50);
});

describe('rows of other processes', () => {
  const samples = fc.array(
    fc.record({
      minute: fc.integer({ min: 0, max: 40 }),
      process: fc.integer({ min: 0, max: 2 }),
      sample: fc.oneof(
        fc.constantFrom<Sample>(success, error, { result: 'rate_limited' }),
        fc.record({
          result: fc.constant('success' as const),
          is_streamed: fc.boolean(),
          latency_ms: fc.double({ min: 1, max: 1e5, noNaN: true }),
          tokens_per_second: fc.double({ min: 1, max: 1e3, noNaN: true }),
          tool_calls: fc.constant(2),
          tool_calls_valid: fc.integer({ min: 0, max: 2 }),
        }),
      ),
      exchanges: fc.boolean(),
    }),
    { maxLength: 100 },
  );

  test('result in the figures of a single process', () => {
    fc.assert(
      fc.property(samples, (list) => {
        const one = createEndpointStatistics();
        const processes = [0, 1, 2].map(() => createEndpointStatistics());
        const exchange = (from: number) => {
          const source = processes[from] as EndpointStatistics;
          const rows = rowsOf(source, `p${from}`);
          for (const [to, other] of processes.entries()) if (to !== from) other.merge(rows);
          source.written(rows);
        };
        for (const { minute, process, sample, exchanges } of list.toSorted((a, b) => a.minute - b.minute)) {
          const now = T0 + minute * MINUTE;
          one.observe('e', sample, now);
          processes[process]?.observe('e', sample, now);
          if (!exchanges) continue;
          exchange(process);
          processes[process]?.sweep(now);
        }
        for (const from of [0, 1, 2]) exchange(from);
        const end = T0 + 41 * MINUTE;
        for (const each of processes) {
          expect(each.figures('e', end)).toEqual(one.figures('e', end));
          expect(each.performance('e', end)).toEqual(one.performance('e', end));
        }
      }),
    );
  });

  test('are visible when they are merged, and replace the earlier row', () => {
    const [one, other] = [createEndpointStatistics(), createEndpointStatistics()];
    observeMany(one, success, 10, T0);
    other.merge(rowsOf(one, 'r'));
    expect(other.figures('e', T0).uptime_last_5m).toBe(100);
    observeMany(one, error, 10, T0);
    other.merge(rowsOf(one, 'r'));
    expect(other.figures('e', T0).uptime_last_5m).toBe(50);
  });

  test('count each sample once, also if the clock was set back into a past minute', () => {
    const statistics = createEndpointStatistics();
    for (let n = 0; n < 10; n += 1) statistics.observe('e', streamed(100), T0);
    statistics.sweep(T0 + MINUTE);
    statistics.observe('e', streamed(1_000), T0);
    const later = T0 + 2 * MINUTE;
    expect(statistics.figures('e', later).latency_last_30m?.p90).toBeLessThan(102);
    for (let n = 0; n < 10; n += 1) statistics.observe('e', streamed(1_000), T0);
    // Eleven of twenty-one.
    const [row] = statistics.unwritten(1);
    const others = createEndpointStatistics();
    if (row !== undefined) others.merge([{ ...row, run: 'r' }]);
    expect(others.figures('e', later).latency_last_30m?.p50).toBeGreaterThan(900);
  });

  test('are written once, and again after they have grown', () => {
    const statistics = createEndpointStatistics();
    statistics.observe('e', success, T0);
    const rows = statistics.unwritten(10);
    expect(rows.map(({ span }) => span)).toEqual([1, 15]);
    statistics.observe('e', success, T0);
    statistics.written(rows);
    expect(statistics.unwritten(10).map(({ successes }) => successes)).toEqual([2, 2]);
    statistics.written(statistics.unwritten(10));
    expect(statistics.unwritten(10)).toEqual([]);
  });

  test('wait for the store up to a bound; the others are not written, and still count in their own process', () => {
    const statistics = createEndpointStatistics();
    const count = limits.health_endpoints_max;
    for (let minute = 0; minute < 12; minute += 1) {
      for (let n = 0; n < count; n += 1) statistics.observe(`e${n}`, success, T0 + minute * MINUTE);
    }
    expect(statistics.unwritten(Number.POSITIVE_INFINITY)).toHaveLength(limits.statistics_rows_max);
    expect(statistics.figures('e0', T0 + 11 * MINUTE).uptime_last_30m).toBe(100);
  });

  test('wait while they cannot be written, until no window includes them', () => {
    const statistics = createEndpointStatistics();
    statistics.observe('e', success, T0);
    statistics.sweep(T0 + 29 * MINUTE);
    expect(statistics.unwritten(10)).toHaveLength(2);
    statistics.sweep(T0 + 31 * MINUTE);
    expect(statistics.unwritten(10).map(({ span }) => span)).toEqual([15]);
    statistics.sweep(T0 + 25 * 60 * MINUTE);
    expect(statistics.unwritten(10)).toEqual([]);
    expect([...statistics.known()]).toEqual([]);
  });

  test('are bounded in endpoints, in rows, and in the size of their sketches', () => {
    const many = createEndpointStatistics();
    for (let n = 0; n < limits.health_endpoints_max + 10; n += 1) many.observe(`x${n}`, success, T0);
    expect([...many.known()]).toHaveLength(limits.health_endpoints_max);

    const { version, ...counts } = rowsOfOne();
    const rows = Array.from({ length: limits.statistics_rows_max + 10 }, (_, n) => ({
      ...counts,
      version,
      run: `r${n}`,
    }));
    const full = createEndpointStatistics();
    full.merge(rows);
    full.merge(rows);
    observeMany(full, error, limits.statistics_rows_max, T0);
    expect(full.figures('e', T0).uptime_last_5m).toBe(50);

    const long = { latency: '5k.1 '.repeat(2_000).trim() };
    const wide = Array.from({ length: 5_000 }, (_, n) => ({ ...counts, version, run: `w${n}`, sketches: long }));
    const roomy = createEndpointStatistics();
    roomy.merge(wide);
    roomy.merge(wide);
    observeMany(roomy, error, 5_000, T0);
    expect(roomy.figures('e', T0).uptime_last_5m).toBe(50);
    // The removed rows made room.
    roomy.sweep(T0 + 31 * MINUTE);
    roomy.merge([{ ...counts, version, start: counts.start + 31, run: 'last', sketches: { latency: '5k.a' } }]);
    expect(roomy.figures('e', T0 + 31 * MINUTE).latency_last_30m).not.toBeNull();
  });
});

function rowsOfOne(): BucketRow {
  const statistics = createEndpointStatistics();
  statistics.observe('e', success, T0);
  const [row] = statistics.unwritten(1);
  if (row === undefined) throw new Error('nothing is to write');
  return row;
}

test('an endpoint is quiet if no process counted a call of it for the stated time', () => {
  const statistics = createEndpointStatistics();
  expect(statistics.isQuiet('e', 15, T0)).toBe(true);
  statistics.observe('e', { result: 'rate_limited' }, T0);
  expect(statistics.isQuiet('e', 15, T0 + 14 * MINUTE)).toBe(false);
  expect(statistics.isQuiet('e', 15, T0 + 15 * MINUTE)).toBe(true);
  expect(statistics.isQuiet('e', 60, T0 + 44 * MINUTE)).toBe(false);
  expect(statistics.isQuiet('e', 60, T0 + 60 * MINUTE)).toBe(true);
  const other = createEndpointStatistics();
  other.merge(rowsOf(statistics, 'r'));
  expect(other.isQuiet('e', 15, T0)).toBe(false);
});

test('an endpoint in use is not evicted by others that are used once', () => {
  const statistics = createEndpointStatistics();
  for (let n = 0; n < 2 * limits.health_endpoints_max; n += 1) {
    statistics.observe(`x${n}`, success, T0);
    if (n % 100 === 0) observeMany(statistics, success, 1, T0);
  }
  expect(statistics.figures('e', T0).uptime_last_1d).toBe(100);
});
