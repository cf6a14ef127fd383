import { existsSync } from 'node:fs';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
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
  /** Opens a signed-in page in a browser profile of its own. */
  visit(options?: BrowserContextOptions & { member?: { email: string; role: 'admin' | 'member' } }): Promise<Visit>;
  stop(): Promise<void>;
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
