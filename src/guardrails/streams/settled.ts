import type { Finding } from '../finding.ts';

/** What is looked at of a filter to settle what it finds. */
interface Acting {
  action: 'redact' | 'block' | 'flag';
  placeholder: string;
}

/** Rounds in which what was redacted is read again. */
const ROUNDS_MAX = 4;

/**
 * What is found in a text, in order, once nothing more is: what stands in place of a finding may show another beside it that
 * was a part of something longer before. Redactions that overlap become one, which reaches over them all and is of the
 * longest; what blocks or flags is told as it was found. `seen` hears of each text that was read again.
 */
export function settled(
  text: string,
  find: (text: string) => Finding[],
  filters: readonly Acting[],
  seen: (reading: Redacted) => void,
): Finding[] {
  const found = find(text);
  if (found.length === 0) return found;
  const redacts = ({ filter }: Finding) => filters[filter]?.action === 'redact';
  const told = found.filter((finding) => !redacts(finding));
  let redactions = merged(found.filter(redacts));
  for (let round = 0; round < ROUNDS_MAX && redactions.length > 0; round += 1) {
    const reading = new Redacted(text, redactions, filters);
    seen(reading);
    const more = find(reading.text).flatMap((finding) => reading.original(finding) ?? []);
    const isTold = amongOf(told);
    const fresh = more.filter((finding) => filters[finding.filter]?.action !== 'flag' && !isTold(finding));
    if (fresh.length === 0) break;
    for (const finding of fresh) if (!redacts(finding)) told.push(finding);
    const moreRedactions = fresh.filter(redacts);
    if (moreRedactions.length === 0) break;
    redactions = merged([...redactions, ...moreRedactions]);
  }
  return [...told, ...redactions].sort(inOrder);
}

const inOrder = (a: Finding, b: Finding) => a.start - b.start || b.end - a.end || a.filter - b.filter;

/** Tells whether a finding lies within one of these of the same filter, without a look at each. */
function amongOf(told: readonly Finding[]): (finding: Finding) => boolean {
  /** By filter, in order: where they begin, and how far those up to each reach. */
  const reaches = new Map<number, { starts: number[]; ends: number[] }>();
  for (const { start, end, filter } of told.toSorted(inOrder)) {
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
  const kept: Finding[] = [];
  let longest = 0;
  for (const finding of findings) {
    const length = finding.end - finding.start;
    const last = kept.at(-1);
    if (last === undefined || finding.start >= last.end) {
      kept.push({ ...finding });
      longest = length;
      continue;
    }
    last.end = Math.max(last.end, finding.end);
    if (length <= longest) continue;
    longest = length;
    last.filter = finding.filter;
  }
  return kept;
}

/** A text with placeholders in place of what is redacted, which knows where everything stood. */
export class Redacted {
  readonly text: string;
  readonly #redactions: readonly Finding[];
  /** Where each placeholder stands. */
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];

  constructor(text: string, redactions: readonly Finding[], filters: readonly Acting[]) {
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

  /** Where what is found here stands in the text; undefined: it is a placeholder, or a part of one. */
  original(finding: Finding): Finding | undefined {
    const first = this.#endsBefore(finding.start);
    const isPlaceholder =
      first < this.#starts.length && this.#starts[first]! <= finding.start && this.#ends[first]! >= finding.end;
    if (isPlaceholder) return undefined;
    return { ...finding, start: this.origin(finding.start, 'start'), end: this.origin(finding.end, 'end') };
  }

  /** Where an offset of this text stood; inside a placeholder, the edge of what it stands for. */
  origin(at: number, edge: 'start' | 'end'): number {
    const next = this.#endsBefore(at);
    const inside = next < this.#starts.length && this.#starts[next]! < at ? this.#redactions[next] : undefined;
    if (inside !== undefined) return inside[edge];
    const last = next === 0 ? undefined : this.#redactions[next - 1];
    return last === undefined ? at : at - this.#ends[next - 1]! + last.end;
  }

  /** How many placeholders end at or before an offset. */
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
