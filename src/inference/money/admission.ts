import { setTimeout as sleep } from 'node:timers/promises';
import { GatewayError } from '../../errors.ts';
import type { Ask, Hold } from '../../ledger/leases/hold.ts';
import type { Recorder } from '../../ledger/recorder.ts';
import { limits } from '../../limits.ts';
import type { Report } from '../../providers/dialect.ts';
import type { Candidate } from '../../routing/plan.ts';
import type { BudgetMode } from '../../schemas/budget.ts';
import { choicesOf } from '../../schemas/by-choice.ts';
import type { ChatRequest } from '../../schemas/inner.ts';
import { toNano } from '../../schemas/money.ts';
import type { Call } from '../call.ts';
import type { SpendBound } from '../prepare/fit-request.ts';
import type { Meter } from './meter.ts';
import { costOf, outputFor, type WorstCaseCost } from './worst-case.ts';

/** How spend limits are kept: the settings of the configuration's `ledger`. */
export interface SpendingRules {
  budgets: BudgetMode;
  hold: 'full' | 'sliced';
  unknown_outcome: 'hold' | 'metered';
  /** Undefined: the model's own, as far as a share of what is left pays for it. */
  default_output_tokens: number | undefined;
  min_output_tokens: number;
}

/** What one attempt was let in with. */
export interface Grant {
  exposure: WorstCaseCost;
  /** The output bound that was sent. */
  output_tokens: number;
  /** The output that the money set aside pays for: less than the bound only where it is set aside a slice at a time. */
  paid_tokens: number;
  /** How many answers it gives, each within the bound. */
  choices: number;
  mode: BudgetMode;
}

/** What every prepared attempt says of itself, whatever it asks for. */
export interface Prepared {
  candidate: Candidate;
  /** As the endpoint gets it. */
  request: ChatRequest;
  /** The output bound that is sent; undefined: none; 0 where no bound is needed, because everything that it may cost is in its exposure. */
  output_tokens: number | undefined;
  /** The service tier it asks for; undefined: none. */
  service_tier: string | undefined;
  report: Report[];
  /** Nobody asked for its output bound: a share of what is left must pay for it. */
  is_default_bound?: true;
}

/** What an attempt may cost. */
export interface Measured {
  /** For sure. */
  exposure: WorstCaseCost;
  /** What it may still cost if `count` found the least. */
  floor(): WorstCaseCost;
  /** The smallest output bound that the request makes sense with. */
  least_tokens: number;
  /** Knows it better, at a price; undefined: cannot. */
  count(): Promise<WorstCaseCost | undefined>;
}

/** Finds what an attempt may cost with so many output tokens: for sure, or in soft mode by our count; a promise where that takes long. */
export type Measure<P extends Prepared> = (
  prepared: P,
  output_tokens: number,
  mode: BudgetMode,
) => Measured | Promise<Measured>;

/** An attempt that may be sent. */
export interface Admitted<P extends Prepared> {
  prepared: P;
  hold: Hold;
  /** Undefined where nothing is counted: nothing is held, bounded or cut. */
  grant: Grant | undefined;
}

/** An attempt that asks to be let in. */
interface Asking<P extends Prepared> {
  call: Call;
  hold: Hold;
  is_byok: boolean;
  /** Encodes the attempt under an output bound; a promise where that takes long. */
  prepare(spend?: SpendBound): P | Promise<P>;
  measure: Measure<P>;
}

/** How an attempt is let in: `full_tokens` is what is asked for at first. */
interface Terms {
  mode: BudgetMode;
  is_sliced: boolean;
  output_tokens: number;
  full_tokens: number;
  least_tokens: number;
  /** Only so much of what is left may pay for the output. */
  share?: number;
}

/** Lets attempts in: the one place where inference asks for money. */
export interface Admission {
  /**
   * Sets aside what the attempt may cost, in every budget that it counts against; where they pay for less output than was
   * asked, the attempt comes back with a lower bound. Rejects with the ledger's 402 or 503.
   */
  admit<P extends Prepared>(asking: Asking<P>): Admitted<P> | Promise<Admitted<P>>;
  /**
   * The same for an attempt that is sent beside another: with all that was asked, and without asking the store; undefined: not so. Whole answers at
   * the organization's own accounts are not for this.
   */
  admitBeside<P extends Prepared>(asking: Omit<Asking<P>, 'is_byok'>): Promise<Admitted<P> | undefined>;
  /**
   * Why a stream must end here; undefined while it may go on. A slice that runs out is followed by the next one, which is
   * durable before it is relied on.
   */
  cutReason(facts: { hold: Hold; grant: Grant; meter: Meter }): string | undefined | Promise<string | undefined>;
}

/** Whether a refusal could turn into a yes if the prompt were counted: not where what is left does not pay for the least. */
function mayHelp(error: unknown, least_nano: number): boolean {
  if (!(error instanceof GatewayError) || error.status !== 402) return false;
  const left_usd = error.metadata?.['limit_remaining'];
  return typeof left_usd !== 'number' || least_nano <= toNano(left_usd);
}

export function createAdmission({
  recorder,
  rules,
}: {
  recorder: Pick<Recorder, 'reserve' | 'reserveNow' | 'extend'>;
  rules: SpendingRules;
}): Admission {
  /** What money is asked with. */
  function askOf<P extends Prepared>({ call, is_byok }: Asking<P>, terms: Terms, exposure: WorstCaseCost): Ask {
    const { mode, full_tokens, least_tokens, share } = terms;
    const full_nano = costOf(exposure, full_tokens);
    const least_nano = costOf(exposure, least_tokens);
    const { generation_id: id, accepted_ms: at, store_wait } = call;
    const ask = { id, at, budgets: call.principal.budgets, is_byok, mode, full_nano, least_nano, store_wait };
    return share === undefined ? ask : { ...ask, share: { part: share, fixed_nano: costOf(exposure, 0) } };
  }

  /** The output bound that is paid for: one that is not sent is what wires that need one would get. */
  function boundOf({ output_tokens }: Prepared): number {
    return output_tokens ?? rules.default_output_tokens ?? limits.output_tokens_default;
  }

  function tryReserve(ask: Ask, held: Hold): Hold | Promise<Hold> {
    try {
      return recorder.reserve(ask, held);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Where nothing is counted. */
  function admitFree<P extends Prepared>(prepared: P | Promise<P>, hold: Hold): Admitted<P> | Promise<Admitted<P>> {
    if (prepared instanceof Promise) return prepared.then((one) => ({ prepared: one, hold, grant: undefined }));
    return { prepared, hold, grant: undefined };
  }

  /** At once where this node has all that is asked for. */
  function admitLimited<P extends Prepared>(asking: Asking<P>): Admitted<P> | Promise<Admitted<P>> {
    const prepared = asking.prepare({ default_tokens: rules.default_output_tokens });
    if (prepared instanceof Promise) return prepared.then((one) => admitPrepared(asking, one));
    return admitPrepared(asking, prepared);
  }

  function admitPrepared<P extends Prepared>(asking: Asking<P>, prepared: P): Admitted<P> | Promise<Admitted<P>> {
    const mode = asking.call.principal.budget_mode ?? rules.budgets;
    const measured = asking.measure(prepared, boundOf(prepared), mode);
    if (measured instanceof Promise) return measured.then((one) => admitMeasured(asking, prepared, one, mode));
    return admitMeasured(asking, prepared, measured, mode);
  }

  function admitMeasured<P extends Prepared>(
    asking: Asking<P>,
    prepared: P,
    measured: Measured,
    mode: BudgetMode,
  ): Admitted<P> | Promise<Admitted<P>> {
    const { call, hold: held } = asking;
    const choices = choicesOf(call.request);
    const output_tokens = boundOf(prepared);
    // What is not streamed cannot be cut, so that it is paid for in one piece.
    const is_sliced = mode === 'soft' && rules.hold === 'sliced' && call.request.stream === true;
    const full_tokens = is_sliced ? Math.min(output_tokens, limits.hold_slice_tokens) : output_tokens;
    const least_tokens = Math.min(full_tokens, Math.max(rules.min_output_tokens, measured.least_tokens));
    const terms: Terms = { mode, is_sliced, output_tokens, full_tokens, least_tokens };
    if (prepared.is_default_bound && !is_sliced) terms.share = limits.default_hold_share;
    const ask = askOf(asking, terms, measured.exposure);
    const hold = tryReserve(ask, held);
    if (hold instanceof Promise || hold.granted_nano < ask.full_nano) {
      return admitLess(asking, terms, { prepared, measured, hold, ask });
    }
    return {
      prepared,
      hold,
      grant: { exposure: measured.exposure, output_tokens, paid_tokens: full_tokens, choices, mode },
    };
  }

  /** What is not there at once: once it has come, or as far as it goes, or by a better count. */
  async function admitLess<P extends Prepared>(
    asking: Asking<P>,
    terms: Terms,
    asked: { prepared: P; measured: Measured; hold: Hold | Promise<Hold>; ask: Ask },
  ): Promise<Admitted<P>> {
    const { mode, is_sliced, output_tokens, full_tokens, least_tokens } = terms;
    const { exposure: sure, floor, count } = asked.measured;
    let { ask } = asked;
    let exposure = sure;
    let hold: Hold;
    try {
      hold = await asked.hold;
    } catch (error) {
      const counted = mayHelp(error, costOf(floor(), least_tokens)) ? await count() : undefined;
      if (counted === undefined) throw error;
      exposure = counted;
      ask = askOf(asking, terms, counted);
      hold = await recorder.reserve(ask, asking.hold);
    }
    if (exposure === sure && isShort(hold, ask, exposure, terms)) {
      const counted = await count();
      if (counted !== undefined) {
        exposure = counted;
        ask = askOf(asking, terms, counted);
        hold = await recorder.reserve(ask, asking.hold);
      }
    }
    const is_full = hold.granted_nano >= ask.full_nano;
    const paid_tokens = is_full ? full_tokens : outputFor(exposure, hold.granted_nano);
    const grant = { exposure, output_tokens, paid_tokens, choices: choicesOf(asking.call.request), mode };
    if (is_full || is_sliced) return { prepared: asked.prepared, hold, grant };
    const lowered = await asking.prepare({ default_tokens: rules.default_output_tokens, paid_tokens });
    return { prepared: lowered, hold, grant: { ...grant, output_tokens: paid_tokens } };
  }

  /** Whether less was granted than is worth a count of the prompt: of a bound that nobody asked for a part is enough. */
  function isShort({ granted_nano }: Hold, { full_nano }: Ask, exposure: WorstCaseCost, { share }: Terms): boolean {
    if (granted_nano >= full_nano) return false;
    return share === undefined || outputFor(exposure, granted_nano) < limits.output_tokens_default;
  }

  /** An attempt at the organization's own account that no limit counts: what was set aside for an earlier one is told of. */
  async function admitUncounted<P extends Prepared>({ call, hold, is_byok, prepare }: Asking<P>): Promise<Admitted<P>> {
    const { budgets } = call.principal;
    const prepared = await prepare();
    const { generation_id: id, accepted_ms: at, store_wait } = call;
    const ask = { id, at, budgets, is_byok, full_nano: 0, least_nano: 0, store_wait };
    return { prepared, hold: await recorder.reserve(ask, hold), grant: undefined };
  }

  /** Sets the next slice aside, or what there is of it. */
  async function tryExtend(hold: Hold, grant: Grant, tokens: number): Promise<boolean> {
    for (let slice = limits.hold_slice_tokens; slice >= limits.hold_slice_tokens_min; slice /= 2) {
      const next = Math.min(grant.output_tokens, Math.max(grant.paid_tokens, tokens) + slice);
      if (await recorder.extend(hold, costOf(grant.exposure, next))) {
        grant.paid_tokens = next;
        return true;
      }
    }
    return false;
  }

  /** Only an answer that has used up what was set aside waits for what the store may still have. */
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
    admit(facts) {
      const { call, hold, is_byok, prepare } = facts;
      const { budgets } = call.principal;
      if (budgets.length === 0) return admitFree(prepare(), hold);
      if (!is_byok || budgets.some(({ include_byok }) => include_byok)) return admitLimited(facts);
      return admitUncounted(facts);
    },

    async admitBeside(asking) {
      const { call, hold, prepare, measure } = asking;
      const { budgets } = call.principal;
      if (budgets.length === 0) return admitFree(prepare(), hold);
      const mode = call.principal.budget_mode ?? rules.budgets;
      const prepared = await prepare({ default_tokens: rules.default_output_tokens });
      const choices = choicesOf(call.request);
      const output_tokens = boundOf(prepared);
      const { exposure, least_tokens } = await measure(prepared, output_tokens, mode);
      const terms: Terms = {
        mode,
        is_sliced: false,
        output_tokens,
        full_tokens: output_tokens,
        least_tokens: output_tokens,
      };
      if (prepared.is_default_bound) {
        terms.share = limits.default_hold_share;
        terms.least_tokens = Math.min(output_tokens, Math.max(rules.min_output_tokens, least_tokens));
      }
      const { store_wait: _, ...ask } = askOf({ ...asking, is_byok: false }, terms, exposure);
      if (!recorder.reserveNow(ask, hold)) return undefined;
      if (hold.granted_nano >= ask.full_nano) {
        return { prepared, hold, grant: { exposure, output_tokens, paid_tokens: output_tokens, choices, mode } };
      }
      const paid_tokens = outputFor(exposure, hold.granted_nano);
      const lowered = await prepare({ default_tokens: rules.default_output_tokens, paid_tokens });
      return { prepared: lowered, hold, grant: { exposure, output_tokens: paid_tokens, paid_tokens, choices, mode } };
    },

    cutReason({ hold, grant, meter }) {
      // Its end has come by itself.
      if (meter.open_choices.length === 0) return undefined;
      const { output_tokens, paid_tokens, choices } = grant;
      // Of each answer, where there are several: what is set aside for one pays as well for another.
      const tokens = Math.ceil(meter.outputTokens() / choices);
      if (tokens > output_tokens * limits.overrun_factor_max + limits.overrun_tokens_max) {
        return `the provider exceeded the output bound of ${output_tokens} tokens`;
      }
      // Half a slice ahead, so that the stream does not wait.
      if (paid_tokens >= output_tokens || tokens < paid_tokens - limits.hold_slice_tokens / 2) return undefined;
      return extend(hold, grant, tokens);
    },
  };
}
