import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { prepareDataDir, secretOf } from './data-dir.ts';

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'gateway-data-'));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

test('the data directory is made for its user alone', () => {
  const data_dir = join(home, 'a', 'b');
  prepareDataDir(data_dir);
  expect(statSync(data_dir).mode & 0o777).toBe(0o700);
});

test('the secret is made once, for its user alone, and leaves no other file', () => {
  const secret = secretOf(home);
  expect(secret).toMatch(/^[0-9a-f]{64}$/);
  expect(secretOf(home)).toBe(secret);
  expect(statSync(join(home, 'secret')).mode & 0o777).toBe(0o600);
  expect(readdirSync(home)).toEqual(['secret']);
});

test('a secret file that was damaged is never replaced', () => {
  writeFileSync(join(home, 'secret'), 'cut');
  expect(() => secretOf(home)).toThrow(/does not hold a secret.*Restore/s);
});
