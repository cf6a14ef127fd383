import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { RateAsker, type RateEntry } from '../../src/inference/plan/rate-asker.ts';
import { RateCounter } from '../../src/ledger/leases/rate-counter.ts';
import type { RateLimit } from '../../src/schemas/rate-limit.ts';
import { type Database, openDatabase } from '../../src/storage/database.ts';
import { rateWindowStore } from '../../src/storage/rate-windows.ts';
import { Random } from '../simulation/random.ts';
import { describeStores } from './store-variants.ts';

const AMOUNT = 12;
/** Short, so that a test sees many windows begin and end. */
const SPAN_MS = 500;
const limit = { id: 'a', unit: 'requests', span_ms: SPAN_MS, amount: AMOUNT, message: '' } as unknown as RateLimit;

/** A node on its own connection: it admits what it may, and returns the times. */
function nodeOn({ queries, engine }: Database) {
  const clock = { nowMs: () => Date.now(), monotonicMs: () => performance.now() };
  const asker = new RateAsker({ store: rateWindowStore(queries, engine), clock, log: { warn() {} } });
  const entry: RateEntry = { counter: new RateCounter(limit), waiting: 0, asking: undefined };
  const { counter } = entry;
  return async (): Promise<number | undefined> => {
    for (let round = 0; round < 20; round += 1) {
      const now = asker.now();
      if (counter.take(1, now)) return now.wall_ms;
      if (counter.isRefused(1, now)) return undefined;
      await asker.ask(entry, (at) => counter.ask(1, 1, at));
    }
    return undefined;
  };
}

describeStores('many nodes at a store', ({ engine, open, freshUrl }) => {
  test('never exceed the amount in a window of the store’s time', { timeout: 180_000 }, async () => {
    // On this machine its time is that of the test.
    const url = await freshUrl();
    const databaseUrls = url === undefined ? [] : [url, url, url];
    const opened = await Promise.all(databaseUrls.map((databaseUrl) => openDatabase({ database_url: databaseUrl })));
    const embedded = opened.length === 0 ? await open() : undefined;
    const databases = embedded === undefined ? opened : [embedded, embedded, embedded];
    try {
      const through = new Map<number, number>();
      const untilMs = Date.now() + 4_000;
      await Promise.all(
        databases.map(async (database, index) => {
          const letThrough = nodeOn(database);
          const random = new Random(index + (engine === 'sqlite' ? 1 : 9));
          while (Date.now() < untilMs) {
            const atMs = await letThrough();
            if (atMs === undefined) await sleep(random.whole(1, 10));
            else {
              const window = Math.floor(atMs / SPAN_MS);
              through.set(window, (through.get(window) ?? 0) + 1);
            }
            if (random.chance(0.3)) await sleep(random.whole(0, 4));
          }
        }),
      );
      expect([...through.values()].filter((count) => count > AMOUNT)).toEqual([]);
      expect(through.size).toBeGreaterThan(4);
      expect(Math.max(...through.values())).toBeGreaterThan(AMOUNT / 2);
    } finally {
      for (const database of opened) await database.close();
    }
  });
});
