import { type Candidate, healthId } from '../../routing/candidate.ts';
import {
  type Conversation,
  cachesCheaply,
  conversationOf,
  type HomeKey,
  type Stickiness,
} from '../../routing/stickiness.ts';
import type { Call, Clock } from '../call.ts';

/** Where the conversation of one call is at home: what it was given before, as long as that is of use. */
export interface SessionAffinity {
  /** Whether the last turn of the conversation was answered there. */
  isAt(candidate: Candidate): boolean;
  /** The model that a router gave the conversation. */
  ofRouter(router: string): string | undefined;
  /** An answer came from there. A conversation that no client names stays only where its prompt was found in a cache. */
  keep(candidate: Candidate, cached_tokens: number): void;
}

/** The homes of conversations at this process. What it costs to tell conversations apart is spent only where it may matter. */
export class ConversationAffinity implements SessionAffinity {
  readonly #call: Call;
  readonly #stickiness: Stickiness;
  readonly #clock: Clock;
  #conversation: Conversation | null | undefined;
  /** Absent: no router was asked for. */
  #routers: string[] | undefined;
  #looked: { name: string; home: string | undefined } | undefined;

  constructor(call: Call, stickiness: Stickiness, clock: Clock) {
    this.#call = call;
    this.#stickiness = stickiness;
    this.#clock = clock;
  }

  #known(): Conversation | null {
    if (this.#conversation === undefined) this.#conversation = conversationOf(this.#call.request) ?? null;
    return this.#conversation;
  }

  #keyOf(name: string, { id }: Conversation): HomeKey {
    return { account: this.#call.principal.organization_id, name, conversation: id };
  }

  #find(name: string): string | undefined {
    if (this.#looked?.name !== name) {
      const one = this.#stickiness.isEmpty() ? null : this.#known();
      const home = one === null ? undefined : this.#stickiness.home(this.#keyOf(name, one), this.#clock.now_ms());
      this.#looked = { name, home };
    }
    return this.#looked.home;
  }

  isAt(candidate: Candidate): boolean {
    return this.#find(candidate.model.id) === healthId(candidate);
  }

  ofRouter(router: string): string | undefined {
    this.#routers ??= [];
    this.#routers.push(router);
    return this.#find(router);
  }

  keep(candidate: Candidate, cached_tokens: number): void {
    if (!cachesCheaply(candidate)) return;
    const { session_id } = this.#call.request;
    const name = candidate.model.id;
    const is_home = this.#looked?.name === name && this.#looked.home === healthId(candidate);
    const names_itself = session_id != null && session_id !== '';
    if (!names_itself && cached_tokens === 0 && !is_home) return;
    const one = this.#known();
    if (one === null) return;
    const now_ms = this.#clock.now_ms();
    this.#stickiness.keep(this.#keyOf(name, one), healthId(candidate), now_ms);
    for (const router of this.#routers ?? []) this.#stickiness.keep(this.#keyOf(router, one), name, now_ms);
  }
}
