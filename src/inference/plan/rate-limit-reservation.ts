import type { GatewayError } from '../../errors.ts';
import type { RateBook, RateCaller } from '../../ledger/leases/rate-book.ts';
import { type Candidate, pricesOf } from '../../routing/candidate.ts';
import { isFree } from '../../routing/rules.ts';
import { choicesOf } from '../../schemas/by-choice.ts';
import type { RateLimit } from '../../schemas/rate-limit.ts';
import { inputTokens } from '../../schemas/usage.ts';
import type { Call } from '../call.ts';
import { estimatePrompt } from '../money/meter.ts';
import type { Requested } from './requested-models.ts';

/** The units of rate limits that one call holds. */
export interface RateLimitReservation {
  /**
   * Counts the call against the limits of an endpoint's model, each once. Throws `GatewayError` 429, after which another model may
   * be tried, or 503 if nobody can count.
   */
  acquire(candidate: Candidate): Promise<void> | undefined;
  /**
   * The call has used these tokens of a model. Reserved tokens that were not used are returned while their minute lasts; tokens
   * above the reservation count in the current minute.
   */
  commit(tokens: number, modelId: string | undefined): void;
  /** The call has ended with an unknown usage: the whole reservation counts as used. */
  commitInFull(): void;
  /** The call ended before anything was sent: it is not counted. */
  release(): void;
}

/** What the client's names request besides the models: the free variant of a model. */
type Variants = Requested['variants'];

/** Units of a window that this node grants a call. */
export interface Permit {
  readonly units: number;
  giveBack(units: number): void;
  owe(units: number): void;
}

/** The counters of this node. */
export interface RateCounting {
  readonly book: RateBook;
  /** Whether any model, or any key at a model, has a limit besides those of free models. */
  readonly limitsModels: boolean;
  /** Undefined if the units are not at hand: `acquire` may get them. */
  take(limit: RateLimit, units: number): Permit | undefined;
  /** Undefined if nobody can count, and the operator admits such calls. Throws `GatewayError` 429 or 503. */
  acquire(limit: RateLimit, units: number, storeWait: Call['store_wait']): Promise<Permit | undefined>;
  /** The refusal of a request whose prompt alone exceeds the limit. */
  neverFits(limit: RateLimit, units: number): GatewayError;
}

interface Held {
  limit: RateLimit;
  permit: Permit;
  /** Undefined for limits of the key. */
  model_id: string | undefined;
}

function callerOf({ principal: { key_hash, rate_name, organization_id, budgets, parents } }: Call): RateCaller {
  const grantedNano = budgets.find(({ scope }) => scope === 'organization')?.limit_nano;
  return { key_hash, rate_name, organization_id, granted_nano: grantedNano, parents };
}

/** The expected tokens of a call: its prompt by our estimate, and the output bound that it sets. */
function tokensOf({ request, estimate }: Call): { prompt: number; bound: number } {
  const prompt = estimate === undefined ? estimatePrompt(request) : inputTokens(estimate());
  const bound = request.max_completion_tokens ?? request.max_tokens ?? 0;
  return { prompt, bound: bound * choicesOf(request) };
}

function giveBackAll(held: readonly Held[]): void {
  for (const { permit } of held) permit.giveBack(permit.units);
}

export class CallReservation implements RateLimitReservation {
  readonly #call: Call;
  readonly #variants: Variants;
  readonly #counting: RateCounting;
  #caller: RateCaller | undefined;
  #held: Held[] = [];
  #tokens: { prompt: number; bound: number } | undefined;
  /** The result for each model. */
  #acquired: Map<string, Promise<void> | undefined> | undefined;

  constructor(call: Call, variants: Variants, counting: RateCounting) {
    this.#call = call;
    this.#variants = variants;
    this.#counting = counting;
  }

  /** Counts the call against the limits of its key. Throws, or rejects, as `RateLimits.open` does. */
  acquireForKey(): Promise<void> | undefined {
    this.#caller ??= callerOf(this.#call);
    const list = this.#counting.book.ofKey(this.#caller);
    return list.length === 0 ? undefined : this.#take(list, undefined);
  }

  acquire(candidate: Candidate): Promise<void> | undefined {
    const { model, own } = candidate;
    const { id } = model;
    // Free at the operator's account; free models at an organization's own account have no limit.
    const isNamedFree = own === undefined && (id.endsWith(':free') || this.#variants?.get(model)?.free === true);
    const isFreeOfCharge = isNamedFree && isFree(pricesOf(candidate));
    if (!isFreeOfCharge && !this.#counting.limitsModels) return undefined;
    this.#caller ??= callerOf(this.#call);
    const list = this.#counting.book.ofModel(this.#caller, { id, is_free: isFreeOfCharge });
    if (list.length === 0) return undefined;
    const name = isFreeOfCharge ? `${id} free` : id;
    if (this.#acquired?.has(name)) return this.#acquired.get(name);
    let acquiring: Promise<void> | undefined;
    try {
      acquiring = this.#take(list, id);
    } catch (error) {
      // A refusal holds for the model's other endpoints too.
      acquiring = Promise.reject(error);
    }
    this.#acquired ??= new Map();
    this.#acquired.set(name, acquiring);
    return acquiring;
  }

  #unitsFor(limit: RateLimit): number {
    if (limit.unit === 'requests') return 1;
    this.#tokens ??= tokensOf(this.#call);
    const { prompt, bound } = this.#tokens;
    if (prompt > limit.amount) throw this.#counting.neverFits(limit, prompt);
    return Math.min(prompt + bound, limit.amount);
  }

  #holds({ id }: RateLimit): boolean {
    return this.#held.some(({ limit }) => limit.id === id);
  }

  /** Takes units of all limits, or of none. Synchronous if this node has them. */
  #take(list: readonly RateLimit[], modelId: string | undefined): Promise<void> | undefined {
    const taken: Held[] = [];
    try {
      for (const limit of list) {
        if (this.#holds(limit)) continue;
        const permit = this.#counting.take(limit, this.#unitsFor(limit));
        if (permit === undefined) return this.#takeRest(list, taken, modelId);
        taken.push({ limit, permit, model_id: modelId });
      }
    } catch (error) {
      giveBackAll(taken);
      throw error;
    }
    this.#held.push(...taken);
    return undefined;
  }

  async #takeRest(list: readonly RateLimit[], taken: Held[], modelId: string | undefined): Promise<void> {
    try {
      for (const limit of list) {
        if (this.#holds(limit) || taken.some((held) => held.limit === limit)) continue;
        const permit = await this.#counting.acquire(limit, this.#unitsFor(limit), this.#call.store_wait);
        if (permit !== undefined) taken.push({ limit, permit, model_id: modelId });
      }
    } catch (error) {
      giveBackAll(taken);
      throw error;
    }
    this.#held.push(...taken);
  }

  commit(tokens: number, modelId: string | undefined): void {
    const held = this.#held;
    if (held.length === 0) return;
    this.#held = [];
    for (const { limit, permit, model_id: countedModel } of held) {
      if (limit.unit !== 'tokens') continue;
      const used = countedModel === undefined || countedModel === modelId ? tokens : 0;
      if (used > permit.units) permit.owe(used - permit.units);
      else permit.giveBack(permit.units - used);
    }
  }

  commitInFull(): void {
    this.#held = [];
  }

  release(): void {
    giveBackAll(this.#held);
    this.#held = [];
  }
}
