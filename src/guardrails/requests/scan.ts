import { limits } from '../../limits.ts';
import type { Finding } from '../finding.ts';
import type { FilterSet } from '../policy/filter-set.ts';

/** Lets others be served: waited for each time so much text was looked at. */
export type Pause = () => Promise<void>;

/** Looks at texts, a bounded piece at a time. */
export interface Scanner {
  find(text: string): Promise<Finding[]>;
  /** What begins in one of several texts and ends in another, as parts of each: a model reads them as one. */
  across(texts: readonly string[]): Promise<Finding[][]>;
}

/** What separates the texts of one turn in what models are given: nothing, or white space. */
const JOINTS = ['', '\n'];

/** Makes a scanner of one request. What is found in a long text is what is found in pieces that overlap by more than a match may reach. */
export function createScanner(set: FilterSet, pause: Pause): Scanner {
  const { scan_slice_chars, scan_overlap_chars } = limits;
  const known = new Map<string, Finding[]>();
  let chars = 0;
  let isPrepared = false;

  async function look(text: string): Promise<Finding[]> {
    if (!isPrepared) {
      await set.prepare(pause);
      isPrepared = true;
    }
    chars += text.length + limits.scan_text_chars;
    if (chars > scan_slice_chars) {
      chars = text.length;
      await pause();
    }
    return set.find(text);
  }

  async function inPieces(text: string): Promise<Finding[]> {
    const found: Finding[] = [];
    let reaching = new Set<string>();
    for (let start = 0; start < text.length; start += scan_slice_chars) {
      const from = Math.max(0, start - scan_overlap_chars);
      const border = start + scan_slice_chars;
      const piece = text.slice(from, border + scan_overlap_chars);
      const before = reaching;
      reaching = new Set();
      for (const finding of await look(piece)) {
        const moved = { ...finding, start: finding.start + from, end: finding.end + from };
        // What begins behind the border is the next piece's, and what ends before this one was the last one's: there they end.
        if (moved.start >= border || (from > 0 && moved.end <= start)) continue;
        const key = moved.start < start || moved.end > border ? keyOf(moved) : '';
        if (moved.end > border) reaching.add(key);
        if (!before.has(key)) found.push(moved);
      }
    }
    return found;
  }

  async function find(text: string): Promise<Finding[]> {
    if (text.length > scan_slice_chars) return inPieces(text);
    if (text.length > limits.scan_remembered_chars_max) return look(text);
    const before = known.get(text);
    if (before !== undefined) return before;
    const found = await look(text);
    if (known.size < limits.scan_remembered_max) known.set(text, found);
    return found;
  }

  /** What reaches over a joint of a window, as parts of the texts on its sides. */
  async function overJoints(window: readonly Piece[], joint: string, found: Finding[][]): Promise<void> {
    const starts: number[] = [];
    let joined = '';
    for (const [at, { text }] of window.entries()) {
      if (at > 0) joined += joint;
      starts.push(joined.length);
      joined += text;
    }
    for (const finding of await find(joined)) {
      const first = lastAt(starts, finding.start);
      if (starts[first + 1] === undefined || starts[first + 1]! >= finding.end) continue;
      const touched: { of: number; part: Finding }[] = [];
      for (let at = first; at < window.length && starts[at]! < finding.end; at += 1) {
        const { text, of, from } = window[at]!;
        const start = Math.max(0, finding.start - starts[at]!);
        const end = Math.min(text.length, finding.end - starts[at]!);
        if (start < end) touched.push({ of, part: { ...finding, start: start + from, end: end + from } });
      }
      if (touched.length > 1) for (const { of, part } of touched) found[of]?.push(part);
    }
  }

  return {
    find,
    async across(texts) {
      const found: Finding[][] = texts.map(() => []);
      for (const window of windowsOf(texts)) {
        for (const joint of JOINTS) await overJoints(window, joint, found);
      }
      return found;
    },
  };
}

const keyOf = ({ filter, start, end, pattern }: Finding) => `${filter} ${start} ${end} ${pattern ?? ''}`;

/** The last place of a list in order whose number is not above one; the first where all are. */
function lastAt(numbers: readonly number[], most: number): number {
  let low = 0;
  let high = numbers.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (numbers[middle]! <= most) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** A part of one of several texts. */
interface Piece {
  text: string;
  of: number;
  from: number;
}

/** What stands around the joints of texts: of long ones their ends alone, so that each window is of texts that touch. */
function windowsOf(texts: readonly string[]): Piece[][] {
  const reach = limits.scan_overlap_chars;
  const windows: Piece[][] = [];
  let open: Piece[] = [];
  for (const [of, text] of texts.entries()) {
    if (text === '') continue;
    if (text.length <= 2 * reach) {
      open.push({ text, of, from: 0 });
      continue;
    }
    open.push({ text: text.slice(0, reach), of, from: 0 });
    windows.push(open);
    open = [{ text: text.slice(-reach), of, from: text.length - reach }];
  }
  windows.push(open);
  return windows.filter((window) => window.length > 1);
}
