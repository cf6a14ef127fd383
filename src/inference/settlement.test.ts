import { expect, test } from 'vitest';
import { generation } from '../../test/generation-fixture.ts';
import { budgetOf, recorders } from '../../test/recorder-fixture.ts';
import { describeStores } from '../../test/store-variants.ts';
import { ledgerStore } from '../storage/ledger.ts';
import { createMetrics } from '../telemetry/metrics.ts';
import { type Answered, createSettlement, type Session } from './settlement.ts';

describeStores('the settlement of a call', ({ open }) => {
  const { start } = recorders(open);

  test.each(['note', 'settle'] as const)(
    'a fault of ours in `%s` charges what was set aside, and leaves no hold',
    async (step) => {
      const database = await open();
      const budget = await budgetOf(database, 1_000_000);
      const recorder = await start(ledgerStore(database.queries, database.engine));
      const asked = { id: 'g', budgets: [budget], is_byok: false, full_nano: 7_000, least_nano: 7_000 };
      const hold = await recorder.reserve(asked);
      const record = generation({ id: 'g', outcome: 'unknown', attempts: [], cost_nano: 0 });
      await recorder.attempt({ id: 'g', attempt: 1, endpoint: 'e', record, hold });
      const settlement = createSettlement({
        recorder,
        clock: { now_ms: Date.now, monotonic_ms: () => performance.now() },
        metrics: createMetrics(),
        log: { warn() {} },
        rules: {} as never,
        traffic: { answered() {}, failed() {} },
      });
      const fault = () => {
        throw new Error('a fault of ours');
      };
      const candidate = { endpoint: { id: 'e' }, model: {}, provider: { name: 'p', slug: 'p' } };
      const session = { hold, record, call: {}, attempts: [], shown: [], sent_ms: 0, plan: { attempts: [] } };
      if (step === 'note') {
        Object.defineProperty(candidate, 'own', { get: fault });
        const end = { status: null, failure: 'internal', is_unknown: true };
        expect(() => settlement.note(session as never as Session, candidate as never, end)).toThrow('a fault of ours');
      } else {
        const answered = { meter: { usage: fault }, candidate, prepared: {}, attempt: {} };
        const settling = settlement.settle(session as never as Session, 'completed', answered as never as Answered);
        await expect(settling).rejects.toThrow('a fault of ours');
      }
      await recorder.flush();
      expect(recorder.state()).toMatchObject({ held_nano: 0, unflushed: 0 });
      const [stored] = await database.queries.selectFrom('ledger_generations').select(['outcome', 'cost']).execute();
      expect(stored).toEqual({ outcome: 'unknown', cost: 7_000 });
    },
  );
});
