/** Loaded into a gateway by `--import`: on SIGUSR2 its worker threads end, as if they had crashed. */
import type { Worker } from 'node:worker_threads';

const threads = new Set<Worker>();
process.on('worker', (thread) => threads.add(thread));
process.on('SIGUSR2', () => {
  for (const thread of threads) void thread.terminate();
});
