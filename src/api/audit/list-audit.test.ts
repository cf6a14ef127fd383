import { expect, test } from 'vitest';
import { managementServer } from '../../../test/http/management-server.ts';
import { describeStores } from '../../../test/ledger/store-variants.ts';
import { type Actor, auditStore } from '../../storage/audit.ts';
import { listAudit } from './list-audit.ts';

const NOW = '2026-11-21T10:00:00.000Z';

describeStores('GET /audit', ({ open }) => {
  async function setUp() {
    const database = await open();
    const made = await managementServer(database, NOW);
    const audit = auditStore(database.queries);
    listAudit(made.server, { audit });
    const actor: Actor = {
      organization_id: made.home.organization_id,
      actor: 'key',
      key_hash: 'h',
      user_id: made.home.owner_user_id,
      request_id: 'r',
    };
    const add = (resourceId: string, over: Partial<Actor> = {}) =>
      database.queries.transaction().execute((tx) =>
        auditStore(tx).insert(
          [
            {
              action: 'update',
              resource_type: 'api_key',
              resource_id: resourceId,
              before: { name: 'a' },
              after: { name: 'b' },
            },
          ],
          { ...actor, ...over },
          NOW,
        ),
      );
    const ids = async (query: string, credential = 'management') => {
      const { body } = await made.call('GET', `/audit?${query}`, undefined, credential);
      return (body['data'] as unknown as { resource_id: string }[]).map(({ resource_id }) => resource_id).join('');
    };
    return { ...made, database, add, ids };
  }

  test('an event states who changed what, with the values before and after', async () => {
    const { call, add, home } = await setUp();
    await add('k');
    expect((await call('GET', '/audit')).body).toEqual({
      total_count: 1,
      data: [
        {
          id: expect.stringMatching(/^[0-9a-f-]{36}$/),
          created_at: NOW,
          actor: 'key',
          actor_key_hash: 'h',
          actor_user_id: home.owner_user_id,
          action: 'update',
          resource_type: 'api_key',
          resource_id: 'k',
          before: { name: 'a' },
          after: { name: 'b' },
          request_id: 'r',
        },
      ],
    });
  });

  test('events are listed newest first, and pages by `before` are stable', async () => {
    const { call, add, ids } = await setUp();
    for (const id of ['1', '2', '3', '4']) await add(id);
    expect(await ids('')).toBe('4321');
    expect(await ids('limit=2')).toBe('43');
    const { body } = await call('GET', '/audit?limit=2');
    const [, last] = body['data'] as unknown as { id: string }[];
    await add('5');
    expect(await ids(`limit=2&before=${last?.id}`)).toBe('21');
    expect(await ids('before=none')).toBe('');
  });

  test('events are filtered by resource and by actor', async () => {
    const { add, ids } = await setUp();
    await add('1');
    await add('2', { user_id: 'another' });
    expect(await ids('resource_id=1')).toBe('1');
    expect(await ids('actor_user_id=another')).toBe('2');
    expect(await ids('resource_type=workspace')).toBe('');
    expect(await ids('resource_id=%00')).toBe('');
  });

  test('another organization does not see them', async () => {
    const { call, add, ids, foreign } = await setUp();
    await add('theirs', foreign);
    await add('1');
    const { body } = await call('GET', '/audit');
    const [event] = body['data'] as unknown as { id: string }[];
    await add('2');
    expect(await ids('', 'foreign')).toBe('theirs');
    expect(await ids('')).toBe('21');
    expect(await ids(`before=${event?.id}`, 'foreign')).toBe('');
  });

  test('400, 401, 403, 500', async () => {
    const { call, database } = await setUp();
    expect((await call('GET', '/audit?resource_type=none')).status).toBe(400);
    expect((await call('GET', '/audit?limit=0')).status).toBe(400);
    expect((await call('GET', '/audit', undefined, '')).status).toBe(401);
    expect((await call('GET', '/audit', undefined, 'ordinary')).status).toBe(403);
    await database.queries.schema.dropTable('audit_events').execute();
    expect((await call('GET', '/audit')).status).toBe(500);
  });
});
