import { expect, test } from 'vitest';
import { describeStores } from '../../test/ledger/store-variants.ts';
import { limits } from '../limits.ts';
import { endpointStatisticsStore, type StatisticsRow } from './endpoint-statistics.ts';

const row = (over: Partial<StatisticsRow> = {}): StatisticsRow => ({
  endpoint_id: 'a/b@c',
  span: 1,
  start: 29_000_000,
  successes: 3,
  errors: 1,
  rate_limited: 2,
  tool_calls: 5,
  tool_calls_valid: 4,
  sketches: '{"latency":"5k.1"}',
  ...over,
});

describeStores('statistics of endpoints', ({ engine, open }) => {
  const at = Date.now();
  const opened = async () => {
    const { queries } = await open();
    return { queries, store: endpointStatisticsStore(queries, engine) };
  };

  test('are read by other runs as written', async () => {
    const { store } = await opened();
    await store.save('mine', [row(), row({ span: 15, sketches: '' })], at);
    expect(await store.findOthers('other', 0, undefined, 10)).toEqual([
      { ...row(), run: 'mine' },
      { ...row({ span: 15, sketches: '' }), run: 'mine' },
    ]);
    expect(await store.findOthers('mine', 0, undefined, 10)).toEqual([]);
  });

  test('are replaced by later counts of the same run', async () => {
    const { store } = await opened();
    await store.save('mine', [row()], at);
    await store.save('mine', [row({ successes: 7, sketches: '' })], at);
    await store.save('yours', [row()], at);
    const rows = await store.findOthers('other', 0, undefined, 10);
    expect(rows).toEqual([
      { ...row({ successes: 7, sketches: '' }), run: 'mine' },
      { ...row(), run: 'yours' },
    ]);
  });

  test('are listed in pages, each row once', async () => {
    const { store } = await opened();
    const rows = Array.from({ length: 450 }, (_, n) =>
      row({ endpoint_id: `e${n % 7}`, start: n, span: n % 2 ? 1 : 15 }),
    );
    await store.save('mine', rows, at);
    const listed: string[] = [];
    for (let after: readonly [string, number, number, string] | undefined; ; ) {
      const page = await store.findOthers('other', 0, after, 100);
      listed.push(...page.map(({ endpoint_id, span, start }) => `${endpoint_id} ${span} ${start}`));
      const last = page.at(-1);
      if (last === undefined) break;
      after = [last.endpoint_id, last.span, last.start, last.run];
    }
    expect(listed).toHaveLength(450);
    expect(new Set(listed).size).toBe(450);
  });

  test('are selected by their write time, by the store’s clock', async () => {
    const { queries, store } = await opened();
    await store.save('mine', [row({ endpoint_id: 'old' }), row({ endpoint_id: 'new' })], at);
    const now = await store.now(at);
    if (engine === 'postgres') expect(Math.abs((await store.now(5)) - Date.now())).toBeLessThan(60_000);
    else expect(await store.now(5)).toBe(5);
    await queries
      .updateTable('endpoint_statistics')
      .set({ written_at: now - 60_000 })
      .where('endpoint_id', '=', 'old')
      .execute();
    const rows = await store.findOthers('other', now - 30_000, undefined, 10);
    expect(rows.map(({ endpoint_id }) => endpoint_id)).toEqual(['new']);
  });

  test('are deleted by age, minutes sooner than quarter hours, and the oldest above a number', async () => {
    const { queries, store } = await opened();
    const ages: [string, number, number][] = [
      ['minute', 1, 0],
      ['old minute', 1, limits.statistics_minutes_keep_ms + 1_000],
      ['quarter', 15, 0],
      ['older quarter', 15, limits.statistics_minutes_keep_ms + 1_000],
      ['old quarter', 15, limits.statistics_quarters_keep_ms + 1_000],
    ];
    await store.save(
      'mine',
      ages.map(([endpointId, span]) => row({ endpoint_id: endpointId, span })),
      at,
    );
    const now = await store.now(at);
    for (const [endpointId, , age] of ages) {
      await queries
        .updateTable('endpoint_statistics')
        .set({ written_at: now - age })
        .where('endpoint_id', '=', endpointId)
        .execute();
    }
    const left = async () => (await store.findOthers('', 0, undefined, 10)).map(({ endpoint_id }) => endpoint_id);
    await store.sweep(at, { minutes: 100, quarters: 100 });
    expect(await left()).toEqual(['minute', 'older quarter', 'quarter']);
    await store.sweep(at, { minutes: 1, quarters: 1 });
    expect(await left()).toEqual(['minute', 'quarter']);
    await store.sweep(at, { minutes: 0, quarters: 1 });
    expect(await left()).toEqual(['quarter']);
  });
});
