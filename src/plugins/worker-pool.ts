import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { limits } from '../limits.ts';

/** Why work in a process of its own gave nothing. */
export class WorkFailed extends Error {
  override readonly name = 'WorkFailed';
  /** `busy`: it was not begun, since too much waits. `late`, `large`: it was ended, for its time or its memory. `died`: its process ended by itself. */
  readonly reason: 'busy' | 'late' | 'large' | 'died';

  constructor(reason: WorkFailed['reason'], message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.reason = reason;
  }
}

export interface WorkerPoolOptions {
  /** Plain JavaScript: its default export is given each message, and makes the answer. */
  script: URL;
  processes_max: number;
  waiting_max: number;
  waiting_per_owner_max: number;
  /** How long one waits for a process, and how long its work may take. */
  wait_ms_max: number;
  ms_max: number;
  heap_mb_max: number;
  /** What a process may hold outside of its heap. */
  buffers_bytes_max?: number;
}

/**
 * Processes that work on what strangers sent: whatever it is, it takes no more than its share, and nothing else waits for it. No threads:
 * one list that grows past the bound of a thread's heap in a single step ends the whole process (Node's documentation of `resourceLimits`).
 */
export interface WorkerPool {
  /** The process's answer. `owner`: nobody has more than one process. Rejects with `WorkFailed`, or the reason of the signal. */
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
  /** It has said that it can work: its own start is no part of anybody's time. */
  is_ready: boolean;
  job: Job | undefined;
  /** Ends it when it has had nothing to do for a while. */
  idle: NodeJS.Timeout | undefined;
}

/** Or never began. */
function hasEnded({ pid, exitCode, signalCode }: ChildProcess): boolean {
  return pid === undefined || exitCode !== null || signalCode !== null;
}

const HOST = new URL('./work-process.js', import.meta.url);

/** No process runs until there is work. One that was ended, or died, is replaced when there is more. */
export function createWorkerPool(options: WorkerPoolOptions): WorkerPool {
  const { script, processes_max, waiting_max, waiting_per_owner_max, wait_ms_max, ms_max, heap_mb_max } = options;
  const processes = new Set<Process>();
  const waiting = new Set<Job>();
  const bytesMax = limits.worker_own_bytes_max + heap_mb_max * 1024 * 1024 + (options.buffers_bytes_max ?? 0);

  function start(): Process {
    const child = fork(HOST, [script.href, String(bytesMax), String(limits.worker_look_ms)], {
      execArgv: [`--max-old-space-size=${heap_mb_max}`],
      env: {},
      serialization: 'advanced',
      // Its libraries may print; nobody reads it.
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
      // V8 aborts where its heap is full; the watch kills.
      const isFull = signal === 'SIGABRT' || signal === 'SIGKILL' || signal === 'SIGTRAP' || signal === 'SIGILL';
      end(one, isFull ? new WorkFailed('large', 'it takes too much memory') : died());
    });
    return one;
  }

  function died(cause?: unknown): WorkFailed {
    return new WorkFailed('died', 'its process ended', cause);
  }

  function settle(one: Process, tell: (job: Job) => void): void {
    const { job } = one;
    one.job = undefined;
    if (job === undefined) return;
    tell(job);
    startNext();
    if (one.job === undefined && processes.has(one)) {
      one.idle = setTimeout(() => end(one, died()), limits.worker_idle_ms_max);
      one.idle.unref();
    }
  }

  function end(one: Process, why: Error): void {
    if (!processes.delete(one)) return;
    clearTimeout(one.idle);
    one.child.kill('SIGKILL');
    settle(one, (job) => job.reject(why));
  }

  function take(): Process | undefined {
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
      const one = take();
      if (one === undefined) return;
      waiting.delete(job);
      busy.add(job.owner);
      begin(one, job);
    }
  }

  function begin(one: Process, job: Job): void {
    one.job = job;
    const endLate = () => end(one, new WorkFailed('late', `it takes longer than ${ms_max} ms`));
    let late = setTimeout(endLate, one.is_ready ? ms_max : limits.worker_start_ms_max);
    one.job = {
      ...job,
      ready() {
        clearTimeout(late);
        late = setTimeout(endLate, ms_max);
      },
      resolve(answer) {
        clearTimeout(late);
        job.resolve(answer);
      },
      reject(error) {
        clearTimeout(late);
        job.reject(error);
      },
    };
    // What cannot be sent is told by its end.
    one.child.send(job.message, () => undefined);
  }

  return {
    run(message, { owner, signal }) {
      const theirs = [...waiting].filter((job) => job.owner === owner).length;
      if (waiting.size >= waiting_max || theirs >= waiting_per_owner_max) {
        return Promise.reject(new WorkFailed('busy', 'too many files wait to be read'));
      }
      if (signal?.aborted) return Promise.reject(signal.reason as Error);
      return new Promise((resolve, reject) => {
        const leave = () => {
          if (waiting.delete(job)) job.reject(signal?.reason);
          const one = [...processes].find(({ job: running }) => running?.message === message);
          if (one !== undefined) end(one, signal?.reason as Error);
        };
        const patience = setTimeout(() => {
          if (waiting.delete(job)) job.reject(new WorkFailed('busy', 'too many files wait to be read'));
        }, wait_ms_max);
        const over = () => {
          clearTimeout(patience);
          signal?.removeEventListener('abort', leave);
        };
        const job: Job = {
          owner,
          message,
          ready: () => undefined,
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
      const all = [...processes];
      for (const one of all) end(one, died());
      await Promise.all(all.map(({ child }) => hasEnded(child) || once(child, 'exit')));
    },
  };
}
