import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { request } from 'node:http';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const PAGE_BYTES = 4_096;
/** Linux counts process time in hundredths of a second (proc(5), sysconf(_SC_CLK_TCK)). */
const TICK_MS = 10;
/** The slowest peer takes half a minute on one busy core. */
const READY_MS_MAX = 120_000;
const STOP_MS_MAX = 5_000;

/** The cores of the run: one for the server under test, one for everything else; undefined if the system cannot pin. */
export interface Cores {
  server: number;
  ends: number;
}

function allowedCores(): number[] {
  try {
    const list = /^Cpus_allowed_list:\s*(\S+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '';
    return list.split(',').flatMap((range) => {
      const [first = 0, last = first] = range.split('-').map(Number);
      return Array.from({ length: last - first + 1 }, (_, index) => first + index);
    });
  } catch {
    return [];
  }
}

/** Puts this process on the first core it may use and returns the cores for the others. */
export function pinSelf(): Cores | undefined {
  const [ends, server] = allowedCores();
  if (ends === undefined || server === undefined) return undefined;
  const pinned = spawnSync('taskset', ['-apc', String(ends), String(process.pid)], { stdio: 'ignore' });
  return pinned.status === 0 ? { server, ends } : undefined;
}

/** A port that was free a moment ago. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(address !== null && typeof address === 'object' ? address.port : 0));
    });
  });
}

export interface Command {
  /** Default: Node itself. */
  program?: string | undefined;
  args: readonly string[];
  cwd?: string;
  env?: Readonly<Record<string, string>>;
  /** The file for the process's output. */
  log: string;
  core: number | undefined;
}

/** CPU time and memory of a process and of all processes that it started. */
export interface Usage {
  cpu_ms: number;
  rss_bytes: number;
  processes: number;
}

function statFields(pid: number): string[] | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The name stands in parentheses and may hold blanks; fields are counted after it (proc(5)).
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch {
    return undefined;
  }
}

function descendants(root: number): number[] {
  const children = new Map<number, number[]>();
  for (const name of readdirSync('/proc')) {
    const pid = Number(name);
    const parent = Number.isInteger(pid) ? Number(statFields(pid)?.[1]) : Number.NaN;
    if (Number.isInteger(parent)) children.set(parent, [...(children.get(parent) ?? []), pid]);
  }
  const pids = [root];
  for (let index = 0; index < pids.length; index += 1) pids.push(...(children.get(pids[index]!) ?? []));
  return pids;
}

/** How long a core has been busy since the machine started, including time stolen by the host (proc(5), /proc/stat). */
export function coreBusyMs(core: number | undefined): number | undefined {
  if (core === undefined) return undefined;
  const line = new RegExp(`^cpu${core} (.*)$`, 'm').exec(readFileSync('/proc/stat', 'latin1'));
  const [user = 0, nice = 0, system = 0, , , irq = 0, softIrq = 0, steal = 0] = (line?.[1] ?? '')
    .split(' ')
    .map(Number);
  return (user + nice + system + irq + softIrq + steal) * TICK_MS;
}

const running = new Set<Program>();
let stopping = false;

/** One program of the run, pinned, with its output in a file; `stopAll` ends whatever is still running. */
export class Program {
  readonly started_ms = performance.now();
  readonly core: number | undefined;
  readonly #child: ChildProcess;
  readonly #log: string;

  constructor(command: Command) {
    if (stopping) throw new Error('The run is ending.');
    const log = openSync(command.log, 'w');
    const argv = [command.program ?? process.execPath, ...command.args];
    if (command.core !== undefined) argv.unshift('taskset', '-c', String(command.core));
    this.#log = command.log;
    this.core = command.core;
    this.#child = spawn(argv[0]!, argv.slice(1), {
      cwd: command.cwd,
      env: { PATH: process.env['PATH'], HOME: process.env['HOME'], NODE_ENV: 'production', ...command.env },
      stdio: ['ignore', log, log],
    });
    closeSync(log);
    running.add(this);
    this.#child.once('exit', () => running.delete(this));
  }

  get ended(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  usage(): Usage {
    const pids = this.ended ? [] : descendants(this.#child.pid!);
    const usage: Usage = { cpu_ms: 0, rss_bytes: 0, processes: 0 };
    for (const pid of pids) {
      const fields = statFields(pid);
      if (fields === undefined) continue;
      usage.cpu_ms += (Number(fields[11]) + Number(fields[12])) * TICK_MS;
      usage.rss_bytes += Number(fields[21]) * PAGE_BYTES;
      usage.processes += 1;
    }
    return usage;
  }

  /** Sends requests until the server answers as it does when ready, and returns the time since its start. */
  async ready(port: number, path: string, isReady: (status: number) => boolean): Promise<number> {
    for (;;) {
      const status = await statusOf(port, path);
      if (status !== 0 && isReady(status)) return performance.now() - this.started_ms;
      if (this.ended || performance.now() - this.started_ms > READY_MS_MAX) {
        throw new Error(`The server did not become ready; its output:\n${this.tail()}`);
      }
      await sleep(5);
    }
  }

  /** The end of the program's output. */
  tail(): string {
    return readFileSync(this.#log, 'utf8').slice(-2_000);
  }

  /** Waits for a bounded time until the program is idle. */
  async settle(): Promise<void> {
    const untilMs = performance.now() + 10_000;
    let before = this.usage().cpu_ms;
    while (performance.now() < untilMs) {
      await sleep(200);
      const now = this.usage().cpu_ms;
      if (now - before <= 2 * TICK_MS) return;
      before = now;
    }
  }

  /** Requests the end of the program, and kills it after a while. */
  async stop(): Promise<void> {
    if (this.ended) return;
    const pids = descendants(this.#child.pid!);
    const exited = new Promise<void>((resolve) => this.#child.once('exit', () => resolve()));
    this.#child.kill('SIGTERM');
    await Promise.race([exited, sleep(STOP_MS_MAX, undefined, { ref: false })]);
    if (this.ended) return;
    for (const pid of pids) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It has ended meanwhile.
      }
    }
    await exited;
  }
}

/** Ends every program of the run; no other can be started after it. */
export async function stopAll(): Promise<void> {
  stopping = true;
  await Promise.all([...running].map((program) => program.stop()));
}

function statusOf(port: number, path: string): Promise<number> {
  return new Promise((resolve) => {
    const call = request({ host: '127.0.0.1', port, path, agent: false, timeout: 2_000 }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    call.on('timeout', () => call.destroy());
    call.on('error', () => resolve(0));
    call.end();
  });
}
