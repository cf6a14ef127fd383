/** A store that answers every query late, but in time: a call does not wait for the sum of the delays. */
import { afterEach, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../harness.ts';
import { describeStores } from '../ledger/store-variants.ts';
import { breakingWay } from '../routing/breaking-way.ts';

const SECRET = { GATEWAY_SECRET: 'a-secret-that-all-nodes-share-long-enough' };

describeStores('a store that is slow by the clock', ({ engine, freshUrl }) => {
  const cleanups: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const cleanUp of cleanups.splice(0).reverse()) await cleanUp();
  });

  /** A node whose clock advances only with the store's answers, so that no timer of its own fires early. */
  async function setUp(): Promise<{ gateway: TestGateway; other: TestGateway; answersTake(ms: number): void }> {
    const url = (await freshUrl()) ?? '';
    const way = await breakingWay(url);
    cleanups.push(() => way.stop());
    let aheadMs = 0;
    const clock = { nowMs: () => Date.now() + aheadMs, monotonicMs: () => performance.now() + aheadMs };
    const yaml = 'rate_limits: { per_key: { requests_per_minute: 100000 } }';
    const gateway = await startGateway({ yaml, clock, environment: { DATABASE_URL: way.url(url), ...SECRET } });
    cleanups.push(() => gateway.stop());
    const other = await startGateway({ yaml, environment: { DATABASE_URL: url, ...SECRET } });
    cleanups.push(() => other.stop());
    const answersTake = (ms: number) => {
      way.onAnswer(() => {
        aheadMs += ms;
      });
    };
    return { gateway, other, answersTake };
  }

  async function chat(gateway: TestGateway, key: string) {
    const body = { model: 'sandbox/echo', max_tokens: 20, messages: [{ role: 'user', content: 'hello there' }] };
    const answer = await gateway.call('POST', '/chat/completions', body, { authorization: `Bearer ${key}` });
    await answer.text();
    return { status: answer.status, retry_after: answer.headers.get('retry-after') };
  }

  async function makeKey(gateway: TestGateway): Promise<string> {
    const authorization = `Bearer ${gateway.management_key}`;
    const made = await gateway.call('POST', '/keys', { name: 'k', limit: 1 }, { authorization });
    return ((await made.json()) as { key: string }).key;
  }

  test.skipIf(engine === 'sqlite')(
    'a call whose reads are in time singly but not together is refused, and the next one is served',
    async () => {
      const { gateway, answersTake, other } = await setUp();
      const key = await makeKey(other);
      answersTake(300);
      expect(await chat(gateway, key)).toEqual({ status: 503, retry_after: '1' });
      answersTake(0);
      await expect.poll(() => chat(gateway, key)).toMatchObject({ status: 200 });
    },
  );
});
