import type { Finding } from '../finding.ts';

/** The part of a filter that settling needs. */
interface FilterAction {
  action: 'redact' | 'block' | 'flag';
  placeholder: string;
}

/** The most rounds of scanning the redacted text. */
const ROUNDS_MAX = 4;

/**
 * Scans a text until no new findings appear, and returns them in order. A placeholder can reveal a match beside it that
 * was part of a longer word before. Overlapping redactions are joined, with the filter of the
 * longest. Findings that block or flag are returned unchanged. `onReading` is called with each redacted text that was scanned.
 */
export function settled(
  text: string,
  find: (text: string) => Finding[],
  filters: readonly FilterAction[],
  onReading: (reading: Redacted) => void,
): Finding[] {
  const first = find(text);
  if (first.length === 0) return first;
  const redacts = ({ filter }: Finding) => filters[filter]?.action === 'redact';
  const final = first.filter((finding) => !redacts(finding));
  let redactions = merged(first.filter(redacts));
  for (let round = 0; round < ROUNDS_MAX && redactions.length > 0; round += 1) {
    const reading = new Redacted(text, redactions, filters);
    onReading(reading);
    const more = find(reading.text).flatMap((finding) => reading.original(finding) ?? []);
    const isKnown = withinAny(final);
    const fresh = more.filter((finding) => filters[finding.filter]?.action !== 'flag' && !isKnown(finding));
    if (fresh.length === 0) break;
    for (const finding of fresh) if (!redacts(finding)) final.push(finding);
    const moreRedactions = fresh.filter(redacts);
    if (moreRedactions.length === 0) break;
    redactions = merged([...redactions, ...moreRedactions]);
  }
  return [...final, ...redactions].sort(inOrder);
}

const inOrder = (a: Finding, b: Finding) => a.start - b.start || b.end - a.end || a.filter - b.filter;

/** Returns whether a finding lies within one of these of the same filter, by binary search. */
function withinAny(findings: readonly Finding[]): (finding: Finding) => boolean {
  /** By filter: the sorted starts, and for each the greatest end so far. */
  const reaches = new Map<number, { starts: number[]; ends: number[] }>();
  for (const { start, end, filter } of findings.toSorted(inOrder)) {
    const reach = reaches.get(filter) ?? { starts: [], ends: [] };
    reaches.set(filter, reach);
    reach.starts.push(start);
    reach.ends.push(Math.max(end, reach.ends.at(-1) ?? 0));
  }
  return ({ start, end, filter }) => {
    const { starts, ends } = reaches.get(filter) ?? { starts: [], ends: [] };
    let low = 0;
    for (let high = starts.length; low < high; ) {
      const middle = (low + high) >> 1;
      if (starts[middle]! <= start) low = middle + 1;
      else high = middle;
    }
    return low > 0 && ends[low - 1]! >= end;
  };
}

/** Redactions without overlaps, in order. */
function merged(findings: Finding[]): Finding[] {
  findings.sort(inOrder);
  const result: Finding[] = [];
  let longest = 0;
  for (const finding of findings) {
    const length = finding.end - finding.start;
    const last = result.at(-1);
    if (last === undefined || finding.start >= last.end) {
      result.push({ ...finding });
      longest = length;
      continue;
    }
    last.end = Math.max(last.end, finding.end);
    if (length <= longest) continue;
    longest = length;
    last.filter = finding.filter;
  }
  return result;
}

/** A text with its redactions replaced by placeholders. Maps offsets back to the source. */
export class Redacted {
  readonly text: string;
  readonly #redactions: readonly Finding[];
  /** The offsets of each placeholder. */
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];

  constructor(text: string, redactions: readonly Finding[], filters: readonly FilterAction[]) {
    this.#redactions = redactions;
    let out = '';
    let at = 0;
    for (const { start, end, filter } of redactions) {
      out += text.slice(at, start);
      this.#starts.push(out.length);
      out += filters[filter]!.placeholder;
      this.#ends.push(out.length);
      at = end;
    }
    this.text = out + text.slice(at);
  }

  /** A finding with its offsets in the source. Undefined if it lies within a placeholder. */
  original(finding: Finding): Finding | undefined {
    const first = this.#endsBefore(finding.start);
    const isPlaceholder =
      first < this.#starts.length && this.#starts[first]! <= finding.start && this.#ends[first]! >= finding.end;
    if (isPlaceholder) return undefined;
    return { ...finding, start: this.origin(finding.start, 'start'), end: this.origin(finding.end, 'end') };
  }

  /** The source offset of an offset. Within a placeholder, the edge of the redacted text. */
  origin(at: number, edge: 'start' | 'end'): number {
    const next = this.#endsBefore(at);
    const inside = next < this.#starts.length && this.#starts[next]! < at ? this.#redactions[next] : undefined;
    if (inside !== undefined) return inside[edge];
    const last = next === 0 ? undefined : this.#redactions[next - 1];
    return last === undefined ? at : at - this.#ends[next - 1]! + last.end;
  }

  /** The number of placeholders that end at or before an offset. */
  #endsBefore(at: number): number {
    let low = 0;
    let high = this.#ends.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#ends[middle]! <= at) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
