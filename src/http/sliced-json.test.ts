import { expect, test } from 'vitest';
import { Random } from '../../test/simulation/random.ts';
import type { JsonValue } from '../schemas/json.ts';
import { readSlices, SLICE_BYTES } from './sliced-json.ts';

interface Reading {
  value: JsonValue;
  /** The longest text that was parsed in one step. */
  longest_chars: number;
  turns: number;
}

function read(text: string | Buffer): Reading {
  let longestChars = 0;
  const slices = readSlices(Buffer.from(text as string), (slice) => {
    longestChars = Math.max(longestChars, slice.length);
    return JSON.parse(slice);
  });
  for (let turns = 1; ; turns += 1) {
    const { done, value } = slices.next();
    if (done === true) return { value, longest_chars: longestChars, turns };
  }
}

const LONG = 'x'.repeat(3 * SLICE_BYTES);

test.each<[string, JsonValue]>([
  ['a string alone', LONG],
  ['a long string', { model: 'a', content: LONG, last: 1 }],
  ['long strings in a list', [LONG, 'a', LONG, LONG]],
  ['a long string of escapes', { a: ['"\\\n\u0001/'.repeat(SLICE_BYTES)] }],
  ['a long string of wide characters', { a: '語é😀"\u2028'.repeat(SLICE_BYTES) }],
  ['many small values', Array.from({ length: 30_000 }, (_, i) => ({ [`k${i % 7}`]: [i, {}, []] }))],
  ['an object with many keys', Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`key ${i} é`, `v${i}`]))],
  ['long values inside each other', { a: { b: [[{ c: [LONG, { d: LONG }], e: {} }], LONG], f: null }, g: [LONG] }],
  ['numbers', [Array.from({ length: 100_000 }, (_, i) => i / 7)]],
])('a sliced parser reads %s like JSON.parse', (_what, value) => {
  for (const text of [
    JSON.stringify(value),
    ` \uFEFF`.trimStart() + JSON.stringify(value),
    JSON.stringify(value, null, 1),
  ]) {
    const reading = read(text);
    expect(JSON.stringify(reading.value) === JSON.stringify(value)).toBe(true);
    expect(reading.longest_chars).toBeLessThan(1.5 * SLICE_BYTES);
    expect(reading.turns).toBeGreaterThan(text.length / SLICE_BYTES / 3);
  }
});

function anything(random: Random, depth: number): JsonValue {
  const kind = random.whole(0, depth > 5 ? 4 : 7);
  if (kind === 0) return random.pick([null, true, false, -1.5e3, 0]);
  if (kind === 1) return random.pick(['"', '\\', 'é語\\"', '\u2028😀', 'a,b:{}[]']).repeat(random.whole(0, 20));
  if (kind === 2)
    return random.chance(0.2) ? random.pick(['\\', '"', '😀', 'ab']).repeat(random.whole(1, 2 * SLICE_BYTES)) : 'a';
  if (kind <= 4) return random.chance(0.5) ? [] : {};
  const length = random.whole(0, 8);
  if (kind === 5) return Array.from({ length }, () => anything(random, depth + 1));
  return Object.fromEntries(
    Array.from({ length }, (_, i) => [random.chance(0.1) ? 'k"\\é' : `k${i}`, anything(random, depth + 1)]),
  );
}

test('any JSON is read like JSON.parse', () => {
  const random = new Random(7);
  for (let n = 0; n < 25; n += 1) {
    const value = [
      anything(random, 0),
      { a: anything(random, 0) },
      'x'.repeat(random.whole(0, SLICE_BYTES)),
      anything(random, 0),
    ];
    const text = JSON.stringify(value);
    expect(JSON.stringify(read(text).value) === text).toBe(true);
  }
});

test('invalid JSON is refused like by JSON.parse, wherever the fault is', () => {
  const text = JSON.stringify({
    a: ['b', LONG, { c: LONG, d: [1, 2, 3] }, 'e'.repeat(SLICE_BYTES), 4, 5],
    f: [LONG],
    g: {},
  });
  const isRead = (text: string, reader: (text: string) => unknown) => {
    try {
      reader(text);
      return true;
    } catch {
      return false;
    }
  };
  const random = new Random(3);
  const marks = [...text.matchAll(/[[\]{},:"]/g)].map(({ index }) => index);
  for (const at of marks) {
    for (const piece of ['', ',', ':', ']', '}', '[', '{', '"', '1', ' ', '\u0001', 'é', ',"x":1', '"y"']) {
      for (const cut of [0, 1]) {
        const broken = text.slice(0, at) + piece + text.slice(at + cut);
        if (random.chance(0.95)) continue;
        expect([at, piece, cut, isRead(broken, read)]).toEqual([at, piece, cut, isRead(broken, JSON.parse)]);
      }
    }
  }
});

test('bytes that are not UTF-8 are refused', () => {
  const bytes = Buffer.from(JSON.stringify([LONG, LONG]));
  bytes[2 * SLICE_BYTES] = 0xff;
  expect(() => read(bytes)).toThrow('is not valid UTF-8');
});

test.each([
  ['a long key', `{"${LONG}":1}`, 'key'],
  ['a long number', `[${'1'.repeat(8 * SLICE_BYTES)}]`, 'number'],
  ['long space', `[1${' '.repeat(8 * SLICE_BYTES)}]`, 'space'],
])('%s is refused, since it cannot be read in slices', (_what, text, word) => {
  expect(() => read(text)).toThrow(word);
});
