/** A request with a spend limit reads nothing from the store while its gateway has a lease. */
import { afterEach, expect, test } from 'vitest';
import { startSandbox } from '../../sandbox/server.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { describeStores } from '../ledger/store-variants.ts';
import { countingProxy } from './counting-proxy.ts';
import { chat, type GatewayProcess, serve, stop } from './gateway-process.ts';
import { moneyConfiguration } from './money-site.ts';

const REQUESTS = 1_000;
const CLIENTS = 16;
/** Those of them that are sent while the store is unreachable. */
const ALONE = 50;

const cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanups.splice(0).reverse()) await cleanUp();
});

async function ask(gateway: GatewayProcess, key: string, requests: number): Promise<void> {
  let left = requests;
  const client = async () => {
    while (left-- > 0) {
      const answer = await gateway.call('POST', '/chat/completions', { key, body: chat('money/unit') });
      expect(answer.status, await answer.text()).toBe(200);
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
}

describeStores('a limited key', ({ engine, freshUrl }) => {
  test.runIf(engine === 'postgres')(
    'is served without reading the store: any number of batches has the cost of its requests',
    { timeout: 180_000 },
    async () => {
      const databaseUrl = await freshUrl();
      const proxy = await countingProxy(databaseUrl ?? '');
      cleanups.push(proxy.close);
      const sandbox = await startSandbox();
      cleanups.push(() => sandbox.stop());
      const gateway = await serve({
        yaml: moneyConfiguration(sandbox.url),
        environment: { DATABASE_URL: proxy.url },
      });
      const made = await gateway.call('POST', '/keys', { body: { name: 'limited', limit: 1_000 } });
      const { key } = (await made.json()) as { key: string };
      await ask(gateway, key, REQUESTS / 2);
      const database = await openDatabase({ database_url: databaseUrl ?? '' });
      cleanups.push(() => database.close());
      const batchesSoFar = async () => {
        const [node] = await database.queries.selectFrom('ledger_nodes').select('batch').execute();
        return node?.batch ?? 0;
      };
      const before = { ...proxy.counted, batches: await batchesSoFar() };
      const beganMs = performance.now();
      await ask(gateway, key, REQUESTS - ALONE);
      const statements = proxy.counted.statements - before.statements;
      const batches = (await batchesSoFar()) - before.batches;
      const tookMs = performance.now() - beganMs;
      proxy.hold(true);
      await ask(gateway, key, ALONE);
      proxy.hold(false);
      process.stdout.write(
        `${statements} statements and ${batches} batches for ${REQUESTS - ALONE} requests in ${Math.round(tookMs)} ms, ` +
          `then ${ALONE} with the store unreachable\n`,
      );
      expect(await stop(gateway)).toBe(0);
    },
  );
});
