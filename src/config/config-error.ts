/** More are counted, not listed. */
const FAULTS_SHOWN_MAX = 20;

/** Settings or a configuration file are wrong: one line for each fault, and the program does not start. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly faults: readonly string[];

  constructor(faults: string | readonly string[], options?: ErrorOptions) {
    const list = [...new Set(typeof faults === 'string' ? [faults] : faults)];
    const more = list.length - FAULTS_SHOWN_MAX;
    super([...list.slice(0, FAULTS_SHOWN_MAX), ...(more > 0 ? [`… and ${more} more faults`] : [])].join('\n'), options);
    this.faults = list;
  }
}

/** The results in order; throws one `ConfigError` with the faults of all reads that failed. */
export function readEach<T>(reads: readonly (() => T)[]): T[] {
  const results: T[] = [];
  const faults: string[] = [];
  for (const read of reads) {
    try {
      results.push(read());
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      faults.push(...error.faults);
    }
  }
  if (faults.length > 0) throw new ConfigError(faults);
  return results;
}

/** The candidate that was probably meant, or undefined when none is near. */
function nearest(word: string, candidates: Iterable<string>): string | undefined {
  let best: string | undefined;
  let least = Math.max(2, Math.floor(word.length / 3)) + 1;
  for (const candidate of candidates) {
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase());
    if (distance < least) {
      best = candidate;
      least = distance;
    }
  }
  return best;
}

/** ` Did you mean "x"?`, or nothing. */
export function didYouMean(word: string, candidates: Iterable<string>): string {
  const near = nearest(word, candidates);
  return near === undefined ? '' : `; did you mean "${near}"?`;
}

/** How many letters must be put in, taken out or replaced to make one word the other. */
function editDistance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let i = 1; i <= one.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= other.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (one[i - 1] === other[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[other.length] ?? 0;
}
