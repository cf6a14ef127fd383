import { expect, test } from 'vitest';
import { describeStores } from '../../test/ledger/store-variants.ts';
import { createSecret, type StoredKey } from '../accounts/key.ts';
import { NEVER_ROTATED } from '../accounts/key-secrets.ts';
import { type Database, isReferenceViolation, isUniqueViolation } from './database.ts';
import { keyStore } from './keys.ts';
import { organizationStore } from './organizations.ts';

const AT = '2026-11-21T10:00:00.000Z';

describeStores('organizations and keys', ({ open }) => {
  async function home() {
    const database = await open();
    const made = await organizationStore(database.queries).insertFirst({ at: AT });
    const key = (over: Partial<StoredKey> = {}): Omit<StoredKey, 'id' | 'version'> => {
      const { hash, label } = createSecret();
      return {
        hash,
        label,
        organization_id: made.organization_id,
        workspace_id: made.default_workspace_id,
        creator_user_id: made.owner_user_id,
        name: 'a key',
        is_management: false,
        disabled: false,
        limit_nano: null,
        limit_reset: null,
        budget_mode: null,
        parent_hash: null,
        made_by: null,
        external_user: null,
        ...NEVER_ROTATED,
        include_byok_in_limit: false,
        expires_at: null,
        created_at: AT,
        updated_at: null,
        ...over,
      };
    };
    return { database, made, key, keys: keyStore(database.queries) };
  }

  const offer = () => ({ management: createSecret(), ordinary: { ...createSecret(), limit_nano: 5_000_000_000 } });
  const storedKeys = (database: Database) =>
    database.queries.selectFrom('api_keys').select(['name', 'is_management', 'limit_nano']).orderBy('id').execute();

  test('the first start creates one home and one key of each kind, and concurrent starts share them', async () => {
    const database = await open();
    const store = organizationStore(database.queries);
    const homes = await Promise.all(Array.from({ length: 6 }, () => store.insertFirst({ at: AT })));
    expect(new Set(homes.map(({ default_workspace_id }) => default_workspace_id)).size).toBe(1);
    expect(await storedKeys(database)).toEqual([]);
    const kept: unknown[] = [];
    const starts = homes.map((home) =>
      store.insertFirstKeys({ at: AT, home, offered: offer() }, (stored) => kept.push(stored)),
    );
    const stored = await Promise.all(starts);
    // Both belong to the start that prints them together.
    expect(stored.filter(({ management, ordinary }) => management && ordinary)).toHaveLength(1);
    expect(stored.filter(({ management, ordinary }) => management || ordinary)).toHaveLength(1);
    expect(kept).toEqual([{ management: true, ordinary: true }]);
    const again = await store.insertFirst({ at: AT });
    expect(await store.insertFirstKeys({ at: AT, home: again, offered: offer() }, () => {})).toEqual({
      management: false,
      ordinary: false,
    });
    expect(await storedKeys(database)).toEqual([
      { name: 'Management key', is_management: true, limit_nano: null },
      { name: 'default', is_management: false, limit_nano: 5_000_000_000 },
    ]);
  });

  test('a start creates no ordinary key if there is any key, and none of either kind if they cannot be saved', async () => {
    const { database, made: first, key, keys } = await home();
    const store = organizationStore(database.queries);
    const failed = store.insertFirstKeys({ at: AT, home: first, offered: offer() }, () => {
      throw new Error('no room');
    });
    await expect(failed).rejects.toThrow('no room');
    expect(await storedKeys(database)).toEqual([]);
    await keys.insert(key({ name: 'by a command' }));
    expect(await store.insertFirstKeys({ at: AT, home: first, offered: offer() }, () => {})).toEqual({
      management: true,
      ordinary: false,
    });
  });

  test('the default workspace has booleans, JSON and numbers of the right types', async () => {
    const { database, made } = await home();
    const workspace = await organizationStore(database.queries).findDefaultWorkspace(made.organization_id);
    expect(workspace).toMatchObject({
      slug: 'default',
      is_default: true,
      is_observability_io_logging_enabled: false,
      io_logging_api_key_ids: null,
      io_logging_sampling_rate_bp: 10_000,
    });
    const updated = await database.queries
      .updateTable('workspaces')
      .set({ io_logging_api_key_ids: JSON.stringify([3, 5]) })
      .returning(['io_logging_api_key_ids', 'is_default'])
      .executeTakeFirstOrThrow();
    expect(updated).toEqual({ io_logging_api_key_ids: [3, 5], is_default: true });
  });

  test('a key is read by its hash, as it was stored', async () => {
    const { keys, key } = await home();
    const stored = await keys.insert(
      key({ limit_nano: 9_007_199_000_000_000, limit_reset: 'weekly', include_byok_in_limit: true, expires_at: AT }),
    );
    expect(await keys.findByHash(stored.hash)).toEqual(stored);
    expect(await keys.findByHash('0'.repeat(64))).toBeUndefined();
  });

  test('keys created concurrently get different numbers', async () => {
    const { keys, key } = await home();
    const made = await Promise.all(Array.from({ length: 8 }, () => keys.insert(key())));
    expect(made.map(({ id }) => id).sort((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  });

  test('a second key with the same hash is refused', async () => {
    const { keys, key } = await home();
    const stored = await keys.insert(key());
    const refused = await keys.insert(key({ hash: stored.hash })).catch((error: unknown) => error);
    expect(isUniqueViolation(refused)).toBe(true);
    expect(isUniqueViolation(new Error('other'))).toBe(false);
  });

  test('usage is summed over all time and since the start of each window', async () => {
    const { database, keys } = await home();
    const day = (scopeId: string, date: string, usageNano: number) => ({
      scope: 'key',
      scope_id: scopeId,
      day: date,
      usage_nano: usageNano,
      byok_usage_nano: usageNano * 10,
      requests: 1,
    });
    await database.queries
      .insertInto('usage_days')
      .values([
        day('k', '2026-10-31', 1),
        day('k', '2026-11-01', 2),
        day('k', '2026-11-15', 4),
        day('k', '2026-11-16', 8),
        day('k', '2026-11-21', 16),
        day('other', '2026-11-21', 1000),
      ])
      .execute();
    const starts = { daily: '2026-11-21', weekly: '2026-11-16', monthly: '2026-11-01', at: 0 };
    expect(await keys.findUsage('k', starts)).toEqual({
      usage: { total: 31, daily: 16, weekly: 24, monthly: 30 },
      byok_usage: { total: 310, daily: 160, weekly: 240, monthly: 300 },
    });
    expect(await keys.findUsage('unused', starts)).toMatchObject({ usage: { total: 0, daily: 0 } });
  });

  test('a key’s ancestors are its parent and the parent’s ancestors, and its descendants are deleted with it', async () => {
    const { keys, key, database } = await home();
    const made = [await keys.insert(key())];
    for (let depth = 0; depth < 3; depth += 1) {
      made.push(await keys.insert(key({ parent_hash: made.at(-1)?.hash ?? null, made_by: 'key' })));
    }
    const [root, child, , last] = made;
    const other = await keys.insert(key());
    const hashes = (list: readonly { hash: string }[]) => list.map(({ hash }) => hash);
    expect(await keys.findAncestors(last?.hash ?? '')).toEqual(made.slice(0, 3).reverse());
    expect(await keys.findAncestors(root?.hash ?? '')).toEqual([]);
    expect(hashes(await keys.findDescendants([child?.hash ?? '', other.hash]))).toEqual(hashes(made.slice(2)));
    expect(await keys.countDescendants(root?.hash ?? '')).toBe(3);
    const { organization_id } = other;
    const refused = await keys.delete({ organization_id, keys: made.slice(0, 1) }).catch((error: unknown) => error);
    expect(isReferenceViolation(refused)).toBe(true);
    await keys.delete({ organization_id, keys: made });
    expect(hashes(await keys.listBy({ organization_id }))).toEqual([other.hash]);
    // Their spending counts against limits that start later.
    const kept = await database.queries.selectFrom('api_key_ancestors').selectAll().execute();
    expect(kept).toHaveLength(6);
  });
});
