import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../test/harness.ts';
import { consoleClient } from '../../test/http/console-client.ts';
import { openDatabase } from '../storage/database.ts';
import { verifyLedger } from '../storage/verify-ledger.ts';
import { demoCommand } from './demo.ts';

let home: string;
let gateway: TestGateway | undefined;
beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), 'gateway-demo-'));
});
afterAll(async () => {
  await gateway?.stop();
  rmSync(home, { recursive: true, force: true });
});

test('the demo fills a new directory with a month of consistent data, and marks it as a demo', async () => {
  const dataDir = join(home, 'data');
  await demoCommand.run(['--data-dir', dataDir, '--no-serve'], {});
  const database = await openDatabase({ data_dir: dataDir });
  const { generations, windows, differences } = await verifyLedger(database.queries);
  expect(differences).toEqual([]);
  expect(generations).toBeGreaterThan(10_000);
  expect(windows).toBeGreaterThan(60);
  const outcomes = await database.queries.selectFrom('ledger_generations').select('outcome').distinct().execute();
  expect(outcomes.map(({ outcome }) => outcome).sort()).toEqual(['completed', 'failed']);
  const kept = await database.queries.selectFrom('logged_contents').select('id').execute();
  expect(kept.length).toBeGreaterThan(5);
  await database.close();
  // A second run adds nothing.
  expect(await demoCommand.run(['--data-dir', dataDir, '--no-serve'], {})).toBe(0);
  gateway = await startGateway({ data_dir: dataDir });
  const { call } = await consoleClient(gateway);
  expect((await call('GET', '/session')).body['data']).toMatchObject({ is_demo: true });
  expect((await call('GET', '/setup')).body['data']).toMatchObject({ is_demo: true });
  // The gateway alone: the node that settled the invented calls is not shown as a lost one.
  expect((await call('GET', '/system')).body['data']).toMatchObject({ node_count: 1, nodes: [{ is_lost: false }] });
});

test('a directory with other data is refused', async () => {
  const other = mkdtempSync(join(home, 'other-'));
  writeFileSync(join(other, 'notes.txt'), 'mine');
  await expect(demoCommand.run(['--data-dir', other, '--no-serve'], {})).rejects.toThrow('holds other data');
  const real = mkdtempSync(join(home, 'real-'));
  await (await openDatabase({ data_dir: real })).close();
  await expect(demoCommand.run(['--data-dir', real, '--no-serve'], {})).rejects.toThrow('holds other data');
});
