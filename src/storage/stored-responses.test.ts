import { expect, test } from 'vitest';
import { describeStores } from '../../test/ledger/store-variants.ts';
import type { Database } from './database.ts';
import { organizationStore } from './organizations.ts';
import { storedResponseStore } from './stored-responses.ts';
import { workspaceStore } from './workspaces.ts';

const at = (second: number) => `2026-01-01T00:00:${String(second).padStart(2, '0')}.000Z`;
const all = { now: at(1), chars: 1_000_000 };

describeStores('stored responses', ({ open }) => {
  async function setUp() {
    const database: Database = await open();
    const { queries } = database;
    const home = await organizationStore(queries).insertFirst({ at: at(0) });
    const { default_workspace_id: workspaceId } = home;
    const responses = storedResponseStore(queries);
    const insert = (id: string, second: number, sealed = id) =>
      responses.insert({ id, workspace_id: workspaceId, sealed, expires_at: at(second) });
    const left = async () =>
      (await queries.selectFrom('stored_responses').select('id').orderBy('expires_at').execute()).map(({ id }) => id);
    return { queries, workspace_id: workspaceId, responses, insert, left };
  }

  test('are read by their workspace alone, until they expire', async () => {
    const { responses, insert, workspace_id } = await setUp();
    await insert('a', 10, 'sealed');
    expect(await responses.find('a', workspace_id, at(9))).toBe('sealed');
    expect(await responses.find('a', workspace_id, at(10))).toBeUndefined();
    expect(await responses.find('a', 'another', at(9))).toBeUndefined();
    expect(await responses.find('b', workspace_id, at(9))).toBeUndefined();
  });

  test('are deleted by their workspace alone, once', async () => {
    const { responses, insert, workspace_id, left } = await setUp();
    await insert('a', 10);
    await insert('b', 10);
    expect(await responses.delete('a', 'another', at(9))).toBe(false);
    expect(await responses.delete('a', workspace_id, at(10))).toBe(false);
    expect(await responses.delete('a', workspace_id, at(9))).toBe(true);
    expect(await responses.delete('a', workspace_id, at(9))).toBe(false);
    expect(await left()).toEqual(['b']);
  });

  test('are never replaced', async () => {
    const { insert } = await setUp();
    await insert('a', 10);
    await expect(insert('a', 20)).rejects.toThrow();
  });

  test('are deleted when they expire, and the oldest above a total size', async () => {
    const { responses, insert, left } = await setUp();
    for (const second of [5, 9, 1, 7, 3]) await insert(`s${second}`, second, 'x'.repeat(second));
    await responses.sweep(all.now, all.chars);
    expect(await left()).toEqual(['s3', 's5', 's7', 's9']);
    await responses.sweep(all.now, 24);
    expect(await left()).toEqual(['s3', 's5', 's7', 's9']);
    await responses.sweep(all.now, 20);
    expect(await left()).toEqual(['s7', 's9']);
    await responses.sweep(at(9), all.chars);
    expect(await left()).toEqual([]);
  });

  test('are not stored for a deleted workspace, and are deleted with theirs', async () => {
    const { queries, responses, insert, left } = await setUp();
    await expect(
      responses.insert({ id: 'a', workspace_id: 'deleted', sealed: '', expires_at: at(9) }),
    ).rejects.toThrow();
    const { organization_id } = await queries.selectFrom('workspaces').selectAll().executeTakeFirstOrThrow();
    const made = { organization_id, name: 'w', slug: 'w', created_by: null, created_at: at(0) };
    const { id: other } = await workspaceStore(queries).insert(made);
    await responses.insert({ id: 'b', workspace_id: other, sealed: '', expires_at: at(9) });
    await insert('c', 10);
    await queries.deleteFrom('workspaces').where('id', '=', other).execute();
    expect(await left()).toEqual(['c']);
  });
});
