import { expect, test } from 'vitest';
import { managementServer } from '../../../test/http/management-server.ts';
import { describeStores } from '../../../test/ledger/store-variants.ts';
import { limits } from '../../limits.ts';
import { verifyLedger } from '../../storage/verify-ledger.ts';
import { getLedgerStatus } from './get-ledger-status.ts';
import { resolveLedger } from './resolve-ledger.ts';
import { verifyLedgerNow } from './verify-ledger.ts';

describeStores('the operations of the ledger', ({ open }) => {
  test('list holds and unknown outcomes, and the result of a verification, for the operator alone', async () => {
    const database = await open();
    const at = Date.now();
    const { server, call, home, change } = await managementServer(database, new Date(at).toISOString());
    const clock = { nowMs: Date.now, monotonicMs: () => performance.now() };
    getLedgerStatus(server, { database, home, now: Date.now });
    resolveLedger(server, { database, change, home });
    const recorder = { flush: async () => {} };
    verifyLedgerNow(server, { verify: (signal) => verifyLedger(database.queries, signal), recorder, home, clock });
    const nodes = [
      { id: 'lost', epoch: 1, instance: 'i', batch: 0, seen_at: at - 2 * limits.node_lost_ms, charges_leases: 1 },
      { id: 'live', epoch: 1, instance: 'i', batch: 0, seen_at: at, charges_leases: 1 },
    ];
    await database.queries.insertInto('ledger_nodes').values(nodes).execute();
    const window = { budget_id: 'b', window_start: '' };
    const leases = ['lost', 'live'].map((id) => ({ node_id: id, ...window, amount: 2_000, settled: 0 }));
    await database.queries.insertInto('ledger_leases').values(leases).execute();
    expect((await call('GET', '/ledger/status')).body['data']).toMatchObject({
      held: 0.000_004,
      in_doubt: 0.000_002,
      node_count: 2,
      next: null,
    });
    const verified = await call('POST', '/ledger/verify');
    expect(verified.body['data']).toMatchObject({
      differences: [{ of: 'leases', name: 'b ', expected: 4_000, actual: 0 }],
    });
    expect((await call('POST', '/ledger/resolve', { generation_id: 'none', cost: 1 })).status).toBe(404);
    for (const [method, path, body] of [
      ['GET', '/ledger/status', undefined],
      ['POST', '/ledger/verify', undefined],
      ['POST', '/ledger/resolve', { generation_id: 'none', cost: 1 }],
    ] as const) {
      expect([path, (await call(method, path, body, 'foreign')).status]).toEqual([path, 403]);
      expect([path, (await call(method, path, body, 'ordinary')).status]).toEqual([path, 403]);
    }
  });
});
