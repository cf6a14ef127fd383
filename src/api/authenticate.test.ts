import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { subjectsOf } from '../accounts/budget.ts';
import { hashSecret, type StoredKey } from '../accounts/key.ts';
import { NEVER_ROTATED } from '../accounts/key-secrets.ts';
import { limits } from '../limits.ts';
import type { Budget } from '../schemas/budget.ts';
import type { BoundGuardrail } from '../schemas/guardrail.ts';
import type { Announcement } from '../storage/change-feed.ts';
import { StoreUnavailable } from '../storage/unavailable.ts';
import { type AuthenticateOptions, createAuthenticate } from './authenticate.ts';
import { KEY_ABSENT_MS_MAX, KEYS_ABSENT_MAX } from './store-memory.ts';

const NOW = Date.parse('2026-11-21T10:00:00.000Z');

function keyOf(secret: string, changes: Partial<StoredKey> = {}): StoredKey {
  return {
    id: 7,
    hash: hashSecret(secret),
    organization_id: 'organization',
    workspace_id: 'workspace',
    creator_user_id: null,
    name: 'k',
    label: 'l',
    is_management: false,
    disabled: false,
    limit_nano: null,
    limit_reset: null,
    include_byok_in_limit: false,
    expires_at: null,
    created_at: new Date(NOW).toISOString(),
    updated_at: null,
    version: 1,
    budget_mode: null,
    parent_hash: null,
    made_by: null,
    external_user: null,
    ...NEVER_ROTATED,
    ...changes,
  };
}

/** The check over a store and a change feed that the test controls. */
function setUp(
  find: (hash: string) => Promise<StoredKey | undefined>,
  findBudgets: (subjects: readonly string[]) => Promise<readonly (Budget & { subject?: string })[]> = async () => [],
  findWorkspace: AuthenticateOptions['findWorkspace'] = async () => undefined,
  serveWithoutStoreMs = 0,
  ancestors: () => readonly StoredKey[] = () => [],
) {
  let listener: (change: Announcement | 'everything') => void = () => {};
  const state = { reads: 0, current: true, at_ms: 0, confirmed_ms: 0, is_sure: true, revoked: '' };
  const authenticate = createAuthenticate({
    findKey: async (hash) => {
      state.reads += 1;
      const key = await find(hash);
      if (key === undefined) return undefined;
      const above = key.parent_hash === null ? [] : ancestors();
      const { organization_id, workspace_id, creator_user_id: userId } = key;
      const subjects = subjectsOf({ organization_id, workspace_id, user_id: userId, key_hash: hash });
      const budgets = await findBudgets(subjects);
      return {
        lineage: [key, ...above],
        budgets: budgets.map((budget) => ({ subject: subjects[0] ?? '', ...budget })),
        guardrails: [{ id: 'guardrail' } as BoundGuardrail],
        workspace: await findWorkspace({ organization_id, id_or_slug: workspace_id }),
      };
    },
    findBudgets,
    findGuardrails: async () => [{ id: 'guardrail' } as BoundGuardrail],
    findWorkspace,
    management_key: 'the management key of the environment',
    home: { organization_id: 'organization', default_workspace_id: 'workspace' },
    findOwner: async () => 'owner',
    clock: { nowMs: () => NOW + state.at_ms },
    isRevokedHere: ({ hash }) => hash === state.revoked,
    onPreviousSecret: () => {},
    memory: {
      clock: {
        monotonicMs: () => state.at_ms,
        get is_sure() {
          return state.is_sure;
        },
      },
      changes: {
        listen: (added) => {
          listener = added;
        },
        current: () => state.current,
        currentUntilMs: () => state.confirmed_ms,
      },
      serve_without_store_ms: serveWithoutStoreMs,
    },
  });
  const take = async (secret: string) => (await authenticate(secret)).key_id;
  return { state, take, authenticate, announce: (change: Announcement | 'everything') => listener(change) };
}

const aboutKey = (secret: string): Announcement => ({ topic: 'keys', id: hashSecret(secret) });

test('a key is read once and cached for a while', async () => {
  const { take, state } = setUp(async () => keyOf('a'));
  for (let times = 0; times < 3; times += 1) expect(await take('a')).toBe(7);
  expect(state.reads).toBe(1);
  state.at_ms = limits.key_cache_ms_max;
  await take('a');
  expect(state.reads).toBe(2);
});

test.each<[string, Announcement | 'everything', number]>([
  ['a change of it', aboutKey('a'), 2],
  ['everything', 'everything', 2],
  ['its creation', { topic: 'key_made', id: hashSecret('a') }, 1],
  ['a change of another key', aboutKey('b'), 1],
  ['a change of its workspace', { topic: 'policy', id: 'workspace' }, 2],
  ['the deletion of its workspace', { topic: 'workspace_gone', id: 'workspace' }, 2],
  ['a change of its organization', { topic: 'policy', id: 'organization' }, 2],
  ['a change of its owner', { topic: 'policy', id: 'user' }, 2],
  ['a change of its guardrail', { topic: 'policy', id: 'guardrail' }, 2],
  ['a change of another guardrail', { topic: 'policy', id: 'another guardrail' }, 1],
])('after %s is announced, the key was read %3$i times', async (_what, change, reads) => {
  const { take, announce, state } = setUp(async () => keyOf('a', { creator_user_id: 'user' }));
  await take('a');
  announce(change);
  await take('a');
  expect(state.reads).toBe(reads);
});

test.each<[Announcement | 'everything']>([[aboutKey('a')], ['everything']])(
  'a record read during the change %j is not cached, since it may be older',
  async (change) => {
    const waiting: ((key: StoredKey | undefined) => void)[] = [];
    const { take, announce } = setUp(() => new Promise((resolve) => void waiting.push(resolve)));
    const first = take('a');
    announce(change);
    waiting[0]?.(keyOf('a'));
    await first;
    const second = take('a');
    waiting[1]?.(keyOf('a', { disabled: true }));
    await expect(second).rejects.toMatchObject({ status: 401, message: 'This API key is disabled' });
  },
);

test('no cached record is used while changes may be missed', async () => {
  const { take, state } = setUp(async () => keyOf('a'));
  await take('a');
  state.current = false;
  await take('a');
  expect(state.reads).toBe(2);
});

test('a cached key is refused after it expires', async () => {
  const { take, state } = setUp(async () => keyOf('a', { expires_at: new Date(NOW + 1_000).toISOString() }));
  state.at_ms = 999;
  await take('a');
  state.at_ms = 1_000;
  await expect(take('a')).rejects.toMatchObject({ status: 401, message: 'This API key has expired' });
  expect(state.reads).toBe(1);
});

/** A key with the first secret `a` and the current one `b`. */
const rotated = (end: string | null): StoredKey => ({
  ...keyOf('a'),
  secret_hash: hashSecret('b'),
  previous_secret_hash: hashSecret('a'),
  previous_label: 'l',
  previous_secret_expires_at: end,
  previous_secret_used_at: null,
});

test('a cached secret that a rotation replaced is refused at its end without a read; the current one is accepted', async () => {
  const { take, state } = setUp(async () => rotated(new Date(NOW + 1_000).toISOString()));
  const refused = { status: 401, message: expect.stringContaining('secret of the API key was replaced') };
  state.at_ms = 999;
  expect([await take('a'), await take('b')]).toEqual([7, 7]);
  state.at_ms = 1_000;
  await expect(take('a')).rejects.toMatchObject(refused);
  expect(await take('b')).toBe(7);
  // Until then by another clock that is slow.
  state.at_ms = 0;
  expect(await take('a')).toBe(7);
  expect(state.reads).toBe(2);
});

test('after a change of a key all its cached secrets are read again, and an ended one is refused by any clock', async () => {
  let key = rotated(new Date(NOW + 1_000).toISOString());
  const { take, announce, state } = setUp(async () => key);
  for (const secret of ['a', 'b', 'a', 'b']) await take(secret);
  expect(state.reads).toBe(2);
  key = rotated(null);
  announce({ topic: 'keys', id: key.hash });
  state.at_ms = -1_000_000;
  await expect(take('a')).rejects.toMatchObject({ status: 401 });
  expect(await take('b')).toBe(7);
  expect(state.reads).toBe(4);
});

test('a secret before the previous one is unknown, also if the key is named by its SHA-256', async () => {
  const key = { ...rotated(null), previous_secret_hash: hashSecret('b'), secret_hash: hashSecret('c') };
  const { take } = setUp(async () => key);
  await expect(take('a')).rejects.toMatchObject({ status: 401, message: 'Invalid API key' });
  expect(await take('c')).toBe(7);
});

test('an unknown secret is looked up again after a rotation creates it', async () => {
  let key: StoredKey | undefined;
  const { take, announce } = setUp(async () => key);
  await expect(take('b')).rejects.toMatchObject({ status: 401 });
  key = rotated(null);
  announce({ topic: 'key_made', id: hashSecret('b') });
  expect(await take('b')).toBe(7);
});

test('a key revoked on this node by its hash or a label is refused with each of its secrets', async () => {
  const { take, state } = setUp(async () => rotated(new Date(NOW + 1_000).toISOString()));
  state.revoked = hashSecret('a');
  for (const secret of ['a', 'b'])
    await expect(take(secret)).rejects.toMatchObject({ message: /revoked on this node/ });
});

test('a deleted key is not cached, and neither is an unknown one', async () => {
  let key: StoredKey | undefined = keyOf('a');
  const { take, state } = setUp(async () => key);
  await take('a');
  state.current = false;
  key = undefined;
  await expect(take('a')).rejects.toMatchObject({ status: 401 });
  state.current = true;
  await expect(take('a')).rejects.toMatchObject({ status: 401 });
  expect(state.reads).toBe(2);
});

test('the number of cached keys is bounded, and the least recently used are removed', async () => {
  const { take, state } = setUp(async (hash) => ({ ...keyOf('any'), hash }));
  for (let n = 0; n < limits.key_cache_entries_max; n += 1) await take(`key ${n}`);
  await take('key 0');
  const reads = state.reads;
  await take('one more');
  await take('key 0');
  await take('key 2');
  expect(state.reads).toBe(reads + 1);
  await take('key 1');
  expect(state.reads).toBe(reads + 2);
});

test('an unknown key is looked up once in two seconds, unless it is created', async () => {
  let key: StoredKey | undefined;
  const { take, state, announce } = setUp(async () => key);
  const refused = { status: 401, message: 'Invalid API key' };
  for (let times = 0; times < 3; times += 1) await expect(take('a')).rejects.toMatchObject(refused);
  expect(state.reads).toBe(1);
  state.at_ms = KEY_ABSENT_MS_MAX;
  await expect(take('a')).rejects.toMatchObject(refused);
  expect(state.reads).toBe(2);
  key = keyOf('a');
  announce({ topic: 'key_made', id: hashSecret('a') });
  expect(await take('a')).toBe(7);
});

test('the number of remembered unknown keys is bounded', async () => {
  const { take, state } = setUp(async () => undefined);
  for (let n = 0; n <= KEYS_ABSENT_MAX; n += 1) await take(`key ${n}`).catch(() => {});
  await take('key 1').catch(() => {});
  expect(state.reads).toBe(KEYS_ABSENT_MAX + 1);
  await take('key 0').catch(() => {});
  expect(state.reads).toBe(KEYS_ABSENT_MAX + 2);
});

test('requests with one key share a read, also while the feed is disconnected, but not a read that began before', async () => {
  const waiting: ((key: StoredKey) => void)[] = [];
  const { take, state } = setUp(() => new Promise((resolve) => void waiting.push(resolve)));
  state.current = false;
  const first = take('a');
  const later = Promise.all(Array.from({ length: 200 }, () => take('a')));
  expect(waiting).toHaveLength(1);
  waiting[0]?.(keyOf('a'));
  await first;
  await nextTurn();
  expect(waiting).toHaveLength(2);
  waiting[1]?.(keyOf('a', { disabled: true }));
  await expect(later).rejects.toMatchObject({ status: 401, message: 'This API key is disabled' });
});

test('a slow read is not awaited while the feed is disconnected, since its connection may be dead', async () => {
  const { take, state } = setUp(() => (state.reads === 1 ? new Promise(() => {}) : Promise.resolve(keyOf('a'))));
  state.current = false;
  void take('a');
  state.at_ms = 101;
  expect(await take('a')).toBe(7);
});

test('a change of another record during a read does not prevent the cache of this one', async () => {
  const waiting: ((key: StoredKey) => void)[] = [];
  const { take, state, announce } = setUp(() => new Promise((resolve) => void waiting.push(resolve)));
  const first = take('a');
  announce(aboutKey('b'));
  waiting[0]?.(keyOf('a'));
  await first;
  await take('a');
  expect(state.reads).toBe(1);
});

test('many changes never hide the change of a cached record', async () => {
  const { take, state, announce } = setUp(async () => keyOf('a'));
  await take('a');
  announce(aboutKey('a'));
  for (let n = 0; n < 30_000; n += 1) announce({ topic: 'policy', id: `guardrail ${n}` });
  await take('a');
  expect(state.reads).toBe(2);
});

const BUDGET: Budget = {
  id: 'b',
  scope: 'key',
  label: 'the limit of this API key',
  reset_interval: 'daily',
  limit_nano: 5,
  include_byok: false,
};

test('a key has the budgets of all its subjects and its budget mode', async () => {
  const lookups: (readonly string[])[] = [];
  const { authenticate } = setUp(
    async () => keyOf('a', { creator_user_id: 'u', budget_mode: 'soft' }),
    async (subjects) => {
      lookups.push(subjects);
      return [BUDGET];
    },
  );
  for (let times = 0; times < 2; times += 1) {
    expect(await authenticate('a')).toMatchObject({ budgets: [BUDGET], budget_mode: 'soft' });
  }
  expect(lookups).toEqual([
    [`key:${hashSecret('a')}`, 'user:organization:u', 'workspace:workspace', 'organization:organization'],
  ]);
});

test("the environment's management key has the budgets of its organization, cached like those of a key", async () => {
  const lookups: (readonly string[])[] = [];
  let budgets = [BUDGET];
  const { authenticate, announce, state } = setUp(
    async () => undefined,
    async (subjects) => {
      lookups.push(subjects);
      return budgets;
    },
  );
  const take = () => authenticate('the management key of the environment');
  expect(await take()).toMatchObject({ kind: 'management', key_hash: null, budgets: [BUDGET], budget_mode: null });
  budgets = [];
  expect(await take()).toMatchObject({ budgets: [BUDGET] });
  announce({ topic: 'policy', id: 'a workspace' });
  expect(await take()).toMatchObject({ budgets: [] });
  expect(lookups).toEqual(
    Array(2).fill(['user:organization:owner', 'workspace:workspace', 'organization:organization']),
  );
  expect(state.reads).toBe(0);
});

test('budgets that were read during a change of a policy are not cached', async () => {
  const waiting: ((budgets: Budget[]) => void)[] = [];
  const { authenticate, announce } = setUp(
    async () => keyOf('a'),
    () => new Promise((resolve) => void waiting.push(resolve)),
  );
  const answered = async (budgets: Budget[]) => {
    const pending = authenticate('a');
    await new Promise((resolve) => setImmediate(resolve));
    return { pending, answer: () => waiting.shift()?.(budgets) };
  };
  const first = await answered([]);
  announce({ topic: 'policy', id: 'guardrail' });
  first.answer();
  expect(await first.pending).toMatchObject({ budgets: [] });
  const second = await answered([BUDGET]);
  second.answer();
  expect(await second.pending).toMatchObject({ budgets: [BUDGET] });
});

test('a key is read again when its parent changes, and a cached one expires with its parent', async () => {
  const parent = keyOf('parent', { id: 1, expires_at: new Date(NOW + 1_000).toISOString() });
  const child = keyOf('child', { id: 2, parent_hash: parent.hash, made_by: 'key' });
  const keys = new Map([parent, child].map((key) => [key.hash, key]));
  const { take, announce, state } = setUp(
    async (hash) => keys.get(hash),
    undefined,
    undefined,
    0,
    () => [keys.get(parent.hash) ?? parent],
  );
  for (const secret of ['parent', 'child', 'child']) await take(secret);
  expect(state.reads).toBe(2);
  announce(aboutKey('another'));
  await take('child');
  expect(state.reads).toBe(2);
  keys.set(parent.hash, { ...parent, disabled: true });
  announce(aboutKey('parent'));
  const disabled = { status: 401, message: 'The API key that this key was made with is disabled' };
  await expect(take('child')).rejects.toMatchObject(disabled);
  keys.set(parent.hash, parent);
  announce(aboutKey('parent'));
  state.revoked = parent.hash;
  await expect(take('child')).rejects.toMatchObject({ status: 401 });
  state.revoked = '';
  state.at_ms = 999;
  await take('child');
  const reads = state.reads;
  state.at_ms = 1_000;
  const expired = { status: 401, message: 'The API key that this key was made with has expired' };
  await expect(take('child')).rejects.toMatchObject(expired);
  expect(state.reads).toBe(reads);
});

test('budgets of a parent are labelled as those of a parent', async () => {
  const budget = (id: string, label: string, of: string) => ({
    ...BUDGET,
    id,
    label,
    subject: `key:${hashSecret(of)}`,
  });
  const { authenticate } = setUp(
    async () => keyOf('child', { parent_hash: hashSecret('parent'), made_by: 'key', name: 'trusted' }),
    async () => [
      budget('a', 'the limit of the guardrail "this API key" for this API key', 'parent'),
      budget('b', 'the limit of this API key', 'child'),
    ],
    undefined,
    0,
    () => [keyOf('parent', { id: 6, made_by: 'key', name: 'trusted' }), keyOf('root', { id: 5, is_management: true })],
  );
  const principal = await authenticate('child');
  expect(principal.budgets.map(({ id, label }) => [id, label])).toEqual([
    ['a', 'the limit of the guardrail "this API key" for the API key that this key was made with'],
    ['b', 'the limit of this API key'],
  ]);
  // A name that an application chose selects no rate limits.
  const rateName = undefined;
  expect(principal).toMatchObject({
    rate_name: rateName,
    parents: [{ key_hash: hashSecret('parent'), key_id: 6, rate_name: rateName }],
  });
});

/** A store that holds one key and then fails; cached records are used for a minute. */
async function withoutStore(serveWithoutStoreMs = 60_000, key = keyOf('a')) {
  const away = new StoreUnavailable('away');
  let answer: () => Promise<StoredKey> = async () => key;
  const made = setUp(() => answer(), undefined, undefined, serveWithoutStoreMs);
  await made.take('a');
  answer = () => Promise.reject(away);
  made.state.current = false;
  const comeBack = (stored: StoredKey) => {
    answer = async () => stored;
  };
  return { ...made, away, comeBack };
}

test('a failing store refuses all keys, unless the operator allows cached ones', async () => {
  const { take, away } = await withoutStore(0);
  await expect(take('a')).rejects.toBe(away);
});

test('a cached key is accepted without the store for the configured time since the last complete change feed', async () => {
  const { take, state, authenticate, away } = await withoutStore();
  state.confirmed_ms = 30_000;
  state.at_ms = 89_999;
  expect(await authenticate('a')).toMatchObject({ key_id: 7, is_served_without_store: true });
  state.at_ms = 90_000;
  await expect(take('a')).rejects.toBe(away);
});

test('a key that is not cached is refused without the store', async () => {
  const { take, away } = await withoutStore();
  await expect(take('b')).rejects.toBe(away);
});

test('a changed key is refused without the store', async () => {
  const { take, announce, away } = await withoutStore();
  announce(aboutKey('a'));
  await expect(take('a')).rejects.toBe(away);
});

test('an expired or revoked key is refused without the store', async () => {
  const expiring = await withoutStore(60_000, keyOf('a', { expires_at: new Date(NOW + 1_000).toISOString() }));
  expiring.state.at_ms = 1_000;
  await expect(expiring.take('a')).rejects.toMatchObject({ status: 401, message: 'This API key has expired' });
  const revoked = await withoutStore();
  revoked.state.revoked = hashSecret('a');
  await expect(revoked.take('a')).rejects.toMatchObject({ status: 401 });
});

test('no key is accepted without the store after the machine slept, since missed changes are unknown', async () => {
  const { take, state, away } = await withoutStore();
  state.is_sure = false;
  await expect(take('a')).rejects.toBe(away);
});

test('the store is used again as soon as it answers', async () => {
  const { take, authenticate, comeBack } = await withoutStore();
  expect(await authenticate('a')).toHaveProperty('is_served_without_store');
  comeBack(keyOf('a'));
  expect(await authenticate('a')).not.toHaveProperty('is_served_without_store');
  comeBack(keyOf('a', { disabled: true }));
  await expect(take('a')).rejects.toMatchObject({ status: 401 });
});
