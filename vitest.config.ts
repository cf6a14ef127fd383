import { defineConfig } from 'vitest/config';
import { filesOf, type Tier } from './test/tier-files.ts';

/** They count the work of V8, whose counters slow down whatever runs in the same process afterwards. */
const counting = [
  'test/hostile/linear-answers.test.ts',
  'test/hostile/tools-in-text.test.ts',
  'test/hostile/usable-models.test.ts',
];

/** Files about hostile clients of operations that both edges of HTTP serve: the second tier runs them on the framework's edge too. */
const twoEdged = [
  'test/hostile/after-the-end.test.ts',
  'test/hostile/any-request-is-logged.test.ts',
  'test/hostile/body-on-request.test.ts',
  'test/hostile/broken-off-requests.test.ts',
  'test/hostile/connections.test.ts',
  'test/hostile/credentials-and-bodies.test.ts',
  'test/hostile/documented-answers.test.ts',
  'test/hostile/localhost.test.ts',
  'test/hostile/long-bodies.test.ts',
  'test/hostile/pipelining.test.ts',
  'test/hostile/request-bodies.test.ts',
  'test/hostile/request-heads.test.ts',
  'test/hostile/slow-store.test.ts',
  'test/hostile/temporary-refusals.test.ts',
  'test/hostile/turns.test.ts',
  'test/hostile/wrong-types.test.ts',
];

const tiers: readonly string[] = ['first', 'second', 'all'];

export default defineConfig(({ mode }) => {
  // `--mode all`, `--mode second`: the scripts `test:all` and `test:second`.
  const tier = (tiers.includes(mode) ? mode : 'first') as Tier;
  process.env['TEST_TIER'] = tier;
  const { include, exclude } = filesOf(tier);
  // Files share processes: docs/decisions/0075-tests-in-two-tiers.md.
  // Most objects of a test are short-lived: a larger young generation takes 7 % of the processor time off.
  const execArgv = ['--max-semi-space-size=64'];
  const shared = { include, exclude: [...exclude, ...counting], isolate: false, execArgv };
  const counted = counting.filter((file) => tier !== 'second' || include.includes(file));
  const alone = { include: counted, exclude: [], isolate: true };
  const framework = { include: twoEdged, exclude: [], isolate: true, env: { TEST_EDGE: 'framework' } };
  const frameworkEdge = { extends: true as const, test: { name: 'framework edge', ...framework } };
  return {
    test: {
      projects: [
        { extends: true, test: { name: 'shared', ...shared } },
        { extends: true, test: { name: 'alone', ...alone } },
        ...(tier === 'first' ? [] : [frameworkEdge]),
      ],
      // Node reads the sources as it does in production.
      experimental: { viteModuleRunner: false, nodeLoader: false },
      // Small machines have two cores; much of the first tier's time is waiting for real servers, databases and timers.
      maxWorkers: tier === 'first' ? 4 : 2,
      reporters: ['./test/reporter.ts'],
      silent: 'passed-only',
      // Far beyond what a test takes: how fast something is is measured, and a busy machine fails no test.
      testTimeout: 120_000,
      hookTimeout: 120_000,
      expect: { poll: { timeout: 60_000 } },
    },
  };
});
