// Plain JavaScript: a process that never sees TypeScript does not load the type stripper.

/**
 * The process that works on what strangers sent: answers each message by the function that its script exports. Its heap is bounded by V8,
 * its time by who started it; what it holds beside the heap it watches from a thread of its own, which stalled work does not stop.
 */
import { isMainThread, Worker, workerData } from 'node:worker_threads';

if (isMainThread) {
  const [, , script = '', bytesMax, lookMs] = process.argv;
  const watch = { bytes_max: Number(bytesMax), look_ms: Number(lookMs), parent: process.ppid };
  new Worker(new URL(import.meta.url), { workerData: watch }).unref();
  /** @type {Promise<{ default: (message: unknown) => unknown }>} */
  const loading = import(script);
  process.on('disconnect', () => process.exit());
  // The first message tells that the next are answers.
  void loading.then(() => process.send?.('ready'));
  process.on('message', async (message) => {
    const { default: answer } = await loading;
    process.send?.(await answer(message));
  });
} else {
  const { bytes_max, look_ms, parent } = workerData;
  setInterval(() => {
    const isOver = process.memoryUsage.rss() > bytes_max || process.ppid !== parent;
    if (isOver) process.kill(process.pid, 'SIGKILL');
  }, look_ms);
}
