import { existsSync } from 'node:fs';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { expect, vi } from 'vitest';
import { startGateway, type TestGateway, type TestGatewayOptions } from '../harness.ts';
import { signInLink } from '../http/console-client.ts';

/** Debian's browser. Tests that need a browser are skipped if it is not installed. */
export const BROWSER = ['/usr/bin/chromium', '/usr/bin/chromium-browser'].find((path) => existsSync(path));

/** A page with its reported errors and its requests. */
export interface Visit {
  page: Page;
  /** Errors and warnings of the console, uncaught errors, violations of the policy. */
  faults: string[];
  /** Addresses outside of the gateway. */
  foreign: string[];
}

export interface ConsoleBrowser {
  gateway: TestGateway;
  browser: Browser;
  /** Waits until these calls are in the answers of the API: they end after their clients have read them, and no page loads again by itself. */
  recorded(...ids: (string | null)[]): Promise<void>;
  /** Opens a signed-in page in a browser profile of its own. */
  visit(options?: BrowserContextOptions & { member?: { email: string; role: 'admin' | 'member' } }): Promise<Visit>;
  stop(): Promise<void>;
}

/** The options of tests in a browser: a dozen steps, each of which a busy machine may need some seconds for. */
export const SLOW = { timeout: 600_000 } as const;

/** Opens a page and waits until it shows its data. */
export async function arrive(page: Page, address: string): Promise<void> {
  await page.goto(address);
  await page.locator('main h1').waitFor();
  await loaded(page);
}

/** Waits until a page has sent its requests and shows their answers. */
export async function loaded(page: Page): Promise<void> {
  await page.waitForLoadState('networkidle');
  await page.locator('.loading').first().waitFor({ state: 'detached' });
}

/** Starts a gateway with the sandbox, and Chromium. */
export async function startConsole(options: TestGatewayOptions = {}): Promise<ConsoleBrowser> {
  const gateway = await startGateway(options);
  const browser = await chromium.launch({
    ...(BROWSER === undefined ? {} : { executablePath: BROWSER }),
    args: ['--no-sandbox', '--disable-gpu'],
  });
  return {
    gateway,
    browser,
    async recorded(...ids) {
      for (const id of ids) {
        const read = async () => {
          const authorization = `Bearer ${gateway.management_key}`;
          const answer = await gateway.call('GET', `/generation?id=${id}`, undefined, { authorization });
          await answer.text();
          return answer.status;
        };
        await vi.waitFor(async () => expect([id, await read()]).toEqual([id, 200]), { timeout: 60_000, interval: 50 });
      }
    },
    async visit({ member, ...context } = {}) {
      const opened = await browser.newContext({ viewport: { width: 1_440, height: 900 }, ...context });
      // Limits of speed are tested elsewhere, so that a busy machine fails no test.
      opened.setDefaultTimeout(100_000);
      const page = await opened.newPage();
      const faults: string[] = [];
      const foreign: string[] = [];
      page.on('console', (message) => {
        if (['error', 'warning'].includes(message.type())) faults.push(`${message.text()} ${message.location().url}`);
      });
      page.on('pageerror', (error) => faults.push(String(error)));
      page.on('request', (request) => {
        if (!request.url().startsWith(gateway.url) && !request.url().startsWith('data:')) foreign.push(request.url());
      });
      const { path } = await signInLink(gateway, member);
      await page.goto(`${gateway.url}${path}`);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByRole('heading', { name: 'Overview' }).waitFor();
      return { page, faults, foreign };
    },
    async stop() {
      await browser.close();
      await gateway.stop();
    },
  };
}
