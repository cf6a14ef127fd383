import { expect, test } from 'vitest';
import { generation } from '../../../test/generation-fixture.ts';
import type { AttemptRecord, ChargeLine, GenerationRecord, JournalRecord, OpenRecord } from '../records.ts';
import { type AttemptEntry, AttemptLines } from './attempt-line.ts';
import { LineBuffer, lineOf, readSegment } from './journal-format.ts';
import { recordOf, recordText } from './record-values.ts';

// A new field does not compile here without a value, and is lost until it is in one of the lists.
const line: Required<ChargeLine> = {
  class: 'audio_second',
  units: 1,
  unit_price_pico: 2,
  price_units: 1000,
  discount_ppm: 3,
  model: 'other',
};
const attempt: Required<AttemptRecord> = {
  endpoint_id: 'a|b/c',
  provider_name: 'A',
  model_permaslug: 'b/c',
  status: 200,
  latency: 4,
  wait: 5,
  is_byok: true,
  upstream_id: 'up',
  failure: 'rate_limit',
  cost_nano: 6,
  tokens: [7, 8],
  continues: true,
  hedges: true,
  byok_id: 'own',
  estimated: false,
  charges: [line, { class: 'out_text', units: 9, unit_price_pico: 10 }],
  is_unpriced: true,
  step: 2,
};
const whole: Required<GenerationRecord> = {
  is_resolved: true,
  id: 'gen-1',
  request_id: 'req-1',
  upstream_id: 'up',
  api_type: 'messages',
  created_at: '2026-11-21T10:00:00.000Z',
  key_hash: 'k',
  workspace_id: 'w',
  organization_id: 'o',
  user_id: 'u',
  model: 'b/c',
  requested_model: 'c',
  provider_name: 'A',
  endpoint_id: 'a|b/c',
  outcome: 'cancelled',
  streamed: true,
  cancelled: true,
  is_byok: false,
  finish_reason: 'length',
  native_finish_reason: 'max',
  external_user: 'x',
  session_id: 's',
  http_referer: 'https://a.example',
  title: 't',
  categories: ['one'],
  user_agent: 'ua',
  num_media_prompt: 11,
  num_input_audio_prompt: 12,
  service_tier: 'flex',
  latency: 13,
  generation_time: 14,
  usage: { in_uncached: 15 },
  cost_nano: 16,
  upstream_cost_nano: 17,
  byok_cost_nano: 18,
  cache_discount_nano: 19,
  attempts: [attempt],
  fees: [{ name: 'search', cost_nano: 20, charges: [line] }],
  tags: ['night'],
  routing: { strategy: 'direct', total: 1, plan: [{ id: 'a' }] },
};

function withoutSome(record: GenerationRecord): GenerationRecord {
  const { fees: _fees, tags: _tags, byok_cost_nano: _byok, routing: _routing, ...rest } = record;
  const { wait: _wait, tokens: _tokens, charges: _charges, step: _step, estimated: _estimated, ...bare } = attempt;
  return { ...rest, attempts: [bare, attempt] };
}

test('a stored record keeps all of its fields, whichever are absent', () => {
  const plain = generation({ id: 'g' });
  for (const record of [whole, withoutSome(whole), { ...whole, attempts: [] }, plain, { ...plain, user_id: null }]) {
    expect(recordOf(recordText(record))).toStrictEqual(record);
  }
});

test('the order of the values is fixed, since stores and journals contain them', () => {
  expect(JSON.parse(recordText(whole))).toEqual([
    [
      ...['gen-1', 'req-1', 'messages', '2026-11-21T10:00:00.000Z', 'k', 'w', 'o', 'u', 'b/c', 'c', 'A', 'a|b/c'],
      ...[true, false, 'x', 's', 'https://a.example', 't', ['one'], 'ua', 11, 12],
      [
        [
          ...['a|b/c', 'A', 'b/c', 200, 4, true, 'up', 'rate_limit', 6, 5, [7, 8]],
          [
            ['audio_second', 1, 2, 1000, 3, 'other'],
            ['out_text', 9, 10],
          ],
          ...['own', false, true, true, true, 2],
        ],
      ],
      [{ name: 'search', cost_nano: 20, charges: [line] }],
      ['night'],
    ],
    ...['up', 'cancelled', true, 'length', 'max', 'flex', 13, 14, { in_uncached: 15 }, 16, 17, 19, 18],
    { strategy: 'direct', total: 1, plan: [{ id: 'a' }] },
    true,
  ]);
});

test('a record of an older version is read unchanged', () => {
  expect(recordOf(JSON.stringify(whole))).toStrictEqual(whole);
});

test('the journal reads the same from lines of this version and of older ones', () => {
  const { byok_cost_nano: _byok, routing: _routing, is_resolved: _resolved, ...open } = whole;
  const charges = [{ budget_id: 'b', window_start: '2026-11-01', amount: 5, cover: 4 }];
  const entries: JournalRecord[] = [
    { t: 'O', id: whole.id, charges, record: whole },
    { t: 'O', id: whole.id, charges: [], record: whole },
    { t: 'P', id: 'g', usage: { out_text: 1 }, cost_nano: 2 },
    { t: 'F', ids: ['g'], batch: 3 },
  ];
  for (const isByok of [true, false]) {
    const {
      upstream_id: _id,
      outcome: _o,
      cancelled: _c,
      finish_reason: _f,
      native_finish_reason: _n,
      ...known
    } = open;
    const { service_tier: _s, latency: _l, generation_time: _g, usage: _u, ...called } = known;
    const { cost_nano: _cost, upstream_cost_nano: _up, cache_discount_nano: _cache, ...record } = called;
    const hold: [string, string, number, number][] = [['b', '', 9, 8]];
    entries.push({
      t: 'A',
      id: whole.id,
      attempt: 2,
      endpoint: 'e',
      hold,
      grant_nano: 8,
      mode: 'soft',
      is_byok: isByok,
      record,
    });
  }
  const attemptLines = new AttemptLines();
  const inFile = (entry: JournalRecord) => (entry.t === 'A' ? attemptLines.lineOf(entry).join('') : lineOf(entry));
  for (const encode of [lineOf, inFile, JSON.stringify, lineOfFormat3]) {
    const lines = new LineBuffer();
    for (const record of entries) lines.add(encode(record));
    expect(readSegment(lines.take(), 'f').records).toStrictEqual(entries);
  }
});

/** The line of an attempt in format 3: the whole open record, as it is stored. */
function lineOfFormat3(entry: JournalRecord): string {
  if (entry.t !== 'A') return lineOf(entry);
  const { id: _id, record, ...others } = entry;
  const stored = { ...whole, ...record, attempts: record.attempts };
  const [open] = JSON.parse(recordText(stored)) as unknown[];
  return JSON.stringify({ ...others, record: open });
}

test('a later attempt of a file references the context it shares with an earlier one, and is short', () => {
  const lines = new AttemptLines();
  const entry = (id: string, over: Partial<OpenRecord> = {}): AttemptEntry => {
    const hold: [string, string, number, number][] = [['0192f7c8-a1b2-7c6d-8e9f-0a1b2c3d4e99', '2026-11-01', 9, 9]];
    const record = { ...generation({ id, attempts: [] }), ...over };
    return { t: 'A', id, attempt: 1, endpoint: 'acme|acme/fast-1', hold, grant_nano: 9, mode: 'strict', record };
  };
  const line = (...of: Parameters<typeof entry>) => lines.lineOf(entry(...of)).join('');
  const [first, again] = [line('g1'), line('g2')];
  expect(first).toContain('OpenAI/JS');
  expect(again).not.toContain('OpenAI/JS');
  expect(again.length).toBeLessThan(200);
  // Another value of any member of a context is another context.
  const others: Partial<OpenRecord>[] = [
    { api_type: 'messages' },
    { key_hash: 'k' },
    { workspace_id: 'w' },
    { organization_id: 'o' },
    { user_id: 'u' },
    { model: 'm' },
    { requested_model: 'r' },
    { provider_name: 'p' },
    { endpoint_id: 'e' },
    { streamed: false },
    { is_byok: true },
    { http_referer: 'h' },
    { title: 't' },
    { categories: ['c'] },
    { user_agent: 'a' },
  ];
  const defined = others.map((over) => line('g', over));
  expect(defined.filter((one) => !one.includes('"d":'))).toEqual([]);
  const read = new LineBuffer();
  for (const one of [first, again, ...defined]) read.add(one);
  const records = readSegment(read.take(), 'f').records as AttemptEntry[];
  expect(records.slice(2).map(({ record }, index) => ({ ...record, ...others[index] }))).toEqual(
    records.slice(2).map(({ record }) => record),
  );
  lines.clear();
  expect(line('g3')).toContain('"d":');
});
