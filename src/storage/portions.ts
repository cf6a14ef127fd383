import { limits } from '../limits.ts';

/** Rows in portions, each of which fits one statement's parameters. */
export function* portionsOf<T>(rows: readonly T[]): Generator<T[]> {
  const most = limits.statement_rows_max;
  for (let at = 0; at < rows.length; at += most) yield rows.slice(at, at + most);
}
