import { createHash } from 'node:crypto';
import { limits } from '../limits.ts';
import type { Finding } from './finding.ts';
import type { ActiveFilter } from './policy/filter-set.ts';

/** A placeholder as a model may write it: in other case, with escaped brackets, with spaces or dashes. */
export const WRITTEN = /\\?\[([^[\]\n]{1,240}?)\\?\]/g;

/** The normalized words between the brackets of a placeholder: the same for all spellings. */
export function placeholderWords(inner: string): string {
  return inner
    .replaceAll('\\', '')
    .replaceAll(/[\s_-]+/g, '_')
    .toUpperCase();
}

/** Numbers redacted values in the order in which they appear. Equal values have the same number. */
export interface Numbering {
  /** Reserves the placeholders that the client's text already contains: they never stand for another value. */
  avoid(text: string): void;
  /** The numbered placeholder of a value, such as `[EMAIL_1]` for `[EMAIL]`. No two values share one, in any spelling. */
  numbered(placeholder: string, value: string): string;
  /** The redacted values by placeholder. */
  readonly values: ReadonlyMap<string, string>;
}

/** Creates the numbering of one call. */
export function createNumbering(): Numbering {
  const values = new Map<string, string>();
  /** By normalized words: labels that differ only in case look the same in an answer. */
  const series = new Map<string, { count: number; placeholders: Map<string, string> }>();
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
    numbered(base, value) {
      const name = nameOf(base);
      const words = placeholderWords(name);
      let family = series.get(words);
      if (family === undefined) {
        family = { count: 0, placeholders: new Map() };
        series.set(words, family);
      }
      let placeholder = family.placeholders.get(value);
      if (placeholder === undefined) {
        do family.count += 1;
        while (avoided.has(placeholderWords(`${name}_${family.count}`)));
        placeholder = `[${name}_${family.count}]`;
        family.placeholders.set(value, placeholder);
        values.set(placeholder, value);
      }
      return placeholder;
    },
  };
}

const NUMBERED = /_\d+$/;

/** The name between the brackets of a placeholder, without characters that would break its syntax. */
function nameOf(placeholder: string): string {
  return placeholder.slice(1, -1).replaceAll(/[[\]]/g, '').replaceAll('\n', ' ').trim();
}

/**
 * Replaces the findings in a text. Overlapping findings are replaced as one, by the filter of the longest. `placeholder` returns the
 * replacement of a matched value. `pause` lets other requests run between batches of findings.
 */
export async function redacted(
  text: string,
  findings: readonly Finding[],
  placeholder: (filter: number, value: string) => string,
  pause: () => Promise<void>,
): Promise<string> {
  const isSorted = findings.every(({ start }, at) => at === 0 || start >= findings[at - 1]!.start);
  const sorted = isSorted ? findings : findings.toSorted((a, b) => a.start - b.start || b.end - a.end);
  const done: string[] = [];
  let out: string[] = [];
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
    if (count % limits.scan_findings_max !== 0) continue;
    done.push(out.join(''));
    out = [];
    await pause();
  }
  out.push(text.slice(from));
  done.push(out.join(''));
  return done.join('');
}

/** A replacement for an id that must not be shown. Equal ids have equal replacements; the prefix that names the kind of id stays. */
export function otherId(id: string): string {
  const [prefix = ''] = /^[a-z]{1,12}_/.exec(id) ?? [];
  return `${prefix}${createHash('sha256').update(`model-gateway:id:${id}`).digest('hex').slice(0, 24)}`;
}

/** Returns the placeholder for a match of a filter. It is numbered if the filter is reversible. */
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
