import { describe, expect, test } from 'vitest';
import { inTier } from '../tier.ts';
import { FAULTS, faultyFiles, plant } from './faults.ts';
import { simulate } from './run.ts';
import { SLICED_STEP, STEPS, type Step } from './steps.ts';
import { loadSubject, SOURCES } from './subject.ts';
import type { Mode, RunOptions } from './world.ts';

// The command `npm run simulate` runs as many more as requested.
const SEEDS: Record<Mode, number> = inTier({ strict: 1, soft: 0, sliced: 0 }, { strict: 20, soft: 5, sliced: 8 });
/** Strict runs in which full disks refuse outcomes, later calls use the money, and the node is killed. */
const REFUSED_OUTCOMES = inTier([], [417, 513, 657, 965, 1021, 1225]);
const PATIENCE = { timeout: 180_000 };
const FAULT_SEEDS = 12;
const QUICK_FAULTS = FAULTS.filter(({ is_slow }) => is_slow !== true);
/** The first tier plants every twenty-fourth fault. */
const PLANTED = inTier(
  QUICK_FAULTS.filter((_, at) => at % 24 === 1),
  QUICK_FAULTS,
);
/**
 * Processes stop rarely and for a moment only, so that chance does not hit it in this number of runs. These runs are
 * aimed at it. Seed 3 is a run of usual length; with seed 1, this aim has six times as many events.
 */
const AIMED: readonly [number, RunOptions][] = [
  [3, { aim: 'draining' }],
  [1, { aim: 'draining', mode: 'soft' }],
];

describe('the ledger, simulated', () => {
  test('a seed repeats a run exactly', PATIENCE, async () => {
    const subject = await loadSubject(SOURCES);
    const [first, second] = [await simulate(7, subject), await simulate(7, subject)];
    expect(second).toEqual(first);
    expect(first.events).toBeGreaterThan(1_000);
    if (inTier(false, true)) expect((await simulate(8, subject)).hash).not.toBe(first.hash);
  });

  test(
    'no rule is broken, whatever ends, is lost, repeated or late; and something ended at every step',
    PATIENCE,
    async () => {
      const subject = await loadSubject(SOURCES);
      const steps = new Set<Step>();
      const broken: string[] = [];
      const run = async (seed: number, options: RunOptions) => {
        const { violations, crashed_at, counts } = await simulate(seed, subject, options);
        const name = Object.values(options).join(' ');
        for (const { rule, message } of violations) broken.push(`${name} seed ${seed}: ${rule}: ${message}`);
        for (const step of crashed_at.keys()) steps.add(step);
        expect(counts.admitted).toBeGreaterThan(20);
      };
      for (const [mode, seeds] of Object.entries(SEEDS) as [Mode, number][]) {
        for (let seed = 1; seed <= seeds; seed++) await run(seed, { mode });
      }
      for (const [seed, options] of AIMED) await run(seed, options);
      expect(broken).toEqual([]);
      // A few runs do not end at every step.
      const expected: Step[] = inTier([], [...STEPS, SLICED_STEP]);
      expect(expected.filter((step) => !steps.has(step))).toEqual([]);
    },
  );

  test.for(REFUSED_OUTCOMES)(
    'no charge exceeds its lease if a full disk refuses outcomes: seed %i',
    PATIENCE,
    async (seed) => {
      const { violations, counts } = await simulate(seed, await loadSubject(SOURCES), { mode: 'strict' });
      expect(violations).toEqual([]);
      expect(counts.disk_full).toBeGreaterThan(0);
    },
  );

  test.for(PLANTED)('the simulation finds a planted fault: $name', PATIENCE, async (fault) => {
    const copy = plant(fault);
    try {
      const subject = await loadSubject(copy.folder);
      const others = Array.from({ length: FAULT_SEEDS }, (_, at) => at + 1);
      for (const seed of new Set([fault.seed ?? 1, ...others])) {
        const { violations } = await simulate(seed, subject, fault.options, { stops_early: true });
        if (violations.length > 0) return;
      }
      expect.fail(`${FAULT_SEEDS} runs did not find it`);
    } finally {
      copy.remove();
    }
  });

  test('every fault of the table can still be planted', PATIENCE, () => {
    for (const fault of FAULTS) faultyFiles(fault);
  });
});
