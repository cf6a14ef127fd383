/** Rows of parameters of one statement. */
const STATEMENT_ROWS_MAX = 500;

/** The rows in portions that each fit the parameters of one statement. */
export function* portionsOf<T>(rows: readonly T[]): Generator<T[]> {
  const most = STATEMENT_ROWS_MAX;
  for (let at = 0; at < rows.length; at += most) yield rows.slice(at, at + most);
}
