import { CompiledQuery } from 'kysely';
import { limits } from '../limits.ts';
import { append } from '../schemas/append.ts';
import type { Queries } from './queries.ts';
import type { SqliteParameter, SqliteStep } from './sqlite-messages.ts';

/** Few sizes, so that few texts serve every count: each text is compiled once and kept. With halves between them a count takes two or three. */
const SIZES = [limits.flush_batch_records_max, 384, 256, 192, 128, 96, 64, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2, 1];

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
 * A statement for many rows that the query builder compiles once for each size, not for each row: compiling again would cost
 * the main thread several microseconds a generation. All rows must have the columns of the first, in its order.
 */
export class BulkStatement<Row extends object, Answer = never> {
  readonly #compile: (queries: Queries, rows: Row[]) => { sql: string };
  readonly #texts = new Map<number, string>();

  constructor(compile: (queries: Queries, rows: Row[]) => { sql: string }) {
    this.#compile = compile;
  }

  /** The answers for all rows, and how many rows were changed. */
  async run(queries: Queries, rows: readonly Row[]): Promise<{ answers: Answer[]; changes: number }> {
    const answers: Answer[] = [];
    let changes = 0;
    for (const chunk of chunksOf(rows)) {
      const parameters = chunk.flatMap((row) => Object.values(row));
      const query = CompiledQuery.raw(this.#textOf(queries, chunk), parameters);
      const { rows: answered, numAffectedRows } = await queries.executeQuery<Answer>(query);
      changes += Number(numAffectedRows ?? answered.length);
      append(answers, answered);
    }
    return { answers, changes };
  }

  /** A step of `transact`. `must_change`: see there. */
  step(rows: readonly Row[], { must_change = false } = {}): Step<Answer> {
    const answers: Answer[] = [];
    return {
      answers,
      must_change,
      is_empty: rows.length === 0,
      run: async (tx) => {
        const { answers: answered, changes } = await this.run(tx, rows);
        append(answers, answered);
        return changes === rows.length;
      },
      toSqlite: (queries) => ({
        sql: this.#textOf(queries, rows.slice(0, 1)),
        rows: rows.map((row): SqliteParameter[] => Object.values(row)),
        must_change,
      }),
    };
  }

  #textOf(queries: Queries, rows: Row[]): string {
    let text = this.#texts.get(rows.length);
    if (text === undefined) {
      text = this.#compile(queries, rows).sql;
      this.#texts.set(rows.length, text);
    }
    return text;
  }
}

/** A statement with its rows, as part of a transaction. `answers` are set once the transaction is done. */
export interface Step<Answer = unknown> {
  readonly answers: Answer[];
  readonly must_change: boolean;
  readonly is_empty: boolean;
  /** False if not every row has changed one. */
  run(tx: Queries): Promise<boolean>;
  toSqlite(queries: Queries): SqliteStep;
}

/** The adapter of a driver that takes a whole transaction as one query. */
export interface TakesWholeTransactions {
  takes_whole_transactions: true;
}

function takesWholeTransactions(queries: Queries): boolean {
  return 'takes_whole_transactions' in queries.getExecutor().adapter;
}

/** A whole transaction as one query, which Kysely passes to such a driver unchanged. */
interface WholeTransaction extends CompiledQuery<unknown[]> {
  steps: readonly SqliteStep[];
}

/** The steps of a query that is a whole transaction, whose result has the answers of each; undefined for an ordinary query. */
export function stepsOf(query: CompiledQuery): readonly SqliteStep[] | undefined {
  return (query as Partial<WholeTransaction>).steps;
}

/** Rolls the transaction back: a step did not change what it must. */
class Missed extends Error {
  readonly step: Step;

  constructor(step: Step) {
    super('A step of a transaction did not change what it must');
    this.step = step;
  }
}

/**
 * Runs steps in one transaction; none may need another's answer. If a step with `must_change` does not change or return one
 * row for each of its own, nothing is done and that step is returned. For the SQLite thread the transaction is one message, in
 * which each row is a run of a prepared statement: many rows in one text cost more there, and each message costs the main thread.
 */
export async function transact(queries: Queries, steps: readonly Step[]): Promise<Step | undefined> {
  const busy = steps.filter(({ is_empty }) => !is_empty);
  if (takesWholeTransactions(queries)) {
    const whole: WholeTransaction = {
      ...CompiledQuery.raw('BEGIN IMMEDIATE'),
      steps: busy.map((step) => step.toSqlite(queries)),
    };
    const { rows } = await queries.executeQuery<unknown[]>(whole);
    for (const [index, answers] of rows.entries()) append(busy[index]?.answers ?? [], answers);
    return busy[rows.length];
  }
  try {
    await queries.transaction().execute(async (tx) => {
      for (const step of busy) if (!(await step.run(tx)) && step.must_change) throw new Missed(step);
    });
  } catch (error) {
    if (error instanceof Missed) return error.step;
    throw error;
  }
  return undefined;
}
