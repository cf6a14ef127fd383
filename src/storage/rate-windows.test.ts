import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createRateModel } from '../../test/ledger/rate-store.ts';
import { describeStores } from '../../test/ledger/store-variants.ts';
import { Random } from '../../test/simulation/random.ts';
import { limits } from '../limits.ts';
import { DAY_MS } from '../schemas/budget.ts';
import { MINUTE_MS, type RateAnswer, type RateAsk } from '../schemas/rate-limit.ts';
import { openDatabase } from './database.ts';
import { rateWindowStore } from './rate-windows.ts';

const NOTHING = { need: 0, waiting: 0, want: 0, owed: 0, back: 0, back_start_ms: 0 };
const ask = (id: string, amount: number, more: Partial<RateAsk> = {}): RateAsk => ({
  id,
  amount,
  span_ms: MINUTE_MS,
  ...NOTHING,
  ...more,
});
const taking = (id: string, amount: number, need: number, want = need) =>
  ask(id, amount, { need, waiting: need, want });

describeStores('rate windows', ({ engine, open, freshUrl }) => {
  async function setUp() {
    const { queries } = await open();
    const store = rateWindowStore(queries, engine);
    // A day almost always lasts longer than this test: with PostgreSQL's clock, a minute could pass during the test.
    const inDay = (request: RateAsk, at = 0) =>
      store.ask([{ ...request, span_ms: DAY_MS }], at).then(([first]) => first!);
    return { queries, store, inDay };
  }

  test('grant requests while there is enough, then nothing, and count owed units', async () => {
    const { inDay } = await setUp();
    expect(await inDay(taking('a', 10, 4))).toMatchObject({ granted: 4, used: 4 });
    expect(await inDay(taking('a', 10, 7))).toMatchObject({ granted: 0, used: 4 });
    expect(await inDay(ask('a', 10, { need: 1, waiting: 9 }))).toMatchObject({ granted: 6, used: 10 });
    expect(await inDay(taking('a', 10, 1))).toMatchObject({ granted: 0, used: 10 });
    expect(await inDay(ask('a', 10, { owed: 5 }))).toMatchObject({ granted: 0, used: 15 });
    expect(await inDay(taking('b', 10, 1))).toMatchObject({ granted: 1, used: 1 });
  });

  test('grant of optional units at most a part of what is left', async () => {
    const { inDay } = await setUp();
    const got: number[] = [];
    for (let n = 0; n < 5; n += 1) got.push((await inDay(taking('a', 800, 1, 1_000))).granted);
    expect(got).toEqual([100, 87, 76, 67, 58]);
    expect((await inDay(taking('a', 800, 1, 3))).granted).toBe(3);
    expect(limits.rate_block_divisor).toBe(8);
  });

  test('accept returned units only in the window in which they were granted', async () => {
    const { inDay } = await setUp();
    const { window_start_ms: backStartMs } = await inDay(taking('a', 10, 10));
    expect(await inDay(ask('a', 10, { back: 4, back_start_ms: backStartMs }))).toMatchObject({ used: 6 });
    expect(await inDay(ask('a', 10, { back: 4, back_start_ms: backStartMs - DAY_MS }))).toMatchObject({ used: 6 });
    expect(await inDay(ask('a', 10, { back: 4, back_start_ms: backStartMs, need: 8, waiting: 8 }))).toMatchObject({
      granted: 8,
      used: 10,
    });
  });

  test('reset in each window, and go back in time only if a clock was wrong', async () => {
    const { queries, store, inDay } = await setUp();
    const { window_start_ms } = await inDay(taking('a', 10, 10), DAY_MS * 3 + 5);
    await queries
      .updateTable('rate_windows')
      .set({ window_start: window_start_ms - DAY_MS })
      .execute();
    expect(await inDay(taking('a', 10, 3), DAY_MS * 3 + 9)).toMatchObject({ granted: 3, used: 3, window_start_ms });
    const later = window_start_ms + DAY_MS;
    await queries.updateTable('rate_windows').set({ window_start: later }).execute();
    expect(await inDay(taking('a', 10, 3), DAY_MS * 3 + 9)).toMatchObject({ used: 6, window_start_ms: later });
    const never = window_start_ms + 2 * DAY_MS;
    await queries.updateTable('rate_windows').set({ window_start: never }).execute();
    expect(await inDay(taking('a', 10, 3), DAY_MS * 3 + 9)).toMatchObject({ used: 3, window_start_ms });
    const [minute] = await store.ask([taking('m', 10, 1)], 90_000);
    expect(minute!.window_start_ms).toBe(minute!.now_ms - (minute!.now_ms % MINUTE_MS));
    if (engine === 'sqlite') expect(minute!.window_start_ms).toBe(60_000);
    else expect(Math.abs(minute!.now_ms - Date.now())).toBeLessThan(60_000);
  });

  test('are deleted if nothing was counted in them for long', async () => {
    const { queries, store } = await setUp();
    const now = Date.now();
    await store.ask([taking('old', 10, 1), taking('new', 10, 1)], now);
    await queries
      .updateTable('rate_windows')
      .set({ counted_at: now - 2 * DAY_MS - 1 })
      .where('id', '=', 'old')
      .execute();
    await store.sweep(now);
    expect(await queries.selectFrom('rate_windows').select('id').execute()).toEqual([{ id: 'new' }]);
  });

  test('give the same answers as their model for random requests', async () => {
    const { store } = await setUp();
    const model = createRateModel();
    const random = new Random(7);
    let at = 10 * DAY_MS;
    let backStartMs = 0;
    for (let step = 0; step < 200; step += 1) {
      if (engine === 'sqlite' && random.chance(0.05))
        at += random.whole(-2_000, 40_000) - (random.chance(0.1) ? 200_000 : 0);
      const requests = ['a', 'b', 'c'].slice(0, random.whole(1, 3)).map((id) => {
        const need = random.whole(0, 5);
        const waiting = need + random.whole(0, 20);
        const owed = random.chance(0.2) ? random.whole(0, 30) : 0;
        const back = random.chance(0.3) ? random.whole(0, 3) : 0;
        const spanMs = engine === 'sqlite' ? MINUTE_MS : DAY_MS;
        return {
          id,
          span_ms: spanMs,
          amount: 400,
          need,
          waiting,
          want: random.whole(0, 90),
          owed,
          back,
          back_start_ms: backStartMs,
        };
      });
      const answers = await store.ask(requests, at);
      const byId = (a: RateAnswer, b: RateAnswer) => (a.id < b.id ? -1 : 1);
      const now = answers[0]!.now_ms;
      const shown = answers.map((answer) => ({ ...answer, now_ms: now })).sort(byId);
      expect(shown).toEqual(model.ask(requests, now).sort(byId));
      backStartMs = random.chance(0.8) ? shown[0]!.window_start_ms : 0;
    }
  });

  test('never exceed a limit for concurrent requests, and block none of them', async () => {
    const url = await freshUrl();
    const one = await (url === undefined ? open() : openDatabase({ database_url: url }));
    const other = url === undefined ? one : await openDatabase({ database_url: url });
    try {
      const ids = ['a', 'b', 'c', 'd'];
      const grantedById = new Map(ids.map((id) => [id, 0]));
      const random = new Random(11);
      await Promise.all(
        [one, other, one, other].map(async ({ queries }) => {
          const store = rateWindowStore(queries, engine);
          for (let step = 0; step < 60; step += 1) {
            const chosen = [...ids].sort(() => random.next() - 0.5).slice(0, random.whole(1, 4));
            const requests = chosen.map((id) => ({ ...taking(id, 500, random.whole(1, 4), 60), span_ms: DAY_MS }));
            for (const { id, granted } of await store.ask(requests, 5))
              grantedById.set(id, grantedById.get(id)! + granted);
            if (random.chance(0.1)) await sleep(random.whole(0, 3));
          }
        }),
      );
      expect([...grantedById.values()].map((amount) => amount > 500)).toEqual([false, false, false, false]);
      // The remainder was too small for the last request.
      expect([...grantedById.values()].every((amount) => amount > 496)).toBe(true);
    } finally {
      if (url !== undefined) await Promise.all([one.close(), other.close()]);
    }
  });
});
