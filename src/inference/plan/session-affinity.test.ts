import { expect, test } from 'vitest';
import { endpoint, model, PROVIDERS } from '../../../test/routing/routing-fixture.ts';
import type { Candidate } from '../../routing/candidate.ts';
import { cachesCheaply, createStickiness, STICKY_MS } from '../../routing/stickiness.ts';
import type { ChatRequest } from '../../schemas/inner.ts';
import type { Call } from '../call.ts';
import { ConversationAffinity, type SessionAffinity } from './session-affinity.ts';

const candidateAt = (provider: string, inputCacheRead?: number): Candidate => {
  const pricing = {
    prompt: 10,
    completion: 10,
    ...(inputCacheRead === undefined ? {} : { input_cache_read: inputCacheRead }),
  };
  const one = endpoint('a/x', provider, 10, { pricing });
  return {
    model: model('a/x', [one]),
    endpoint: one,
    provider: PROVIDERS[provider] as Candidate['provider'],
    excluded: undefined,
  };
};
const CHEAP = candidateAt('alpha', 1);

/** Calls of one conversation, one after another, with a scripted clock. */
function conversation() {
  const stickiness = createStickiness();
  const clock = { at_ms: 0, nowMs: () => clock.at_ms, monotonicMs: () => clock.at_ms };
  const next = (more: Partial<ChatRequest> = {}, organizationId = 'o'): SessionAffinity => {
    const request = { messages: [{ role: 'user', content: 'x' }], ...more } as ChatRequest;
    return new ConversationAffinity(
      { principal: { organization_id: organizationId }, request } as unknown as Call,
      stickiness,
      clock,
    );
  };
  return { clock, next };
}

test('session affinity begins with a cached prompt', () => {
  const { next } = conversation();
  next().keep(CHEAP, 0);
  expect(next().isAt(CHEAP)).toBe(false);
  next().keep(CHEAP, 5);
  expect(next().isAt(CHEAP)).toBe(true);
  expect(next().isAt(candidateAt('beta', 1))).toBe(false);
});

test('session affinity begins with the first answer if the client names the conversation', () => {
  const { next } = conversation();
  next({ session_id: 's' }).keep(CHEAP, 0);
  expect(next({ session_id: 's' }).isAt(CHEAP)).toBe(true);
  expect(next({ session_id: 's' }, 'p').isAt(CHEAP)).toBe(false);
});

test.each<[string, Candidate]>([
  ['costs as much as the prompt', candidateAt('alpha', 10)],
  ['has no price', candidateAt('alpha')],
])('session affinity does not begin if a cache %s', (_title, candidate) => {
  expect(cachesCheaply(candidate)).toBe(false);
  expect(cachesCheaply(CHEAP)).toBe(true);
});

test('session affinity continues with each answer of the endpoint, cached or not', () => {
  const { clock, next } = conversation();
  next().keep(CHEAP, 5);
  clock.at_ms = STICKY_MS - 1;
  const second = next();
  expect(second.isAt(CHEAP)).toBe(true);
  second.keep(CHEAP, 0);
  clock.at_ms = STICKY_MS + 1;
  expect(next().isAt(CHEAP)).toBe(true);
  clock.at_ms = 3 * STICKY_MS;
  expect(next().isAt(CHEAP)).toBe(false);
});

test('session affinity fixes the model that a router chose', () => {
  const { next } = conversation();
  const first = next({ session_id: 's' });
  expect(first.ofRouter('gateway/auto')).toBeUndefined();
  first.keep(CHEAP, 0);
  expect(next({ session_id: 's' }).ofRouter('gateway/auto')).toBe('a/x');
  expect(next({ session_id: 's' }).ofRouter('gateway/free')).toBeUndefined();
  expect(next({ session_id: 't' }).ofRouter('gateway/auto')).toBeUndefined();
});

test('session affinity does not exist for a conversation without messages', () => {
  const { next } = conversation();
  const silent = { messages: [] };
  next(silent).keep(CHEAP, 5);
  expect(next(silent).isAt(CHEAP)).toBe(false);
});
