import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { generation, noHold } from '../../test/generation-fixture.ts';
import { attempt, files, recorders } from '../../test/ledger/recorder-fixture.ts';
import { describeStores } from '../../test/ledger/store-variants.ts';
import { ledgerStore } from '../storage/ledger.ts';
import { scanSegment } from './journal/journal-format.ts';
import { outcomeOfUnfinished, replay } from './journal/replay.ts';
import { Segments } from './journal/segments.ts';

/** Attempts of one client and endpoint with two keys; the third repeats the context of the second after an outcome. */
const OTHER_KEY = 'b'.repeat(64);
const CALLS = ['g1', 'g2', 'g3', 'g4'];

function attemptOf(id: string) {
  const first = attempt(id);
  return id === 'g2' || id === 'g3' ? { ...first, record: { ...first.record, key_hash: OTHER_KEY } } : first;
}

describeStores('a truncated journal', ({ open }) => {
  const { freshDir, asKilled, start, setUp } = recorders(open);

  /** The journal of four attempts, one of them with an outcome, as a killed process leaves it. */
  async function killed() {
    const { recorder, data_dir, store } = await setUp();
    store.settle = () => new Promise(() => {});
    for (const id of CALLS.slice(0, 2)) await recorder.attempt(attemptOf(id));
    await recorder.outcome(generation({ id: 'g1', cost_nano: 7 }), noHold('g1'));
    for (const id of CALLS.slice(2)) await recorder.attempt(attemptOf(id));
    const dir = asKilled(data_dir);
    const slot = join(dir, 'slots', '0');
    const [name = ''] = files(dir);
    const bytes = readFileSync(join(slot, name));
    // The node of this test still stops.
    store.settle = (batch) => Promise.resolve({ is: 'already_applied', leases: [], now: batch.at });
    return { dir, name, bytes };
  }

  test('after a kill at any byte of a write, exactly the whole lines before it are read', async () => {
    const { name, bytes } = await killed();
    const ends = [...bytes.entries()].filter(([, byte]) => byte === 10).map(([at]) => at + 1);
    // Start, two attempts, an outcome, two attempts.
    expect(ends).toHaveLength(6);
    const dir = freshDir();
    const whole = ['', '', 'g1', 'g1 g2', 'g2', 'g2 g3', 'g2 g3 g4'];
    const wrong: unknown[] = [];
    for (let cut = ends[0] ?? 0; cut <= bytes.length; cut++) {
      writeFileSync(join(dir, name), bytes.subarray(0, cut));
      const { unknown, outcomes } = replay(new Segments(dir));
      const lines = ends.filter((end) => end <= cut).length;
      const read = [unknown.map(({ id }) => id).join(' '), outcomes.map(({ id }) => id).join(' ')];
      if (read[0] !== whole[lines] || read[1] !== (lines >= 4 ? 'g1' : '')) wrong.push({ cut, read });
      // The context of an attempt is correct, whichever line defined it.
      for (const open of unknown) {
        const { record } = outcomeOfUnfinished(open, 'hold', undefined);
        const sent = attemptOf(open.id).record;
        if (record.key_hash !== sent.key_hash || record.user_agent !== sent.user_agent) wrong.push({ cut, record });
      }
    }
    expect(wrong).toEqual([]);
  });

  test('a changed byte or a tail of zeros never gives another record: a line is whole, dropped or reported', async () => {
    const { bytes } = await killed();
    const known = scanSegment(bytes).records.map((record) => JSON.stringify(record));
    const wrong: unknown[] = [];
    for (let at = 0; at < bytes.length; at++) {
      const flipped = Buffer.from(bytes);
      flipped[at] = (flipped[at] ?? 0) ^ 1;
      const zeroed = Buffer.from(bytes).fill(0, at);
      for (const damaged of [flipped, zeroed]) {
        const { records, damaged_at } = scanSegment(damaged);
        const read = records.map((record) => JSON.stringify(record));
        if (!read.every((record) => known.includes(record))) wrong.push({ at, read });
        // Any missing record was the end of the file or is reported.
        if (damaged_at === undefined && !read.every((record, index) => record === known[index])) wrong.push({ at });
      }
    }
    expect(wrong).toEqual([]);
  });

  test('a start after a kill in the middle of a line settles the whole lines with all of their facts', async () => {
    const { dir, name, bytes } = await killed();
    writeFileSync(join(dir, 'slots', '0', name), bytes.subarray(0, bytes.length - 3));
    const database = await open();
    const next = await start(ledgerStore(database.queries, database.engine), dir);
    await next.flush();
    const rows = await database.queries
      .selectFrom('ledger_generations')
      .select(['id', 'outcome', 'key_hash'])
      .orderBy('id')
      .execute();
    expect(rows).toEqual([
      { id: 'g1', outcome: 'completed', key_hash: 'a'.repeat(64) },
      { id: 'g2', outcome: 'unknown', key_hash: OTHER_KEY },
      { id: 'g3', outcome: 'unknown', key_hash: OTHER_KEY },
    ]);
  });
});
