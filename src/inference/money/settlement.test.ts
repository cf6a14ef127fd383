import { expect, test } from 'vitest';
import { generation } from '../../../test/generation-fixture.ts';
import { budgetOf, recorders } from '../../../test/ledger/recorder-fixture.ts';
import { describeStores } from '../../../test/ledger/store-variants.ts';
import type { Recorder } from '../../ledger/recorder.ts';
import type { FeeRecord } from '../../ledger/records.ts';
import type { Candidate } from '../../routing/plan.ts';
import type { TokenClasses } from '../../schemas/inner.ts';
import { ledgerStore } from '../../storage/ledger.ts';
import { createMetrics } from '../../telemetry/metrics.ts';
import { Attempt, type CallState } from '../state.ts';
import { createSettlement } from './settlement.ts';

const settlementOf = (recorder: Recorder) =>
  createSettlement({
    recorder,
    clock: { nowMs: Date.now, monotonicMs: () => performance.now() },
    metrics: createMetrics(),
    log: { warn() {} },
    rules: {} as never,
    traffic: { answered() {}, failed() {} },
    usual: { note() {} },
  });

describeStores('the settlement of a call', ({ open }) => {
  const { start } = recorders(open);

  test.each(['note', 'settle'] as const)(
    'an internal error in `%s` charges the reserved amount and leaves no hold',
    async (step) => {
      const database = await open();
      const budget = await budgetOf(database, 1_000_000);
      const recorder = await start(ledgerStore(database.queries, database.engine));
      const request = { id: 'g', budgets: [budget], is_byok: false, full_nano: 7_000, least_nano: 7_000 };
      const hold = await recorder.reserve(request);
      const record = generation({ id: 'g', outcome: 'unknown', attempts: [], cost_nano: 0 });
      await recorder.attempt({ id: 'g', attempt: 1, endpoint: 'e', record, hold });
      const settlement = settlementOf(recorder);
      const fault = () => {
        throw new Error('a fault of ours');
      };
      const candidate = { endpoint: { id: 'e' }, model: {}, provider: { name: 'p', slug: 'p' } };
      const state = {
        hold,
        record,
        call: { outcome: { isSettled: false, record: undefined } },
        attempts: [],
        parts: [],
        step: 1,
        plan: { attempts: [] },
      } as never as CallState;
      const failing = new Attempt(state.call, candidate as never, state);
      failing.opening = record;
      if (step === 'note') {
        Object.defineProperty(candidate, 'own', { get: fault });
        const end = { status: null, failure: 'internal', is_unknown: true };
        expect(() => settlement.note(state, failing, end)).toThrow('a fault of ours');
      } else {
        failing.prepared = {} as never;
        failing.record = {} as never;
        failing.meter = { usage: fault } as never;
        const settling = settlement.settle(state, 'completed', failing);
        await expect(settling).rejects.toThrow('a fault of ours');
      }
      await recorder.flush();
      expect(recorder.state()).toMatchObject({ held_nano: 0, unflushed: 0 });
      const [stored] = await database.queries.selectFrom('ledger_generations').select(['outcome', 'cost']).execute();
      expect(stored).toEqual({ outcome: 'unknown', cost: 7_000 });
    },
  );

  /** The usage that a client sees of one answer at an endpoint with these prices and these fees. */
  async function settledUsage(
    pricing: object,
    facts: { own?: object; fees?: FeeRecord[]; usage: TokenClasses | null },
  ) {
    const { own, fees = [], usage } = facts;
    const database = await open();
    const recorder = await start(ledgerStore(database.queries, database.engine));
    const settlement = settlementOf(recorder);
    const endpoint = { id: 'e', model: 'm', tag: 'p', provider: 'p', pricing };
    const candidate = { endpoint, model: { id: 'm' }, provider: { name: 'p', slug: 'p' }, own } as never as Candidate;
    const hold = { id: 'g', lines: [], granted_nano: 0 };
    const record = generation({ id: 'g', outcome: 'unknown', attempts: [], cost_nano: 0 });
    const call = {
      request: { messages: [] },
      cancellation: { cancelled: false },
      stages: [],
      outcome: { isSettled: false, record: undefined },
      accepted_monotonic_ms: 0,
    };
    const plan = { strategy: 'direct', attempts: [candidate], candidates: [candidate] };
    const reservation = { acquire: () => undefined, commit() {}, commitInFull() {}, release() {} };
    const lists = { attempts: [], parts: [], fees };
    const state = {
      call,
      plan,
      reservation,
      hold,
      ...lists,
      step: 1,
    } as never as CallState;
    const attempt = new Attempt(state.call, candidate, state);
    attempt.opening = record;
    attempt.prepared = {} as never;
    attempt.meter = { usage: () => usage, finish_reason: 'stop', service_tier: null } as never;
    settlement.note(state, attempt, { status: 200, failure: null });
    return settlement.settle(state, 'completed', attempt);
  }

  const own = { id: 'o', label: 'l' };
  const fee = { name: 'search', cost_nano: 5_000, charges: [], counts: { web_search: 2 } };

  test('fees are added to the usage of the answer', async () => {
    const usage = await settledUsage(
      { prompt: 1_000, completion: 1_000 },
      { usage: { in_uncached: 3, out_text: 2 }, fees: [fee] },
    );
    expect(usage).toMatchObject({ total_tokens: 5, server_tool_use: { web_search_requests: 2 }, cost: 5.005e-6 });
  });

  test('an unknown cost is left out; at an own account the cost for the client is zero', async () => {
    const usage = { in_uncached: 3, out_text: 2 };
    expect(Object.keys(await settledUsage({ prompt: 1_000 }, { usage }))).not.toContain('cost');
    const theirs = await settledUsage({ prompt: 1_000 }, { usage, own });
    expect(theirs).toMatchObject({ cost: 0, is_byok: true });
    expect(theirs).not.toHaveProperty('cost_details');
  });

  test('an answer without usage costs nothing but its fees', async () => {
    expect(await settledUsage({ prompt: 1_000, completion: 1_000 }, { usage: null })).toMatchObject({
      total_tokens: 0,
      cost: 0,
    });
    const withFee = await settledUsage({ prompt: 1_000, completion: 1_000 }, { usage: null, fees: [fee] });
    expect(withFee).toMatchObject({ total_tokens: 0, cost: 5e-6, server_tool_use: { web_search_requests: 2 } });
  });
});
