import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { parseBundledCatalog } from '../catalog/bundled.ts';
import { refreshCatalog } from './catalog-refresh.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gateway-refresh-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const listing = (id: string) => ({ id, name: id, release_date: '2025-01-02', cost: { input: 1, output: 2 } });
const facts = (...ids: string[]) =>
  JSON.stringify({ openai: { models: Object.fromEntries(ids.map((id) => [id, listing(id)])) } });

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

test('a file becomes a catalog, and the next refresh reports added and removed models', async () => {
  const out = join(folder, 'models.json');
  const first = await refreshCatalog({ from: file('a.json', facts('gpt-a', 'gpt-b')), out });
  expect(first).toEqual({
    models: 2,
    endpoints: 2,
    added: ['openai/gpt-a', 'openai/gpt-b'],
    removed: [],
    left_out: 0,
  });
  const next = await refreshCatalog({ from: file('b.json', facts('gpt-b', 'gpt-c')), out });
  expect(next).toMatchObject({ added: ['openai/gpt-c'], removed: ['openai/gpt-a'] });
  expect(parseBundledCatalog(readFileSync(out, 'utf8')).models.map(({ id }) => id)).toEqual([
    'openai/gpt-b',
    'openai/gpt-c',
  ]);
  expect(readdirSync(folder).toSorted()).toEqual(['a.json', 'b.json', 'models.json']);
});

test('a byte order mark before a file is skipped', async () => {
  const out = join(folder, 'models.json');
  expect(await refreshCatalog({ from: file('a.json', `\uFEFF${facts('gpt-a')}`), out })).toMatchObject({ models: 1 });
});

test('public slugs become the ids', async () => {
  const out = join(folder, 'models.json');
  const slugs = file('slugs.json', JSON.stringify({ 'openai/known': { name: 'gpt-a' } }));
  const { added } = await refreshCatalog({ from: file('a.json', facts('gpt-a')), slugs, out });
  expect(added).toEqual(['openai/known']);
});

test('a URL is fetched', async () => {
  const server = createServer((request, response) => {
    if (request.url === '/cut.json') return void response.write('{', () => request.socket.destroy());
    response.statusCode = request.url === '/api.json' ? 200 : 500;
    response.end(facts('gpt-a'));
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  try {
    const out = join(folder, 'models.json');
    expect(await refreshCatalog({ from: `${url}/api.json`, out })).toMatchObject({ models: 1 });
    await expect(refreshCatalog({ from: `${url}/missing`, out })).rejects.toThrow('answered 500');
    await expect(refreshCatalog({ from: `${url}/cut.json`, out })).rejects.toThrow(`${url}/cut.json cannot be read (`);
  } finally {
    server.close();
  }
});

test.each([
  ['a text that is not JSON', 'oops', 'is not JSON'],
  ['another shape', '[]', 'does not have the format of models.dev'],
  [
    'a model of another shape',
    '{"openai":{"models":{"x":{"id":5}}}}',
    'does not have the format of models.dev: a field',
  ],
  [
    'a file without a known provider',
    '{"somebody":{"models":{}}}',
    'contains no model of a provider that the gateway knows',
  ],
])('%s is refused and changes nothing', async (_, text, message) => {
  const out = join(folder, 'models.json');
  await refreshCatalog({ from: file('a.json', facts('gpt-a')), out });
  const before = readFileSync(out, 'utf8');
  await expect(refreshCatalog({ from: file('bad.json', text), out })).rejects.toThrow(message);
  expect(readFileSync(out, 'utf8')).toBe(before);
});

test('a file that is not a catalog is not overwritten', async () => {
  const out = file('notes.txt', 'mine');
  await expect(refreshCatalog({ from: file('a.json', facts('gpt-a')), out })).rejects.toThrow('it was not changed');
  expect(readFileSync(out, 'utf8')).toBe('mine');
});

test('a source that cannot be read is named with the reason', async () => {
  const out = join(folder, 'models.json');
  const missing = join(folder, 'missing.json');
  await expect(refreshCatalog({ from: missing, out })).rejects.toThrow(`${missing} cannot be read (ENOENT)`);
  const from = 'http://127.0.0.1:1/x';
  await expect(refreshCatalog({ from, out })).rejects.toThrow(`${from} cannot be read (`);
});
