import { afterEach, expect, test } from 'vitest';
import { limits } from '../../src/limits.ts';
import { startGateway, type TestGateway } from '../harness.ts';

/** The clock of rate limits stands still, so that no attempt is restored while a test runs. */
const clock = { nowMs: Date.now, monotonicMs: () => 0 };

let gateway: TestGateway;
afterEach(() => gateway.stop());

/** The answer to an attempt whose proxy names `forwarded` as its client. */
async function attempt(path: string, forwarded: string): Promise<number> {
  const answer = await fetch(gateway.url + path, {
    method: 'POST',
    headers: { origin: gateway.url, 'x-forwarded-for': forwarded, 'content-type': 'application/x-www-form-urlencoded' },
    body: 'management_key=wrong',
  });
  await answer.text();
  return answer.status;
}

async function exhaust(path: string, perMinute: number, forwarded: (nth: number) => string): Promise<number[]> {
  const statuses: number[] = [];
  for (let nth = 0; nth < perMinute; nth += 1) statuses.push(await attempt(path, forwarded(nth)));
  return statuses;
}

const routes = [
  ['/sign-in', limits.sign_ins_per_minute],
  ['/api/v1/auth/keys', limits.exchanges_per_minute],
] as const;

test.each(routes)(
  'behind a configured proxy a client with too many attempts at %s locks out only itself',
  async (path, perMinute) => {
    gateway = await startGateway({ yaml: 'http: { trusted_proxies: [127.0.0.1] }', clock });
    expect(await exhaust(path, perMinute, () => '198.51.100.1')).not.toContain(429);
    expect(await attempt(path, '198.51.100.1')).toBe(429);
    // Addresses that a client writes before its own have no effect.
    expect(await attempt(path, '203.0.113.9, 198.51.100.1')).toBe(429);
    expect(await attempt(path, '198.51.100.2')).not.toBe(429);
    // One customer with IPv6 has a whole /64.
    await exhaust(path, perMinute, (nth) => `2001:db8::${nth + 1}`);
    expect(await attempt(path, '2001:db8::ffff')).toBe(429);
  },
);

test.each(routes)('only a configured proxy can state the client of an attempt at %s', async (path, perMinute) => {
  gateway = await startGateway({ yaml: 'http: { trusted_proxies: [10.0.0.0/8] }', clock });
  expect(await exhaust(path, perMinute, (nth) => `198.51.100.${nth}`)).not.toContain(429);
  expect(await attempt(path, '203.0.113.1')).toBe(429);
});
