import { type Candidate, healthId } from '../../routing/candidate.ts';
import { type Conversation, conversationOf, type HomeKey, type Stickiness } from '../../routing/stickiness.ts';
import type { Call, Clock } from '../call.ts';

/** The endpoint and the model that answered the conversation of one call before, while its cache there is of use. */
export interface SessionAffinity {
  /** Whether this endpoint answered the last turn of the conversation. */
  isAt(candidate: Candidate): boolean;
  /** The model that the router chose for the conversation before. */
  ofRouter(router: string): string | undefined;
  /** Remembers an endpoint that answered and caches cheaply (`cachesCheaply`). A conversation without a client's name for it is kept only if its prompt was cached. */
  keep(candidate: Candidate, cachedTokens: number): void;
}

/** Affinity in the memory of this process. Identifies the conversation only if the result can matter. */
export class ConversationAffinity implements SessionAffinity {
  readonly #call: Call;
  readonly #stickiness: Stickiness;
  readonly #clock: Clock;
  #conversation: Conversation | null | undefined;
  /** The routers that the request named. */
  #routers: string[] | undefined;
  /** The last look-up. */
  #lookup: { name: string; home: string | undefined } | undefined;

  constructor(call: Call, stickiness: Stickiness, clock: Clock) {
    this.#call = call;
    this.#stickiness = stickiness;
    this.#clock = clock;
  }

  /** Null if the request has no conversation. */
  #identified(): Conversation | null {
    if (this.#conversation === undefined) this.#conversation = conversationOf(this.#call.request) ?? null;
    return this.#conversation;
  }

  #keyOf(name: string, { id }: Conversation): HomeKey {
    return { account: this.#call.principal.organization_id, name, conversation: id };
  }

  #find(name: string): string | undefined {
    if (this.#lookup?.name !== name) {
      const conversation = this.#stickiness.isEmpty() ? null : this.#identified();
      const home = conversation && this.#stickiness.home(this.#keyOf(name, conversation), this.#clock.nowMs());
      this.#lookup = { name, home: home ?? undefined };
    }
    return this.#lookup.home;
  }

  isAt(candidate: Candidate): boolean {
    return this.#find(candidate.model.id) === healthId(candidate);
  }

  ofRouter(router: string): string | undefined {
    this.#routers ??= [];
    this.#routers.push(router);
    return this.#find(router);
  }

  keep(candidate: Candidate, cachedTokens: number): void {
    const { session_id } = this.#call.request;
    const name = candidate.model.id;
    const isHome = this.#lookup?.name === name && this.#lookup.home === healthId(candidate);
    const isNamed = session_id != null && session_id !== '';
    if (!isNamed && cachedTokens === 0 && !isHome) return;
    const conversation = this.#identified();
    if (conversation === null) return;
    const nowMs = this.#clock.nowMs();
    this.#stickiness.keep(this.#keyOf(name, conversation), healthId(candidate), nowMs);
    for (const router of this.#routers ?? []) this.#stickiness.keep(this.#keyOf(router, conversation), name, nowMs);
  }
}
