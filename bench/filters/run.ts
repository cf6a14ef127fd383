import { BuiltinScanner, scannedSlugs } from '../../src/guardrails/detect/builtins.ts';
import { compilePattern, patternFault } from '../../src/guardrails/patterns/pattern.ts';
import { PatternProgram } from '../../src/guardrails/patterns/pattern-program.ts';
import { type FilterSet, filterSetOf } from '../../src/guardrails/policy/filter-set.ts';
import { UNRESTRICTED } from '../../src/guardrails/policy/guardrail.ts';
import { createNameAnalyzer } from '../../src/inference/guardrails/name-analyzer.ts';
import type { BoundGuardrail } from '../../src/schemas/guardrail.ts';
import { CATASTROPHES } from '../../test/filters/catastrophic.ts';
import { corpus, LABELLED, LOCALES, score } from '../../test/filters/corpus.ts';
import { messages } from './texts.ts';

const SEED = 1;
const EACH = 100;
const WARM_UP = 20;
const ROUNDS = 60;
const CUSTOM_PATTERNS = 100;
const NAMES_ROUNDS = 5;

function setOf(
  slugs: readonly (typeof scannedSlugs)[number][],
  patterns: readonly string[],
  injection = false,
): FilterSet {
  const contentFilterBuiltins = slugs.map((slug) => ({ slug, action: 'redact' as const }));
  const guardrail: BoundGuardrail = {
    id: 'bench',
    scope: 'api-key',
    ...UNRESTRICTED,
    content_filter_builtins: [
      ...contentFilterBuiltins,
      ...(injection ? [{ slug: 'regex-prompt-injection' as const, action: 'flag' as const }] : []),
    ],
    content_filters: patterns.map((pattern) => ({ pattern, action: 'redact' as const })),
    content_filter_output: null,
    content_filter_reversible: null,
  };
  return filterSetOf([guardrail])!;
}

/** Patterns such as guardrails have. */
function customPatterns(): string[] {
  const words = [
    'password',
    'secret',
    'falcon',
    'nightjar',
    'internal',
    'customer',
    'invoice',
    'codename',
    'vault',
    'orion',
  ];
  return Array.from({ length: CUSTOM_PATTERNS }, (_, index) => {
    const word = words[index % words.length]!;
    const kinds = [
      `sk-${word}-[a-zA-Z0-9]{20,}`,
      `\\b[A-Z]{${2 + (index % 3)}}-\\d{${4 + (index % 5)}}\\b`,
      `(?i)project\\s+${word}${index}`,
      `EMP\\d{${5 + (index % 7)}}`,
      `(?:${word}|key)_${index}=\\S+`,
    ];
    return kinds[index % kinds.length]!;
  });
}

/** Megabytes in a second of processor time, which other processes on the machine hardly change. */
function speed(set: FilterSet, text: string): number {
  for (let round = 0; round < WARM_UP; round += 1) set.find(text);
  const before = process.cpuUsage();
  for (let round = 0; round < ROUNDS; round += 1) set.find(`${text}${round}`);
  const { user, system } = process.cpuUsage(before);
  return (Buffer.byteLength(text) * ROUNDS) / (user + system);
}

function speedTable(): string {
  const sets: [string, FilterSet][] = [
    ['five builtins', setOf(scannedSlugs, [])],
    ['with injection', setOf(scannedSlugs, [], true)],
    [`${CUSTOM_PATTERNS} patterns`, setOf([], customPatterns())],
  ];
  const head = ['MB in a second of CPU time', ...sets.map(([name]) => name), 'found by the five'];
  const rows = messages(SEED).map(({ name, text }) => [
    name,
    ...sets.map(([, set]) => speed(set, text).toFixed(1)),
    String(sets[0]![1].find(text).length),
  ]);
  return table([head, ...rows]);
}

function qualityTable(): string {
  const scanner = new BuiltinScanner(scannedSlugs, ['US']);
  const scores = score(corpus(SEED, EACH), (text) => {
    const matches: { slug: string; start: number; end: number }[] = [];
    scanner.scan(text, (slug, start, end) => matches.push({ slug, start, end }));
    return matches;
  });
  const cell = (key: string) => {
    const { labelled, reported, right, wrong } = scores.get(key)!;
    return `${(right / labelled).toFixed(3)} / ${((reported - wrong.length) / reported).toFixed(3)}`;
  };
  const head = ['recall / precision', 'all', ...LOCALES];
  return table([
    head,
    ...LABELLED.map((slug) => [slug, cell(slug), ...LOCALES.map((locale) => cell(`${slug} ${locale}`))]),
  ]);
}

/** How much longer the hardest patterns take for a text four times as long: 4 is linear, 16 would be its square. */
function growthTable(): string {
  const timeOf = (pattern: string, text: string) => {
    const program = new PatternProgram(compilePattern(pattern));
    for (let round = 0; round < 5; round += 1) program.find(text);
    const times = Array.from({ length: 15 }, () => {
      const began = performance.now();
      program.find(text);
      return performance.now() - began;
    });
    return Math.min(...times);
  };
  const taken = CATASTROPHES.filter(({ pattern }) => patternFault(pattern) === undefined);
  const ratios = taken
    .map(({ pattern, attack }) => ({
      pattern,
      ratio: timeOf(pattern, attack(40_000)) / timeOf(pattern, attack(10_000)),
    }))
    .sort((a, b) => b.ratio - a.ratio);
  const most = ratios.slice(0, 5).map(({ pattern, ratio }) => [pattern, ratio.toFixed(1)]);
  const summary = `${CATASTROPHES.length} catastrophic patterns: ${CATASTROPHES.length - taken.length} refused, ${taken.length} taken`;
  return `${summary}\n${table([['time for 40 KB by time for 10 KB, the most', ''], ...most])}`;
}

function table(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/**
 * Names and addresses, which a worker thread searches: the time from its start to its first answer, and texts with and
 * without matches.
 */
async function namesTable(): Promise<string> {
  const analyzer = createNameAnalyzer();
  const began = performance.now();
  await analyzer.analyze(['Ask Maria Garcia.']);
  const startMs = performance.now() - began;
  const letter = 'Dear Ms Garcia, John Smith moved to 12 Elm Street, Springfield, IL 62701. Call Anna Nowak. ';
  const texts = [
    ...messages(SEED).filter(({ name }) => ['prose', 'code', 'CJK'].includes(name)),
    { name: 'letters with names', text: letter.repeat(1_000) },
  ];
  const rows: string[][] = [];
  for (const { name, text } of texts) {
    await analyzer.analyze([text]);
    const from = performance.now();
    await analyzer.analyze(Array.from({ length: NAMES_ROUNDS }, () => text));
    const bytes = Buffer.byteLength(text) * NAMES_ROUNDS;
    rows.push([name, (bytes / 1_000 / (performance.now() - from)).toFixed(1)]);
  }
  await analyzer.stop();
  return table([['names and addresses', 'MB/s'], ...rows, ['first answer of the thread, ms', startMs.toFixed(0)]]);
}

/** Measures the speed of content filters and how well they find, and that no pattern takes more than its share. */
export async function measureFilters(): Promise<string> {
  return [speedTable(), qualityTable(), growthTable(), await namesTable()].join('\n\n');
}
