/**
 * What cannot be seen: zero-width characters, soft hyphens, marks of direction, selectors of variants, tags. Of tags, half
 * of one as well, which a stream may end with.
 */
const UNSEEN = /\p{Default_Ignorable_Code_Point}|\udb40/gu;

/** A text without what cannot be seen. */
export interface Seen {
  readonly text: string;
  /** Where each of its characters stood, and where the text ended. */
  readonly origins: Uint32Array;
}

/** Leaves out what cannot be seen; undefined where there is nothing of the kind. */
export function seenOf(written: string): Seen | undefined {
  if (written.search(UNSEEN) === -1) return undefined;
  const origins = new Uint32Array(written.length + 1);
  const parts: string[] = [];
  let count = 0;
  const take = (from: number, to: number) => {
    parts.push(written.slice(from, to));
    for (let at = from; at < to; at += 1) {
      origins[count] = at;
      count += 1;
    }
  };
  let from = 0;
  for (const { index, 0: unseen } of written.matchAll(UNSEEN)) {
    take(from, index);
    from = index + unseen.length;
  }
  take(from, written.length);
  origins[count] = written.length;
  return { text: parts.join(''), origins: origins.subarray(0, count + 1) };
}
