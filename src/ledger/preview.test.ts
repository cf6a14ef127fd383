import { expect, test } from 'vitest';
import { generation } from '../../test/generation-fixture.ts';
import { budgetOf, down, recorders } from '../../test/ledger/recorder-fixture.ts';
import { describeStores } from '../../test/ledger/store-variants.ts';
import { limits } from '../limits.ts';
import type { Budget } from '../schemas/budget.ts';
import { ledgerStore } from '../storage/ledger.ts';
import type { Hold, HoldRequest } from './leases/hold.ts';
import { realClock } from './ledger-clock.ts';

let ordinal = 0;
function ask(budgets: Budget[], fullNano: number, over: Partial<HoldRequest> = {}): HoldRequest {
  ordinal += 1;
  return { id: `gen-${ordinal}`, budgets, is_byok: false, full_nano: fullNano, least_nano: fullNano, ...over };
}

/** A small, seeded random source. */
function chance(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

describeStores('the preview of a reservation', ({ open }) => {
  const { freshDir, start } = recorders(open);

  test('grants what reserve would grant, whatever was reserved and spent before, and refuses with its message', {
    timeout: 180_000,
  }, async () => {
    const database = await open();
    // A refusal is remembered for a moment, also if money was returned since: time passes here after each.
    let passedMs = 0;
    const clock = realClock(() => Date.now() + passedMs);
    const node = await start(ledgerStore(database.queries, database.engine), freshDir(), {
      journal_sync: 'os',
      clock: { ...clock, monotonic: () => clock.monotonic() + passedMs },
    });
    const budgets = [
      await budgetOf(database, 100_000),
      await budgetOf(database, 60_000, { id: 'workspace:w:daily', scope: 'workspace', reset_interval: 'daily' }),
      await budgetOf(database, 40_000, { id: 'organization:o:never', scope: 'organization', include_byok: true }),
    ];
    const below = chance(7);
    const held: Hold[] = [];
    const seen = { full: 0, less: 0, refused: 0 };
    for (let round = 0; round < 400; round += 1) {
      const fullNano = 1 + below(9_000);
      const wanted = ask(
        budgets.filter(() => below(3) > 0),
        fullNano,
        { least_nano: 1 + below(fullNano), is_byok: below(4) === 0 },
      );
      await node.flush();
      const { held_nano } = node.state();
      const preview = await node.preview(wanted);
      expect(node.state()).toMatchObject({ held_nano, waiting: 0 });
      try {
        const hold = await node.reserve(wanted);
        expect(preview).toMatchObject({ refusal: undefined, granted_nano: hold.granted_nano });
        expect(preview.lines.map(({ budget }) => budget.id)).toEqual(hold.lines.map(({ budget }) => budget.id));
        seen[hold.granted_nano === fullNano ? 'full' : 'less'] += 1;
        held.push(hold);
      } catch (error) {
        expect(error).toMatchObject({ status: 402 });
        expect(preview.refusal?.message).toBe((error as Error).message);
        expect(preview.refusal?.metadata).toEqual((error as { metadata?: unknown }).metadata);
        seen.refused += 1;
        passedMs += limits.refusal_ms;
      }
      while (held.length > below(12)) {
        const hold = held.splice(below(held.length), 1)[0]!;
        if (below(3) > 0) {
          node.release(hold);
          continue;
        }
        const costNano = below(hold.granted_nano / 8);
        const record = generation({ id: hold.id, cost_nano: costNano, byok_cost_nano: 0 });
        await node.attempt({ id: hold.id, attempt: 1, endpoint: 'e', record, hold });
        await node.outcome(record, hold);
      }
    }
    expect(Object.values(seen).every((count) => count > 10)).toBe(true);
  });

  test('reports the amount left in each budget, and what other nodes hold', async () => {
    const database = await open();
    const store = ledgerStore(database.queries, database.engine);
    const [one, two] = [await start(store, freshDir()), await start(store, freshDir())];
    const budget = await budgetOf(database, 10_000);
    const hold = await one.reserve(ask([budget], 9_000));
    const preview = await two.preview(ask([budget], 2_000));
    expect(preview.lines).toMatchObject([{ spent_nano: 0, resets_at: undefined }]);
    expect(preview.lines[0]?.available_nano).toBeLessThanOrEqual(1_000);
    expect(preview.refusal).toMatchObject({ status: 402, metadata: { in_flight: true } });
    one.release(hold);
  });

  test('is a 503 if the store does not answer, and sends no query if no budget applies', async () => {
    const database = await open();
    const store = ledgerStore(database.queries, database.engine);
    const node = await start({ ...store, look: down }, freshDir());
    const budget = await budgetOf(database, 10_000);
    await expect(node.preview(ask([budget], 1))).rejects.toMatchObject({ status: 503 });
    expect(await node.preview(ask([budget], 1, { is_byok: true }))).toEqual({
      granted_nano: 1,
      lines: [],
      refusal: undefined,
    });
  });
});
