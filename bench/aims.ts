import type { Window } from './measure.ts';
import {
  added,
  compared,
  cpuPerChunkUs,
  cpuPerRequestUs,
  digits,
  inverse,
  median,
  p50,
  p99,
  percent,
  perSecond,
  ratio,
  type Series,
  type StartRound,
  table,
  times,
} from './report.ts';

/** The measurements of a run, by section. */
export interface Measured {
  windows: ReadonlyMap<string, readonly Series<Window>[]>;
  starts: readonly Series<StartRound>[];
}

type Write = (value: number) => string;

/**
 * The gateway's own aims beside the medians of this run. A missed aim is no failure, and sections that did not run are
 * omitted.
 */
export function aimsTable({ windows, starts }: Measured): string {
  const rows: string[][] = [];
  const aim = (what: string, target: string, measured: number, write: Write) => {
    if (Number.isFinite(measured)) rows.push([what, target, write(measured)]);
  };
  const compare = (section: string, other: string, by: (round: Window, otherRound: Window) => number) =>
    compared(windows.get(section) ?? [], 'gateway', other, by);
  const started = starts.find(({ name }) => name === 'gateway')?.rounds ?? [];
  const ms: Write = (value) => `${digits(2)(value)} ms`;

  aim(
    'ready after',
    '<= 2,000 ms',
    median(started.map((round) => round.ready_ms)),
    (value) => `${digits(0)(value)} ms`,
  );
  aim(
    'idle memory',
    '< 150 MB',
    median(started.map((round) => round.idle_bytes)) / 1e6,
    (value) => `${digits(0)(value)} MB`,
  );
  aim('throughput of bare', '>= 70 %', compare('throughput_64', 'bare', ratio(perSecond)), percent);
  aim('the same by CPU time', '>= 70 %', compare('throughput_64', 'bare', inverse(cpuPerRequestUs)), percent);
  aim(
    'CPU of a whole answer, of crabllm',
    '<= 1.0 x',
    compare('throughput_64', 'crabllm', ratio(cpuPerRequestUs)),
    times(2),
  );
  aim('throughput of portkey', '>= 6 x', compare('throughput_64', 'portkey', ratio(perSecond)), times(1));
  aim('first token, added p50', '< 1 ms', compare('first_token', 'direct', added(p50)), ms);
  aim('first token, added p99', '< 3 ms', compare('first_token', 'direct', added(p99)), ms);
  aim('CPU of a chunk, of pipe', '<= 1.3 x', compare('chunk_cpu', 'pipe', ratio(cpuPerChunkUs)), times(2));
  return rows.length === 0 ? '' : table('The gateway: aims and measurements', ['', 'aim', 'measured'], rows);
}
