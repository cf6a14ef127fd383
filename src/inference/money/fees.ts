import { GatewayError } from '../../errors.ts';
import type { Recorder } from '../../ledger/recorder.ts';
import { CallCancelled } from '../attempt/upstream-call.ts';
import type { CallState } from '../state.ts';
import type { FeeOutcome, Fees } from '../tools/server-tools.ts';
import type { SpendingRules } from './admission.ts';
import { openRecord } from './generation.ts';

/** The name of one piece of work on the bill, and its cost at most. */
export interface Fee {
  name: string;
  cost_nano_max: number;
}

/** The endpoint of paid work in the journal: none was called. */
const NO_ENDPOINT = 'gateway';

const PICO_PER_NANO = 1000;

/**
 * Pays for several pieces of work of a call that is not done by its model: holds their most cost, makes the hold durable, runs the
 * work and charges its cost. A crash during the work charges the whole hold. Free work only leaves its counts. Rejects with the
 * ledger's 402 or 503 before anything was run, or with the error of `run`; then nothing is charged, unless the client has left: that
 * charges the whole hold.
 */
export type Pay = <T>(
  state: CallState,
  fees: readonly Fee[],
  run: () => Promise<readonly FeeOutcome<T>[]>,
) => Promise<readonly T[]>;

export function createPay({
  recorder,
  rules,
}: {
  recorder: Pick<Recorder, 'reserve' | 'attempt' | 'keep'>;
  rules: Pick<SpendingRules, 'budgets'>;
}): Pay {
  async function setAside(state: CallState, mostNano: number): Promise<void> {
    const { call, plan } = state;
    const { budgets, budget_mode } = call.principal;
    const candidate = plan.attempts[0];
    if (candidate === undefined) throw new Error('a call without an endpoint has nothing to pay for');
    if (budgets.length > 0) {
      const mode = budget_mode ?? rules.budgets;
      const { generation_id: id, accepted_ms: at, store_wait } = call;
      const ask = { id, at, budgets, is_byok: false, mode, store_wait };
      state.hold = await recorder.reserve({ ...ask, full_nano: mostNano, least_nano: mostNano }, state.hold);
    }
    // Kept in the state: paid work is settled even if no attempt follows.
    const { attempts, fees } = state;
    const record = state.record ?? openRecord(call, candidate, state);
    await recorder.attempt({
      id: call.generation_id,
      attempt: attempts.length + fees.length + 1,
      endpoint: NO_ENDPOINT,
      record: {
        ...record,
        attempts: attempts.map((one) => one.record!),
        ...(fees.length === 0 ? {} : { fees }),
        is_byok: false,
      },
      hold: state.hold,
      least: budgets.length > 0 ? undefined : { usage: {}, cost_nano: mostNano },
    });
    state.record = record;
  }

  function charge(
    state: CallState,
    fees: readonly Fee[],
    outcomes: readonly Omit<FeeOutcome<unknown>, 'value'>[],
  ): void {
    for (const [at, { cost_nano, counts }] of outcomes.entries()) {
      const { name, cost_nano_max } = fees[at]!;
      const chargedNano = Math.min(cost_nano, cost_nano_max);
      if (chargedNano > 0) recorder.keep(state.hold, chargedNano, false);
      const isCounted = counts !== undefined && Object.keys(counts).length > 0;
      if (chargedNano === 0 && !isCounted) continue;
      const line = { class: name, units: 1, unit_price_pico: chargedNano * PICO_PER_NANO };
      state.fees.push({
        name,
        cost_nano: chargedNano,
        charges: chargedNano === 0 ? [] : [line],
        ...(isCounted ? { counts } : {}),
      });
    }
  }

  return async (state, fees, run) => {
    const mostNano = fees.reduce((sum, { cost_nano_max }) => sum + cost_nano_max, 0);
    if (mostNano > 0) await setAside(state, mostNano);
    const outcomes = await run().catch((error: unknown) => {
      // Work that was begun for a client that left may be billed.
      if (error instanceof CallCancelled) {
        charge(
          state,
          fees,
          fees.map(({ cost_nano_max }) => ({ cost_nano: cost_nano_max })),
        );
      }
      throw error;
    });
    charge(state, fees, outcomes);
    return outcomes.map(({ value }) => value);
  };
}

/** Pays for the work of adapters. */
export function feesOf(state: CallState, pay: Pay): Fees {
  return {
    async spend(fee, run) {
      // A hedge that needs paid work is not sent: the hold belongs to the running attempt.
      if (state.current?.isSent === true)
        throw new GatewayError(503, 'The limit does not cover this fee while an attempt is running');
      const [value] = await pay(state, [fee], async () => [await run()]);
      return value!;
    },
  };
}
