import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { inTier } from '../../../test/tier.ts';
import { limits } from '../../limits.ts';
import type { BoundGuardrail, BuiltinFilter, CustomFilter } from '../../schemas/guardrail.ts';
import { type ActiveFilter, filterSetOf } from '../policy/filter-set.ts';
import { UNRESTRICTED } from '../policy/guardrail.ts';
import { finderOf } from '../policy/output-filters.ts';
import { filteredText } from './deep-filter.ts';
import { createJsonFilter } from './json-filter.ts';
import { createStreamFilter, type Finder } from './stream-filter.ts';

function guardrail(builtins: BuiltinFilter[], custom: CustomFilter[] = []): BoundGuardrail {
  return {
    id: 'g',
    scope: 'api-key',
    ...UNRESTRICTED,
    content_filter_builtins: builtins,
    content_filters: custom,
    content_filter_output: true,
  };
}

const SLUGS = ['email', 'phone', 'ssn', 'credit-card', 'ip-address'] as const;
const all: BuiltinFilter[] = SLUGS.map((slug) => ({ slug, action: 'redact' }));
const redact = (pattern: string, label?: string): CustomFilter => ({
  pattern,
  action: 'redact',
  ...(label === undefined ? {} : { label }),
});

function finder(builtins: BuiltinFilter[], custom: CustomFilter[] = [], matched: ActiveFilter[] = []): Finder {
  const set = filterSetOf([guardrail(builtins, custom)])!;
  return finderOf(set, ({ filter }) => matched.push(set.filters[filter]!));
}

const SECRETS = [
  'bob.smith+tag@mail.example.com',
  '415-555-0134',
  '+1 (415) 555-0134',
  '123-45-6789',
  '4111 1111 1111 1111',
  '5500-0000-0000-0004',
  '192.168.10.254',
  '8.8.4.4',
  'fe80::a:1',
];

/** The output of a filter for these pieces of a text. */
function streamed(of: Finder, pieces: readonly string[]): string {
  const filter = createStreamFilter(of);
  return pieces.map((piece) => filter.push(piece)).join('') + filter.end();
}

/** Ways to split a text. */
function cutAt(text: string, cuts: readonly number[]): string[] {
  const places = [...new Set(cuts.map((cut) => cut % (text.length + 1)))].sort((a, b) => a - b);
  return [...places, text.length].map((end, at) => text.slice(places[at - 1] ?? 0, end));
}

const words = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom('the', 'order', 'was', 'sent', 'in', '2024', 'at', '12:34:56', '😀', 'é') },
    { weight: 2, arbitrary: fc.constantFrom(...SECRETS) },
    { weight: 1, arbitrary: fc.string({ maxLength: 6 }) },
    { weight: 1, arbitrary: fc.constantFrom('@', '-', '1', '44', '555', '.', 'a@b', 'sk-ab12', 'sk-') },
    { weight: 1, arbitrary: fc.constantFrom('\u200b', 's\u00adk-', 'or\u2060der', 'i\ufeffn', '\u{e0020}') },
  ),
  { maxLength: 24 },
);
const text = fc.tuple(words, fc.constantFrom(' ', ' ', '', '\n', ', ')).map(([list, between]) => list.join(between));

describe('the filter of a stream', () => {
  const finders: [string, Finder][] = [
    ['all builtin filters', finder(all)],
    ['patterns', finder([], [redact('sk-[a-z0-9]{4}', 'KEY'), redact('(?i)order \\w+'), redact('\\bin\\b.{0,6}')])],
    ['patterns without a bound', finder(all, [redact('sk-[a-z0-9]+'), redact('<[^>]*>')])],
  ];
  test.each(finders)('%s: any chunking gives the output of the whole text', (_name, of) => {
    fc.assert(
      fc.property(text, fc.array(fc.nat(), { maxLength: 12 }), (whole, cuts) => {
        const expected = filteredText(of, whole).value;
        expect(streamed(of, cutAt(whole, cuts))).toBe(expected);
        expect(streamed(of, [...whole])).toBe(expected);
      }),
      { numRuns: inTier(100, 400), seed: 3 },
    );
  });

  test.each(SECRETS)('%s is removed at any cut, and the text around it stays', (secret) => {
    const of = finder(all);
    const whole = `Write to ${secret}, please. And then go on with the rest of it.`;
    const [, placeholder] = /^Write to (\[\w+\]), please\. And then go on with the rest of it\.$/.exec(
      filteredText(of, whole).value,
    )!;
    for (let cut = 0; cut <= whole.length; cut += 1) {
      expect(streamed(of, [whole.slice(0, cut), whole.slice(cut)])).toBe(whole.replace(secret, placeholder!));
    }
  });

  test('ends a text before a blocking match, and reports its filter', () => {
    const matched: ActiveFilter[] = [];
    const of = finder([{ slug: 'email', action: 'block' }], [], matched);
    for (const cut of [3, 8, 12, 17]) {
      matched.length = 0;
      const whole = 'Ask bob@mail.example.com for it.';
      const filter = createStreamFilter(of);
      const output = filter.push(whole.slice(0, cut)) + filter.push(whole.slice(cut)) + filter.end();
      expect(output).toBe('Ask ');
      expect(filter.hasEnded()).toBe(true);
      expect(matched.map(({ slug }) => slug)).toEqual(['email']);
    }
  });

  test('a match that is too long to be held back is replaced to its end', () => {
    const of = finder([], [redact('sk-[a-z0-9]+', 'KEY')]);
    for (const length of [100, limits.filter_held_chars_max - 5, limits.filter_held_chars_max + 3, 20_000]) {
      const key = `sk-${'ab12'.repeat(length / 4)}`;
      for (const size of length > 100 ? [99, 1_000] : [1, 7]) {
        const whole = `The key is ${key} and more.`;
        const pieces = whole.match(new RegExp(`.{1,${size}}`, 'gs'))!;
        expect(streamed(of, pieces)).toBe('The key is [KEY] and more.');
      }
    }
  });

  test('text of an endless possible match is neither shown nor buffered', () => {
    const of = finder([], [redact('<[^>]*>', 'TAG')]);
    const filter = createStreamFilter(of);
    let output = filter.push('a <');
    for (let i = 0; i < 3_000 && !filter.hasEnded(); i += 1) output += filter.push('word after word after word ');
    expect(output.slice(0, 40)).toBe('a [REDACTED]');
    expect(filter.hasEnded()).toBe(true);
  });

  test('a match across the settled offset is not settled, and neither is half of a surrogate pair', () => {
    const finderFor = (expression: RegExp, heldFrom: (text: string) => number): Finder => ({
      context_chars: 8,
      find: (text) =>
        [...text.matchAll(expression)].map(({ 0: hit, index }) => ({
          start: index,
          end: index + hit.length,
          text: '#',
        })),
      heldFrom,
      settled() {},
    });
    const last = finderFor(/ab+/g, (text) => text.length - 1);
    expect(streamed(last, [...'xabbbby ab'])).toBe('x#y #');
    const none = finderFor(/😀/gu, (text) => text.length);
    expect(streamed(none, ['a\ud83d', '\ude00b'])).toBe('a#b');
  });

  test('long sequences of letters and digits are neither held back nor matched', () => {
    const of = finder(all);
    const bytes = Buffer.from(Array.from({ length: 6_000 }, (_, at) => (at * 7_919 + (at >> 3) * 13) % 256));
    for (const row of [
      'a'.repeat(9_000),
      bytes.toString('base64').replaceAll(/[0-9]/g, 'x'),
      bytes.toString('hex'),
      '1 '.repeat(4_500),
      '@'.repeat(9_000),
    ]) {
      const filter = createStreamFilter(of);
      let [sentChars, shown, most] = [0, '', 0];
      for (const piece of `${row}, of bob@mail.example.com.`.match(/.{1,60}/gs)!) {
        sentChars += piece.length;
        shown += filter.push(piece);
        most = Math.max(most, sentChars - shown.length);
      }
      expect(shown + filter.end()).toBe(`${row}, of [EMAIL].`);
      expect(most).toBeLessThan(1_000);
    }
  });

  test('holds back almost no ordinary text', () => {
    const of = finder(all);
    const filter = createStreamFilter(of);
    const prose =
      'The quick brown fox jumps over the lazy dog, in 2024, 15 times; see https://a.example/b?c=d for more. ';
    let [sentChars, shown, most] = [0, 0, 0];
    for (const piece of prose.repeat(20).match(/.{1,4}/gs)!) {
      sentChars += piece.length;
      shown += filter.push(piece).length;
      most = Math.max(most, sentChars - shown);
    }
    expect(most).toBeLessThan(64);
  });
});

describe('the filter of arguments', () => {
  const of = finder(all, [redact('sk-[a-z0-9]{4}', 'a "KEY"')]);
  const shown = (pieces: readonly string[]) => {
    const filter = createJsonFilter(of);
    return pieces.map((piece) => filter.push(piece)).join('') + filter.end();
  };

  test.each([
    ['{"to":"bob@mail.example.com","n":1}', { to: '[EMAIL]', n: 1 }],
    ['{"to":"bob\\u0040mail.example.com"}', { to: '[EMAIL]' }],
    ['{"\\u0062ob@mail.example.com":"x\\n\\"y\\""}', { '[EMAIL]': 'x\n"y"' }],
    ['{"card": 4111111111111111, "at" : [1, 2.5, true, null]}', { card: '[CREDIT_CARD]', at: [1, 2.5, true, null] }],
    ['{"key":"my sk-ab12","emoji":"\\ud83d\\ude00 \\/ é"}', { key: 'my [a "KEY"]', emoji: '😀 / é' }],
    ['["415-555-0134",["123-45-6789"]]', ['[PHONE]', ['[SSN]']]],
  ])('%s stays JSON in any chunking', (json, value) => {
    expect(JSON.parse(shown([json]))).toEqual(value);
    for (let cut = 0; cut <= json.length; cut += 1) {
      expect(shown([json.slice(0, cut), json.slice(cut)])).toBe(shown([json]));
    }
    expect(shown([...json])).toBe(shown([json]));
  });

  test('JSON without matches is unchanged', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.array(fc.nat(), { maxLength: 8 }), fc.boolean(), (value, cuts, isSpaced) => {
        const json = JSON.stringify(value, null, isSpaced ? 2 : undefined);
        fc.pre(filteredText(of, json).value === json && !/\d{7}/.test(json));
        expect(shown(cutAt(json, cuts))).toBe(json);
      }),
      { numRuns: inTier(75, 300), seed: 9 },
    );
  });

  test('text that is not JSON is filtered as plain text', () => {
    expect(shown(['call +1 415', ' 555 0134 now'])).toBe('call [PHONE] now');
    expect(shown(['{"a": bob@mail.', 'example.com}'])).toBe('{"a": [EMAIL]}');
    for (const [input, expected] of [
      ['[2001:db8:85a3::8a2e:370:7334]:443', '[[IP_ADDRESS]]:443'],
      ['{ip: 2001:db8:85a3::8a2e:370:7334, "b": 1}', '{ip: [IP_ADDRESS], "b": 1}'],
      ['{"a":2001:db8:85a3::8a2e:370:7334}', '{"a":[IP_ADDRESS]}'],
      ['{"a":1} of 2001:db8:85a3::8a2e:370:7334', '{"a":1} of [IP_ADDRESS]'],
      ["{'to': 'bob@mail.example.com'}", "{'to': '[EMAIL]'}"],
    ] as const) {
      expect(shown([input])).toBe(expected);
      expect(shown([...input])).toBe(expected);
    }
    expect(shown(['{"a":"bob@mail.example.com'])).toBe('{"a":"[EMAIL]');
  });
});
