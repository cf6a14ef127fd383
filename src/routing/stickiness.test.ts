import { describe, expect, test } from 'vitest';
import { endpoint, model, PROVIDERS } from '../../test/routing/routing-fixture.ts';
import type { ChatRequest, Message } from '../schemas/inner.ts';
import type { Candidate } from './candidate.ts';
import {
  CONVERSATION_CHARS_MAX,
  cachesCheaply,
  conversationOf,
  createStickiness,
  STICKY_CONVERSATIONS_MAX,
  STICKY_MS,
} from './stickiness.ts';

const say = (role: Message['role'], content: Message['content'] = 'x'): Message => ({ role, content: content ?? null });
const idOf = (messages: Message[], more: Partial<ChatRequest> = {}) => conversationOf({ messages, ...more })?.id;

describe('a conversation', () => {
  const first = [say('system', 'be brief'), say('user', 'hello')];
  test('is identified by its first messages', () => {
    expect(idOf([...first, say('assistant', 'hi'), say('user', 'more')])).toBe(idOf(first));
    expect(idOf([say('system', 'be long'), say('user', 'hello')])).not.toBe(idOf(first));
    expect(idOf([say('system', 'be brief'), say('user', 'bye')])).not.toBe(idOf(first));
    expect(idOf([say('user', 'hello')])).not.toBe(idOf(first));
    expect(idOf([say('system', 'be brief'), say('user', [{ type: 'text', text: 'hello' }])])).toBe(idOf(first));
  });
  test('is identified by more than the first characters of long messages', () => {
    const long = (end: string) => [say('user', 'x'.repeat(CONVERSATION_CHARS_MAX) + end)];
    expect(idOf(long('ab'))).not.toBe(idOf(long('abc')));
    expect(idOf(long(''))).not.toBe(idOf([say('user', 'x')]));
  });
  test('is identified by the client’s id if there is one', () => {
    const other = [say('user', 'other')];
    expect(idOf(first, { session_id: 's' })).toBe(idOf(other, { session_id: 's' }));
    expect(idOf(first, { prompt_cache_key: 'k' })).toBe(idOf(other, { prompt_cache_key: 'k' }));
    expect(idOf(first, { session_id: 's', prompt_cache_key: 'k' })).toBe(idOf(other, { session_id: 's' }));
    expect(idOf(first, { session_id: 's' })).not.toBe(idOf(first, { prompt_cache_key: 's' }));
    expect(idOf(first, { session_id: '' })).toBe(idOf(first));
  });
  test('is identified by a hash: a part of a client’s string would keep the whole string in memory', () => {
    const long = 'x'.repeat(100_000);
    for (const more of [{ session_id: 's' }, { session_id: long }, { prompt_cache_key: long }, {}]) {
      expect(idOf([say('user', long)], more)).toMatch(/^[\w-]{43}$/);
    }
  });
  test('without a user message is none', () => {
    expect(idOf([say('system', 'be brief')])).toBeUndefined();
  });
});

describe('a remembered endpoint', () => {
  const key = (conversation: string, over = {}) => ({ account: 'o', name: 'a/x', conversation, ...over });
  test('is kept for a while after the last answer', () => {
    const stickiness = createStickiness();
    expect(stickiness.isEmpty()).toBe(true);
    stickiness.keep(key('1'), 'here', 0);
    expect(stickiness.home(key('1'), STICKY_MS - 1)).toBe('here');
    expect(stickiness.home(key('1'), STICKY_MS)).toBeUndefined();
    stickiness.keep(key('1'), 'here', 1_000);
    expect(stickiness.home(key('1'), STICKY_MS)).toBe('here');
    stickiness.keep(key('1'), 'there', 1_000);
    expect(stickiness.home(key('1'), 1_000)).toBe('there');
  });
  test('belongs to one account and one model', () => {
    const stickiness = createStickiness();
    stickiness.keep(key('1'), 'here', 0);
    expect(stickiness.home(key('1', { account: 'p' }), 0)).toBeUndefined();
    expect(stickiness.home(key('1', { name: 'a/y' }), 0)).toBeUndefined();
    expect(stickiness.home(key('2'), 0)).toBeUndefined();
  });
  test('is bounded in number, and the least recently used is removed', () => {
    const stickiness = createStickiness();
    stickiness.keep(key('first'), 'here', 0);
    stickiness.keep(key('second'), 'here', 0);
    for (let n = 2; n < STICKY_CONVERSATIONS_MAX; n += 1) stickiness.keep(key(`${n}`), 'here', 0);
    stickiness.keep(key('first'), 'here', 0);
    stickiness.keep(key('last'), 'here', 0);
    expect(stickiness.home(key('first'), 0)).toBe('here');
    expect(stickiness.home(key('second'), 0)).toBeUndefined();
    stickiness.keep(key('5'), 'here', 0);
    expect(stickiness.home(key('2'), 0)).toBe('here');
  });
});

test.each<[number | undefined, boolean]>([
  [5, true],
  [10, false],
  [undefined, false],
])('whether a cache price of %j is low for a prompt price of 10: %j', (inputCacheRead, expected) => {
  const one = endpoint('a/x', 'alpha', 10, {
    pricing: {
      prompt: 10,
      completion: 10,
      ...(inputCacheRead === undefined ? {} : { input_cache_read: inputCacheRead }),
    },
  });
  const candidate = { model: model('a/x', [one]), endpoint: one, provider: PROVIDERS['alpha'] } as Candidate;
  expect(cachesCheaply(candidate)).toBe(expected);
});
