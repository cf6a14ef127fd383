import { limits } from '../../limits.ts';
import type { Finding } from '../finding.ts';
import type { FilterSet } from '../policy/filter-set.ts';

/** The fixed cost of scanning one text, in characters. */
const SCAN_TEXT_CHARS = 64;
/** Texts that are joined, or whose findings are assigned, before other requests run. */
export const SCAN_SLICE_TEXTS = 1_000;
/** Texts of one request whose findings are cached (keys and words that repeat), and their length. */
const SCAN_REMEMBERED_MAX = 10_000;
const SCAN_REMEMBERED_CHARS_MAX = 200;

/** Lets other requests run. Awaited after each slice of scanned text. */
export type Pause = () => Promise<void>;

/** Finds matches in texts, one bounded piece at a time. */
export interface Scanner {
  find(text: string): Promise<Finding[]>;
  /** Matches that start in one text and end in another, as parts of each text, by its index: a model reads the texts as one. */
  across(texts: readonly string[]): Promise<ReadonlyMap<number, Finding[]>>;
}

/** Separators between the texts of one turn in the prompt: nothing or white space. */
const JOINTS = ['', '\n'];

/** Creates the scanner of one request. Long texts are scanned in pieces that overlap by more than the longest match. */
export function createScanner(set: FilterSet, pause: Pause): Scanner {
  const { scan_slice_chars, scan_overlap_chars } = limits;
  const cache = new Map<string, Finding[]>();
  let chars = 0;
  let isPrepared = false;

  async function scanPiece(text: string): Promise<Finding[]> {
    if (!isPrepared) {
      await set.prepare(pause);
      isPrepared = true;
    }
    chars += text.length + SCAN_TEXT_CHARS;
    if (chars > scan_slice_chars) {
      chars = text.length;
      await pause();
    }
    return set.find(text);
  }

  /** Findings that are known take time as well: the caller applies them. */
  async function known(findings: Finding[]): Promise<Finding[]> {
    chars += SCAN_TEXT_CHARS;
    if (chars > scan_slice_chars) {
      chars = 0;
      await pause();
    }
    return findings;
  }

  async function inPieces(text: string): Promise<Finding[]> {
    const findings: Finding[] = [];
    let reaching = new Set<string>();
    for (let start = 0; start < text.length; start += scan_slice_chars) {
      const from = Math.max(0, start - scan_overlap_chars);
      const border = start + scan_slice_chars;
      const piece = text.slice(from, border + scan_overlap_chars);
      const before = reaching;
      reaching = new Set();
      for (const finding of await scanPiece(piece)) {
        const moved = { ...finding, start: finding.start + from, end: finding.end + from };
        // A match after the border belongs to the next piece, a match before the start to the last one.
        if (moved.start >= border || (from > 0 && moved.end <= start)) continue;
        const key = moved.start < start || moved.end > border ? keyOf(moved) : '';
        if (moved.end > border) reaching.add(key);
        if (!before.has(key)) findings.push(moved);
      }
    }
    return findings;
  }

  async function find(text: string): Promise<Finding[]> {
    if (text.length > scan_slice_chars) return inPieces(text);
    if (text.length > SCAN_REMEMBERED_CHARS_MAX) return scanPiece(text);
    const before = cache.get(text);
    if (before !== undefined) return known(before);
    const findings = await scanPiece(text);
    if (cache.size < SCAN_REMEMBERED_MAX) cache.set(text, findings);
    return findings;
  }

  /** Adds matches that extend over a joint of a window, as parts of the texts on both sides. */
  async function overJoints(window: readonly Piece[], joint: string, perText: Map<number, Finding[]>): Promise<void> {
    const starts: number[] = [];
    const parts: string[] = [];
    let length = 0;
    for (const [at, { text }] of window.entries()) {
      if (at > 0) length += joint.length;
      starts.push(length);
      parts.push(text);
      length += text.length;
      if (at % SCAN_SLICE_TEXTS === SCAN_SLICE_TEXTS - 1) await pause();
    }
    for (const [at, finding] of (await find(parts.join(joint))).entries()) {
      if (at % SCAN_SLICE_TEXTS === SCAN_SLICE_TEXTS - 1) await pause();
      const first = lastAt(starts, finding.start);
      if (starts[first + 1] === undefined || starts[first + 1]! >= finding.end) continue;
      const touchedParts: { of: number; part: Finding }[] = [];
      for (let at = first; at < window.length && starts[at]! < finding.end; at += 1) {
        const { text, of, from } = window[at]!;
        const start = Math.max(0, finding.start - starts[at]!);
        const end = Math.min(text.length, finding.end - starts[at]!);
        if (start < end) touchedParts.push({ of, part: { ...finding, start: start + from, end: end + from } });
      }
      if (touchedParts.length < 2) continue;
      for (const { of, part } of touchedParts) {
        const known = perText.get(of);
        if (known === undefined) perText.set(of, [part]);
        else known.push(part);
      }
    }
  }

  /** The surroundings of the joints between texts: short texts whole, long texts only their ends. */
  async function* windowsOf(texts: readonly string[]): AsyncGenerator<Piece[], void, undefined> {
    const reach = limits.scan_overlap_chars;
    let open: Piece[] = [];
    for (const [of, text] of texts.entries()) {
      if (of % SCAN_SLICE_TEXTS === SCAN_SLICE_TEXTS - 1) await pause();
      if (text === '') continue;
      if (text.length <= 2 * reach) {
        open.push({ text, of, from: 0 });
        continue;
      }
      open.push({ text: text.slice(0, reach), of, from: 0 });
      if (open.length > 1) yield open;
      open = [{ text: text.slice(-reach), of, from: text.length - reach }];
    }
    if (open.length > 1) yield open;
  }

  return {
    find,
    async across(texts) {
      const perText = new Map<number, Finding[]>();
      for await (const window of windowsOf(texts)) {
        for (const joint of JOINTS) await overJoints(window, joint, perText);
      }
      return perText;
    },
  };
}

const keyOf = ({ filter, start, end, pattern }: Finding) => `${filter} ${start} ${end} ${pattern ?? ''}`;

/** The index of the last number that is not above `most`. 0 if all are above. */
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
