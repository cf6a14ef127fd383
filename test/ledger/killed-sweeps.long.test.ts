import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { toSettle } from '../../src/ledger/settle.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { ledgerStore } from '../../src/storage/ledger.ts';
import { PendingUsage } from '../../src/storage/pending-usage.ts';
import { verifyLedger } from '../../src/storage/verify-ledger.ts';
import { generation } from '../generation-fixture.ts';
import { registerNode } from './registered-node.ts';
import { describeStores } from './store-variants.ts';

const CALLS = 1_000;
const BEFORE = '2026-11-01T00:00:00.000Z';

describeStores('sweeps that are killed', ({ freshUrl }) => {
  test('count and delete every call once, even if batches are sent again in between', {
    timeout: 300_000,
  }, async () => {
    const dir = mkdtempSync(join(tmpdir(), 'sweeps-'));
    const url = await freshUrl();
    const database = await openDatabase({ data_dir: dir, database_url: url });
    onTestFinished(async () => {
      await database.close();
      rmSync(dir, { recursive: true });
    });
    const { queries, engine } = database;
    const ledger = ledgerStore(queries, engine);
    const settles = Array.from({ length: CALLS }, (_, index) => {
      const admittedAt = new Date(Date.parse('2026-10-01T00:00:00.000Z') + index * 2_000_000).toISOString();
      return toSettle(generation({ id: `gen-${index}`, created_at: admittedAt, cost_nano: 1 + index }), []);
    });
    let epochSeen = 0;
    /** As a node that starts with an old journal. */
    const sendAll = async () => {
      const { epoch } = await registerNode(ledger, 'n', { epoch_seen: epochSeen });
      epochSeen = epoch;
      for (let number = 1; number <= CALLS / 250; number += 1) {
        const some = settles.slice((number - 1) * 250, number * 250);
        await ledger.settle({ node: 'n', epoch, number, at: Date.now(), settles: some, windows: [], divisor: 2 });
      }
    };
    await sendAll();
    const sums = async () => {
      await new PendingUsage(queries).addAll();
      return queries
        .selectFrom('analytics_usage')
        .select(['start', 'span', 'usage_nano', 'requests'])
        .orderBy('span')
        .orderBy('start')
        .execute();
    };
    const before = await sums();
    let isEnded = false;
    for (let round = 1; round <= 20 && !isEnded; round += 1) {
      const args = [join(import.meta.dirname, 'sweep-driver.ts'), dir, `owner-${round}`, BEFORE, ...(url ? [url] : [])];
      const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
      let output = '';
      const sending = sendAll();
      await new Promise<void>((resolve) => {
        child.stdout.on('data', (bytes) => {
          output += bytes;
          // After some portions, at any moment of the next one.
          if (output.split('\n').length > 1 + round * 3) setTimeout(() => child.kill('SIGKILL'), Math.random() * 20);
        });
        child.on('close', () => resolve());
      });
      await sending;
      isEnded = output.includes('end');
      expect((await verifyLedger(queries)).differences).toEqual([]);
      await queries.updateTable('retention_sweeps').set({ owner_until: 0 }).execute();
    }
    expect(isEnded).toBe(true);
    await sendAll();
    expect(await sums()).toEqual(before);
    expect(await verifyLedger(queries)).toMatchObject({ generations: CALLS, differences: [] });
    expect(await queries.selectFrom('ledger_generations').select('id').execute()).toEqual([]);
    expect(await queries.selectFrom('retention_sweeps').select('deleted').execute()).toEqual([{ deleted: CALLS }]);
  });
});
