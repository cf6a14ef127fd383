import { type CacheMarks, cacheMarksOf } from '../../providers/shared/worst-case.ts';

/** Work that yields when other requests may be served. */
export type SlicedWork<T> = Generator<void, T, undefined>;

/** The size of the pieces in which a payload is searched, and the longest match of a pattern. */
const PIECE_BYTES = 1024 * 1024;
const PATTERN_BYTES_MAX = 1024;

/** Whether a pattern matches in a payload; a long one is searched in pieces. */
export function* matches(pattern: RegExp, payload: string | Buffer): SlicedWork<boolean> {
  if (typeof payload === 'string') return pattern.test(payload);
  for (let at = 0; at < payload.length; at += PIECE_BYTES) {
    if (pattern.test(payload.toString('latin1', at, at + PIECE_BYTES + PATTERN_BYTES_MAX))) return true;
    yield;
  }
  return false;
}

/** The marks for the provider's cache in a long payload, which is searched in pieces. */
export function* cacheMarks(payload: Buffer): SlicedWork<CacheMarks> {
  const marks: CacheMarks = { is_any: false, is_hour: false };
  for (let at = 0; at < payload.length; at += PIECE_BYTES) {
    const piece = cacheMarksOf(payload.toString('latin1', at, at + PIECE_BYTES + PATTERN_BYTES_MAX));
    marks.is_any ||= piece.is_any;
    marks.is_hour ||= piece.is_hour;
    yield;
  }
  return marks;
}
