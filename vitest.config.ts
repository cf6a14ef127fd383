import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts', 'bench/*.test.ts'],
    // Two workers: the tests start real servers and databases, and small machines have two cores.
    maxWorkers: 2,
    // Far beyond what a test takes: how fast something is is measured, and a busy machine fails no test.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 60_000 } },
  },
});
