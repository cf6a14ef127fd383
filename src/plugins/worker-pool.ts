import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';

/** A worker process without work ends after this time. */
const WORKER_IDLE_MS_MAX = 30_000;
const WORKER_LOOK_MS = 20;
const WORKER_START_MS_MAX = 15_000;
/** The memory of a worker process before its work, and of its garbage. */
const WORKER_OWN_BYTES_MAX = 160 * 1024 * 1024;

/** Work in a separate process failed. */
export class WorkFailed extends Error {
  override readonly name = 'WorkFailed';
  /** `busy`: not started, since too much is waiting. `late`, `large`: ended for its time or memory. `died`: its process ended by itself. */
  readonly reason: 'busy' | 'late' | 'large' | 'died';

  constructor(reason: WorkFailed['reason'], message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.reason = reason;
  }
}

export interface WorkerPoolOptions {
  /** Plain JavaScript. Its default export takes each message and returns the answer. */
  script: URL;
  processes_max: number;
  waiting_max: number;
  waiting_per_owner_max: number;
  /** The time to wait for a process, and the time for its work. */
  wait_ms_max: number;
  ms_max: number;
  heap_mb_max: number;
  /** The memory of a process outside of its heap. */
  buffers_bytes_max?: number;
}

/**
 * Processes for untrusted input, with bounds of time and memory, so that nothing else waits for it. No threads:
 * a single allocation beyond the heap limit of a thread ends the whole process (Node's documentation of `resourceLimits`).
 */
export interface WorkerPool {
  /** Runs a message in a process and returns its answer. `owner` has at most one process. Rejects with `WorkFailed`, or the reason of the signal. */
  run(message: object, options: { owner: string; signal?: AbortSignal }): Promise<unknown>;
  stop(): Promise<void>;
}

interface Job {
  owner: string;
  message: object;
  ready(): void;
  resolve(answer: unknown): void;
  reject(error: unknown): void;
}

interface Process {
  child: ChildProcess;
  /** Whether the process has started: its start does not count as time of a job. */
  is_ready: boolean;
  job: Job | undefined;
  /** Ends the process after some idle time. */
  idle: NodeJS.Timeout | undefined;
}

/** Whether a process ended or was never started. */
function hasEnded({ pid, exitCode, signalCode }: ChildProcess): boolean {
  return pid === undefined || exitCode !== null || signalCode !== null;
}

const HOST = new URL('./work-process.js', import.meta.url);

/** Creates the pool. Processes start with the first work, and ended ones are replaced for the next work. */
export function createWorkerPool(options: WorkerPoolOptions): WorkerPool {
  const { script, processes_max, waiting_max, waiting_per_owner_max, wait_ms_max, ms_max, heap_mb_max } = options;
  const processes = new Set<Process>();
  const waiting = new Set<Job>();
  const bytesMax = WORKER_OWN_BYTES_MAX + heap_mb_max * 1024 * 1024 + (options.buffers_bytes_max ?? 0);

  function start(): Process {
    const child = fork(HOST, [script.href, String(bytesMax), String(WORKER_LOOK_MS)], {
      execArgv: [`--max-old-space-size=${heap_mb_max}`],
      env: {},
      serialization: 'advanced',
      // Output of its libraries is dropped.
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    child.unref();
    child.channel?.unref();
    const one: Process = { child, is_ready: false, job: undefined, idle: undefined };
    processes.add(one);
    child.on('message', (answer) => {
      if (one.is_ready) return settle(one, (job) => job.resolve(answer));
      one.is_ready = true;
      one.job?.ready();
    });
    child.on('error', (error) => end(one, died(error)));
    child.on('exit', (_code, signal) => {
      // V8 aborts if its heap is full; the memory watch kills.
      const isFull = signal === 'SIGABRT' || signal === 'SIGKILL' || signal === 'SIGTRAP' || signal === 'SIGILL';
      end(one, isFull ? new WorkFailed('large', 'it takes too much memory') : died());
    });
    return one;
  }

  function died(cause?: unknown): WorkFailed {
    return new WorkFailed('died', 'its process ended', cause);
  }

  function settle(one: Process, settleJob: (job: Job) => void): void {
    const { job } = one;
    one.job = undefined;
    if (job === undefined) return;
    settleJob(job);
    startNext();
    if (one.job === undefined && processes.has(one)) {
      one.idle = setTimeout(() => end(one, died()), WORKER_IDLE_MS_MAX);
      one.idle.unref();
    }
  }

  function end(one: Process, why: Error): void {
    if (!processes.delete(one)) return;
    clearTimeout(one.idle);
    one.child.kill('SIGKILL');
    settle(one, (job) => job.reject(why));
  }

  function idleProcess(): Process | undefined {
    for (const one of processes) {
      if (one.job !== undefined) continue;
      clearTimeout(one.idle);
      return one;
    }
    return processes.size < processes_max ? start() : undefined;
  }

  function startNext(): void {
    const busy = new Set([...processes].map(({ job }) => job?.owner));
    for (const job of waiting) {
      if (busy.has(job.owner)) continue;
      const one = idleProcess();
      if (one === undefined) return;
      waiting.delete(job);
      busy.add(job.owner);
      assign(one, job);
    }
  }

  function assign(one: Process, job: Job): void {
    one.job = job;
    const endOverdue = () => end(one, new WorkFailed('late', `it takes longer than ${ms_max} ms`));
    let timer = setTimeout(endOverdue, one.is_ready ? ms_max : WORKER_START_MS_MAX);
    one.job = {
      ...job,
      ready() {
        clearTimeout(timer);
        timer = setTimeout(endOverdue, ms_max);
      },
      resolve(answer) {
        clearTimeout(timer);
        job.resolve(answer);
      },
      reject(error) {
        clearTimeout(timer);
        job.reject(error);
      },
    };
    // A failed send is reported by the end of the process.
    one.child.send(job.message, () => undefined);
  }

  return {
    run(message, { owner, signal }) {
      const ownWaiting = [...waiting].filter((job) => job.owner === owner).length;
      if (waiting.size >= waiting_max || ownWaiting >= waiting_per_owner_max) {
        return Promise.reject(new WorkFailed('busy', 'too many files wait to be read'));
      }
      if (signal?.aborted) return Promise.reject(signal.reason as Error);
      return new Promise((resolve, reject) => {
        const onAbort = () => {
          if (waiting.delete(job)) job.reject(signal?.reason);
          const one = [...processes].find(({ job: running }) => running?.message === message);
          if (one !== undefined) end(one, signal?.reason as Error);
        };
        const waitTimer = setTimeout(() => {
          if (waiting.delete(job)) job.reject(new WorkFailed('busy', 'too many files wait to be read'));
        }, wait_ms_max);
        const cleanUp = () => {
          clearTimeout(waitTimer);
          signal?.removeEventListener('abort', onAbort);
        };
        const job: Job = {
          owner,
          message,
          ready: () => undefined,
          resolve(answer) {
            cleanUp();
            resolve(answer);
          },
          reject(error) {
            cleanUp();
            reject(error as Error);
          },
        };
        signal?.addEventListener('abort', onAbort, { once: true });
        waiting.add(job);
        startNext();
      });
    },
    async stop() {
      for (const job of waiting) {
        waiting.delete(job);
        job.reject(died());
      }
      const all = [...processes];
      for (const one of all) end(one, died());
      await Promise.all(all.map(({ child }) => hasEnded(child) || once(child, 'exit')));
    },
  };
}
