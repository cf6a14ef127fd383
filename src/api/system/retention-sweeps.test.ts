import { expect, test } from 'vitest';
import { managementServer } from '../../../test/http/management-server.ts';
import { spendingNode } from '../../../test/ledger/spending.ts';
import { describeStores } from '../../../test/ledger/store-variants.ts';
import { verifyLedger } from '../../storage/verify-ledger.ts';
import { getSystem } from './get-system.ts';
import { createRetentionSweeps, type RetentionDays } from './retention-sweeps.ts';

const NOW = '2026-11-21T10:00:00.000Z';

describeStores('sweeps of retention', ({ open }) => {
  async function setUp(days: RetentionDays) {
    const database = await open();
    const management = await managementServer(database, NOW);
    const settle = await spendingNode(database);
    await settle(
      ...Array.from({ length: 5 }, (_, index) => ({ id: `old-${index}`, created_at: '2026-11-10T23:59:59.999Z' })),
      { id: 'new', created_at: '2026-11-11T00:00:00.000Z' },
    );
    const deleted: [string, number][] = [];
    const clock = { nowMs: () => Date.parse(NOW), monotonicMs: () => performance.now() };
    const sweeps = () =>
      createRetentionSweeps({
        days: () => days,
        database,
        change: management.change,
        home: management.home,
        clock,
        metrics: { retentionDeleted: (kind, rows) => deleted.push([kind, rows]) },
        log: { info() {}, warn: (facts) => expect(facts).toBeUndefined() },
      });
    const ids = async () => {
      const rows = await database.queries.selectFrom('ledger_generations').select('id').orderBy('id').execute();
      return rows.map(({ id }) => id);
    };
    return { database, management, deleted, sweeps, ids };
  }

  test('nothing is deleted without a setting', async () => {
    const { sweeps, ids, deleted } = await setUp({});
    await sweeps().look();
    expect([await ids(), deleted]).toEqual([['new', 'old-0', 'old-1', 'old-2', 'old-3', 'old-4'], []]);
  });

  test('a sweep deletes whole days once, with one audit record, and GET /system shows it', async () => {
    const { database, management, sweeps, ids, deleted } = await setUp({ generations_days: 10 });
    await Promise.all([sweeps().look(), sweeps().look()]);
    await sweeps().look();
    expect(await ids()).toEqual(['new']);
    expect(deleted).toEqual([['generations', 5]]);
    expect(await verifyLedger(database.queries)).toMatchObject({ generations: 6, differences: [] });
    const { server, call, home, now } = management;
    const recorder = { state: () => ({ node: 'n' }) as never };
    const system = { started_at: 0, version: '1', runtime: '1', settings: [], retention: { generations_days: 10 } };
    getSystem(server, { database, recorder, home, now, system: () => system as never });
    expect((await call('GET', '/system')).body['data']).toMatchObject({
      retention: [
        { kind: 'generations', days: 10, deleted: 5, deleted_before: '2026-11-11T00:00:00.000Z', ended_at: NOW },
        { kind: 'audit', days: null, deleted: 0, deleted_before: null, ended_at: null },
        { kind: 'closed_windows', days: null, deleted: 0, deleted_before: null, ended_at: null },
      ],
    });
    const audited = await database.queries
      .selectFrom('audit_events')
      .select(['resource_id', 'state_after'])
      .where('resource_type', '=', 'retention')
      .execute();
    const state = { deleted_before: '2026-11-11T00:00:00.000Z', deleted: 5, deleted_in_all: 5, is_complete: true };
    expect(audited).toEqual([{ resource_id: 'generations', state_after: state }]);
  });

  test('a stopped process deletes nothing more, and the next one continues', async () => {
    const { sweeps, ids } = await setUp({ generations_days: 10 });
    const stopped = sweeps();
    await stopped.stop();
    await stopped.look();
    expect(await ids()).toHaveLength(6);
    await sweeps().look();
    expect(await ids()).toEqual(['new']);
  });
});
