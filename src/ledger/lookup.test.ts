import { expect, test } from 'vitest';
import { generation } from '../../test/generation-fixture.ts';
import { budgetOf, recorders } from '../../test/ledger/recorder-fixture.ts';
import { describeStores } from '../../test/ledger/store-variants.ts';
import { windowSums } from '../../test/ledger/window-sums.ts';
import type { Database } from '../storage/database.ts';
import { ledgerStore } from '../storage/ledger.ts';
import { recordOf } from './journal/record-values.ts';
import type { FoundAttempt, Lookup, LostAttempt } from './lookup.ts';

const reported = (costNano: number): FoundAttempt => ({
  usage: { in_uncached: 1, out_text: 2 },
  cost_nano: costNano,
  charges: [{ class: 'request', units: 1, unit_price_pico: costNano * 1_000 }],
  upstream_id: 'up-1',
});

describeStores('attempts whose gateway was killed', ({ open }) => {
  const { asKilled, freshDir, start } = recorders(open);

  /** The charge and the record of one generation whose gateway was killed in its second attempt. */
  async function killed(database: Database, lookup: Lookup) {
    const budget = await budgetOf(database, 1_000_000);
    const [store, dataDir] = [ledgerStore(database.queries, database.engine), freshDir()];
    const node = await start(store, dataDir);
    const ask = { id: 'gen-1', budgets: [budget], is_byok: false, full_nano: 7_000, least_nano: 7_000 };
    const hold = await node.reserve(ask);
    const unended = generation({ id: 'gen-1', outcome: 'unknown', attempts: [], cost_nano: 0, usage: null });
    await node.attempt({ id: 'gen-1', attempt: 1, endpoint: 'e1', record: unended, hold });
    node.keep(hold, 2_000, false);
    await node.reserve(ask, hold);
    const failed = { ...generation({ id: 'gen-1' }).attempts[0]!, cost_nano: 2_000, failure: 'timeout' };
    const record = { ...unended, attempts: [failed] };
    await node.attempt({ id: 'gen-1', attempt: 2, endpoint: 'e2', record, hold });
    const next = await start(store, asKilled(dataDir), { lookup });
    const early = next.find('gen-1');
    await next.flush();
    const windows = await windowSums(database.queries).execute();
    const [row] = await database.queries.selectFrom('ledger_generations').select('record').execute();
    const stored = recordOf(row?.record ?? '');
    expect(early).toEqual(stored);
    return { spent: windows.map(({ spent }) => spent), stored };
  }

  test('cost the amount that the provider reports, plus the possible cost of earlier attempts', async () => {
    const lookedUp: LostAttempt[] = [];
    const { spent, stored } = await killed(await open(), async (attempt) => {
      lookedUp.push(attempt);
      return reported(500);
    });
    expect(lookedUp).toMatchObject([{ id: 'gen-1', number: 2, endpoint: 'e2', is_byok: false }]);
    expect(spent).toEqual([2_500]);
    expect(stored).toMatchObject({
      outcome: 'failed',
      cost_nano: 2_500,
      usage: { in_uncached: 1, out_text: 2 },
      upstream_id: 'up-1',
      attempts: [{ failure: 'timeout' }, { endpoint_id: 'e2', failure: 'gateway_gone', cost_nano: 500 }],
    });
    expect(stored.usage?.estimated).toBeUndefined();
  });

  test('cost nothing more if the provider did not receive them', async () => {
    const nothing = { usage: null, cost_nano: 0, charges: [], upstream_id: null };
    const { spent, stored } = await killed(await open(), async () => nothing);
    expect(spent).toEqual([2_000]);
    expect(stored).toMatchObject({ outcome: 'failed', cost_nano: 2_000, usage: null });
  });

  test.each([Number.NaN, 0.5, -1, 1e300])(
    'are charged their hold if the provider reports a cost of %d',
    async (costNano) => {
      const { spent, stored } = await killed(await open(), async () => ({ ...reported(0), cost_nano: costNano }));
      expect(spent).toEqual([9_000]);
      expect(stored).toMatchObject({ outcome: 'unknown', cost_nano: 9_000 });
    },
  );

  test.each<[string, Lookup]>([
    ['has no result', async () => undefined],
    ['cannot be queried', () => Promise.reject(new Error('refused'))],
    ['does not answer', () => new Promise(() => {})],
  ])('are charged their hold if the provider %s', async (_, lookup) => {
    const { spent, stored } = await killed(await open(), lookup);
    expect(spent).toEqual([9_000]);
    expect(stored).toMatchObject({ outcome: 'unknown', cost_nano: 9_000, usage: { estimated: true } });
  });
});
