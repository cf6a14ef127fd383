/** `npm run pictures [FOLDER]`: the pictures of the README and the guides, made from the data of `model-gateway demo`. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { chromium } from 'playwright-core';
import { BROWSER } from './browser.ts';

/** The largest picture in bytes: they are in the repository. */
const PICTURE_BYTES_MAX = 150_000;
const PAGES = [
  ['overview', ''],
  ['usage', 'usage?metric=total_usage&by=model'],
  ['logs', 'logs'],
  ['model', 'models?id=aurora%2Flarge-3'],
  ['ledger', 'ledger'],
] as const;

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}

const root = resolve(import.meta.dirname, '../..');
const folder = resolve(process.argv[2] ?? join(root, 'docs/pictures'));
const more = process.argv.slice(3);
mkdirSync(folder, { recursive: true });
const dataDir = mkdtempSync(join(tmpdir(), 'gateway-pictures-'));
const demo = spawn(
  process.execPath,
  [join(root, 'bin/launch.cjs'), 'src/main.ts', 'demo', '--data-dir', dataDir, '--port', String(await freePort())],
  { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] },
);
let output = '';
const link = await new Promise<string>((done, reject) => {
  demo.once('exit', () => reject(new Error(`the demo ended: ${output}`)));
  demo.stdout.on('data', (text: Buffer) => {
    output += text.toString();
    const match = /http:\/\/\S+sign-in\?code=\S+/.exec(output);
    if (match !== null) done(match[0]);
  });
});
const browser = await chromium.launch({
  ...(BROWSER === undefined ? {} : { executablePath: BROWSER }),
  args: ['--no-sandbox', '--disable-gpu'],
});
try {
  const page = await browser.newPage({ viewport: { width: 1_200, height: 760 }, colorScheme: 'light' });
  page.setDefaultTimeout(100_000);
  await page.goto(link);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  const { origin } = new URL(link);
  for (const [name, path] of [...PAGES, ...more.map((one) => [one.replaceAll(/\W+/g, '-'), one] as const)]) {
    await page.goto(`${origin}/${path}`);
    await page.locator('main h1').waitFor();
    await page.waitForLoadState('networkidle');
    const file = join(folder, `${name}.png`);
    await page.screenshot({ path: file });
    const { size } = statSync(file);
    process.stdout.write(`${file}: ${size} bytes\n`);
    if (size > PICTURE_BYTES_MAX) throw new Error(`${file} is larger than ${PICTURE_BYTES_MAX} bytes`);
  }
} finally {
  await browser.close();
  demo.removeAllListeners('exit');
  const ended = new Promise((done) => demo.once('exit', done));
  demo.kill('SIGTERM');
  await ended;
  rmSync(dataDir, { recursive: true, force: true });
}
