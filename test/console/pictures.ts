/** `npm run pictures [FOLDER]`: the pictures of the README and the guides, made from the data of `model-gateway demo`. */
import { mkdirSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { chromium } from 'playwright-core';
import { BROWSER } from './browser.ts';
import { startDemo } from './demo.ts';

/** The largest picture in bytes: they are in the repository. */
const PICTURE_BYTES_MAX = 150_000;
const PAGES = [
  ['overview', ''],
  ['usage', 'usage?metric=total_usage&by=model'],
  ['logs', 'logs'],
  ['model', 'models?id=aurora%2Flarge-3'],
  ['ledger', 'ledger'],
] as const;

const root = resolve(import.meta.dirname, '../..');
const folder = resolve(process.argv[2] ?? join(root, 'docs/pictures'));
const more = process.argv.slice(3);
mkdirSync(folder, { recursive: true });
const demo = await startDemo();
const browser = await chromium.launch({
  ...(BROWSER === undefined ? {} : { executablePath: BROWSER }),
  args: ['--no-sandbox', '--disable-gpu'],
});
try {
  const page = await browser.newPage({ viewport: { width: 1_200, height: 760 }, colorScheme: 'light' });
  page.setDefaultTimeout(100_000);
  await page.goto(demo.link);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  const { origin } = new URL(demo.link);
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
  await demo.stop();
}
