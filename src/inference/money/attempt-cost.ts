/** What attempts cost: of an answer, of a failure whose usage is known, and of an end that stays unknown. */
import type { EndpointPrices } from '../../catalog/model.ts';
import { pricesFor } from '../../catalog/price-list.ts';
import { type Charge, charge, type PricedUsage } from '../../ledger/prices/charge.ts';
import type { AttemptRecord, Metered } from '../../ledger/records.ts';
import { limits } from '../../limits.ts';
import type { Candidate } from '../../routing/plan.ts';
import { choicesOf } from '../../schemas/by-choice.ts';
import { contentsOf } from '../../schemas/contents.ts';
import type { ChatRequest, TokenClasses } from '../../schemas/inner.ts';
import { inputTokens, outputTokens } from '../../schemas/usage.ts';
import type { Call } from '../call.ts';
import type { Attempt, CallState } from '../state.ts';
import type { Prepared, SpendingRules } from './admission.ts';
import { estimatePrompt, roughPrompt } from './meter.ts';

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

/** Knows the prices of models that a provider ran beside the called one, by the provider's names of them. */
export interface OtherPrices {
  pricesOf(provider: string, upstreamModel: string): EndpointPrices | undefined;
}

/**
 * The cost of one attempt: its classes at the endpoint's prices in the tier that served it, and other models' classes at their
 * prices. `serviceTier`: as reported by the upstream, otherwise as sent.
 */
export function priceAttempt(
  usage: TokenClasses | null,
  request: ChatRequest,
  { endpoint, provider }: Candidate,
  others: OtherPrices | undefined,
  serviceTier?: string | null,
): Charge {
  if (usage === null) return charge([]);
  const prices = pricesFor(endpoint, { prompt_tokens: inputTokens(usage), service_tier: serviceTier });
  const images = prices.image === undefined ? 0 : contentsOf(request).images;
  const works: PricedUsage[] = [{ usage, prices, images }];
  if (usage.extra === undefined) return charge(works);
  for (const { model, classes } of usage.extra) {
    const list = others?.pricesOf(provider.slug, model);
    const own = list && pricesFor(list, { prompt_tokens: inputTokens(classes), service_tier: serviceTier });
    works.push({ usage: classes, prices: own ?? prices, model });
  }
  return charge(works);
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
 * The charge of an estimated usage. A strict limit is charged what a provider reports, and of an estimate no more than was held: only a
 * bill may pass a limit. The reported part is the least.
 */
function boundEstimate(state: CallState, attempt: Attempt, charge: Charge, reportedNano: number): Charge {
  if (attempt.grant?.mode !== 'strict') return charge;
  const mostNano = Math.max(heldFor(state, attempt), reportedNano);
  if (charge.cost_nano <= mostNano) return charge;
  const inputNano = Math.min(charge.input_nano, mostNano);
  const outputNano = Math.min(charge.output_nano, mostNano - inputNano);
  return { ...charge, cost_nano: mostNano, input_nano: inputNano, output_nano: outputNano };
}

function usedCost(state: CallState, attempt: Attempt, usage: TokenClasses): Partial<AttemptRecord> {
  const { call, candidate, prepared } = attempt;
  const counted = priceAttempt(usage, call.request, candidate, state, prepared.service_tier);
  const charge = usage.estimated === true ? boundEstimate(state, attempt, counted, 0) : counted;
  return {
    cost_nano: charge.cost_nano,
    tokens: [inputTokens(usage), outputTokens(usage)],
    charges: charge.lines,
    ...(charge.is_unpriced ? { is_unpriced: true } : {}),
    ...(usage.estimated ? { estimated: true } : {}),
  };
}

/** The cost of an attempt that did not answer: its billed usage; if its end is unknown the larger of both. Undefined if nothing was billed. */
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
  attempt.isCharged = true;
  const { call, candidate, meter, prepared, mayGoOn } = attempt;
  const record = attempt.record!;
  const usage = meter.usage(prepared.request);
  const tier = meter.service_tier ?? prepared.service_tier;
  let charge = priceAttempt(usage, call.request, candidate, state, tier);
  const countedNano = charge.cost_nano;
  if (usage?.estimated === true) {
    const { reported } = meter;
    const reportedNano =
      reported === undefined ? 0 : priceAttempt(reported, call.request, candidate, state, tier).cost_nano;
    charge = boundEstimate(state, attempt, charge, reportedNano);
  }
  if (mayGoOn) charge.cost_nano = Math.max(charge.cost_nano, unknownCost(state, attempt, rules).cost_nano ?? 0);
  record.cost_nano = charge.cost_nano;
  if (usage !== null) record.tokens = [inputTokens(usage), outputTokens(usage)];
  if (usage?.estimated || mayGoOn) record.estimated = true;
  record.charges = charge.lines;
  if (charge.is_unpriced) record.is_unpriced = true;
  record.upstream_id = meter.upstream_id?.slice(0, limits.upstream_word_chars_max) ?? null;
  attempt.usage = usage;
  attempt.charge = charge;
  return countedNano;
}

/** The answers over which the usual length is averaged, and the endpoints whose usual length is kept. */
const USUAL_OUTPUT_ANSWERS = 64;
const USUAL_OUTPUT_ENDPOINTS_MAX = 10_000;

/** The endpoint and the model that answer a call. */
type Place = Pick<Candidate, 'endpoint' | 'model' | 'provider'>;

/** The output of completed answers of a model at a provider, on all nodes, as the store sums it up. */
export interface OutputSum {
  model: string;
  provider_name: string;
  answers: number;
  output_tokens: number;
}

interface UsualLength {
  mean: number;
  answers: number;
}

/**
 * The usual length of each endpoint's answers: a running mean in the memory of this process, which begins with what the store knows
 * of the model at the provider.
 */
export class UsualOutput {
  readonly #means = new Map<string, UsualLength>();
  readonly #stored = new Map<string, UsualLength>();

  /** Takes over sums of the store: for endpoints without answers of this process. */
  seed(sums: readonly OutputSum[]): void {
    for (const { model, provider_name, answers, output_tokens } of sums) {
      if (answers <= 0 || this.#stored.size >= USUAL_OUTPUT_ENDPOINTS_MAX) continue;
      const mean = output_tokens / answers;
      this.#stored.set(`${model} ${provider_name}`, { mean, answers: Math.min(answers, USUAL_OUTPUT_ANSWERS) });
    }
  }

  #storedOf({ model, provider }: Place): UsualLength | undefined {
    return this.#stored.size === 0 ? undefined : this.#stored.get(`${model.id} ${provider.name}`);
  }

  /** Adds a completed answer. */
  note(place: Place, usage: TokenClasses): void {
    const tokens = outputTokens(usage);
    const { id } = place.endpoint;
    let entry = this.#means.get(id);
    if (entry === undefined) {
      if (this.#means.size >= USUAL_OUTPUT_ENDPOINTS_MAX) return;
      entry = { ...(this.#storedOf(place) ?? { mean: 0, answers: 0 }) };
      this.#means.set(id, entry);
    }
    entry.answers = Math.min(entry.answers + 1, USUAL_OUTPUT_ANSWERS);
    entry.mean += (tokens - entry.mean) / entry.answers;
  }

  /**
   * The presumed cost of an attempt without a hold, which is charged if its end stays unknown: its prompt, and the usual answer within
   * the output bound, or a fixed number of tokens for an endpoint without answers. No answer for calls that are not chat, whose estimate
   * is their whole usage, and for limits that charge only what was received. `least`: as the journal keeps it; its usage has the
   * prompt's tokens only.
   */
  presume(
    { request, estimate, principal }: Call,
    candidate: Candidate,
    { output_tokens, service_tier }: Pick<Prepared, 'output_tokens' | 'service_tier'>,
    rules: Pick<SpendingRules, 'budgets' | 'unknown_outcome'>,
  ): { outputTokens: number; least: Metered } {
    const { endpoint } = candidate;
    const isMetered = rules.unknown_outcome === 'metered' && (principal.budget_mode ?? rules.budgets) === 'soft';
    let outputTokens = 0;
    if (!isMetered && estimate === undefined && output_tokens !== 0) {
      const bound = output_tokens ?? endpoint.max_completion_tokens ?? Number.POSITIVE_INFINITY;
      const known = this.#means.get(endpoint.id) ?? this.#storedOf(candidate);
      const usual = Math.ceil(known?.mean ?? limits.expected_completion_tokens);
      outputTokens = Math.min(bound, usual) * choicesOf(request);
    }
    const usage = estimate?.() ?? { in_uncached: roughPrompt(request) };
    const whole = outputTokens === 0 ? usage : { ...usage, out_text: outputTokens };
    const { cost_nano } = priceAttempt(whole, request, candidate, undefined, service_tier);
    return { outputTokens, least: { usage, cost_nano } };
  }
}
