/** What attempts cost: of an answer, of a failure whose usage is known, and of an end that stays unknown. */
import type { Charge } from '../../ledger/prices/charge.ts';
import type { AttemptRecord } from '../../ledger/records.ts';
import type { TokenClasses } from '../../schemas/inner.ts';
import { inputTokens, outputTokens } from '../../schemas/usage.ts';
import type { Attempt, CallState } from '../state.ts';
import type { SpendingRules } from './admission.ts';
import { boundedWord, type PricesOf, priceAttempt } from './generation.ts';
import { estimatePrompt } from './meter.ts';

/** How unknown ends are charged. */
type UnknownRules = Pick<SpendingRules, 'unknown_outcome'>;

/** How an attempt ended. */
export interface AttemptEnd {
  status: number | null;
  failure: string | null;
  /** It was sent, and it is unknown whether the provider answered and bills it. */
  is_unknown?: boolean;
  /** Tokens that it is billed for although it failed. */
  used?: TokenClasses | null | undefined;
}

/** The failure in the record of an attempt whose end is not known yet: as after a crash. */
export const ASSUMED = 'gateway_gone';

/** The tier that served an attempt: the reported one, else the requested one. */
export function tierOf({ meter, prepared }: Attempt): string | null {
  return meter.service_tier ?? prepared.service_tier ?? null;
}

/** Prices of models that a provider runs inside a call. Rare: a scan will do. */
function pricesOf({ catalog }: CallState): PricesOf {
  return (provider, upstreamModel) => {
    for (const model of catalog.models()) {
      for (const endpoint of model.endpoints) {
        if (endpoint.provider === provider && endpoint.upstream_model === upstreamModel) return endpoint;
      }
    }
    return undefined;
  };
}

/** The price of an attempt's usage, in the tier that served it. */
export function priceOf(
  state: CallState,
  attempt: Attempt,
  usage: TokenClasses | null,
  tier: string | null | undefined,
): Charge {
  return priceAttempt(usage, attempt.call.request, attempt.candidate, pricesOf(state), tier);
}

/** The money that is held for an attempt. */
export function heldFor({ hold }: CallState, { grantedNano }: Attempt): number {
  return grantedNano ?? hold.granted_nano;
}

/**
 * The cost of an attempt whose end is unknown: all that was held. If nothing was held, the prompt, and the usual answer if it is
 * still under way.
 */
function unknownCost(
  state: CallState,
  attempt: Attempt,
  rules: UnknownRules,
  isUnderWay = false,
): Partial<AttemptRecord> {
  const { call, grant, presumedOutput } = attempt;
  if (grant !== undefined && !(grant.mode === 'soft' && rules.unknown_outcome === 'metered')) {
    return { cost_nano: heldFor(state, attempt) };
  }
  const usage = call.estimate?.() ?? { in_uncached: estimatePrompt(call.request) };
  const isWhole = isUnderWay && presumedOutput > 0;
  return usedCost(state, attempt, isWhole ? { ...usage, out_text: presumedOutput } : usage);
}

/**
 * A strict limit is charged what a provider reports, and of an estimate no more than was held: only a bill may pass a limit.
 * The reported part is the least.
 */
function boundEstimate(
  state: CallState,
  attempt: Attempt,
  usage: TokenClasses | null,
  charge: Charge,
  reportedNano: number,
): Charge {
  if (usage?.estimated !== true || attempt.grant?.mode !== 'strict') return charge;
  const mostNano = Math.max(heldFor(state, attempt), reportedNano);
  if (charge.cost_nano <= mostNano) return charge;
  const inputNano = Math.min(charge.input_nano, mostNano);
  const outputNano = Math.min(charge.output_nano, mostNano - inputNano);
  return { ...charge, cost_nano: mostNano, input_nano: inputNano, output_nano: outputNano };
}

function usedCost(state: CallState, attempt: Attempt, usage: TokenClasses): Partial<AttemptRecord> {
  const counted = priceOf(state, attempt, usage, attempt.prepared.service_tier);
  const charge = boundEstimate(state, attempt, usage, counted, 0);
  return {
    cost_nano: charge.cost_nano,
    tokens: [inputTokens(usage), outputTokens(usage)],
    charges: charge.lines,
    ...(charge.is_unpriced ? { is_unpriced: true } : {}),
    ...(usage.estimated ? { estimated: true } : {}),
  };
}

/** The cost of an attempt that did not answer: its billed usage; if its end is unknown the most of both. */
export function endCost(
  state: CallState,
  attempt: Attempt,
  { failure, is_unknown = false, used }: AttemptEnd,
  rules: UnknownRules,
): Partial<AttemptRecord> | undefined {
  const billed = used ? usedCost(state, attempt, used) : undefined;
  if (!is_unknown) return billed;
  const unknown = unknownCost(state, attempt, rules, failure === ASSUMED);
  const most = billed !== undefined && (billed.cost_nano ?? 0) > (unknown.cost_nano ?? 0) ? billed : unknown;
  return { ...most, estimated: true };
}

/**
 * Prices an attempt that answered and completes its record. One that may go on upstream costs at least what an unknown end does.
 * Returns the cost before the bound of an estimate.
 */
export function priceAnswer(state: CallState, attempt: Attempt, rules: UnknownRules): number {
  const { meter, prepared, mayGoOn } = attempt;
  const record = attempt.record!;
  const usage = meter.usage(prepared.request);
  const tier = tierOf(attempt);
  const counted = priceOf(state, attempt, usage, tier);
  const { reported } = meter;
  const isPartial = usage?.estimated === true && reported !== undefined;
  const reportedNano = isPartial ? priceOf(state, attempt, reported, tier).cost_nano : 0;
  const countedNano = counted.cost_nano;
  const charge = boundEstimate(state, attempt, usage, counted, reportedNano);
  if (mayGoOn) charge.cost_nano = Math.max(charge.cost_nano, unknownCost(state, attempt, rules).cost_nano ?? 0);
  record.cost_nano = charge.cost_nano;
  if (usage !== null) record.tokens = [inputTokens(usage), outputTokens(usage)];
  if (usage?.estimated || mayGoOn) record.estimated = true;
  record.charges = charge.lines;
  if (charge.is_unpriced) record.is_unpriced = true;
  record.upstream_id = boundedWord(meter.upstream_id);
  attempt.usage = usage;
  attempt.charge = charge;
  return countedNano;
}
