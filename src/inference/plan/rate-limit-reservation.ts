import type { Model } from '../../catalog/model.ts';
import type { GatewayError } from '../../errors.ts';
import type { RateBook, RateCaller } from '../../ledger/leases/rate-book.ts';
import { type Candidate, pricesOf } from '../../routing/candidate.ts';
import { isFree } from '../../routing/rules.ts';
import { choicesOf } from '../../schemas/by-choice.ts';
import type { RateLimit } from '../../schemas/rate-limit.ts';
import { inputTokens } from '../../schemas/usage.ts';
import type { Call } from '../call.ts';
import { estimatePrompt } from '../money/meter.ts';

/** One call, past the limits of its key. */
export interface RateLimitReservation {
  /**
   * Counts the call against the limits of an endpoint's model, each once. Throws `GatewayError` 429: another model may be let
   * through; 503 where nobody can count.
   */
  acquire(candidate: Candidate): Promise<void> | undefined;
  /**
   * The call has ended: with so many tokens, at a model. Tokens that were set aside and not used are free again, as far as
   * their minute lasts; those above count in the minute that it is now.
   */
  commit(tokens: number, model_id: string | undefined): void;
  /** The call has ended, and nobody knows what it used: it stays as it was set aside. */
  commitInFull(): void;
  /** The call ended before anything was sent: it does not count. */
  release(): void;
}

/** Whether a client asked for the free variant of a model. */
export type AsksFree = (model: Model) => boolean;

/** Units of a window that this node has for a call. */
export interface Permit {
  readonly units: number;
  giveBack(units: number): void;
  owe(units: number): void;
}

/** What counts. */
export interface RateCounting {
  book(): RateBook;
  /** At once, or not: then `acquire` must be asked. */
  take(limit: RateLimit, units: number): Permit | undefined;
  /** Undefined: nobody can count, and the operator wants such calls let through. Throws `GatewayError` 429 or 503. */
  acquire(limit: RateLimit, units: number, store_wait: Call['store_wait']): Promise<Permit | undefined>;
  /** The refusal of a request whose prompt alone is above the limit. */
  neverFits(limit: RateLimit, units: number): GatewayError;
}

interface Held {
  limit: RateLimit;
  permit: Permit;
  /** Undefined: of the key, whatever the model. */
  model_id: string | undefined;
}

function callerOf({ principal: { key_hash, rate_name, organization_id, budgets, parents } }: Call): RateCaller {
  const granted_nano = budgets.find(({ scope }) => scope === 'organization')?.limit_nano;
  return { key_hash, rate_name, organization_id, granted_nano, parents };
}

/** What a call will use, as far as it can be told before: its prompt by our count, and the output bound that it names. */
function tokensOf({ request, estimate }: Call): { prompt: number; bound: number } {
  const prompt = estimate === undefined ? estimatePrompt(request) : inputTokens(estimate());
  const bound = request.max_completion_tokens ?? request.max_tokens ?? 0;
  return { prompt, bound: bound * choicesOf(request) };
}

function giveBackAll(held: readonly Held[]): void {
  for (const { permit } of held) permit.giveBack(permit.units);
}

/** What one call holds of its limits, from its first step to its end. */
export class CallReservation implements RateLimitReservation {
  readonly #call: Call;
  readonly #asksFree: AsksFree;
  readonly #counting: RateCounting;
  readonly #caller: RateCaller;
  #held: Held[] = [];
  #tokens: { prompt: number; bound: number } | undefined;
  /** What came of the models that were asked for. */
  #entered: Map<string, Promise<void> | undefined> | undefined;

  constructor(call: Call, asksFree: AsksFree, counting: RateCounting) {
    this.#call = call;
    this.#asksFree = asksFree;
    this.#counting = counting;
    this.#caller = callerOf(call);
  }

  /** The limits of the key. */
  begin(): Promise<void> | undefined {
    const list = this.#counting.book().ofKey(this.#caller);
    return list.length === 0 ? undefined : this.#take(list, undefined);
  }

  acquire(candidate: Candidate): Promise<void> | undefined {
    const { id } = candidate.model;
    const is_free = this.#isFree(candidate);
    const list = this.#counting.book().ofModel(this.#caller, { id, is_free });
    if (list.length === 0) return undefined;
    const name = is_free ? `${id} free` : id;
    if (this.#entered?.has(name)) return this.#entered.get(name);
    // Refused, it stays so for the model's other endpoints.
    const entering = this.#enter(list, id);
    this.#entered ??= new Map();
    this.#entered.set(name, entering);
    return entering;
  }

  #enter(list: readonly RateLimit[], model_id: string): Promise<void> | undefined {
    try {
      return this.#take(list, model_id);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** What the operator's account has for nothing; at an organization's own account it is the organization's matter. */
  #isFree(candidate: Candidate): boolean {
    const { model, own } = candidate;
    if (own !== undefined || !(model.id.endsWith(':free') || this.#asksFree(model))) return false;
    return isFree(pricesOf(candidate));
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

  /** All of the limits, or none. At once where this node has what is needed. */
  #take(list: readonly RateLimit[], model_id: string | undefined): Promise<void> | undefined {
    const taken: Held[] = [];
    try {
      for (const limit of list) {
        if (this.#holds(limit)) continue;
        const permit = this.#counting.take(limit, this.#unitsFor(limit));
        if (permit === undefined) return this.#takeRest(list, taken, model_id);
        taken.push({ limit, permit, model_id });
      }
    } catch (error) {
      giveBackAll(taken);
      throw error;
    }
    this.#held.push(...taken);
    return undefined;
  }

  async #takeRest(list: readonly RateLimit[], taken: Held[], model_id: string | undefined): Promise<void> {
    try {
      for (const limit of list) {
        if (this.#holds(limit) || taken.some((held) => held.limit === limit)) continue;
        const permit = await this.#counting.acquire(limit, this.#unitsFor(limit), this.#call.store_wait);
        if (permit !== undefined) taken.push({ limit, permit, model_id });
      }
    } catch (error) {
      giveBackAll(taken);
      throw error;
    }
    this.#held.push(...taken);
  }

  commit(tokens: number, model_id: string | undefined): void {
    for (const { limit, permit, model_id: of } of this.#release()) {
      if (limit.unit !== 'tokens') continue;
      const used = of === undefined || of === model_id ? tokens : 0;
      if (used > permit.units) permit.owe(used - permit.units);
      else permit.giveBack(permit.units - used);
    }
  }

  commitInFull(): void {
    this.#release();
  }

  release(): void {
    giveBackAll(this.#release());
  }

  #release(): Held[] {
    const held = this.#held;
    this.#held = [];
    return held;
  }
}
