import { expect, test } from 'vitest';
import { placeOf, type StoredByok } from '../accounts/byok.ts';
import { createVault } from '../accounts/vault.ts';
import type { Principal } from '../http/principal.ts';
import { limits } from '../limits.ts';
import { localChangeFeed } from '../storage/change-feed.ts';
import { BYOK_REMEMBERED_MAX, createOwnCredentials } from './own-credentials.ts';

const vault = createVault('a secret of the gateway');

function stored(id: string, secret: string, over: Partial<StoredByok> = {}): StoredByok {
  return {
    id,
    seq: 1,
    version: 1,
    organization_id: 'org',
    workspace_id: 'w',
    provider: 'acme',
    label: 'sk-...abc',
    sealed: vault.seal(secret, placeOf({ organization_id: 'org', id })),
    name: null,
    disabled: false,
    is_fallback: false,
    allow_shared_fallback: false,
    sort_order: 0,
    allowed_models: null,
    allowed_api_key_hashes: null,
    allowed_user_ids: null,
    declared_zdr: null,
    declared_region: null,
    is_byok_only: false,
    created_at: '2026-11-21T00:00:00.000Z',
    updated_at: null,
    ...over,
  };
}

function memory(rows: (workspaceId: string) => StoredByok[]) {
  const changes = localChangeFeed();
  const reads: string[] = [];
  const logged: string[] = [];
  const state = { now_ms: 0, is_current: true };
  let answer: Promise<unknown> = Promise.resolve();
  const credentials = createOwnCredentials({
    findEnabled: async (workspaceId) => {
      reads.push(workspaceId);
      const stored = rows(workspaceId);
      await answer;
      return stored;
    },
    vault,
    takesJson: (provider) => provider === 'parts',
    memory: {
      clock: { monotonicMs: () => state.now_ms, is_sure: true },
      changes: { listen: changes.listen, current: () => state.is_current, currentUntilMs: () => state.now_ms },
      serve_without_store_ms: 0,
    },
    log: { warn: (facts, message) => void logged.push(JSON.stringify(facts), message), error: () => undefined },
  });
  const of = (workspaceId: string) => credentials({ workspace_id: workspaceId } as Principal);
  const wait = (until: Promise<unknown>) => {
    answer = until;
  };
  return { of, reads, logged, state, changes, wait };
}

test('a workspace is read once in the cache time, also one without credentials', async () => {
  const { of, reads, state } = memory((id) => (id === 'w' ? [stored('1', 'sk-one')] : []));
  expect((await of('w'))[0]?.secret()).toBe('sk-one');
  expect(await of('none')).toEqual([]);
  expect(of('w')).not.toBeInstanceOf(Promise);
  expect(of('none')).toEqual([]);
  expect(reads).toEqual(['w', 'none']);
  state.now_ms = limits.key_cache_ms_max;
  await of('w');
  expect(reads).toEqual(['w', 'none', 'w']);
});

test('a change removes its workspace from the cache, and results of earlier reads are not cached', async () => {
  const { of, reads, changes, wait } = memory(() => [stored('1', 'sk-one')]);
  await of('w');
  await of('v');
  await changes.deliver([{ topic: 'policy', id: 'w' }]);
  expect(of('v')).not.toBeInstanceOf(Promise);
  let answer = () => {};
  wait(
    new Promise<void>((resolve) => {
      answer = resolve;
    }),
  );
  const late = of('w');
  await changes.deliver([{ topic: 'policy', id: 'w' }]);
  answer();
  await late;
  expect(of('w')).toBeInstanceOf(Promise);
  await changes.deliver([{ topic: 'keys', id: 'w' }]);
  expect(reads).toEqual(['w', 'v', 'w', 'w']);
});

test('no cached entry is used while changes may be missed', async () => {
  const { of, reads, state } = memory(() => []);
  await of('w');
  state.is_current = false;
  await of('w');
  expect(reads).toEqual(['w', 'w']);
});

test('the cache is bounded in credentials and workspaces, and the oldest are removed', async () => {
  const perWorkspace = 99;
  const { of, reads } = memory((id) => Array.from({ length: perWorkspace }, (_, nth) => stored(`${id}-${nth}`, 'sk')));
  const fit = BYOK_REMEMBERED_MAX / (perWorkspace + 1);
  for (let nth = 0; nth <= fit; nth += 1) await of(`w${nth}`);
  expect(of(`w${fit}`)).not.toBeInstanceOf(Promise);
  expect(of('w1')).not.toBeInstanceOf(Promise);
  expect(of('w0')).toBeInstanceOf(Promise);
  expect(reads.length).toBe(fit + 2);
});

test('an unreadable or JSON credential has a reason without its content', async () => {
  const strange = stored('2', 'sk-two', { sealed: createVault('another secret').seal('sk-two', 'byok org 2') });
  const { of, logged } = memory(() => [strange, stored('3', '{"region":"eu"}')]);
  const [unreadable, json] = await of('w');
  expect(unreadable?.unusable).toBe("the workspace's credential cannot be read by this gateway");
  expect(json?.unusable).toMatch(/is JSON text/);
  expect(() => json?.secret()).toThrow('JSON');
  expect(logged).toHaveLength(2);
});

test('printing a credential does not reveal it', async () => {
  const { of } = memory(() => [stored('1', 'sk-secret-one')]);
  const [credential] = await of('w');
  expect(JSON.stringify(credential)).not.toContain('sk-secret-one');
  expect(JSON.stringify(credential)).not.toContain('v1.');
});
