/** So many rows of parameters go into one statement. */
const ROWS_MAX = 500;

/** Rows in portions, each of which fits one statement's parameters. */
export function* chunksOf<T>(rows: readonly T[]): Generator<T[]> {
  for (let at = 0; at < rows.length; at += ROWS_MAX) yield rows.slice(at, at + ROWS_MAX);
}
