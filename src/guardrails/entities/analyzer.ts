/** A name or an address in a text (UTF-16 offsets, end exclusive). */
export interface Entity {
  start: number;
  end: number;
  slug: 'person-name' | 'address';
}

/** What finds names and addresses of people: a library in a thread of its own, or a service. */
export interface Analyzer {
  /** One list a text, each in order of `start`, without overlaps. Rejects with `AnalyzerFailed`, or with the reason of the signal. */
  analyze(texts: readonly string[], signal?: AbortSignal): Promise<Entity[][]>;
  stop(): Promise<void>;
}

/** Why texts could not be analyzed; says nothing of what they hold. */
export class AnalyzerFailed extends Error {
  override readonly name = 'AnalyzerFailed';
}
