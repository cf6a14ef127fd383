/** Which tests run: `npm test` is the first tier, `npm run test:all` both. CONTRIBUTING.md says which one a new test belongs to. */

/** The name that `vitest.config.ts` gives to every test. */
const tier = process.env['TEST_TIER'] ?? 'first';

/** For numbers of runs, samples and cells: the first for the tier that everybody runs, the second where everything runs. */
export function inTier<T>(first: T, all: T): T {
  return tier === 'first' ? first : all;
}
