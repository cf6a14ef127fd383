/** A match of a filter in a text. Offsets are UTF-16 code units, the end is exclusive. */
export interface Finding {
  start: number;
  end: number;
  /** Index in `FilterSet.filters`. */
  filter: number;
  /** The family of prompt injection, for matches of the injection detector. */
  pattern?: string;
}

/** Findings of one kind: one if there is no count. */
export interface CountedFinding extends Pick<Finding, 'filter' | 'pattern'> {
  count?: number;
}

/** All findings, counted by filter and pattern: a request may have hundreds of thousands. */
export function countFindings(
  matches: readonly { findings: readonly Finding[] }[],
): (CountedFinding & { count: number })[] {
  const byFilter = new Map<number, Map<string | undefined, CountedFinding & { count: number }>>();
  let last: (CountedFinding & { count: number }) | undefined;
  for (const { findings } of matches) {
    for (const { filter, pattern } of findings) {
      // Most findings are of the same kind as the one before.
      if (last?.filter !== filter || last.pattern !== pattern) {
        let byPattern = byFilter.get(filter);
        if (byPattern === undefined) {
          byPattern = new Map();
          byFilter.set(filter, byPattern);
        }
        last = byPattern.get(pattern);
        if (last === undefined) {
          last = { filter, ...(pattern === undefined ? {} : { pattern }), count: 0 };
          byPattern.set(pattern, last);
        }
      }
      last.count += 1;
    }
  }
  return [...byFilter.values()].flatMap((byPattern) => [...byPattern.values()]);
}

/** A range of a text, as reported by a detector. Offsets are UTF-16 code units, the end is exclusive. */
export interface Span {
  start: number;
  end: number;
}
