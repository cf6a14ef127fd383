import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { GatewayError } from '../errors.ts';
import { limits } from '../limits.ts';
import { type Claim, createMemory, structureBytes } from './memory.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** The outcome of a request for memory: `now`, `waits`, then `came`, or the status of its refusal. */
function takeFrom(claim: Claim, bytes: number) {
  const state: { outcome: string | number } = { outcome: 'now' };
  try {
    const waiting = claim.take(bytes);
    if (waiting === undefined) return state;
    state.outcome = 'waits';
    waiting.then(
      () => {
        state.outcome = 'came';
      },
      (error: GatewayError) => {
        state.outcome = error.status;
      },
    );
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    state.outcome = error.status;
  }
  return state;
}

describe('memory', () => {
  test('a claim that fits is granted immediately, and others wait until memory is released', async () => {
    const memory = createMemory(1000);
    const [one, other] = [memory.claim('one'), memory.claim('other')];
    expect(takeFrom(one, 600).outcome).toBe('now');
    const waiting = takeFrom(other, 500);
    expect(waiting.outcome).toBe('waits');
    one.release();
    await vi.advanceTimersByTimeAsync(0);
    expect(waiting.outcome).toBe('came');
    expect([memory.held_bytes, one.held_bytes, other.held_bytes]).toEqual([500, 0, 500]);
  });

  test('a claim that waits too long is refused with 503, and holds nothing', async () => {
    const memory = createMemory(1000);
    takeFrom(memory.claim('one'), 700);
    const other = memory.claim('other');
    const waiting = takeFrom(other, 400);
    await vi.advanceTimersByTimeAsync(limits.memory_wait_ms_max + 1);
    expect(waiting.outcome).toBe(503);
    expect([memory.held_bytes, other.held_bytes]).toEqual([700, 0]);
  });

  test('a request above its bound is refused with 413, also in parts', () => {
    const memory = createMemory(1000);
    expect(takeFrom(memory.claim('one'), 751).outcome).toBe(413);
    const claim = memory.claim('one');
    expect(takeFrom(claim, 700).outcome).toBe('now');
    expect(takeFrom(claim, 100).outcome).toBe(413);
  });

  test('requests of one key leave room for others, which do not wait behind them', async () => {
    const memory = createMemory(1000);
    takeFrom(memory.claim('greedy'), 400);
    const second = memory.claim('greedy');
    const more = takeFrom(second, 400);
    expect(more.outcome).toBe('waits');
    const modest = takeFrom(memory.claim('modest'), 200);
    await vi.advanceTimersByTimeAsync(0);
    expect([more.outcome, modest.outcome]).toEqual(['waits', 'came']);
  });

  test('an owner at its bound delays no others, even if its request could never fit', async () => {
    const memory = createMemory(1000);
    takeFrom(memory.claim('greedy'), 700);
    const more = takeFrom(memory.claim('greedy'), 400);
    const modest = takeFrom(memory.claim('modest'), 100);
    await vi.advanceTimersByTimeAsync(0);
    expect([more.outcome, modest.outcome]).toEqual(['waits', 'came']);
  });

  test('a client that disconnects while it waits delays no others', async () => {
    const memory = createMemory(1000);
    takeFrom(memory.claim('a'), 600);
    const large = memory.claim('b');
    takeFrom(large, 700);
    const other = takeFrom(memory.claim('c'), 100);
    large.release();
    await vi.advanceTimersByTimeAsync(0);
    expect(other.outcome).toBe('came');
  });

  test('small requests do not wait behind large ones, and some memory is reserved for them', async () => {
    const memory = createMemory(25_600);
    takeFrom(memory.claim('a'), 16_000);
    const large = takeFrom(memory.claim('b'), 9_000);
    const small = Array.from({ length: 40 }, () => takeFrom(memory.claim('c'), 100));
    await vi.advanceTimersByTimeAsync(0);
    expect(large.outcome).toBe('waits');
    // A hundred bytes are small here, and 3,200 are reserved for such requests.
    expect(small.map(({ outcome }) => outcome)).toEqual([...Array(32).fill('now'), ...Array(8).fill('waits')]);
    await vi.advanceTimersByTimeAsync(limits.memory_wait_ms_max + 1);
    expect([large.outcome, small[39]?.outcome]).toEqual([503, 'came']);
    expect(takeFrom(memory.claim('d'), 5_601).outcome).toBe('waits');
  });

  test('a claim that grows is no longer small, and leaves the memory for small ones', async () => {
    const memory = createMemory(25_600);
    const grown = memory.claim('a');
    for (let n = 0; n < 10; n += 1) takeFrom(grown, 100);
    takeFrom(memory.claim('b'), 19_000);
    expect(takeFrom(memory.claim('c'), 2_401).outcome).toBe('waits');
    expect(takeFrom(memory.claim('d'), 100).outcome).toBe('now');
    grown.release();
    expect(memory.held_bytes).toBe(21_501);
  });

  test('a large request is not overtaken forever by small ones', async () => {
    const memory = createMemory(1000);
    const first = memory.claim('a');
    takeFrom(first, 600);
    const large = takeFrom(memory.claim('b'), 700);
    const small = takeFrom(memory.claim('c'), 100);
    await vi.advanceTimersByTimeAsync(0);
    expect([large.outcome, small.outcome]).toEqual(['waits', 'waits']);
    first.release();
    await vi.advanceTimersByTimeAsync(0);
    expect([large.outcome, small.outcome]).toEqual(['came', 'came']);
  });

  test('if waiting claims hold most of the memory, the one that holds least is refused immediately', async () => {
    const memory = createMemory(1000);
    const [large, small] = [memory.claim('a'), memory.claim('b')];
    takeFrom(large, 600);
    takeFrom(small, 250);
    const growing = takeFrom(large, 140);
    const least = takeFrom(small, 140);
    await vi.advanceTimersByTimeAsync(0);
    expect([growing.outcome, least.outcome]).toEqual(['waits', 503]);
    small.release();
    await vi.advanceTimersByTimeAsync(0);
    expect(growing.outcome).toBe('came');
  });

  test('a released claim takes no memory, even if it was waiting', async () => {
    const memory = createMemory(1000);
    const holder = memory.claim('a');
    takeFrom(holder, 600);
    const late = memory.claim('b');
    const waiting = takeFrom(late, 600);
    late.release();
    late.release();
    holder.release();
    await vi.advanceTimersByTimeAsync(0);
    expect(waiting.outcome).toBe('came');
    expect(late.take(100)).toBeUndefined();
    expect(memory.held_bytes).toBe(0);
  });

  test('requests above the waiting bound are refused immediately', () => {
    const memory = createMemory(1000);
    takeFrom(memory.claim('a'), 700);
    for (let nth = 0; nth < limits.memory_waiting_max; nth += 1) takeFrom(memory.claim('b'), 700);
    expect(takeFrom(memory.claim('c'), 700).outcome).toBe(503);
  });

  test('no sequence of claims exceeds the memory, and all of it is released at the end', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.nat(3), fc.oneof(fc.nat(900), fc.nat(5)), fc.boolean(), fc.nat(3000)), { maxLength: 60 }),
        async (steps) => {
          const memory = createMemory(1000);
          const claims: Claim[] = [];
          for (const [owner, bytes, releases, ms] of steps) {
            const claim = memory.claim(`owner ${owner}`);
            claims.push(claim);
            takeFrom(claim, bytes);
            if (releases) claims[bytes % claims.length]?.release();
            await vi.advanceTimersByTimeAsync(ms % 7 === 0 ? ms : 0);
            expect(memory.held_bytes).toBeLessThanOrEqual(1000);
            expect(claims.reduce((sum, { held_bytes }) => sum + held_bytes, 0)).toBe(memory.held_bytes);
          }
          for (const claim of claims) claim.release();
          await vi.advanceTimersByTimeAsync(limits.memory_wait_ms_max + 1);
          expect(memory.held_bytes).toBe(0);
        },
      ),
      { numRuns: 200 },
    );
  });
});

describe('the structure of a body', () => {
  test('objects and lists count, and brackets in texts do not', () => {
    const base = structureBytes('[]');
    expect(structureBytes(`[${Array(1000).fill('{}').join()}]`)).toBeGreaterThan(1000 * 100 + base);
    expect(structureBytes(JSON.stringify('{}[],:'.repeat(1000)))).toBe(structureBytes('""'));
    expect(structureBytes(JSON.stringify('\\"{}\\\\'.repeat(1000)))).toBe(structureBytes('""'));
  });

  test('a text with one wide character counts twice', () => {
    const text = 'a'.repeat(10_000);
    expect(structureBytes(`"${text}ü"`)).toBe(structureBytes('""'));
    expect(structureBytes(`"${text}語"`)).toBeGreaterThan(10_000 * limits.body_copies);
  });

  test('a text without an end is scanned once', () => {
    expect(structureBytes(`["${'{'.repeat(1000)}`)).toBeLessThan(1000);
    expect(structureBytes('"\\')).toBeGreaterThan(0);
  });
});
