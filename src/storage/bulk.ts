import { CompiledQuery } from 'kysely';
import { limits } from '../limits.ts';
import type { Queries } from './database.ts';

/** Few sizes, so that few texts serve every count: each text is compiled once and kept prepared. */
const SIZES = [limits.flush_batch_records_max, 128, 64, 32, 16, 8, 4, 2, 1];

function chunksOf<T>(rows: readonly T[]): T[][] {
  const chunks: T[][] = [];
  for (let at = 0; at < rows.length; ) {
    const left = rows.length - at;
    const size = SIZES.find((candidate) => candidate <= left) ?? 1;
    chunks.push(rows.slice(at, at + size));
    at += size;
  }
  return chunks;
}

/**
 * Makes a statement of many rows that the query builder sees once per size, not once per row: building it anew would cost
 * the serving thread several microseconds a generation. All rows have the columns of the first, in its order.
 */
export function bulkStatement<Row extends object, Answer>(
  compile: (queries: Queries, rows: Row[]) => { sql: string },
): (queries: Queries, rows: readonly Row[]) => Promise<Answer[]> {
  const texts = new Map<number, string>();
  return async (queries, rows) => {
    const answers: Answer[] = [];
    for (const chunk of chunksOf(rows)) {
      const text = texts.get(chunk.length) ?? compile(queries, chunk).sql;
      texts.set(chunk.length, text);
      const parameters = chunk.flatMap((row) => Object.values(row));
      const { rows: answered } = await queries.executeQuery<Answer>(CompiledQuery.raw(text, parameters));
      for (const answer of answered) answers.push(answer);
    }
    return answers;
  };
}
