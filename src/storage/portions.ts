import { limits } from '../limits.ts';

/** The rows in portions that each fit the parameters of one statement. */
export function* portionsOf<T>(rows: readonly T[]): Generator<T[]> {
  const most = limits.statement_rows_max;
  for (let at = 0; at < rows.length; at += most) yield rows.slice(at, at + most);
}
