// Plain JavaScript: a process that never sees TypeScript does not load the type stripper.

/**
 * The process for untrusted input: answers each message with the default export of its script. Its heap is bounded by V8,
 * its time by its parent. A thread watches the memory of the whole process, also during a blocking call.
 */
import { isMainThread, Worker, workerData } from 'node:worker_threads';

if (isMainThread) {
  const [, , script = '', bytesMax, lookMs] = process.argv;
  const watch = { bytes_max: Number(bytesMax), look_ms: Number(lookMs), parent: process.ppid };
  new Worker(new URL(import.meta.url), { workerData: watch }).unref();
  /** @type {Promise<{ default: (message: unknown) => unknown }>} */
  const loading = import(script);
  process.on('disconnect', () => process.exit());
  // The first message reports that the process is ready.
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
