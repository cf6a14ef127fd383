import { execFile, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, expect, test } from 'vitest';

const directory = mkdtempSync(join(tmpdir(), 'warm-up-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));
const program = fileURLToPath(new URL('../bin/model-gateway.cjs', import.meta.url));
const env = { PATH: process.env['PATH'], NODE_COMPILE_CACHE: join(directory, 'cache') };

/** Records whether Node had to compile TypeScript for a ready gateway: the compiler takes 16 MB permanently. */
const witness = join(directory, 'witness.cjs');
const reportFile = join(directory, 'told');
writeFileSync(
  witness,
  `process.on('exit', () => require('node:fs').writeFileSync(${JSON.stringify(reportFile)}, String(process.moduleLoadList.some((name) => name.includes('amaro')))));`,
);

async function startsStripping(): Promise<string> {
  const settings = { GATEWAY_PORT: '0', GATEWAY_DATA_DIR: join(directory, 'data') };
  const gateway = spawn(process.execPath, ['--require', witness, program, 'serve'], { env: { ...env, ...settings } });
  await new Promise<void>((resolve, reject) => {
    gateway.once('exit', () => reject(new Error('the gateway ended')));
    gateway.stdout.on('data', (text: Buffer) => text.includes('serving') && resolve());
  });
  const ended = new Promise((resolve) => gateway.once('exit', resolve));
  gateway.kill('SIGTERM');
  await ended;
  return readFileSync(reportFile, 'utf8');
}

test('after an installation the first start compiles nothing', { timeout: 180_000 }, async () => {
  await promisify(execFile)(process.execPath, [program, 'warm-up'], { env, cwd: directory });
  expect(await startsStripping()).toBe('false');
});
