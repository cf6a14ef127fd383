/** A name or an address in a text. Offsets are UTF-16 code units, the end is exclusive. */
export interface Entity {
  start: number;
  end: number;
  slug: 'person-name' | 'address';
}

/** Finds names and addresses of people: a library in its own thread, or a service. */
export interface Analyzer {
  /** Returns one list per text, in order of `start`, without overlaps. Rejects with `AnalyzerFailed` or the reason of the signal. */
  analyze(texts: readonly string[], signal?: AbortSignal): Promise<Entity[][]>;
  stop(): Promise<void>;
}

/** Texts could not be analyzed. The message contains nothing of the texts. */
export class AnalyzerFailed extends Error {
  override readonly name = 'AnalyzerFailed';
}
