import type { Frame } from './dialect.ts';

/** Cuts the bytes of one stream into frames. The same bytes in any split give the same frames. */
export interface Framer {
  /** Throws `UpstreamError` (`invalid_response`) for a frame over the bound, after the frames before it were handed out. */
  push(bytes: Uint8Array): Frame[];
  /** What the bytes hold when no more come: the last event, if its closing blank line is missing. */
  end(): Frame[];
}
