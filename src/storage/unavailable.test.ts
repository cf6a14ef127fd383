import { expect, test } from 'vitest';
import { isUnavailable, StoreUnavailable } from './unavailable.ts';

const failed = (message: string, facts: object = {}) => Object.assign(new Error(message), facts);

test.each<[string, unknown, boolean]>([
  ['no connection', new StoreUnavailable('connect ECONNREFUSED'), true],
  ['SQLite: locked by another process', failed('database is locked', { code: 'ERR_SQLITE_ERROR', errcode: 5 }), true],
  [
    'SQLite: locked, with an extended code',
    failed('database is locked', { code: 'ERR_SQLITE_ERROR', errcode: 517 }),
    true,
  ],
  ['SQLite: a full disk', failed('database or disk is full', { code: 'ERR_SQLITE_ERROR', errcode: 13 }), true],
  ['SQLite: a unique violation', failed('UNIQUE', { code: 'ERR_SQLITE_ERROR', errcode: 2067 }), false],
  ['PostgreSQL: a statement timeout', failed('canceling statement', { code: '57014' }), true],
  ['PostgreSQL: a server that shuts down', failed('terminating connection', { code: '57P01' }), true],
  [
    'PostgreSQL: a read-only server',
    failed('cannot execute INSERT in a read-only transaction', { code: '25006' }),
    true,
  ],
  ['PostgreSQL: too many connections', failed('sorry, too many clients already', { code: '53300' }), true],
  ['PostgreSQL: a unique violation', failed('duplicate key', { code: '23505' }), false],
  ['PostgreSQL: a wrong statement', failed('syntax error', { code: '42601' }), false],
  ['pg: a silent connection', failed('Query read timeout'), true],
  ['pg: a broken connection', failed('Connection terminated unexpectedly'), true],
  ['a broken socket', failed('read ECONNRESET', { code: 'ECONNRESET' }), true],
  ['an internal error', new TypeError('x is not a function'), false],
  ['no error', undefined, false],
])('whether the store is unavailable: %s', (_name, error, expected) => {
  expect(isUnavailable(error)).toBe(expected);
});
