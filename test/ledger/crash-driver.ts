/**
 * The process that the crash test kills: it records calls and makes keys as fast as it can, and writes each
 * acknowledgement to its standard output at once. Arguments: data directory, round, optional database URL.
 */
import { writeSync } from 'node:fs';
import { createSecret } from '../../src/accounts/key.ts';
import { realClock } from '../../src/ledger/ledger-clock.ts';
import { startRecorder } from '../../src/ledger/start-recorder.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { keyStore } from '../../src/storage/keys.ts';
import { ledgerStore } from '../../src/storage/ledger.ts';
import { organizationStore } from '../../src/storage/organizations.ts';
import { isUnavailable } from '../../src/storage/unavailable.ts';
import { generation, noHold } from '../generation-fixture.ts';

const [dataDir = '', round = '', databaseUrl] = process.argv.slice(2);
/** Written before anything else happens, also while the reader is slow and the pipe is full. */
const say = (line: string) => {
  const bytes = Buffer.from(`${line}\n`);
  for (let done = 0; done < bytes.length; ) {
    try {
      done += writeSync(1, bytes, done);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
    }
  }
};
const fail = (facts: object, message: string) => say(`failed ${message} ${JSON.stringify(facts)}`);

const database = await openDatabase({ data_dir: dataDir, database_url: databaseUrl });
const home = await organizationStore(database.queries).insertFirst({ at: new Date().toISOString() });
const recorder = await startRecorder({
  data_dir: dataDir,
  store: ledgerStore(database.queries, database.engine),
  journal_sync: 'group',
  unknown_outcome: 'hold',
  clock: realClock(Date.now),
  log: { info() {}, warn: fail, error: fail },
});
say('started');

async function attempt(id: string, keyHash: string): Promise<void> {
  const record = generation({
    id,
    key_hash: keyHash,
    outcome: 'unknown',
    usage: null,
    attempts: [],
    cost_nano: 0,
  });
  await recorder.attempt({ id, attempt: 1, endpoint: 'acme|acme/fast-1', record, hold: noHold(id) });
}

async function call(client: number): Promise<never> {
  for (let ordinal = 0; ; ordinal++) {
    const id = `gen-${round}-${client}-${ordinal}`;
    const keyHash = `key-${client % 3}`;
    const costNano = 1 + ((client * 7919 + ordinal * 104_729) % 1000);
    await attempt(id, keyHash);
    say(`attempt ${id}`);
    if (ordinal % 7 === 0) recorder.progress(id, { out_text: ordinal }, 0);
    await new Promise((resolve) => setTimeout(resolve, ordinal % 5));
    await recorder.outcome(generation({ id, key_hash: keyHash, cost_nano: costNano }), noHold());
    say(`outcome ${id} ${costNano}`);
  }
}

async function makeKeys(): Promise<never> {
  for (;;) {
    const { hash, label } = createSecret();
    const made = await keyStore(database.queries)
      .insert({
        hash,
        label,
        organization_id: home.organization_id,
        workspace_id: home.default_workspace_id,
        creator_user_id: home.owner_user_id,
        name: 'made in a hurry',
        is_management: false,
        disabled: false,
        limit_nano: null,
        limit_reset: null,
        include_byok_in_limit: false,
        expires_at: null,
        created_at: new Date().toISOString(),
        updated_at: null,
      })
      .catch((error: unknown) => {
        // SQLite's lock is not fair: if all processes write as fast as they can, one may never get it.
        if (!isUnavailable(error)) throw error;
      });
    if (made !== undefined) say(`key ${hash}`);
  }
}

// A call that is still open when the process is killed.
const endless = `gen-${round}-endless`;
await attempt(endless, 'key-0');
say(`endless ${endless}`);
await Promise.all([...Array.from({ length: 6 }, (_, client) => call(client)), makeKeys()]);
