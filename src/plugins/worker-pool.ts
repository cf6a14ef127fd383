import { Worker } from 'node:worker_threads';
import { limits } from '../limits.ts';

/** Why work in a thread gave nothing. */
export class WorkFailed extends Error {
  override readonly name = 'WorkFailed';
  /** `busy`: it was not begun, since too much waits. `late`, `large`: it was ended, for its time or its memory. `died`: its thread ended by itself. */
  readonly reason: 'busy' | 'late' | 'large' | 'died';

  constructor(reason: WorkFailed['reason'], message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.reason = reason;
  }
}

export interface WorkerPoolOptions {
  /** Plain JavaScript: answers each message with one of its own. */
  script: URL;
  threads_max: number;
  waiting_max: number;
  waiting_per_owner_max: number;
  /** How long one waits for a thread, and how long its work may take. */
  wait_ms_max: number;
  ms_max: number;
  heap_mb_max: number;
  /** What a thread may hold outside of its heap; absent: nothing looks. */
  buffers_bytes_max?: number;
}

/** Threads that work on what strangers sent: whatever it is, it takes no more than its share, and nothing else waits for it. */
export interface WorkerPool {
  /** The thread's answer. `owner`: nobody has more than one thread. Rejects with `WorkFailed`, or the reason of the signal. */
  run(
    message: unknown,
    options: { owner: string; signal?: AbortSignal; transfer?: readonly ArrayBuffer[] },
  ): Promise<unknown>;
  stop(): Promise<void>;
}

interface Job {
  owner: string;
  message: unknown;
  transfer: readonly ArrayBuffer[];
  resolve(answer: unknown): void;
  reject(error: unknown): void;
}

interface Thread {
  worker: Worker;
  job: Job | undefined;
  /** Ends it when it has had nothing to do for a while. */
  idle: NodeJS.Timeout | undefined;
}

/** No thread runs until there is work. A thread that was ended, or died, is replaced when there is more. */
export function createWorkerPool(options: WorkerPoolOptions): WorkerPool {
  const { script, threads_max, waiting_max, waiting_per_owner_max, wait_ms_max, ms_max, heap_mb_max } = options;
  const threads = new Set<Thread>();
  const waiting = new Set<Job>();

  function start(): Thread {
    const worker = new Worker(script, {
      execArgv: [],
      env: {},
      stdout: true,
      stderr: true,
      resourceLimits: { maxOldGenerationSizeMb: heap_mb_max, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 },
    });
    // Its libraries may print; nobody reads it.
    worker.stdout.resume();
    worker.stderr.resume();
    worker.unref();
    const thread: Thread = { worker, job: undefined, idle: undefined };
    threads.add(thread);
    worker.on('message', (answer) => settle(thread, (job) => job.resolve(answer)));
    worker.on('error', (error: NodeJS.ErrnoException) => {
      const is_full = error.code === 'ERR_WORKER_OUT_OF_MEMORY';
      end(thread, is_full ? new WorkFailed('large', 'it takes too much memory') : died(error));
    });
    worker.on('exit', () => end(thread, died()));
    return thread;
  }

  function died(cause?: unknown): WorkFailed {
    return new WorkFailed('died', 'its thread ended', cause);
  }

  function settle(thread: Thread, tell: (job: Job) => void): void {
    const { job } = thread;
    thread.job = undefined;
    if (job === undefined) return;
    tell(job);
    startNext();
    if (thread.job === undefined && threads.has(thread)) {
      thread.idle = setTimeout(() => end(thread, died()), limits.worker_idle_ms_max);
      thread.idle.unref();
    }
  }

  function end(thread: Thread, why: Error): void {
    if (!threads.delete(thread)) return;
    clearTimeout(thread.idle);
    void thread.worker.terminate();
    settle(thread, (job) => job.reject(why));
  }

  function take(): Thread | undefined {
    for (const thread of threads) {
      if (thread.job !== undefined) continue;
      clearTimeout(thread.idle);
      return thread;
    }
    return threads.size < threads_max ? start() : undefined;
  }

  function startNext(): void {
    const busy = new Set([...threads].map(({ job }) => job?.owner));
    for (const job of waiting) {
      if (busy.has(job.owner)) continue;
      const thread = take();
      if (thread === undefined) return;
      waiting.delete(job);
      busy.add(job.owner);
      begin(thread, job);
    }
  }

  function begin(thread: Thread, job: Job): void {
    thread.job = job;
    const since_ms = performance.now();
    const look = setInterval(() => void watch(), limits.worker_look_ms);
    const over = () => clearInterval(look);
    thread.job = {
      ...job,
      resolve(answer) {
        over();
        job.resolve(answer);
      },
      reject(error) {
        over();
        job.reject(error);
      },
    };
    const running = thread.job;
    /** Asks from outside: work that stalls its thread cannot look at itself. */
    async function watch(): Promise<void> {
      if (performance.now() - since_ms > ms_max) {
        end(thread, new WorkFailed('late', `it takes longer than ${ms_max} ms`));
        return;
      }
      if (options.buffers_bytes_max === undefined) return;
      const { external_memory } = await thread.worker.getHeapStatistics().catch(() => ({ external_memory: 0 }));
      if (thread.job === running && external_memory > options.buffers_bytes_max) {
        end(thread, new WorkFailed('large', 'it takes too much memory'));
      }
    }
    thread.worker.postMessage(job.message, [...job.transfer]);
  }

  return {
    run(message, { owner, signal, transfer = [] }) {
      const theirs = [...waiting].filter((job) => job.owner === owner).length;
      if (waiting.size >= waiting_max || theirs >= waiting_per_owner_max) {
        return Promise.reject(new WorkFailed('busy', 'too much waits to be read'));
      }
      if (signal?.aborted) return Promise.reject(signal.reason as Error);
      return new Promise((resolve, reject) => {
        const leave = () => {
          if (waiting.delete(job)) job.reject(signal?.reason);
          const thread = [...threads].find((one) => one.job?.message === message);
          if (thread !== undefined) end(thread, signal?.reason as Error);
        };
        const patience = setTimeout(() => {
          if (waiting.delete(job)) job.reject(new WorkFailed('busy', 'too much waits to be read'));
        }, wait_ms_max);
        const over = () => {
          clearTimeout(patience);
          signal?.removeEventListener('abort', leave);
        };
        const job: Job = {
          owner,
          message,
          transfer,
          resolve(answer) {
            over();
            resolve(answer);
          },
          reject(error) {
            over();
            reject(error as Error);
          },
        };
        signal?.addEventListener('abort', leave, { once: true });
        waiting.add(job);
        startNext();
      });
    },
    async stop() {
      for (const job of waiting) {
        waiting.delete(job);
        job.reject(died());
      }
      const all = [...threads];
      for (const thread of all) end(thread, died());
      await Promise.all(all.map(({ worker }) => worker.terminate()));
    },
  };
}
