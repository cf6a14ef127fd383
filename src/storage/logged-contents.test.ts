import { expect, test } from 'vitest';
import { describeStores } from '../../test/ledger/store-variants.ts';
import type { Database } from './database.ts';
import { type LoggedContentRow, loggedContentStore } from './logged-contents.ts';
import { organizationStore } from './organizations.ts';
import { workspaceStore } from './workspaces.ts';

const at = (second: number) => `2026-01-01T00:00:${String(second).padStart(2, '0')}.000Z`;
const boundless = { workspace_chars: 1_000_000, chars: 1_000_000 };

describeStores('contents of calls', ({ open }) => {
  async function setUp() {
    const database: Database = await open();
    const { queries } = database;
    const home = await organizationStore(queries).insertFirst({ at: at(0) });
    const { default_workspace_id, organization_id } = home;
    const contents = loggedContentStore(queries);
    const row = (id: string, over: Partial<LoggedContentRow> = {}): LoggedContentRow => ({
      id,
      organization_id,
      workspace_id: default_workspace_id,
      key_hash: 'hash',
      user_id: null,
      created_at: at(1),
      sealed: id,
      expires_at: at(50),
      ...over,
    });
    const addWorkspace = async (slug: string) => {
      const made = { organization_id, name: slug, slug, created_by: null, created_at: at(0) };
      return (await workspaceStore(queries).insert(made)).id;
    };
    const left = async () =>
      (await queries.selectFrom('logged_contents').select('id').orderBy('id').execute()).map(({ id }) => id);
    return { queries, contents, row, addWorkspace, left, organization_id, workspace_id: default_workspace_id };
  }

  test('are read by their organization alone, until they expire', async () => {
    const { contents, row, organization_id } = await setUp();
    await contents.insert([row('a')]);
    expect(await contents.find('a', organization_id, at(49))).toMatchObject({ id: 'a', sealed: 'a', key_hash: 'hash' });
    expect(await contents.find('a', organization_id, at(50))).toBeUndefined();
    expect(await contents.find('a', 'another', at(49))).toBeUndefined();
    expect(await contents.find('b', organization_id, at(49))).toBeUndefined();
  });

  test('that are inserted a second time are ignored', async () => {
    const { contents, row, organization_id } = await setUp();
    await contents.insert([row('a')]);
    await contents.insert([row('a', { sealed: 'other' }), row('b')]);
    expect(await contents.find('a', organization_id, at(1))).toMatchObject({ sealed: 'a' });
    expect(await contents.find('b', organization_id, at(1))).toBeDefined();
  });

  test('are listed by workspace in pages, newest first, without older and expired ones', async () => {
    const { contents, row, addWorkspace, workspace_id } = await setUp();
    const other = await addWorkspace('other');
    await contents.insert([
      row('old', { created_at: at(1) }),
      row('b', { created_at: at(5) }),
      row('a', { created_at: at(5) }),
      row('c', { created_at: at(6) }),
      row('expired', { created_at: at(7), expires_at: at(8) }),
      row('theirs', { created_at: at(6), workspace_id: other }),
    ]);
    const page = { workspace_id, since: at(2), now: at(10), limit: 2 };
    const first = await contents.list(page);
    expect(first.map(({ id }) => id)).toEqual(['c', 'b']);
    const second = await contents.list({ ...page, after: first[1] });
    expect(second.map(({ id }) => id)).toEqual(['a']);
    expect(await contents.list({ ...page, after: second[0] })).toEqual([]);
  });

  test('are deleted when they expire, and the oldest above the size bounds of a workspace and of all', async () => {
    const { contents, row, addWorkspace, left } = await setUp();
    const other = await addWorkspace('other');
    const of = (id: string, second: number, workspaceId?: string) =>
      row(id, {
        created_at: at(second),
        expires_at: at(second + 30),
        sealed: 'x'.repeat(10),
        ...(workspaceId === undefined ? {} : { workspace_id: workspaceId }),
      });
    await contents.insert([of('a1', 1), of('a2', 2), of('a3', 3), of('b1', 1, other), of('b9', 9, other)]);
    await contents.sweep(at(31), boundless);
    expect(await left()).toEqual(['a2', 'a3', 'b9']);
    await contents.sweep(at(31), { workspace_chars: 10, chars: 100 });
    expect(await left()).toEqual(['a3', 'b9']);
    await contents.sweep(at(31), { workspace_chars: 10, chars: 10 });
    expect(await left()).toEqual(['b9']);
  });

  test.each([1, 2, 3, 5])('are summed the same in portions of %i rows', async (rowsAtOnce) => {
    const { contents, row, addWorkspace, left } = await setUp();
    const other = await addWorkspace('other');
    const of = (id: string, second: number, workspaceId?: string) =>
      row(id, {
        created_at: at(second),
        sealed: 'x'.repeat(10),
        ...(workspaceId === undefined ? {} : { workspace_id: workspaceId }),
      });
    await contents.insert([of('a1', 1), of('a2', 1), of('a3', 2), of('b1', 1, other), of('b2', 2, other)]);
    await contents.sweep(at(0), { workspace_chars: 30, chars: 50 }, rowsAtOnce);
    expect(await left()).toEqual(['a1', 'a2', 'a3', 'b1', 'b2']);
    await contents.sweep(at(0), { workspace_chars: 20, chars: 50 }, rowsAtOnce);
    expect(await left()).toHaveLength(4);
    await contents.sweep(at(0), { workspace_chars: 20, chars: 30 }, rowsAtOnce);
    expect(await left()).toHaveLength(3);
  });

  test('are not stored for a deleted workspace, and are deleted with theirs', async () => {
    const { queries, contents, row, addWorkspace, left } = await setUp();
    await expect(contents.insert([row('a', { workspace_id: 'deleted' })])).rejects.toThrow();
    const other = await addWorkspace('other');
    await contents.insert([row('b', { workspace_id: other }), row('c')]);
    await queries.deleteFrom('workspaces').where('id', '=', other).execute();
    expect(await left()).toEqual(['c']);
  });
});
