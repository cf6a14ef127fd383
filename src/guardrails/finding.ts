/** Where a filter found something in a text (UTF-16 offsets, end exclusive). */
export interface Finding {
  start: number;
  end: number;
  /** Of `FilterSet.filters`. */
  filter: number;
  /** Which family of prompt injection it is of. */
  pattern?: string;
}

/** A place in a text, as a detector tells it. */
export interface Span {
  start: number;
  end: number;
}
