/** `node bin/launch.cjs test/console/speed.ts [LOADS]`: sizes and times of the console over the demo, in a browser without a cache. */
import { readdirSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type BrowserContext, chromium, type Page } from 'playwright-core';
import { BROWSER } from './browser.ts';
import { startDemo } from './demo.ts';

const LOADS = Number(process.argv[2] ?? 15);
/** What a person does to a page, and what changes there with the answer. */
const FILTERS = [
  ['logs', 'select', ['problems', 'completed', 'rescued', ''], '.log-bar p'],
  ['models', 'select', ['tools', 'reasoning', ''], '.pager, main p.dim:last-child, .empty'],
  ['usage', '.filters label:nth-child(4) select', ['7d', '30d', '90d', '24h'], '.figures dd'],
] as const;

const dist = resolve(import.meta.dirname, '../../console/dist');
const print = (text: string) => process.stdout.write(`${text}\n`);

function summary(values: readonly number[], unit = 'ms'): string {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number) => Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0);
  return `median ${at(0.5)} ${unit}, worst ${at(1)} ${unit} (${sorted.length})`;
}

interface Paints {
  painted: number;
  shown: number;
  bytes: number;
}

/** The first paint of a page, when its data are shown, and the bytes that arrived until then. */
async function load(page: Page, address: string): Promise<Paints> {
  await page.goto(address);
  await page.locator('main .figures, main table').first().waitFor();
  const shown = Number(await page.evaluate('performance.now()'));
  const painted = Number(
    await page.evaluate('performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? NaN'),
  );
  const bytes = Number(
    await page.evaluate(
      '[...performance.getEntriesByType("resource"), ...performance.getEntriesByType("navigation")].filter(({ name }) => !name.includes("/api/")).reduce((sum, one) => sum + one.encodedBodySize, 0)',
    ),
  );
  return { painted, shown, bytes };
}

/** From the change of a filter to the frame that shows its answer. */
async function filter(page: Page, control: string, value: string, changing: string): Promise<number> {
  return Number(
    await page.evaluate(`new Promise((done) => {
      const field = document.querySelector(${JSON.stringify(`main ${control}`)});
      const text = () => [...document.querySelectorAll(${JSON.stringify(changing)})].map((one) => one.textContent).join();
      const before = text();
      const start = performance.now();
      field.value = ${JSON.stringify(value)};
      field.dispatchEvent(new Event('change', { bubbles: true }));
      const look = () => {
        if (text() !== before) done(performance.now() - start);
        else if (performance.now() - start > 5_000) done(NaN);
        else requestAnimationFrame(look);
      };
      requestAnimationFrame(look);
    })`),
  );
}

const sizes = readdirSync(join(dist, 'assets')).filter((name) => name.endsWith('.gz'));
const all = sizes.reduce((sum, name) => sum + statSync(join(dist, 'assets', name)).size, 0);
print(`All files of the console, gzip: ${all + statSync(join(dist, 'index.html.gz')).size} bytes`);

const demo = await startDemo();
const browser = await chromium.launch({
  ...(BROWSER === undefined ? {} : { executablePath: BROWSER }),
  args: ['--no-sandbox', '--disable-gpu'],
});
try {
  const { origin } = new URL(demo.link);
  const first = await browser.newPage();
  await first.goto(demo.link);
  await first.getByRole('button', { name: 'Sign in' }).click();
  await first.getByRole('heading', { name: 'Overview' }).waitFor();
  const state: Awaited<ReturnType<BrowserContext['storageState']>> = await first.context().storageState();
  await first.context().close();
  for (const path of ['', 'logs', 'usage', 'models', 'sessions']) {
    const loads: Paints[] = [];
    for (let turn = 0; turn < LOADS; turn += 1) {
      const context = await browser.newContext({ storageState: state, viewport: { width: 1_440, height: 900 } });
      loads.push(await load(await context.newPage(), `${origin}/${path}`));
      await context.close();
    }
    print(`/${path}: first paint ${summary(loads.map(({ painted }) => painted))}`);
    print(`  data shown ${summary(loads.map(({ shown }) => shown))}; files ${loads[0]?.bytes} bytes as they are sent`);
  }
  const context = await browser.newContext({ storageState: state, viewport: { width: 1_440, height: 900 } });
  const page = await context.newPage();
  for (const [path, control, values, changing] of FILTERS) {
    await load(page, `${origin}/${path}`);
    const times: number[] = [];
    for (let turn = 0; turn < 5; turn += 1) {
      for (const value of values) {
        times.push(await filter(page, control, value, changing));
        await page.waitForLoadState('networkidle');
      }
    }
    const measured = times.filter((time) => !Number.isNaN(time));
    print(`/${path}, a filter: ${summary(measured)}${measured.length < times.length ? ` of ${times.length}` : ''}`);
  }
} finally {
  await browser.close();
  await demo.stop();
}
process.exit(0);
