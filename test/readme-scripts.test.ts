/** Runs the scripts of the README and the guides as they are printed, against the sandbox. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { blocksOf, root, userDocuments } from './documents.ts';
import { startGateway, type TestGateway } from './harness.ts';

const scripts = userDocuments().flatMap(({ file, text }) =>
  blocksOf(text, 'js').map((script) => ({
    name: /from '([^']+)'/.exec(script)?.[1] ?? 'without a package',
    file,
    script,
  })),
);

let gateway: TestGateway;
let folder: string;
beforeAll(async () => {
  gateway = await startGateway();
  folder = mkdtempSync(join(tmpdir(), 'readme-'));
  // The packages are beside the script, where a reader of the page has installed them.
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await gateway.stop();
});

test('the README and the guide of clients contain scripts', () => {
  for (const file of ['README.md', 'docs/guides/clients.md']) {
    expect(scripts.filter((one) => one.file === file).map(({ name }) => name)).toContain('openai');
  }
});

test.each(scripts.map((one, i) => ({ ...one, i })))(
  '$file: the script with $name runs as printed',
  async ({ script, i }) => {
    expect(script).toContain('http://127.0.0.1:8080');
    const file = join(folder, `script-${i}.mjs`);
    writeFileSync(file, script.replaceAll('http://127.0.0.1:8080', gateway.url));
    const env = { PATH: process.env['PATH'], GATEWAY_KEY: gateway.key };
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [file], { env });
    expect(stderr).toBe('');
    expect(stdout.length).toBeGreaterThan(20);
  },
);
