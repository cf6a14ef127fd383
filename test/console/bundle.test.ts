import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../harness.ts';

const root = join(import.meta.dirname, '../..');
const dist = join(root, 'console/dist');
const assets = join(dist, 'assets');

let gateway: TestGateway;
beforeAll(async () => {
  execFileSync(process.execPath, [join(root, 'bin/launch.cjs'), 'console/build.ts']);
  gateway = await startGateway();
});
afterAll(() => gateway.stop());

const gzipped = (file: string) => statSync(`${file}.gz`).size;
const scripts = () => readdirSync(assets).filter((name) => /\.(js|css|svg)$/.test(name));

/** The scripts that a script loads before it runs, itself included. */
function withImports(name: string, seen = new Set<string>()): Set<string> {
  if (seen.has(name)) return seen;
  seen.add(name);
  const text = readFileSync(join(assets, name), 'utf8');
  for (const [, other = ''] of text.matchAll(/(?:from|import)\s*"\.\/([\w-]+\.js)"/g)) withImports(other, seen);
  return seen;
}

test('the console takes less than 150 kB, its first page less than 60 kB, compressed by gzip', () => {
  const all = scripts().reduce((sum, name) => sum + gzipped(join(assets, name)), gzipped(join(dist, 'index.html')));
  expect(all).toBeLessThan(150_000);
  const main = scripts().find((name) => name.startsWith('main-')) ?? '';
  const overview = scripts().find((name) => name.startsWith('overview-')) ?? '';
  const styles = scripts().filter((name) => /\.(css|svg)$/.test(name));
  const first = new Set([...withImports(main), ...withImports(overview), ...styles]);
  expect(first.size).toBeGreaterThan(4);
  expect([...first].some((name) => name.startsWith('playground-'))).toBe(false);
  const size = [...first].reduce((sum, name) => sum + gzipped(join(assets, name)), gzipped(join(dist, 'index.html')));
  expect(size).toBeLessThan(60_000);
});

test('the console imports nothing of the gateway, and names no address outside of it', () => {
  const sources = readdirSync(join(root, 'console'), { recursive: true, encoding: 'utf8' }).filter(
    (name) => /\.(tsx?|css|html)$/.test(name) && !name.startsWith('dist'),
  );
  for (const name of sources) {
    const text = readFileSync(join(root, 'console', name), 'utf8');
    expect([name, text.match(/from '(?:\.\.\/)+(?:src|test|sandbox)\//)]).toEqual([name, null]);
    expect([name, text.match(/dangerouslySetInnerHTML|innerHTML|https?:\/\/(?!www\.w3\.org)/)]).toEqual([name, null]);
  }
});

test('pages have a strict policy and are revalidated; the files that they load are kept for ever', async () => {
  for (const path of ['/', '/keys', '/models?id=a%2Fb', '/audit']) {
    const page = await fetch(`${gateway.url}${path}`);
    expect([path, page.status, page.headers.get('cache-control')]).toEqual([path, 200, 'no-cache']);
    const policy = page.headers.get('content-security-policy') ?? '';
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'");
    expect(policy).not.toContain('unsafe');
    const text = await page.text();
    expect(text).not.toMatch(/<style|style=|<script(?![^>]*src=)|\son\w+=/);
    const again = await fetch(`${gateway.url}${path}`, {
      headers: { 'if-none-match': page.headers.get('etag') ?? '' },
    });
    expect(again.status).toBe(304);
    for (const [, file = ''] of text.matchAll(/(?:src|href)="(assets\/[^"]+)"/g)) {
      for (const encoding of ['br', 'gzip', 'identity']) {
        const answer = await fetch(`${gateway.url}/${file}`, { headers: { 'accept-encoding': encoding } });
        expect([answer.status, answer.headers.get('content-encoding')]).toEqual([
          200,
          encoding === 'identity' ? null : encoding,
        ]);
        expect(answer.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
        expect(await answer.text()).toBe(readFileSync(join(dist, file), 'utf8'));
      }
    }
  }
});

test('only files of the bundle are served', async () => {
  for (const path of ['..%2Fmanifest.json', '..%2F..%2Fpackage.json', 'nothing.js', 'constructor']) {
    const answer = await fetch(`${gateway.url}/assets/${path}`);
    expect([path, answer.status]).toEqual([path, 404]);
  }
  expect(existsSync(join(dist, 'manifest.json'))).toBe(true);
});

test('GATEWAY_CONSOLE=off serves the plain page, and neither pages nor files of the console', async () => {
  const plain = await startGateway({ environment: { GATEWAY_CONSOLE: 'off' } });
  const statuses: number[] = [];
  for (const path of ['/', '/keys', `/assets/${scripts()[0] ?? ''}`])
    statuses.push((await fetch(`${plain.url}${path}`)).status);
  await plain.stop();
  expect(statuses).toEqual([200, 404, 404]);
});
