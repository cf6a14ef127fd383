/**
 * Invisible characters: zero-width characters, soft hyphens, direction marks, variation selectors, tags. Also the first
 * half of a tag, with which a chunk of a stream may end.
 */
const INVISIBLE = /\p{Default_Ignorable_Code_Point}|\udb40/gu;

/** A text without its invisible characters. */
export interface VisibleText {
  readonly text: string;
  /** The offset of each character in the source, then the length of the source. */
  readonly origins: Uint32Array;
}

/** Removes invisible characters. Undefined if the text has none. */
export function visibleTextOf(source: string): VisibleText | undefined {
  if (source.search(INVISIBLE) === -1) return undefined;
  const origins = new Uint32Array(source.length + 1);
  const parts: string[] = [];
  let count = 0;
  const take = (from: number, to: number) => {
    parts.push(source.slice(from, to));
    for (let at = from; at < to; at += 1) {
      origins[count] = at;
      count += 1;
    }
  };
  let from = 0;
  for (const { index, 0: unseen } of source.matchAll(INVISIBLE)) {
    take(from, index);
    from = index + unseen.length;
  }
  take(from, source.length);
  origins[count] = source.length;
  return { text: parts.join(''), origins: origins.subarray(0, count + 1) };
}
