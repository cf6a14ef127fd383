import { foreignShare, type Memory, type Window } from './measure.ts';

/** The median; NaN if there are no values. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  if (sorted.length % 2 === 1) return sorted[middle]!;
  return sorted.length === 0 ? Number.NaN : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** A quantile, interpolated between two values; NaN if there are none. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const place = (sorted.length - 1) * share;
  const [low = Number.NaN, high = low] = [sorted[Math.floor(place)], sorted[Math.ceil(place)]];
  return low + (high - low) * (place - Math.floor(place));
}

/** The rounds of one measurement for one candidate, in the order in which they ran. */
export interface Series<Round> {
  name: string;
  rounds: Round[];
}

/** One figure of a section: its name, how it is computed from a round, and its format. */
interface Column {
  title: string;
  cells(series: Series<Window>, all: readonly Series<Window>[]): string;
}

/** Formats a figure with this number of digits; a dash for NaN. */
export const digits = (count: number) => (value: number) =>
  Number.isFinite(value)
    ? value.toLocaleString('en-US', { minimumFractionDigits: count, maximumFractionDigits: count })
    : '–';

export const percent = (part: number) => (Number.isFinite(part) ? `${digits(0)(part * 100)} %` : '–');
export const times = (count: number) => (part: number) => (Number.isFinite(part) ? `${digits(count)(part)} x` : '–');

/** The median of the rounds. */
function value(title: string, of: (round: Window) => number, write: (value: number) => string): Column {
  return { title, cells: (series) => write(median(series.rounds.map(of))) };
}

/** The lowest and the highest round. */
function spread(title: string, of: (round: Window) => number, write: (value: number) => string): Column {
  return {
    title,
    cells: ({ rounds }) => {
      const values = rounds.map(of);
      return `${write(Math.min(...values))} … ${write(Math.max(...values))}`;
    },
  };
}

/**
 * The median of the comparisons of each round with the same round of another candidate, which removes the drift of the
 * machine. NaN if a round is missing.
 */
export function compared(
  all: readonly Series<Window>[],
  name: string,
  other: string,
  compare: (round: Window, otherRound: Window) => number,
): number {
  const rounds = all.find((series) => series.name === name)?.rounds ?? [];
  const others = all.find((series) => series.name === other)?.rounds ?? [];
  return median(rounds.flatMap((round, index) => (others[index] === undefined ? [] : compare(round, others[index]))));
}

function against(
  title: string,
  other: string,
  compare: (round: Window, otherRound: Window) => number,
  write: (value: number) => string,
): Column {
  return {
    title,
    cells: (series, all) => write(compared(all, series.name, other, compare)),
  };
}

export const perSecond = (round: Window) => (round.completed / round.elapsed_ms) * 1_000;
const chunksPerSecond = (round: Window) => (round.chunks / round.elapsed_ms) * 1_000;
const cpuShare = (round: Window) => (round.cpu_ms / round.elapsed_ms) * 100;
export const cpuPerRequestUs = (round: Window) => (round.cpu_ms / round.completed) * 1_000;
export const cpuPerChunkUs = (round: Window) => (round.cpu_ms / round.chunks) * 1_000;
export const ratio = (of: (round: Window) => number) => (round: Window, other: Window) => of(round) / of(other);
/** The factor by which the other candidate took less. */
export const inverse = (of: (round: Window) => number) => (round: Window, other: Window) => of(other) / of(round);
export const added = (of: (round: Window) => number) => (round: Window, other: Window) => of(round) - of(other);
export const p50 = (round: Window) => round.p50_ms;
export const p99 = (round: Window) => round.p99_ms;
const failed = value('failed', (round) => round.failed, digits(0));

const COLUMNS = {
  throughput: [
    value('req/s', perSecond, digits(0)),
    spread('lowest … highest', perSecond, digits(0)),
    against('of bare', 'bare', ratio(perSecond), percent),
    value('CPU µs/req', cpuPerRequestUs, digits(0)),
    against('bare by CPU', 'bare', inverse(cpuPerRequestUs), percent),
    against('crabllm by CPU', 'crabllm', inverse(cpuPerRequestUs), percent),
    value('CPU %', cpuShare, digits(0)),
    failed,
  ],
  latency: [
    value('p50 ms', p50, digits(2)),
    value('p99 ms', p99, digits(2)),
    against('added p50', 'direct', added(p50), digits(2)),
    against('added p99', 'direct', added(p99), digits(2)),
    value('answers/s', perSecond, digits(0)),
    value('CPU %', cpuShare, digits(0)),
    failed,
  ],
  first_token: [
    value('p50 ms', p50, digits(2)),
    value('p99 ms', p99, digits(2)),
    against('added p50', 'direct', added(p50), digits(2)),
    against('added p99', 'direct', added(p99), digits(2)),
    value('chunks/s', chunksPerSecond, digits(0)),
    value('CPU %', cpuShare, digits(0)),
    failed,
  ],
  chunk_cpu: [
    value('CPU µs/chunk', cpuPerChunkUs, digits(1)),
    spread('lowest … highest', cpuPerChunkUs, digits(1)),
    against('of pipe', 'pipe', ratio(cpuPerChunkUs), times(2)),
    against('of bare', 'bare', ratio(cpuPerChunkUs), times(2)),
    value('chunks/s', chunksPerSecond, digits(0)),
    value('CPU %', cpuShare, digits(0)),
    failed,
  ],
} as const satisfies Record<string, readonly Column[]>;

/** The measurements whose rounds are windows. */
export type WindowKind = keyof typeof COLUMNS;

/** A plain text table: first column left, the others right. */
export function table(title: string, head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((cell, column) => Math.max(cell.length, ...rows.map((row) => row[column]!.length)));
  const line = (cells: readonly string[]) =>
    `  ${cells.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!))).join('  ')}`;
  return [title, line(head), ...rows.map(line), ''].join('\n');
}

/** One measurement of all candidates, medians of the rounds. */
export function windowTable(kind: WindowKind, title: string, all: readonly Series<Window>[]): string {
  const columns: readonly Column[] = COLUMNS[kind];
  const rows = all
    .filter(({ rounds }) => rounds.length > 0)
    .map((series) => [series.name, ...columns.map((column) => column.cells(series, all))]);
  return table(title, ['', ...columns.map((column) => column.title)], rows) + foreignNote(all);
}

const FOREIGN_SHARE_NOTED = 0.05;

/** Reports other work on the servers' core: the rows of such a run are not comparable. */
function foreignNote(all: readonly Series<Window>[]): string {
  const shares = all.flatMap(({ rounds }) => rounds.map(foreignShare));
  const worst = Math.max(0, ...shares);
  if (worst < FOREIGN_SHARE_NOTED) return '';
  const share = digits(0)(worst * 100);
  const usual = digits(0)(median(shares) * 100);
  return `  Other work took up to ${share} % of the servers' core (median of the windows: ${usual} %).\n`;
}

/** One start of one candidate. */
export interface StartRound {
  ready_ms: number;
  /** The second start, on the data of the first one, if the candidate stores any. */
  second_ready_ms: number | undefined;
  idle_bytes: number;
  processes: number;
}

const MEBIBYTE = 1_048_576;
const KIBIBYTE = 1_024;

/** Start-up and idle memory. */
export function startTable(all: readonly Series<StartRound>[]): string {
  const rows = all.map(({ name, rounds }) => [
    name,
    digits(0)(median(rounds.map((round) => round.ready_ms))),
    digits(0)(median(rounds.flatMap((round) => round.second_ready_ms ?? []))),
    digits(0)(median(rounds.map((round) => round.idle_bytes)) / MEBIBYTE),
    digits(0)(median(rounds.map((round) => round.processes))),
  ]);
  const head = ['', 'ready ms', 'again ms', 'idle RSS MiB', 'processes'];
  return table('Start: from the command to the first ready answer; resident memory one second later', head, rows);
}

/** Memory of open streams. */
export function memoryTable(all: readonly Series<Memory>[], streams: number): string {
  const rows = all.map(({ name, rounds }) => [
    name,
    digits(1)(median(rounds.map((round) => round.per_stream_bytes)) / KIBIBYTE),
    digits(0)(median(rounds.map((round) => round.before_bytes)) / MEBIBYTE),
    digits(0)(median(rounds.map((round) => round.open_bytes)) / MEBIBYTE),
  ]);
  const title = `Memory of an open stream: resident memory with ${digits(0)(streams)} streams less without, a chunk a second each`;
  return table(title, ['', 'KiB/stream', 'before MiB', 'open MiB'], rows);
}
