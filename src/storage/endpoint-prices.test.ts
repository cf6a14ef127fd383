import { expect, test } from 'vitest';
import { describeStores } from '../../test/ledger/store-variants.ts';
import { endpointPriceStore, PRICES_OF_ENDPOINT_MAX } from './endpoint-prices.ts';

const row = (endpointId: string, seq: number, fromMs: number) => ({
  endpoint_id: endpointId,
  seq,
  from_ms: fromMs,
  prices: `{"pricing":{"prompt":${seq}}}`,
});

describeStores('prices of endpoints', ({ open }) => {
  test('pages contain each row of the listed endpoints once, newest first, with the previous row and the end', async () => {
    const store = endpointPriceStore((await open()).queries);
    await store.add([row('a', 1, 10), row('a', 2, 30), row('b', 1, 30), row('b', 2, 30), row('c', 1, 40)]);
    const listed = [];
    for (let after: { from_ms: number; endpoint_id: string; seq: number } | undefined; ; ) {
      const [one] = await store.list(['a', 'b'], { limit: 1, after });
      if (one === undefined) break;
      listed.push([one.endpoint_id, one.seq, one.from_ms, one.until_ms, one.prices_before !== null]);
      after = one;
    }
    expect(listed).toEqual([
      ['b', 2, 30, null, true],
      ['b', 1, 30, 30, false],
      ['a', 2, 30, null, true],
      ['a', 1, 10, 30, false],
    ]);
    expect(await store.list([], { limit: 10 })).toEqual([]);
  });

  test('a row with a used number is skipped, the last row of each endpoint is found, and old rows are deleted', async () => {
    const store = endpointPriceStore((await open()).queries);
    expect(await store.add([row('a', 1, 10), row('b', 1, 10)])).toBe(2);
    expect(await store.add([row('a', 1, 99), row('a', 2, 20)])).toBe(1);
    expect(await store.findLast(['a', 'b', 'none'])).toEqual(
      expect.arrayContaining([row('a', 2, 20), row('b', 1, 10)]),
    );
    for (let seq = 3; seq <= PRICES_OF_ENDPOINT_MAX + 5; seq += 1) await store.add([row('a', seq, seq)]);
    const kept = await store.list(['a'], { limit: 2 * PRICES_OF_ENDPOINT_MAX });
    expect(kept).toHaveLength(PRICES_OF_ENDPOINT_MAX);
    expect(kept[0]?.seq).toBe(PRICES_OF_ENDPOINT_MAX + 5);
    expect(await store.list(['b'], { limit: 10 })).toHaveLength(1);
  });
});
