/** A node whose machine's clock is wrong: keys expire and limits reset by the store's clock. */
import { afterEach, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../harness.ts';
import { describeStores } from '../ledger/store-variants.ts';

const TWO_HOURS_MS = 7_200_000;

describeStores('a node whose clock is two hours slow', ({ engine, freshUrl }) => {
  let gateway: TestGateway | undefined;
  afterEach(async () => {
    await gateway?.stop();
    gateway = undefined;
  });

  if (engine === 'sqlite') {
    test('is right by definition if the store is embedded', async () => {
      const nowMs = () => Date.now() - TWO_HOURS_MS;
      gateway = await startGateway({ clock: { nowMs, monotonicMs: () => performance.now() } });
      const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
      expect(metrics).toContain('\ngateway_store_clock_skew_seconds 0\n');
    });
    return;
  }

  test('refuses a key that has expired by the store’s clock, warns, and reports the skew', async () => {
    const nowMs = () => Date.now() - TWO_HOURS_MS;
    gateway = await startGateway({
      environment: { DATABASE_URL: (await freshUrl()) ?? '' },
      clock: { nowMs, monotonicMs: () => performance.now() },
    });
    const { call, management_key, log_lines, url } = gateway;
    const authorization = `Bearer ${management_key}`;
    const expiresAt = new Date(Date.now() + 3_000).toISOString();
    const made = await call('POST', '/keys', { name: 'k', expires_at: expiresAt }, { authorization });
    expect(made.status).toBe(201);
    const { key, data } = (await made.json()) as { key: string; data: { created_at: string } };
    expect(Math.abs(Date.parse(data.created_at) - Date.now())).toBeLessThan(TWO_HOURS_MS / 2);
    const status = async () => (await call('GET', '/key', undefined, { authorization: `Bearer ${key}` })).status;
    await expect.poll(status).toBe(401);
    expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(expiresAt) - 100);
    expect(log_lines.filter((line) => line.includes("from the store's"))).toHaveLength(1);
    const metrics = await (await fetch(`${url}/metrics`)).text();
    expect(Number(/^gateway_store_clock_skew_seconds (.*)$/m.exec(metrics)?.[1])).toBeCloseTo(7_200, 0);
    expect(metrics).toContain('\ngateway_store_clock_skews_total 1\n');
  });
});
