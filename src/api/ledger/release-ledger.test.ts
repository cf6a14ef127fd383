import { expect, test } from 'vitest';
import { managementServer } from '../../../test/http/management-server.ts';
import { describeStores } from '../../../test/ledger/store-variants.ts';
import { limits } from '../../limits.ts';
import { releaseLedger } from './release-ledger.ts';

const NOW = '2026-11-21T10:00:00.000Z';

describeStores('POST /ledger/release', ({ open }) => {
  test('200 with the released and booked amounts; 404, 409, 403, 401, 400', async () => {
    const database = await open();
    const { server, call, change, home } = await managementServer(database, NOW);
    releaseLedger(server, { database, change, home, clock: { nowMs: Date.now } });
    const window = { budget_id: 'b', window_start: '' };
    const none = {
      opening: 0,
      wanted: 0,
      wanted_by: '',
      wanted_at: 0,
      granted: 0,
      free: null,
      settled_elsewhere: 0,
      scarce: 0,
    };
    await database.queries
      .insertInto('ledger_windows')
      .values({ ...window, ...none, spent: 3_000, leased: 2_000 })
      .execute();
    const at = Date.now();
    const nodes = [
      { id: 'gone', epoch: 1, instance: 'i', batch: 0, seen_at: at - 2 * limits.node_lost_ms, charges_leases: 1 },
      { id: 'live', epoch: 1, instance: 'i', batch: 0, seen_at: at, charges_leases: 1 },
    ];
    await database.queries.insertInto('ledger_nodes').values(nodes).execute();
    await database.queries
      .insertInto('ledger_leases')
      .values({ node_id: 'gone', ...window, amount: 2_000, settled: 0 })
      .execute();
    await database.queries
      .insertInto('ledger_lost_leases')
      .values({ node_id: 'gone', ...window, amount: 3_000, booked_at: NOW })
      .execute();
    const release = (nodeId: string, credential?: string) =>
      call('POST', '/ledger/release', { node_id: nodeId }, credential);
    expect((await release('gone', 'foreign')).status).toBe(403);
    expect((await release('gone', 'ordinary')).status).toBe(403);
    expect((await release('gone', '')).status).toBe(401);
    expect((await call('POST', '/ledger/release', {})).status).toBe(400);
    expect((await release('nobody')).status).toBe(404);
    expect((await release('live')).status).toBe(409);
    expect(await release('gone')).toMatchObject({
      status: 200,
      body: { data: { node_id: 'gone', released: 0.000_002, windows: 1, booked: 0.000_003 } },
    });
    expect(await database.queries.selectFrom('ledger_windows').select(['spent', 'leased']).executeTakeFirst()).toEqual({
      spent: 0,
      leased: 0,
    });
    const audited = await database.queries
      .selectFrom('audit_events')
      .select('resource_id')
      .where('resource_type', '=', 'ledger_node')
      .execute();
    expect(audited).toEqual([{ resource_id: 'gone' }]);
  });
});
