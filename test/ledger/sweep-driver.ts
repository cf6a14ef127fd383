/**
 * The process that the test of sweeps kills: it deletes old generations as fast as it can, and prints a line for each portion. Arguments: data
 * directory, owner, moment, optional database URL.
 */
import { openDatabase } from '../../src/storage/database.ts';
import { retentionStore, type SweepPlace } from '../../src/storage/retention.ts';

const [dataDir = '', owner = '', before = '', databaseUrl] = process.argv.slice(2);
const store = retentionStore(await openDatabase({ data_dir: dataDir, database_url: databaseUrl }), 10);
const sweep = () => ({ kind: 'generations' as const, owner, at: Date.now() });
if (!(await store.claim(sweep(), before))) throw new Error('the sweep has another owner');
let place: SweepPlace;
do {
  const { deleted, next } = await store.sweep(sweep(), before, place);
  place = next;
  process.stdout.write(`${deleted}\n`);
} while (place !== undefined);
await store.release(sweep(), new Date().toISOString());
process.stdout.write('end\n', () => process.exit());
