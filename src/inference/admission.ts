import { setTimeout as sleep } from 'node:timers/promises';
import { GatewayError } from '../errors.ts';
import type { Hold } from '../ledger/hold.ts';
import type { Recorder } from '../ledger/recorder.ts';
import { limits } from '../limits.ts';
import type { BudgetMode } from '../schemas/budget.ts';
import { toNano } from '../schemas/money.ts';
import type { PreparedAttempt } from './attempt.ts';
import type { Call } from './call.ts';
import type { SpendBound } from './fit-request.ts';
import { estimatePrompt, type Meter } from './meter.ts';
import type { Tokenizer } from './tokenizer.ts';
import {
  costOf,
  type Exposure,
  exposureOf,
  mediaOf,
  outputFor,
  promptTokens,
  textBytes,
  textOf,
} from './worst-case.ts';

/** How spend limits are kept: the settings of the configuration's `ledger`. */
export interface SpendingRules {
  budgets: BudgetMode;
  hold: 'full' | 'sliced';
  unknown_outcome: 'hold' | 'metered';
  default_output_tokens: number;
  min_output_tokens: number;
}

/** What one attempt was let in with. */
export interface Grant {
  exposure: Exposure;
  /** The output bound that was sent. */
  output_tokens: number;
  /** The output that the money set aside pays for: less than the bound only where it is set aside a slice at a time. */
  paid_tokens: number;
  mode: BudgetMode;
}

/** An attempt that may be sent. */
export interface Admitted {
  prepared: PreparedAttempt;
  hold: Hold;
  /** Undefined where nothing is counted: nothing is held, bounded or cut. */
  grant: Grant | undefined;
}

/** An attempt that asks to be let in. */
interface Asking {
  call: Call;
  hold: Hold;
  is_byok: boolean;
  /** Encodes the attempt under an output bound. */
  prepare(spend?: SpendBound): PreparedAttempt;
}

/** Lets attempts in: the one place where inference asks for money. */
export interface Admission {
  /**
   * Sets aside what the attempt may cost, in every budget that it counts against; where they pay for less output than was
   * asked, the attempt comes back with a lower bound. Rejects with the ledger's 402 or 503.
   */
  admit(asking: Asking): Admitted | Promise<Admitted>;
  /**
   * Why a stream must end here; undefined while it may go on. A slice that runs out is followed by the next one, which is
   * durable before it is relied on.
   */
  cutReason(facts: { hold: Hold; grant: Grant; meter: Meter }): string | undefined | Promise<string | undefined>;
}

/** Our count against a tokenizer's, where it is not wrong by more than a quarter. */
const ESTIMATE_MARGIN = 1.25;

/** The longest token of the vocabularies that we count with is so many spaces. */
const TOKEN_BYTES_MAX = 128;

/** Whether a refusal could turn into a yes if the prompt were counted: not where what is left does not pay for the least. */
function mayHelp(error: unknown, least_nano: number): boolean {
  if (!(error instanceof GatewayError) || error.status !== 402) return false;
  const left_usd = error.metadata?.['limit_remaining'];
  return typeof left_usd !== 'number' || least_nano <= toNano(left_usd);
}

/** The thinking budget that the client itself wrote for the upstream: the output bound must stay above it. */
function toldThinking({ encoded, request }: PreparedAttempt): number {
  const { thinking } = encoded.body as { thinking?: { budget_tokens?: unknown } };
  const is_ours = request.reasoning != null || request.reasoning_effort != null;
  return !is_ours && typeof thinking?.budget_tokens === 'number' ? thinking.budget_tokens + 1 : 0;
}

export function createAdmission(options: {
  recorder: Recorder;
  tokenizer: Tokenizer;
  rules: SpendingRules;
}): Admission {
  const { recorder, tokenizer, rules } = options;

  /**
   * What the attempt may cost by its bytes, of which each is a token at most; in soft mode, what it will cost by our count.
   * `count` knows it better at a price, where it can; `floor` is what it may still cost then.
   */
  function measure(prepared: PreparedAttempt, output_tokens: number, mode: BudgetMode) {
    if (mode === 'soft') {
      const text = Math.ceil(estimatePrompt(prepared.request) * ESTIMATE_MARGIN);
      const exposure = exposureOf(prepared, { text, image: 0, audio: 0 }, output_tokens);
      return { exposure, floor: exposure, count: async () => undefined };
    }
    const media = mediaOf(prepared);
    const exposureFor = (text_tokens: number) =>
      exposureOf(prepared, promptTokens(prepared, text_tokens, media), output_tokens);
    const bytes = textBytes(prepared, media);
    const exposure = exposureFor(bytes);
    return {
      exposure,
      floor: exposureFor(Math.floor(bytes / TOKEN_BYTES_MAX)),
      async count(): Promise<Exposure | undefined> {
        const tokens = await tokenizer.count(textOf(prepared, media), prepared.candidate);
        return tokens === undefined || tokens >= bytes ? undefined : exposureFor(tokens);
      },
    };
  }

  async function admitLimited({ call, hold: held, is_byok, prepare }: Asking): Promise<Admitted> {
    const { budgets } = call.principal;
    const mode = call.principal.budget_mode ?? rules.budgets;
    const default_tokens = rules.default_output_tokens;
    const prepared = prepare({ default_tokens });
    const output_tokens = prepared.output_tokens ?? default_tokens;
    const { exposure: sure, floor, count } = measure(prepared, output_tokens, mode);
    // What is not streamed cannot be cut, so that it is paid for in one piece.
    const is_sliced = mode === 'soft' && rules.hold === 'sliced' && call.request.stream === true;
    const full_tokens = is_sliced ? Math.min(output_tokens, limits.hold_slice_tokens) : output_tokens;
    const least_tokens = Math.min(full_tokens, Math.max(rules.min_output_tokens, toldThinking(prepared)));
    const reserve = async (exposure: Exposure) => {
      const full_nano = costOf(exposure, full_tokens);
      const least_nano = costOf(exposure, least_tokens);
      const ask = { id: call.generation_id, budgets, is_byok, mode, full_nano, least_nano };
      const hold = await recorder.reserve(ask, held);
      return { hold, exposure, is_full: hold.granted_nano >= full_nano };
    };
    let reserved: Awaited<ReturnType<typeof reserve>>;
    try {
      reserved = await reserve(sure);
    } catch (error) {
      const counted = mayHelp(error, costOf(floor, least_tokens)) ? await count() : undefined;
      if (counted === undefined) throw error;
      reserved = await reserve(counted);
    }
    if (!reserved.is_full && reserved.exposure === sure) {
      const counted = await count();
      if (counted !== undefined) reserved = await reserve(counted);
    }
    const { hold, exposure, is_full } = reserved;
    const paid_tokens = is_full ? full_tokens : outputFor(exposure, hold.granted_nano);
    const grant = { exposure, output_tokens, paid_tokens, mode };
    if (is_full || is_sliced) return { prepared, hold, grant };
    const lowered = prepare({ default_tokens, paid_tokens });
    return { prepared: lowered, hold, grant: { ...grant, output_tokens: paid_tokens } };
  }

  /** An attempt at the organization's own account that no limit counts: what was set aside for an earlier one is told of. */
  async function admitUncounted({ call, hold, is_byok, prepare }: Asking): Promise<Admitted> {
    const { budgets } = call.principal;
    const prepared = prepare();
    const ask = { id: call.generation_id, budgets, is_byok, full_nano: 0, least_nano: 0 };
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
      if (budgets.length === 0) return { prepared: prepare(), hold, grant: undefined };
      if (budgets.some(({ include_byok }) => !is_byok || include_byok)) return admitLimited(facts);
      return admitUncounted(facts);
    },

    cutReason({ hold, grant, meter }) {
      // Its end has come by itself.
      if (meter.finish_reason !== null) return undefined;
      const tokens = meter.outputTokens();
      const { output_tokens, paid_tokens } = grant;
      if (tokens > output_tokens * limits.overrun_factor_max + limits.overrun_tokens_max) {
        return `the provider did not keep to the output bound of ${output_tokens} tokens`;
      }
      // Half a slice ahead, so that the stream does not wait.
      if (paid_tokens >= output_tokens || tokens < paid_tokens - limits.hold_slice_tokens / 2) return undefined;
      return extend(hold, grant, tokens);
    },
  };
}
