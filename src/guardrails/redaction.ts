import { createHash } from 'node:crypto';
import { limits } from '../limits.ts';
import type { Finding } from './finding.ts';
import type { ActiveFilter } from './policy/filter-set.ts';

/** Ways in which a placeholder is written: in other case, with its brackets escaped, with spaces or dashes in it. */
export const WRITTEN = /\\?\[([^[\]\n]{1,240}?)\\?\]/g;

/** What a placeholder says between its brackets, however it is written. */
export function placeholderWords(inner: string): string {
  return inner
    .replaceAll('\\', '')
    .replaceAll(/[\s_-]+/g, '_')
    .toUpperCase();
}

/** Gives what is redacted a number: the same value the same, in the order in which values are met. */
export interface Numbering {
  /** Keeps what looks like a placeholder in a text of the client's from being given out for something else. */
  avoid(text: string): void;
  /** `[EMAIL]` of a value: `[EMAIL_1]`. Whichever way they are written, no two values have the same. */
  numbered(placeholder: string, value: string): string;
  /** What stands for what, by placeholder. */
  readonly values: ReadonlyMap<string, string>;
}

/** Makes the numbering of one call. */
export function createNumbering(): Numbering {
  const values = new Map<string, string>();
  /** By what placeholders say: labels that differ in case alone are one to who reads an answer. */
  const series = new Map<string, { count: number; told: Map<string, string> }>();
  const avoided = new Set<string>();
  return {
    values,
    avoid(text) {
      if (!text.includes('[')) return;
      for (const [, inner = ''] of text.matchAll(WRITTEN)) {
        const words = placeholderWords(inner.trim());
        if (NUMBERED.test(words)) avoided.add(words);
      }
    },
    numbered(placeholder, value) {
      const name = nameOf(placeholder);
      const words = placeholderWords(name);
      let known = series.get(words);
      if (known === undefined) {
        known = { count: 0, told: new Map() };
        series.set(words, known);
      }
      let told = known.told.get(value);
      if (told === undefined) {
        do known.count += 1;
        while (avoided.has(placeholderWords(`${name}_${known.count}`)));
        told = `[${name}_${known.count}]`;
        known.told.set(value, told);
        values.set(told, value);
      }
      return told;
    },
  };
}

const NUMBERED = /_\d+$/;

/** What stands between the brackets of a placeholder, so that they are found again whatever a label holds. */
function nameOf(placeholder: string): string {
  return placeholder.slice(1, -1).replaceAll(/[[\]]/g, '').replaceAll('\n', ' ').trim();
}

/**
 * A text with its findings replaced; those that overlap as one, which is of the longest. `placeholder` says what stands for a
 * value that a filter found. Others are served between many.
 */
export async function redacted(
  text: string,
  findings: readonly Finding[],
  placeholder: (filter: number, value: string) => string,
  pause: () => Promise<void>,
): Promise<string> {
  const isSorted = findings.every(({ start }, at) => at === 0 || start >= findings[at - 1]!.start);
  const sorted = isSorted ? findings : findings.toSorted((a, b) => a.start - b.start || b.end - a.end);
  const out: string[] = [];
  let from = 0;
  let next = 0;
  for (let count = 1; next < sorted.length; count += 1) {
    let { start, end, filter } = sorted[next]!;
    let longest = end - start;
    for (next += 1; next < sorted.length && sorted[next]!.start < end; next += 1) {
      const other = sorted[next]!;
      end = Math.max(end, other.end);
      if (other.end - other.start <= longest) continue;
      longest = other.end - other.start;
      filter = other.filter;
    }
    out.push(text.slice(from, start), placeholder(filter, text.slice(start, end)));
    from = end;
    if (count % limits.scan_findings_max === 0) await pause();
  }
  out.push(text.slice(from));
  return out.join('');
}

/** Another id for one that must not be told: the same for the same, with the prefix by which wires know the kind. */
export function otherId(id: string): string {
  const [prefix = ''] = /^[a-z]{1,12}_/.exec(id) ?? [];
  return `${prefix}${createHash('sha256').update(`model-gateway:id:${id}`).digest('hex').slice(0, 24)}`;
}

/** What stands in place of what a filter finds; where it can be given back, with a number. */
export function placeholders(
  filters: readonly ActiveFilter[],
  isReversible: (filter: ActiveFilter) => boolean,
  numbering: Numbering,
): (filter: number, value: string) => string {
  return (index, value) => {
    const filter = filters[index]!;
    return isReversible(filter) ? numbering.numbered(filter.placeholder, value) : filter.placeholder;
  };
}
