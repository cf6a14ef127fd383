import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test, vi } from 'vitest';
import { describeStores } from '../../test/ledger/store-variants.ts';
import { limits } from '../limits.ts';
import type { Announcement, ChangeFeed } from './change-feed.ts';
import { type Database, openDatabase } from './database.ts';
import { FEED_SETTLE_MS } from './file-change-feed.ts';
import { openChangeFeed } from './open-change-feed.ts';
import { ANNOUNCE_MS_MAX, FEED_BEAT_MS, FEED_WARN_MS } from './postgres-change-feed.ts';
import type { MachineClock } from './store-clock.ts';

const cleanups: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanups.splice(0).reverse()) await cleanUp();
});

const CHANGE: Announcement = { topic: 'keys', id: 'one' };

async function openFeed(
  dataDir: string,
  databaseUrl: string | undefined,
  onSilence = (_reason: string) => {},
  clock?: MachineClock,
) {
  const feed = await openChangeFeed({ data_dir: dataDir, database_url: databaseUrl, listens: true, onSilence, clock });
  cleanups.push(() => feed.stop());
  const received: (Announcement | 'everything')[] = [];
  feed.listen((change) => void received.push(change));
  return { feed, received };
}

/** Announces a change as an operation does. */
async function announce(feed: ChangeFeed, { queries }: Database, changes = [CHANGE]) {
  await queries.transaction().execute((tx) => feed.note(tx, changes));
  await feed.deliver(changes);
}

async function settled(feed: ChangeFeed) {
  await vi.waitUntil(() => feed.current(), { timeout: 60_000, interval: 20 });
}

const withAddress = (databaseUrl: string, { port }: AddressInfo) =>
  Object.assign(new URL(databaseUrl), { hostname: '127.0.0.1', port: String(port) }).href;

/** A connection to the server on which every answer is delayed. */
async function startSlowWay(databaseUrl: string, lateMs: number): Promise<string> {
  const target = new URL(databaseUrl);
  const server = createServer((client) => {
    const upstream = connect(Number(target.port || 5432), target.hostname);
    const end = () => {
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) socket.on('error', end).on('close', end);
    client.on('data', (bytes) => void upstream.write(bytes));
    upstream.on('data', (bytes) => void setTimeout(() => client.write(bytes), lateMs));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanups.push(() => server.close());
  return withAddress(databaseUrl, server.address() as AddressInfo);
}

/**
 * The effects of a transaction pooler on a connection (PgBouncer, `handle_server_work`): notifications that arrive while it runs no query
 * are dropped, those of its own queries are not, and its process id is that of the pooler.
 */
async function startPooler(databaseUrl: string): Promise<string> {
  const target = new URL(databaseUrl);
  const server = createServer((client) => {
    const upstream = connect(Number(target.port || 5432), target.hostname);
    const end = () => {
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) socket.on('error', end).on('close', end);
    let isRequested = true;
    let rest = Buffer.alloc(0);
    client.on('data', (bytes) => {
      isRequested = true;
      upstream.write(bytes);
    });
    upstream.on('data', (bytes) => {
      rest = Buffer.concat([rest, bytes]);
      while (rest.length >= 5 && rest.length > rest.readInt32BE(1)) {
        const length = rest.readInt32BE(1) + 1;
        const message = rest.subarray(0, length);
        rest = rest.subarray(length);
        const type = String.fromCharCode(message[0] ?? 0);
        if (type === 'A' && !isRequested) continue;
        if (type === 'K') message.writeInt32BE(message.readInt32BE(5) + 1_000_000, 5);
        if (type === 'Z') isRequested = false;
        client.write(message);
      }
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanups.push(() => server.close());
  return withAddress(databaseUrl, server.address() as AddressInfo);
}

describeStores('the change feed', ({ engine, freshUrl }) => {
  async function setUp() {
    const dataDir = mkdtempSync(join(tmpdir(), 'gateway-feed-'));
    cleanups.push(() => rmSync(dataDir, { recursive: true, force: true }));
    const url = await freshUrl();
    const database = await openDatabase({ database_url: url });
    cleanups.push(() => database.close());
    return { data_dir: dataDir, url, database };
  }

  test('after a change is announced, each node that uses its cache has received it, including the own node', async () => {
    const { data_dir, url, database } = await setUp();
    const [one, other] = [await openFeed(data_dir, url), await openFeed(data_dir, url)];
    for (const { feed } of [one, other]) await settled(feed);
    one.received.length = 0;
    other.received.length = 0;
    const changes: Announcement[] = [CHANGE, { topic: 'policy', id: 'two' }];
    await announce(one.feed, database, changes);
    for (const { feed, received } of [one, other]) {
      expect(feed.current()).toBe(true);
      const expected = engine === 'postgres' ? changes : ['everything' as const];
      for (const change of expected) expect(received).toContainEqual(change);
    }
  });

  test('entries read between the announcement and the commit of a change are removed after the commit', async () => {
    const { data_dir, url, database } = await setUp();
    const [one, other] = [await openFeed(data_dir, url), await openFeed(data_dir, url)];
    for (const { feed } of [one, other]) await settled(feed);
    await database.queries.transaction().execute(async (tx) => {
      await one.feed.note(tx, [CHANGE]);
      await sleep(FEED_SETTLE_MS);
      for (const { feed, received } of [one, other]) {
        feed.current();
        received.length = 0;
      }
    });
    await one.feed.deliver([CHANGE]);
    for (const { feed, received } of [one, other]) {
      expect(feed.current()).toBe(true);
      expect(received).not.toEqual([]);
    }
  });

  if (engine !== 'postgres') {
    test('an incomplete or missing mark is invalid, and no cached entry is used', async () => {
      const { data_dir } = await setUp();
      const { feed, received } = await openFeed(data_dir, undefined);
      const file = join(data_dir, 'changes');
      const whole = readFileSync(file);
      for (const spoil of [
        () => writeFileSync(file, ''),
        () => writeFileSync(file, whole.subarray(0, 5)),
        () => rmSync(file),
      ]) {
        writeFileSync(file, whole);
        await sleep(FEED_SETTLE_MS);
        expect(feed.current()).toBe(true);
        received.length = 0;
        spoil();
        await sleep(FEED_SETTLE_MS);
        expect(feed.current()).toBe(false);
        expect(received).toEqual(['everything']);
      }
    });
  }

  if (engine === 'postgres') {
    test('a node with notifications through a pooler uses no cached entry and reports why; nodes that do are awaited', async () => {
      const { data_dir, url = '', database } = await setUp();
      const reasons: string[] = [];
      const pooled = await openFeed(data_dir, await startPooler(url), (reason) => void reasons.push(reason));
      const direct = await openFeed(data_dir, url);
      await settled(direct.feed);
      const untilMs = performance.now() + FEED_WARN_MS + 500;
      while (performance.now() < untilMs) {
        expect(pooled.feed.current()).toBe(false);
        await sleep(50);
      }
      expect(reasons).toEqual([expect.stringContaining('pooler')]);
      direct.received.length = 0;
      await announce(pooled.feed, database);
      expect(direct.received).toContainEqual(CHANGE);
    });

    test('a suspended node, also if one of its clocks stood still, uses no cached entry until a new beat', async () => {
      const { data_dir, url = '' } = await setUp();
      let suspendedMs = 0;
      const clock = { nowMs: () => Date.now() + suspendedMs, monotonicMs: () => performance.now() };
      const { feed } = await openFeed(data_dir, url, undefined, clock);
      for (const jumpMs of [60_000, -60_000, limits.feed_clocks_ms_max + 50]) {
        await settled(feed);
        suspendedMs += jumpMs;
        expect(feed.current()).toBe(false);
      }
      await settled(feed);
      suspendedMs += limits.feed_clocks_ms_max / 2;
      expect(feed.current()).toBe(true);
    });

    test('a node with delayed notifications uses no cached entry, however regular they are', async () => {
      const { data_dir, url = '' } = await setUp();
      const { feed } = await openFeed(data_dir, await startSlowWay(url, limits.feed_silence_ms_max + 100));
      const untilMs = performance.now() + 6 * limits.feed_silence_ms_max;
      while (performance.now() < untilMs) {
        expect(feed.current()).toBe(false);
        await sleep(50);
      }
    });

    test('an announcement ends after the slowest node that uses its cache has received it', async () => {
      const { data_dir, url = '', database } = await setUp();
      const one = await openFeed(data_dir, url);
      const other = await openFeed(data_dir, await startSlowWay(url, limits.feed_silence_ms_max / 5));
      for (const { feed } of [one, other]) await settled(feed);
      await sleep(limits.feed_silence_ms_max);
      for (let round = 0; round < 5; round += 1) {
        other.received.length = 0;
        await announce(one.feed, database);
        if (other.feed.current()) expect(other.received).toContainEqual(CHANGE);
      }
      // A node that has just connected has received no beat of the others.
      const newcomer = await openFeed(data_dir, url);
      other.received.length = 0;
      await announce(newcomer.feed, database);
      if (other.feed.current()) expect(other.received).toContainEqual(CHANGE);
    });

    test('a node that stopped some time ago is not awaited', async () => {
      const { data_dir, url, database } = await setUp();
      const [one, other] = [await openFeed(data_dir, url), await openFeed(data_dir, url)];
      for (const { feed } of [one, other]) await settled(feed);
      await other.feed.stop();
      await sleep(ANNOUNCE_MS_MAX + FEED_BEAT_MS);
      const announced = announce(one.feed, database).then(() => 'announced');
      expect(await Promise.race([announced, sleep(ANNOUNCE_MS_MAX * 0.9, 'waited')])).toBe('announced');
    });

    test('gateways of another schema of the database receive nothing', async () => {
      const { data_dir, url, database } = await setUp();
      const [one, foreign] = [await openFeed(data_dir, url), await openFeed(data_dir, await freshUrl())];
      for (const { feed } of [one, foreign]) await settled(feed);
      await announce(one.feed, database);
      await sleep(FEED_BEAT_MS);
      expect(one.received).toContainEqual(CHANGE);
      expect(foreign.received).not.toContainEqual(CHANGE);
    });

    test('many concurrent changes are all received, and the connection runs one query at a time', async () => {
      const { data_dir, url, database } = await setUp();
      const warnings: Error[] = [];
      const warn = (warning: Error) => void warnings.push(warning);
      process.on('warning', warn);
      cleanups.push(() => process.off('warning', warn));
      const [one, other] = [await openFeed(data_dir, url), await openFeed(data_dir, url)];
      for (const { feed } of [one, other]) await settled(feed);
      await sleep(limits.feed_silence_ms_max);
      other.received.length = 0;
      await Promise.all(Array.from({ length: 20 }, () => announce(one.feed, database)));
      expect(other.received.filter((change) => change !== 'everything')).toHaveLength(20);
      await sleep(10);
      expect(warnings).toEqual([]);
    });
  }
});
