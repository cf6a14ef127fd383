import type { Frame } from './dialect.ts';

/** Splits the bytes of one stream into frames. Any split of the same bytes gives the same frames. */
export interface Framer {
  /** Throws `UpstreamError` (`invalid_response`) for a frame over the bound, after it returned the frames before it. */
  push(bytes: Uint8Array): Frame[];
  /** The last event at the end of the bytes, if its closing blank line is missing. */
  end(): Frame[];
}
