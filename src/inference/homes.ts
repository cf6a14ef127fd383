import { type Candidate, healthId } from '../routing/candidate.ts';
import { type Conversation, cachesCheaply, conversationOf, type Stickiness } from '../routing/stickiness.ts';
import type { Call, Clock } from './call.ts';

/** Where the conversation of one call is at home: what it was given before, as long as that is of use. */
export interface CallHome {
  /** Whether the last turn of the conversation was answered there. */
  isAt(candidate: Candidate): boolean;
  /** The model that a router gave the conversation. */
  ofRouter(router: string): string | undefined;
  /** An answer came from there. A conversation that no client names stays only where its prompt was found in a cache. */
  keep(candidate: Candidate, cached_tokens: number): void;
}

/** The homes of conversations at this process. What it costs to tell conversations apart is spent only where it may matter. */
export function homeOf({ principal, request }: Call, stickiness: Stickiness, clock: Clock): CallHome {
  let conversation: Conversation | null | undefined;
  const routers: string[] = [];
  let looked: { name: string; home: string | undefined } | undefined;
  const account = principal.organization_id;
  const known = () => {
    if (conversation === undefined) conversation = conversationOf(request) ?? null;
    return conversation;
  };
  const find = (name: string) => {
    if (looked?.name !== name) {
      const id = stickiness.isEmpty() ? undefined : known()?.id;
      const home = id === undefined ? undefined : stickiness.home({ account, name, conversation: id }, clock.now_ms());
      looked = { name, home };
    }
    return looked.home;
  };
  return {
    isAt: (candidate) => find(candidate.model.id) === healthId(candidate),
    ofRouter(router) {
      routers.push(router);
      return find(router);
    },
    keep(candidate, cached_tokens) {
      const is_cached = cachesCheaply(candidate);
      if (!is_cached) return;
      const name = candidate.model.id;
      const is_home = looked?.name === name && looked.home === healthId(candidate);
      const names_itself = request.session_id != null && request.session_id !== '';
      if (!names_itself && cached_tokens === 0 && !is_home) return;
      const one = known();
      if (one === null) return;
      const now_ms = clock.now_ms();
      stickiness.keep({ account, name, conversation: one.id }, healthId(candidate), now_ms);
      for (const router of routers) stickiness.keep({ account, name: router, conversation: one.id }, name, now_ms);
    },
  };
}
