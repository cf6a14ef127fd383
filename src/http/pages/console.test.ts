import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createServer } from '../create-server.ts';
import type { Principal } from '../principal.ts';
import { serveConsole } from './console.ts';

function setUp() {
  const bundle = mkdtempSync(join(tmpdir(), 'console-'));
  const files = { 'a.js': 'text/javascript', 'missing.js': 'text/javascript' };
  mkdirSync(join(bundle, 'assets'));
  writeFileSync(join(bundle, 'manifest.json'), JSON.stringify({ pages: [''], files }));
  for (const name of ['index.html', 'assets/a.js']) {
    for (const suffix of ['', '.br', '.gz']) writeFileSync(join(bundle, `${name}${suffix}`), `content${suffix}`);
  }
  const authenticate = (): Principal => {
    throw new Error('the console reads no credentials');
  };
  const server = createServer({ logger: false, body_bytes_max: 1024, authenticate });
  serveConsole(server, { is_on: true, bundle });
  return (url: string, headers: Record<string, string> = {}) => server.inject({ url, headers });
}

test('a file is cacheable for long, and an error is neither cacheable nor marked as compressed', async () => {
  const get = setUp();
  const kept = await get('/assets/a.js', { 'accept-encoding': 'br' });
  expect(kept.headers).toMatchObject({
    'cache-control': 'public, max-age=31536000, immutable',
    'content-encoding': 'br',
    vary: 'accept-encoding',
  });
  const unknown = await get('/assets/b.js');
  expect([unknown.statusCode, unknown.headers['cache-control']]).toEqual([404, 'no-store']);
  // Another build replaced the folder while the gateway runs.
  const missing = await get('/assets/missing.js', { 'accept-encoding': 'br' });
  expect(missing.statusCode).toBe(500);
  expect(missing.headers['cache-control']).toBeUndefined();
  expect(missing.headers['content-encoding']).toBeUndefined();
});

test('paths outside the list of files are refused, and encodings that the client excludes are not used', async () => {
  const get = setUp();
  for (const name of [
    '..%2Fmanifest.json',
    '..%2findex.html',
    '%2e%2e%2fmanifest.json',
    '__proto__',
    'constructor',
    'a.js.br',
  ]) {
    expect([name, (await get(`/assets/${name}`)).statusCode]).toEqual([name, 404]);
  }
  const plain = await get('/', { 'accept-encoding': 'br;q=0, gzip; q=0.0' });
  expect([plain.headers['content-encoding'], plain.body]).toEqual([undefined, 'content']);
  expect((await get('/', { 'accept-encoding': 'gzip;q=0.5' })).headers['content-encoding']).toBe('gzip');
});
