import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { prepareDataDir, secretOf } from './data-dir.ts';

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'gateway-data-'));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

test('the data directory is made for its user alone', () => {
  const dataDir = join(home, 'a', 'b');
  prepareDataDir(dataDir);
  expect(statSync(dataDir).mode & 0o777).toBe(0o700);
});

test('a data directory that is there, or behind a link, is taken', () => {
  mkdirSync(join(home, 'a'));
  symlinkSync(join(home, 'a'), join(home, 'link'));
  for (const name of ['a', 'link', 'link/b']) prepareDataDir(join(home, name));
  expect(statSync(join(home, 'a', 'b')).isDirectory()).toBe(true);
});

test.each([
  ['where there can be none', '/proc/x/y', /^\/proc\/x\/y cannot be created \(ENOENT\)\. Set GATEWAY_DATA_DIR/],
  ['of too long a name', 'n'.repeat(300), /cannot be created \(ENAMETOOLONG\)\. Set GATEWAY_DATA_DIR/],
  ['behind a link to nothing', 'nothing', /EEXIST/],
  ['below a link to itself', 'itself/d', /cannot be created \(ELOOP\)\. Set GATEWAY_DATA_DIR/],
  ['below a file', 'file/d', /ENOTDIR/],
])('a folder %s is refused in a moment', (_, path, message) => {
  symlinkSync(join(home, 'missing'), join(home, 'nothing'));
  symlinkSync(join(home, 'itself'), join(home, 'itself'));
  writeFileSync(join(home, 'file'), '');
  expect(() => prepareDataDir(resolve(home, path))).toThrow(message);
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
  expect(() => secretOf(home)).toThrow(/does not contain a secret.*Restore/s);
});
