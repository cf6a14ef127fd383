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

/** A range of a text, as reported by a detector. Offsets are UTF-16 code units, the end is exclusive. */
export interface Span {
  start: number;
  end: number;
}
