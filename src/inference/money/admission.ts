import { setTimeout as sleep } from 'node:timers/promises';
import { GatewayError } from '../../errors.ts';
import type { Hold, HoldRequest } from '../../ledger/leases/hold.ts';
import type { Recorder } from '../../ledger/recorder.ts';
import { limits } from '../../limits.ts';
import type { Report } from '../../providers/dialect.ts';
import type { Candidate } from '../../routing/plan.ts';
import type { BudgetMode } from '../../schemas/budget.ts';
import { choicesOf } from '../../schemas/by-choice.ts';
import type { ChatRequest } from '../../schemas/inner.ts';
import { toNano } from '../../schemas/money.ts';
import type { SpendBound } from '../attempt/prepare-attempt.ts';
import type { Call } from '../call.ts';
import type { Meter } from './meter.ts';
import { costOf, outputFor, type WorstCaseCost } from './worst-case.ts';

/** The output tokens that a sliced hold pays for at a time. */
const HOLD_SLICE_TOKENS = 1_024;
/** The least output tokens of a slice, if there is little money. */
const HOLD_SLICE_TOKENS_MIN = 32;
/** By the gateway's estimate, an answer may pass its bound by these tokens and this factor before it is cut. */
const OVERRUN_TOKENS_MAX = 256;
const OVERRUN_FACTOR_MAX = 2;

/** The operator’s rules for calls with limits (`ledger` in gateway.yaml). */
export interface SpendingRules {
  budgets: BudgetMode;
  hold: 'full' | 'sliced';
  unknown_outcome: 'hold' | 'metered';
  /** Undefined if the bound is the model's maximum, as far as a share of the remaining limit pays for it. */
  default_output_tokens: number | undefined;
  min_output_tokens: number;
}

/** The terms on which one attempt was admitted. */
export interface Grant {
  exposure: WorstCaseCost;
  /** The output bound that was sent. */
  output_tokens: number;
  /** The output that the hold pays for: less than the bound only if the hold is taken in slices. */
  paid_tokens: number;
  /** The number of answers, each within the bound. */
  choices: number;
  mode: BudgetMode;
}

/** The members that every prepared attempt has, chat or not. */
export interface Prepared {
  candidate: Candidate;
  /** As it is sent to the endpoint. */
  request: ChatRequest;
  /** The output bound that is sent; undefined if there is none; 0 if the exposure covers the whole cost without a bound. */
  output_tokens: number | undefined;
  /** The requested service tier, if any. */
  service_tier: string | undefined;
  report: Report[];
  /** Neither the client nor the operator set its output bound: a share of the remaining limit must pay for it. */
  is_default_bound?: true;
  /** The answer is held back on purpose, so that its silence says nothing about the endpoint. */
  holds_back?: boolean;
}

/** What an attempt may cost at most. */
export interface Measured {
  /** An upper bound. */
  exposure: WorstCaseCost;
  /** The lowest result that `count` can have. */
  floor(): WorstCaseCost;
  /** The smallest useful output bound of the request. */
  least_tokens: number;
  /** A tighter upper bound, by counting the prompt's tokens; undefined if they cannot be counted. */
  count(): Promise<WorstCaseCost | undefined>;
}

/** Measures what an attempt with this output bound may cost: an upper bound, or our estimate in soft mode. A promise for long payloads. */
export type Measure<P extends Prepared> = (
  prepared: P,
  outputTokens: number,
  mode: BudgetMode,
) => Measured | Promise<Measured>;

/** An attempt that may be sent. */
export interface Admitted<P extends Prepared> {
  prepared: P;
  hold: Hold;
  /** Undefined if no budget counts the attempt: nothing is held, bounded or cut. */
  grant: Grant | undefined;
}

/** An attempt that is to be admitted. */
interface PendingAttempt<P extends Prepared> {
  call: Call;
  hold: Hold;
  is_byok: boolean;
  /** Encodes the attempt under an output bound; a promise for long requests. */
  prepare(spend?: SpendBound): P | Promise<P>;
  measure: Measure<P>;
}

/** The terms that are requested. */
interface Terms {
  mode: BudgetMode;
  choices: number;
  is_sliced: boolean;
  /** The output bound. */
  output_tokens: number;
  /** The output that the first hold pays for: a slice, or the whole bound. */
  full_tokens: number;
  /** The least output that is worth an attempt. */
  least_tokens: number;
  /** The largest part of the remaining limit that may pay for the output. Undefined if all of it may. */
  share: number | undefined;
}

/** Admits attempts: the only place where inference reserves money for them. */
export interface Admission {
  /**
   * Holds what the attempt of a call with budgets may cost, in every budget that counts it. If the budgets pay for less output than requested, the
   * attempt is prepared again with a lower bound. Rejects with the ledger's 402 or 503.
   */
  admit<P extends Prepared>(attempt: PendingAttempt<P>): Admitted<P> | Promise<Admitted<P>>;
  /**
   * Admits a hedge from money that this node has, without the store; undefined if that does not suffice. Not for an organization's
   * own accounts.
   */
  admitBeside<P extends Prepared>(attempt: Omit<PendingAttempt<P>, 'is_byok'>): Promise<Admitted<P> | undefined>;
  /**
   * Why a stream must end here; undefined while it may go on. Holds the next slice when one is nearly used up; the new slice is
   * durable before it is used.
   */
  cutReason(facts: { hold: Hold; grant: Grant; meter: Meter }): string | undefined | Promise<string | undefined>;
}

/** Whether counting the prompt could turn a refusal into an admission: only if the remaining limit pays for `leastNano`. */
function mayHelp(error: unknown, leastNano: number): boolean {
  if (!(error instanceof GatewayError) || error.status !== 402) return false;
  const leftUsd = error.metadata?.['limit_remaining'];
  return typeof leftUsd !== 'number' || leastNano <= toNano(leftUsd);
}

export function createAdmission({
  recorder,
  rules,
}: {
  recorder: Pick<Recorder, 'reserve' | 'reserveNow' | 'extend'>;
  rules: SpendingRules;
}): Admission {
  /** The request to the ledger. */
  function askOf<P extends Prepared>(pending: PendingAttempt<P>, terms: Terms, exposure: WorstCaseCost): HoldRequest {
    const { generation_id: id, accepted_ms: at, store_wait, principal } = pending.call;
    const { is_byok } = pending;
    const { mode, share } = terms;
    const fullNano = costOf(exposure, terms.full_tokens);
    const leastNano = costOf(exposure, terms.least_tokens);
    const { budgets } = principal;
    const ask = { id, at, budgets, is_byok, mode, full_nano: fullNano, least_nano: leastNano, store_wait };
    return share === undefined ? ask : { ...ask, share: { part: share, fixed_nano: costOf(exposure, 0) } };
  }

  /** The output bound that is paid for: if none is sent, the default of wires that require one. */
  function boundOf({ output_tokens }: Prepared): number {
    return output_tokens ?? rules.default_output_tokens ?? limits.output_tokens_default;
  }

  /** The terms of an attempt. A hedge never gets a lower bound than the client's. */
  function termsOf<P extends Prepared>(
    { call }: Pick<PendingAttempt<P>, 'call'>,
    prepared: P,
    { least_tokens }: Measured,
    mode: BudgetMode,
    isBeside = false,
  ): Terms {
    const outputTokens = boundOf(prepared);
    // A whole answer cannot be cut, so it is held in one piece.
    const isSliced = !isBeside && mode === 'soft' && rules.hold === 'sliced' && call.request.stream === true;
    const fullTokens = isSliced ? Math.min(outputTokens, HOLD_SLICE_TOKENS) : outputTokens;
    const isShared = prepared.is_default_bound === true && !isSliced;
    const isFixed = isBeside && !isShared;
    return {
      mode,
      choices: choicesOf(call.request),
      is_sliced: isSliced,
      output_tokens: outputTokens,
      full_tokens: fullTokens,
      least_tokens: isFixed ? outputTokens : Math.min(fullTokens, Math.max(rules.min_output_tokens, least_tokens)),
      share: isShared ? limits.default_hold_share : undefined,
    };
  }

  /** Measures an encoded attempt and admits it; synchronous if the payload is short and this node has the money. */
  function admitPrepared<P extends Prepared>(
    attempt: PendingAttempt<P>,
    prepared: P,
    known?: Measured,
  ): Admitted<P> | Promise<Admitted<P>> {
    const mode = attempt.call.principal.budget_mode ?? rules.budgets;
    const measured = known ?? attempt.measure(prepared, boundOf(prepared), mode);
    if (measured instanceof Promise) return measured.then((one) => admitPrepared(attempt, prepared, one));
    const terms = termsOf(attempt, prepared, measured, mode);
    const ask = askOf(attempt, terms, measured.exposure);
    let hold: Hold | Promise<Hold>;
    try {
      hold = recorder.reserve(ask, attempt.hold);
    } catch (error) {
      hold = Promise.reject(error);
    }
    if (hold instanceof Promise || hold.granted_nano < ask.full_nano) {
      return admitLess(attempt, terms, { prepared, measured, hold, ask });
    }
    return { prepared, hold, grant: grantOf(terms, measured.exposure, terms.full_tokens) };
  }

  function grantOf({ output_tokens, choices, mode }: Terms, exposure: WorstCaseCost, paidTokens: number): Grant {
    return { exposure, output_tokens, paid_tokens: paidTokens, choices, mode };
  }

  /** Admits an attempt whose money this node does not have: with the store's, a part of it, or a tighter bound of the cost. */
  async function admitLess<P extends Prepared>(
    attempt: PendingAttempt<P>,
    terms: Terms,
    first: { prepared: P; measured: Measured; hold: Hold | Promise<Hold>; ask: HoldRequest },
  ): Promise<Admitted<P>> {
    const { measured } = first;
    const { exposure: upper } = measured;
    let { ask } = first;
    let exposure = upper;
    let hold: Hold;
    const holdCounted = async (): Promise<Hold | undefined> => {
      const counted = await measured.count();
      if (counted === undefined) return undefined;
      exposure = counted;
      ask = askOf(attempt, terms, counted);
      return recorder.reserve(ask, attempt.hold);
    };
    try {
      hold = await first.hold;
    } catch (error) {
      const counted = mayHelp(error, costOf(measured.floor(), terms.least_tokens)) ? await holdCounted() : undefined;
      if (counted === undefined) throw error;
      hold = counted;
    }
    if (exposure === upper && isShort(hold, ask, exposure, terms)) hold = (await holdCounted()) ?? hold;
    return admitHeld(attempt, first.prepared, terms, { hold, ask, exposure });
  }

  /** Admits an attempt with what was granted. If that pays for less and is no slice, the attempt is prepared again with a lower bound. */
  async function admitHeld<P extends Prepared>(
    { prepare }: Pick<PendingAttempt<P>, 'prepare'>,
    prepared: P,
    terms: Terms,
    { hold, ask, exposure }: { hold: Hold; ask: HoldRequest; exposure: WorstCaseCost },
  ): Promise<Admitted<P>> {
    const isFull = hold.granted_nano >= ask.full_nano;
    const paidTokens = isFull ? terms.full_tokens : outputFor(exposure, hold.granted_nano);
    const grant = grantOf(terms, exposure, paidTokens);
    if (isFull || terms.is_sliced) return { prepared, hold, grant };
    const lowered = await prepare({ default_tokens: rules.default_output_tokens, paid_tokens: paidTokens });
    return { prepared: lowered, hold, grant: { ...grant, output_tokens: paidTokens } };
  }

  /** Whether so little was granted that the prompt should be counted. Of a default output bound a part is enough. */
  function isShort(
    { granted_nano }: Hold,
    { full_nano }: HoldRequest,
    exposure: WorstCaseCost,
    { share }: Terms,
  ): boolean {
    if (granted_nano >= full_nano) return false;
    return share === undefined || outputFor(exposure, granted_nano) < limits.output_tokens_default;
  }

  /**
   * Admits an attempt at the organization's own account that no limit counts. The ledger is notified because of the hold of
   * earlier attempts.
   */
  async function admitUncounted<P extends Prepared>({
    call,
    hold,
    is_byok,
    prepare,
  }: PendingAttempt<P>): Promise<Admitted<P>> {
    const prepared = await prepare();
    const { budgets } = call.principal;
    const { generation_id: id, accepted_ms: at, store_wait } = call;
    const ask = { id, at, budgets, is_byok, full_nano: 0, least_nano: 0, store_wait };
    return { prepared, hold: await recorder.reserve(ask, hold), grant: undefined };
  }

  /** Holds the next slice, or as large a part of it as the budgets have. */
  async function tryExtend(hold: Hold, grant: Grant, tokens: number): Promise<boolean> {
    for (let slice = HOLD_SLICE_TOKENS; slice >= HOLD_SLICE_TOKENS_MIN; slice /= 2) {
      const next = Math.min(grant.output_tokens, Math.max(grant.paid_tokens, tokens) + slice);
      if (await recorder.extend(hold, costOf(grant.exposure, next))) {
        grant.paid_tokens = next;
        return true;
      }
    }
    return false;
  }

  /** Extends the hold. Only an answer that has used up its hold waits for more. */
  async function extend(hold: Hold, grant: Grant, tokens: number): Promise<string | undefined> {
    const deadline = performance.now() + limits.recall_wait_ms;
    for (;;) {
      if (await tryExtend(hold, grant, tokens)) return undefined;
      if (tokens < grant.paid_tokens) return undefined;
      if (performance.now() >= deadline) return 'the spend limit pays for no more of the answer';
      await sleep(limits.recall_ask_ms);
    }
  }

  return {
    admit(attempt) {
      const { call, is_byok, prepare } = attempt;
      const { budgets } = call.principal;
      if (is_byok && !budgets.some(({ include_byok }) => include_byok)) return admitUncounted(attempt);
      const prepared = prepare({ default_tokens: rules.default_output_tokens });
      if (prepared instanceof Promise) return prepared.then((one) => admitPrepared(attempt, one));
      return admitPrepared(attempt, prepared);
    },

    async admitBeside(attempt) {
      const { call, hold, prepare, measure } = attempt;
      const { budgets, budget_mode } = call.principal;
      if (budgets.length === 0) return { prepared: await prepare(), hold, grant: undefined };
      const mode = budget_mode ?? rules.budgets;
      const prepared = await prepare({ default_tokens: rules.default_output_tokens });
      const measured = await measure(prepared, boundOf(prepared), mode);
      const terms = termsOf(attempt, prepared, measured, mode, true);
      const { exposure } = measured;
      const { store_wait: _, ...ask } = askOf({ ...attempt, is_byok: false }, terms, exposure);
      return recorder.reserveNow(ask, hold) ? admitHeld(attempt, prepared, terms, { hold, ask, exposure }) : undefined;
    },

    cutReason({ hold, grant, meter }) {
      // All choices have ended.
      if (meter.open_choices.length === 0) return undefined;
      const { output_tokens, paid_tokens, choices } = grant;
      // The mean of all choices: they share one hold.
      const tokens = Math.ceil(meter.outputTokens() / choices);
      if (tokens > output_tokens * OVERRUN_FACTOR_MAX + OVERRUN_TOKENS_MAX) {
        return `the provider exceeded the output bound of ${output_tokens} tokens`;
      }
      // Extends half a slice early, so that the stream does not wait.
      if (paid_tokens >= output_tokens || tokens < paid_tokens - HOLD_SLICE_TOKENS / 2) return undefined;
      return extend(hold, grant, tokens);
    },
  };
}
