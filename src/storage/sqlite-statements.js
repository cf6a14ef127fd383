// Plain JavaScript: the thread that runs it does not load the type stripper.

/** Statements on one connection to SQLite: prepared once, with BOOLEAN and JSON columns converted as on other engines. */

/** @import { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite' */
/** @import { SqliteParameter, SqliteResult, SqliteStep } from './sqlite-messages.ts' */
/** @typedef {{ statement: StatementSync; reads: boolean; booleans: string[]; json: string[] }} Prepared */

/**
 * @param {SqliteParameter} value
 * @returns {SQLInputValue}
 */
function toInput(value) {
  // A number would be bound as REAL: `? / 2` and CAST(? AS TEXT) would differ from PostgreSQL's.
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : value;
  if (typeof value === 'boolean') return value ? 1 : 0;
  return value === undefined ? null : value;
}

export class SqliteStatements {
  /** @readonly */
  #database;
  #statementsMax;
  /** @readonly @type {Map<string, Prepared>} */
  #prepared = new Map();

  /**
   * @param {DatabaseSync} database
   * @param {number} statementsMax how many stay prepared
   */
  constructor(database, statementsMax) {
    this.#database = database;
    this.#statementsMax = statementsMax;
  }

  /**
   * @param {string} sql
   * @param {readonly SqliteParameter[]} parameters
   * @returns {SqliteResult}
   */
  query(sql, parameters) {
    const prepared = this.#prepare(sql);
    if (prepared.reads) {
      const rows = this.#read(prepared, parameters);
      return { rows, changes: rows.length };
    }
    return { rows: [], changes: this.#write(prepared, parameters) };
  }

  /**
   * Runs steps in one transaction, each once for each of its rows, and returns the answers of each. If a step does not change
   * a row that it must, nothing is done, and only the answers of the steps before it are returned.
   *
   * @param {readonly SqliteStep[]} steps
   * @returns {Record<string, unknown>[][]}
   */
  transact(steps) {
    let sql = 'BEGIN IMMEDIATE';
    try {
      this.query(sql, []);
      const answers = [];
      for (const step of steps) {
        ({ sql } = step);
        const answer = this.#run(step);
        if (answer === undefined) {
          this.query('ROLLBACK', []);
          return answers;
        }
        answers.push(answer);
      }
      sql = 'COMMIT';
      this.query(sql, []);
      return answers;
    } catch (error) {
      if (this.#database.isTransaction) this.query('ROLLBACK', []);
      throw Object.assign(/** @type {object} */ (error), { sql });
    }
  }

  /** @param {SqliteStep} step */
  #run({ sql, rows, must_change }) {
    const prepared = this.#prepare(sql);
    /** @type {Record<string, unknown>[]} */
    const answers = [];
    let changes = 0;
    for (const row of rows) {
      if (!prepared.reads) changes += this.#write(prepared, row);
      else for (const answer of this.#read(prepared, row)) answers.push(answer);
    }
    const isWhole = (prepared.reads ? answers.length : changes) === rows.length;
    return must_change && !isWhole ? undefined : answers;
  }

  /**
   * @param {Prepared} prepared
   * @param {readonly SqliteParameter[]} parameters
   */
  #write({ statement }, parameters) {
    return Number(statement.run(...parameters.map(toInput)).changes);
  }

  /**
   * @param {Prepared} prepared
   * @param {readonly SqliteParameter[]} parameters
   */
  #read({ statement, booleans, json }, parameters) {
    const rows = /** @type {Record<string, unknown>[]} */ (statement.all(...parameters.map(toInput)));
    for (const row of rows) {
      for (const name of booleans) if (row[name] !== null) row[name] = row[name] === 1;
      for (const name of json) if (row[name] !== null) row[name] = JSON.parse(String(row[name]));
    }
    return rows;
  }

  /**
   * @param {string} sql
   * @returns {Prepared}
   */
  #prepare(sql) {
    const known = this.#prepared.get(sql);
    if (known) {
      this.#prepared.delete(sql);
      this.#prepared.set(sql, known);
      return known;
    }
    const statement = this.#database.prepare(sql);
    const columns = statement.columns();
    const declared = (/** @type {string} */ type) =>
      columns.filter((column) => column.type === type).map((column) => column.name);
    const fresh = { statement, reads: columns.length > 0, booleans: declared('BOOLEAN'), json: declared('JSON') };
    this.#prepared.set(sql, fresh);
    const [oldest] = this.#prepared.keys();
    if (this.#prepared.size > this.#statementsMax && oldest !== undefined) this.#prepared.delete(oldest);
    return fresh;
  }
}
