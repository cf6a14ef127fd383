import { expect, test } from 'vitest';
import { describeStores } from '../../test/ledger/store-variants.ts';
import { endpointProbeStore } from './endpoint-probes.ts';

const EVERY = 60_000;

describeStores('the probe of an endpoint', ({ engine, open }) => {
  test('is granted to one of several claimants, once per interval', async () => {
    const store = endpointProbeStore((await open()).queries, engine);
    const at = Date.now();
    const claims = await Promise.all(Array.from({ length: 8 }, () => store.claim('e', EVERY, at)));
    expect(claims.filter((claimed) => claimed)).toHaveLength(1);
    expect(await store.claim('e', EVERY, at)).toBe(false);
    expect(await store.claim('other', EVERY, at)).toBe(true);
  });

  test('is granted again after a clock that was days ahead is corrected', async () => {
    const { queries } = await open();
    const store = endpointProbeStore(queries, engine);
    await queries
      .insertInto('endpoint_probes')
      .values({ endpoint_id: 'e', probed_at: Date.now() + 86_400_000 })
      .execute();
    expect(await store.claim('e', EVERY, Date.now())).toBe(true);
    expect(await store.claim('e', EVERY, Date.now())).toBe(false);
  });
});
