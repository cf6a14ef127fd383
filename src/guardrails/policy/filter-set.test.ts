import fc from 'fast-check';
import { expect, test } from 'vitest';
import { inTier } from '../../../test/tier.ts';
import { limits } from '../../limits.ts';
import type { BoundGuardrail, BuiltinFilter, CustomFilter } from '../../schemas/guardrail.ts';
import { type FilterSet, filterSetOf } from './filter-set.ts';
import { outputFiltersOf } from './output-filters.ts';

function guardrail(over: Partial<BoundGuardrail>): BoundGuardrail {
  const nothing = { allowed_models: null, ignored_models: null, allowed_providers: null, ignored_providers: null };
  const zdr = { enforce_zdr: null, enforce_zdr_anthropic: null, enforce_zdr_openai: null };
  const rest = { enforce_zdr_google: null, enforce_zdr_other: null, enforce_zdr_xai: null, content_filters: null };
  const output = { content_filter_builtins: null, content_filter_output: null, content_filter_reversible: null };
  return { id: 'g', scope: 'api-key', ...nothing, ...zdr, ...rest, ...output, ...over };
}

const SLUGS = ['email', 'phone', 'ssn', 'credit-card', 'ip-address'] as const;
const all: BuiltinFilter[] = SLUGS.map((slug) => ({ slug, action: 'redact' }));
const redact = (pattern: string, label?: string): CustomFilter => ({ pattern, action: 'redact', label: label ?? null });

function setOf(builtins: BuiltinFilter[], customs: CustomFilter[] = []): FilterSet {
  return filterSetOf([guardrail({ content_filter_builtins: builtins, content_filters: customs })])!;
}

function redacted(set: FilterSet, text: string): string {
  let out = '';
  let at = 0;
  for (const { start, end, filter } of set.find(text)) {
    out += text.slice(at, start) + set.filters[filter]!.placeholder;
    at = end;
  }
  return out + text.slice(at);
}

test('guardrails without filters have no filter set, and the same guardrails share one', () => {
  expect(filterSetOf([guardrail({})])).toBeUndefined();
  const guardrails = [guardrail({ content_filter_builtins: all })];
  expect(filterSetOf(guardrails)).toBe(filterSetOf(guardrails));
});

test('the strictest action of a slug or pattern applies, from the first guardrail that sets it', () => {
  const email = (action: 'redact' | 'block', label?: string): BuiltinFilter[] => [
    { slug: 'email', action, ...(label === undefined ? {} : { label }) },
  ];
  const set = filterSetOf([
    guardrail({ id: 'one', content_filter_builtins: email('redact', 'mail'), content_filters: [redact('x')] }),
    guardrail({ id: 'two', scope: 'member', content_filter_builtins: email('block', 'no mail') }),
    guardrail({ id: 'three', content_filter_builtins: email('block'), content_filters: [redact('x', 'LATER')] }),
  ])!;
  expect(set.filters).toEqual([
    {
      slug: 'email',
      action: 'block',
      label: 'no mail',
      placeholder: '[no mail]',
      guardrail_id: 'two',
      guardrail_scope: 'member',
    },
    {
      pattern: 'x',
      action: 'redact',
      label: '[BLOCKED]',
      placeholder: '[REDACTED]',
      guardrail_id: 'one',
      guardrail_scope: 'api-key',
    },
  ]);
});

test('placeholders name the kind of match or the label of the filter', () => {
  const set = setOf(all, [redact('falcon', 'PROJECT'), redact('kestrel')]);
  const text = 'a@b.com 555-123-4567 123-45-6789; 4111 1111 1111 1111, 10.0.0.1 falcon kestrel';
  expect(redacted(set, text)).toBe('[EMAIL] [PHONE] [SSN]; [CREDIT_CARD], [IP_ADDRESS] [PROJECT] [REDACTED]');
});

test('names and addresses are not found here, but by an analyzer', () => {
  const set = setOf([
    { slug: 'person-name', action: 'redact' },
    { slug: 'email', action: 'redact' },
    { slug: 'address', action: 'block' },
  ]);
  expect(set.analyzed).toEqual([0, 2]);
  expect(set.find('John Smith, 1 Main Street')).toEqual([]);
});

test('overlapping redactions become one of the longest filter, and blocking matches are reported separately', () => {
  const set = setOf(all, [redact('mail to a@', 'X'), { pattern: 'b\\.com', action: 'block', label: null }]);
  const findings = set.find('mail to a@b.commerce.org now');
  expect(
    findings.map(({ start, end, filter }) => [start, end, set.filters[filter]?.slug ?? set.filters[filter]?.pattern]),
  ).toEqual([
    [0, 24, 'email'],
    [10, 15, 'b\\.com'],
  ]);
});

test('a blocking match beside a redacted one is found in either order', () => {
  const set = setOf(all, [{ pattern: '\\bkey\\b', action: 'block', label: null }]);
  expect(set.find('key a@b.com').map(({ start }) => start)).toEqual([0, 4]);
});

test.each(['Fal\u200bcon 7', 'F\u00adalcon\ufeff 7', '\u2060Falcon 7', 'Falcon \u{e0037}\u{e0020}7'])(
  'invisible characters do not hide a match: %j',
  (text) => {
    const set = setOf([], [redact('^Falcon \\d')]);
    expect(redacted(set, text).replaceAll(/\p{DI}/gu, '')).toBe('[REDACTED]');
    expect(set.find('Falcon 7\u200b')).toEqual([{ start: 0, end: 8, filter: 0 }]);
  },
);

test('patterns are compiled in parts with pauses, or immediately by `find` without `prepare`', async () => {
  const patterns = (salt: string) =>
    Array.from({ length: 60 }, (_, index) => redact(`\\b(?i)(?:[a-z${salt}]{1,20}\\pL{2,9}|${salt}${index}){1,3}z`));
  const [waited, hasty] = [setOf([], patterns('q')), setOf([], patterns('w'))];
  let pauses = 0;
  const pause = async () => {
    pauses += 1;
  };
  const preparing = hasty.prepare(pause);
  expect(hasty.find('w7z')).toHaveLength(1);
  await Promise.all([waited.prepare(pause), preparing]);
  expect(pauses).toBeGreaterThan(4);
  expect(waited.prepare(pause)).toBeUndefined();
  expect(waited.find('q7z')).toHaveLength(1);
});

test('a pattern that cannot be compiled fails every call', async () => {
  const set = setOf([], [redact('fine'), redact('(')]);
  await expect(set.prepare(async () => {})).rejects.toThrow();
  for (let time = 0; time < 2; time += 1) expect(() => set.find('fine')).toThrow();
});

test('an empty match redacts nothing, and a pattern that matches placeholders terminates', () => {
  expect(setOf([], [redact('x*')]).find('abc')).toEqual([]);
  expect(redacted(setOf(all, [redact('[A-Z_]+')]), 'to a@b.com')).toBe('to [EMAIL]');
});

const PARTS = [
  ...['bob.smith+tag@mail.example.com', '415-555-0134', '+1 (415) 555-0134', '123-45-6789', '4111 1111 1111 1111'],
  ...['5500-0000-0000-0004', '192.168.10.254', 'fe80::1', '2001:db8::8a2e:370:7334', 'DE89 3704 0044 0532 0130 00'],
  ...['the', 'in', 'order', '2024', '12:34:56', '😀', 'é', '@', '-', '1', '44', '555', '.', 'a@b', 'sk-ab12', 'sk-'],
  ...['(', '+', 'x', 'version', '\u200b', '４', 'tel', '0', '+44 20 7946 0958', '<', '>'],
  ...['sk\u200b-ab', '\u00ad', 'or\u2060der', 'i\ufeffn', '\u{e0020}'],
];
const texts = fc
  .tuple(fc.array(fc.constantFrom(...PARTS), { maxLength: 12 }), fc.constantFrom(' ', ' ', '', '\n', ', '))
  .map(([parts, between]) => parts.join(between));
const sets: [string, FilterSet][] = [
  ['builtin filters', setOf(all)],
  ['patterns', setOf([], [redact('sk-[a-z0-9]{4}', 'KEY'), redact('(?i)order \\w+'), redact('\\bin\\b.{0,6}')])],
  ['both', setOf(all, [redact('sk-[a-z0-9]+'), redact('<[^>]*>')])],
];

test.each(sets)('%s: a redacted text has no matches left', (_, set) => {
  fc.assert(
    fc.property(texts, (text) => {
      const redactedText = redacted(set, text);
      const left = set
        .find(redactedText)
        .filter(({ start, end }) => !/^[[A-Z_\]]+$/.test(redactedText.slice(start, end)));
      expect(left).toEqual([]);
    }),
    { numRuns: inTier(100, 1_000) },
  );
});

test.each(sets)('%s: findings before the held offset do not change when more text follows', (_, set) => {
  fc.assert(
    fc.property(texts, fc.nat(), (text, at) => {
      const cut = text.slice(0, at % (text.length + 1));
      const findings = set.find(cut);
      let border = set.heldFrom(cut);
      for (const { start, end } of findings.toReversed()) if (start < border && end > border) border = start;
      const isBefore = ({ start }: { start: number }) => start < border;
      expect(set.find(text).filter(isBefore)).toEqual(findings.filter(isBefore));
    }),
    { numRuns: inTier(100, 1_000) },
  );
});

test('text after a redaction that could join it to a word is held back', () => {
  const set = setOf([], [redact('sk-[a-z0-9]{4}', 'KEY'), redact('\\bin\\b')]);
  expect(redacted(set, 'sk-ab12in')).toBe('[KEY][REDACTED]');
  expect(set.heldFrom('sk-ab12i')).toBe(7);
  const growing = setOf([], [redact('sk-[a-z0-9]{4}', 'KEY'), redact('\\bin\\b.{0,6}')]);
  expect(growing.find('sk-ab12in')).toHaveLength(2);
  expect(growing.heldFrom('sk-ab12in')).toBe(7);
  expect(growing.heldFrom('insk-ab12')).toBe(0);
});

test('almost no ordinary text is held back', () => {
  const set = setOf(all);
  const text = 'The order of 2024 was sent at 12:34, as we said. It holds 3 items and is paid, they write.';
  for (let at = 1; at <= text.length; at += 1) {
    expect(at - set.heldFrom(text.slice(0, at))).toBeLessThan(limits.filter_context_chars / 8);
  }
});

test('national telephone numbers of the configured countries are found, with the current configuration', () => {
  const guardrails = [guardrail({ content_filter_builtins: all, content_filter_output: true })];
  const text = 'Ruf 030 901820 oder 415-555-0134 an';
  const matches = (set: FilterSet | undefined) => set!.find(text).map(({ start, end }) => text.slice(start, end));
  const countries: readonly string[] = ['DE'];
  for (const setFor of [filterSetOf, outputFiltersOf]) {
    const before = matches(setFor(guardrails));
    expect(before).toContain('415-555-0134');
    expect(matches(setFor(guardrails, countries))).toContain('030 901820');
    expect(setFor(guardrails, countries)).toBe(setFor(guardrails, countries));
    expect(matches(setFor(guardrails))).toEqual(before);
  }
});
