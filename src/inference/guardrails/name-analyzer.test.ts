import { afterAll, beforeAll, expect, test } from 'vitest';
import { LOCALES, marked, NOBODY, unmarked } from '../../../test/guardrails/people.ts';
import type { Analyzer, Entity } from '../../guardrails/entities/analyzer.ts';
import { limits } from '../../limits.ts';
import { createNameAnalyzer } from './name-analyzer.ts';

let analyzer: Analyzer;
beforeAll(async () => {
  analyzer = createNameAnalyzer();
  await analyzer.analyze(['Ada Lovelace']);
});
afterAll(() => analyzer.stop());

function drawer(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

type Slug = Entity['slug'];
interface Count {
  there: number;
  matched: number;
  covered: number;
  reported: number;
  right: number;
}

/** Counts the marked places that are covered in full, and the reported entities that overlap a marked place. */
async function counted(texts: readonly string[]): Promise<Record<Slug, Count> & { missed: string[] }> {
  const plain = texts.map(unmarked);
  const reported = await analyzer.analyze(plain.map(({ text }) => text));
  const none = (): Count => ({ there: 0, matched: 0, covered: 0, reported: 0, right: 0 });
  const counts = { 'person-name': none(), address: none(), missed: [] as string[] };
  for (const [at, { text, names, addresses }] of plain.entries()) {
    for (const [slug, places] of [
      ['person-name', names],
      ['address', addresses],
    ] as const) {
      const count = counts[slug];
      const entities = (reported[at] ?? []).filter((entity) => entity.slug === slug);
      count.reported += entities.length;
      count.right += entities.filter(({ start, end }) => places.some(([from, to]) => start < to && from < end)).length;
      for (const [from, to] of places) {
        count.there += 1;
        if (entities.some(({ start, end }) => start <= from && end >= to)) count.covered += 1;
        else counts.missed.push(`${slug}: ${text.slice(from, to)} in ${JSON.stringify(text)}`);
      }
    }
  }
  return counts;
}

test.each(Object.entries(LOCALES))('%s: whole names and addresses are detected', async (_, locale) => {
  const counts = await counted(marked(locale, 10, drawer(7)));
  const { 'person-name': names, address: addresses, missed } = counts;
  expect(names.covered / names.there, missed.join('\n')).toBeGreaterThan(0.9);
  expect(names.right / names.reported).toBeGreaterThan(0.95);
  if (addresses.there > 0) expect(addresses.covered / addresses.there, missed.join('\n')).toBe(1);
  expect(addresses.right).toBe(addresses.reported);
});

test('products, towns, groups and weekdays are not detected as people', async () => {
  const reported = await analyzer.analyze(NOBODY);
  const wrong = reported.flatMap((entities, at) => entities.map(({ start, end }) => NOBODY[at]?.slice(start, end)));
  expect(wrong).toEqual([]);
});

test('a text without a capital letter, a digit or a word that introduces a person is not sent to the thread', async () => {
  const another = createNameAnalyzer();
  expect(
    await another.analyze(['const total = items.reduce((sum, item) => sum + item.price);', '', '{ a: b }']),
  ).toEqual([[], [], []]);
  // A thread that never started can be stopped.
  await another.stop();
});

test('a cancelled request is skipped, and the next one is answered', async () => {
  const leaving = new AbortController();
  const long = Array.from({ length: 200 }, (_, at) => `${at} John Smith met Unbekannt Person${at} there.`);
  const left = analyzer.analyze(long, leaving.signal);
  leaving.abort(new Error('gone'));
  await expect(left).rejects.toThrow('gone');
  const [entities] = await analyzer.analyze(['Ask Maria Garcia.']);
  expect(entities).toEqual([{ start: 4, end: 16, slug: 'person-name' }]);
});

test('more text than can be analyzed in time is refused, not skipped', async () => {
  await expect(analyzer.analyze([`John Smith ${'x'.repeat(limits.analyzed_chars_max)}`])).rejects.toThrow('too much');
});

test('a thread that ends fails the waiting requests, and the next one starts a new thread', async () => {
  const another = createNameAnalyzer();
  const waiting = another.analyze(['John Smith']);
  await another.stop();
  await expect(waiting).rejects.toThrow('its thread ended');
  expect(await another.analyze(['John Smith'])).toEqual([[{ start: 0, end: 10, slug: 'person-name' }]]);
  await another.stop();
});

test.each([
  ['names in a row', 'John Smith '],
  ['initials', 'J. K. '],
  ['words in capitals', 'Abcdef Ghijkl '],
  ['numbers', '12 34 '],
  ['long street names', '12 Long Name of the '],
  ['titles', 'Dr. Dr. '],
  ['breaks', 'Regards,\n\n\n'],
  ['German streets without a number', 'Am Langen '],
  ['Chinese towns', '北京市朝阳区'],
])(
  '%s: 200,000 characters of them are analyzed without a failure',
  async (_, unit) => {
    const [entities] = await analyzer.analyze([unit.repeat(200_000 / unit.length)]);
    expect(Array.isArray(entities)).toBe(true);
  },
  20_000,
);
