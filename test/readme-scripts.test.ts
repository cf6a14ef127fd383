/** The scripts that the README shows are run as they are printed, against the sandbox. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGateway, type TestGateway } from './harness.ts';

const root = join(import.meta.dirname, '..');
const readme = readFileSync(join(root, 'README.md'), 'utf8');
const scripts = [...readme.matchAll(/^```js\n(.*?)^```$/gms)].map(([, script = '']) => ({
  name: /from '([^']+)'/.exec(script)?.[1] ?? 'without a package',
  script,
}));

let gateway: TestGateway;
let folder: string;
beforeAll(async () => {
  gateway = await startGateway();
  folder = mkdtempSync(join(tmpdir(), 'readme-'));
  // The packages are where somebody who follows the README has installed them: beside the script.
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await gateway.stop();
});

test('the README shows scripts', () => {
  expect(scripts.map(({ name }) => name)).toContain('openai');
});

test.each(scripts.map((one, i) => ({ ...one, i })))('a script with $name runs as printed', async ({ script, i }) => {
  expect(script).toContain('http://127.0.0.1:8080');
  const file = join(folder, `script-${i}.mjs`);
  writeFileSync(file, script.replaceAll('http://127.0.0.1:8080', gateway.url));
  const env = { PATH: process.env['PATH'], GATEWAY_KEY: gateway.key };
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [file], { env });
  expect(stderr).toBe('');
  expect(stdout.length).toBeGreaterThan(20);
});
