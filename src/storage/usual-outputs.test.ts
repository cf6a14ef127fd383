import { expect, test } from 'vitest';
import { generation } from '../../test/generation-fixture.ts';
import { registerNode } from '../../test/ledger/registered-node.ts';
import { describeStores } from '../../test/ledger/store-variants.ts';
import type { GenerationRecord } from '../ledger/records.ts';
import { toSettle } from '../ledger/settle.ts';
import { limits } from '../limits.ts';
import { ledgerStore } from './ledger.ts';
import { usualOutputs } from './usual-outputs.ts';

const NOW = Date.parse('2026-11-23T10:00:00.000Z');
const DAY_MS = 86_400_000;

describeStores('the usual length of answers', ({ open }) => {
  test('is summed over completed answers of the last days by model and provider, up to a bound of rows', async () => {
    const { queries, engine } = await open();
    const store = ledgerStore(queries, engine);
    const { epoch } = await registerNode(store, 'one', { at: NOW });
    let ordinal = 0;
    const answered = (tokens: number, over: Partial<GenerationRecord> = {}, daysAgo = 0) => {
      ordinal += 1;
      const createdAt = new Date(NOW - daysAgo * DAY_MS).toISOString();
      return toSettle(
        generation({ id: `g${ordinal}`, created_at: createdAt, usage: { out_text: tokens }, ...over }),
        [],
      );
    };
    const settles = [
      answered(100, { model: 'a/m', provider_name: 'P' }),
      answered(300, { model: 'a/m', provider_name: 'P' }, limits.usual_output_days - 1),
      answered(9_000, { model: 'a/m', provider_name: 'P' }, limits.usual_output_days),
      answered(1, { model: 'a/m', provider_name: 'P', outcome: 'cancelled' }),
      answered(7, { model: 'a/m', provider_name: 'Q' }),
    ];
    await store.settle({ node: 'one', epoch, number: 1, at: NOW, settles, windows: [], divisor: 2 });
    const sums = await usualOutputs(queries, NOW);
    expect(sums.sort((a, b) => (a.provider_name < b.provider_name ? -1 : 1))).toEqual([
      { model: 'a/m', provider_name: 'P', answers: 2, output_tokens: 400 },
      { model: 'a/m', provider_name: 'Q', answers: 1, output_tokens: 7 },
    ]);
  });
});
