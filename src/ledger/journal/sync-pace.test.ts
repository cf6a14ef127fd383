import { expect, test } from 'vitest';
import { SYNC_COMPANY_MS, SyncPace } from './sync-pace.ts';

/** The pace after records at intervals of `gapMs`, one at a time, until now. */
function paceOf(gapMs: number, records = 200): SyncPace {
  const pace = new SyncPace();
  for (let index = 0; index < records; index++) pace.note(1, index * gapMs);
  return pace;
}

test('a record waits if others are likely within the wait, and for no more than are likely', () => {
  for (const [gapMs, records] of [
    [SYNC_COMPANY_MS, 2],
    [1, 3],
    [0.6, 4],
  ] as const) {
    expect(paceOf(gapMs).records).toBe(records);
  }
});

test('no record waits if the next one is far off, or if records gather without a wait', () => {
  for (const gapMs of [5, 1000, 0.4, 0.01]) expect(paceOf(gapMs).records).toBe(1);
  expect(new SyncPace().records).toBe(1);
});

test('records that were written together count separately', () => {
  const pace = new SyncPace();
  for (let index = 0; index < 50; index++) pace.note(4, index * 4);
  expect(pace.records).toBe(3);
});

test('load after a pause is detected within some records', () => {
  const pace = paceOf(60_000, 10);
  for (let index = 0; index < 40; index++) pace.note(1, 600_000 + index);
  expect(pace.records).toBeGreaterThan(1);
});

test('after waits without company no record waits for a while, and company resets that count', () => {
  const pace = paceOf(1);
  const begin = (records: number, waited: boolean) => pace.begins(records, waited);
  for (let index = 0; index < 3; index++) begin(1, true);
  begin(2, true);
  for (let index = 0; index < 3; index++) begin(1, true);
  expect(pace.records).toBe(3);
  begin(1, true);
  let unattended = 0;
  for (; pace.records === 1; unattended++) begin(1, false);
  expect(unattended).toBe(16);
  // One more wait without company is then enough.
  begin(1, true);
  expect(pace.records).toBe(1);
});
