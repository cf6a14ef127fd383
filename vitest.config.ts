import { defineConfig } from 'vitest/config';
import { filesOf, type Tier } from './test/tier-files.ts';

const tiers: readonly string[] = ['first', 'second', 'all'];

export default defineConfig(({ mode }) => {
  // `--mode all`, `--mode second`: the scripts `test:all` and `test:second`.
  const tier = (tiers.includes(mode) ? mode : 'first') as Tier;
  process.env['TEST_TIER'] = tier;
  return {
    test: {
      ...filesOf(tier),
      // Where everything has run that `isolate` would part: docs/decisions/0075-tests-in-two-tiers.md.
      isolate: false,
      // Node reads the sources as it does in production.
      experimental: { viteModuleRunner: false, nodeLoader: false },
      // Two workers: the tests start real servers and databases, and small machines have two cores.
      maxWorkers: 2,
      reporters: ['./test/reporter.ts'],
      silent: 'passed-only',
      // Far beyond what a test takes: how fast something is is measured, and a busy machine fails no test.
      testTimeout: 120_000,
      hookTimeout: 120_000,
      expect: { poll: { timeout: 60_000 } },
    },
  };
});
