/** What a request with a spend limit asks of the store: nothing, while its gateway has money set aside. */
import { connect, createServer, type Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { startSandbox } from '../../sandbox/server.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { describeStores } from '../ledger/store-variants.ts';
import { chat, type GatewayProcess, serve, stop } from './gateway-process.ts';
import { moneyConfiguration } from './money-site.ts';

const REQUESTS = 1_000;
const CLIENTS = 16;
/** Of these, so many while the store hears nothing. */
const ALONE = 50;

const cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanups.splice(0).reverse()) await cleanUp();
});

/**
 * Stands between a gateway and its PostgreSQL, and counts what is executed (messages `Query` and `Execute` of
 * https://www.postgresql.org/docs/15/protocol-message-formats.html). While `held`, nothing gets through.
 */
async function countingProxy(databaseUrl: string) {
  const target = new URL(databaseUrl);
  const { port: storePort, hostname: storeHost } = target;
  const counted = { statements: 0 };
  const pairs = new Set<[Socket, Socket]>();
  let held = false;
  const read = () => {
    let rest = Buffer.alloc(0);
    let begun = false;
    return (bytes: Buffer) => {
      rest = Buffer.concat([rest, bytes]);
      // The first message has no type.
      for (;;) {
        const head = begun ? 1 : 0;
        if (rest.length < head + 4) return;
        const length = head + rest.readUInt32BE(head);
        if (rest.length < length) return;
        const type = begun ? String.fromCharCode(rest[0]!) : '';
        if (type === 'Q' || type === 'E') counted.statements += 1;
        begun = true;
        rest = rest.subarray(length);
      }
    };
  };
  const server = createServer((client) => {
    const upstream = connect(Number(storePort), storeHost);
    const count = read();
    client.on('data', (bytes) => {
      count(bytes);
      upstream.write(bytes);
    });
    upstream.on('data', (bytes) => client.write(bytes));
    const pair: [Socket, Socket] = [client, upstream];
    pairs.add(pair);
    if (held) client.pause();
    for (const socket of pair) {
      socket.on('error', () => {});
      socket.on('close', () => {
        for (const other of pair) other.destroy();
        pairs.delete(pair);
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(() => {
    for (const pair of pairs) for (const socket of pair) socket.destroy();
    server.close();
  });
  const { port } = server.address() as { port: number };
  target.hostname = '127.0.0.1';
  target.port = String(port);
  const hold = (now: boolean) => {
    held = now;
    for (const [client] of pairs) client[now ? 'pause' : 'resume']();
  };
  return { url: target.href, counted, hold };
}

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
    'is served without reading the store: batches have the cost of its requests, whatever their number',
    { timeout: 180_000 },
    async () => {
      const databaseUrl = await freshUrl();
      const proxy = await countingProxy(databaseUrl ?? '');
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
          `then ${ALONE} with the store out of reach\n`,
      );
      expect(await stop(gateway)).toBe(0);
    },
  );
});
