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

test('the data directory is created for its user alone', () => {
  const dataDir = join(home, 'a', 'b');
  prepareDataDir(dataDir);
  expect(statSync(dataDir).mode & 0o777).toBe(0o700);
});

test('an existing data directory, or one behind a link, is used', () => {
  mkdirSync(join(home, 'a'));
  symlinkSync(join(home, 'a'), join(home, 'link'));
  for (const name of ['a', 'link', 'link/b']) prepareDataDir(join(home, name));
  expect(statSync(join(home, 'a', 'b')).isDirectory()).toBe(true);
});

test.each([
  ['where none can be created', '/proc/x/y', /^\/proc\/x\/y cannot be created \(ENOENT\)\. Set GATEWAY_DATA_DIR/],
  ['with a name that is too long', 'n'.repeat(300), /cannot be created \(ENAMETOOLONG\)\. Set GATEWAY_DATA_DIR/],
  ['behind a broken link', 'nothing', /EEXIST/],
  ['below a link to itself', 'itself/d', /cannot be created \(ELOOP\)\. Set GATEWAY_DATA_DIR/],
  ['below a file', 'file/d', /ENOTDIR/],
])('a folder %s is refused', (_, path, message) => {
  symlinkSync(join(home, 'missing'), join(home, 'nothing'));
  symlinkSync(join(home, 'itself'), join(home, 'itself'));
  writeFileSync(join(home, 'file'), '');
  expect(() => prepareDataDir(resolve(home, path))).toThrow(message);
});

test('the secret is created once, for its user alone, and without another file', () => {
  const secret = secretOf(home);
  expect(secret).toMatch(/^[0-9a-f]{64}$/);
  expect(secretOf(home)).toBe(secret);
  expect(statSync(join(home, 'secret')).mode & 0o777).toBe(0o600);
  expect(readdirSync(home)).toEqual(['secret']);
});

test('a damaged secret file is not replaced', () => {
  writeFileSync(join(home, 'secret'), 'cut');
  expect(() => secretOf(home)).toThrow(/does not contain a secret.*Restore/s);
});
