/**
 * The tiers of tests: `npm test` runs the first, `npm run test:all` both. CONTRIBUTING.md says to which tier a new test
 * belongs.
 */

/** The name that `vitest.config.ts` gives to every test. */
const tier = process.env['TEST_TIER'] ?? 'first';

/** Numbers of runs, samples and cells: the first one for the first tier, the second one for all tests. */
export function inTier<T>(first: T, all: T): T {
  return tier === 'first' ? first : all;
}
