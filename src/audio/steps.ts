/** Work on a long file. It yields when other requests may be served. */
export type Steps<T> = Generator<void, T, undefined>;

/** Frames, packets or elements that are read in one step: less than 5 ms of work. */
export const STEP_PIECES = 64 * 1024;
