/**
 * What output filters cost for each chunk of a stream, and how much of a text they hold back: `node bin/launch.cjs
 * bench/answers.ts`.
 */

import { filterSetOf } from '../src/guardrails/policy/filter-set.ts';
import { UNRESTRICTED } from '../src/guardrails/policy/guardrail.ts';
import { finderOf } from '../src/guardrails/policy/output-filters.ts';
import { createAnswerFilter } from '../src/guardrails/streams/answer-filter.ts';
import type { BoundGuardrail, CustomFilter } from '../src/schemas/guardrail.ts';
import type { ChatChunk } from '../src/schemas/inner.ts';

const slugs = ['email', 'phone', 'ssn', 'credit-card', 'ip-address'] as const;
const guardrail = (contentFilters: CustomFilter[] | null): BoundGuardrail => ({
  id: 'g',
  scope: 'api-key',
  ...UNRESTRICTED,
  content_filter_builtins: slugs.map((slug) => ({ slug, action: 'redact' as const })),
  content_filters: contentFilters,
  content_filter_output: true,
  content_filter_reversible: null,
});
const patterns: CustomFilter[] = ['sk-[a-zA-Z0-9]{20,}', 'AKIA[0-9A-Z]{16}', '(?i)project nightjar', 'ghp_\\w{36}'].map(
  (pattern) => ({ pattern, action: 'redact' }),
);

const prose =
  'The quick brown fox jumps over the lazy dog, and then, on 12 March 2024, it went home (see chapter 3.2 for more). ' +
  'Nobody asked why: “it was late”, they said, and 15 of the 200 guests had left by half past ten. ';
const code =
  'export function add(a: number, b: number): number {\n  // Adds two numbers: 1 + 2 = 3\n  return a + b;\n}\n' +
  "const url = 'https://example.org/a/b?c=1&d=22';\nfor (let i = 0; i < 10; i += 1) total += items[i]?.price ?? 0.5;\n";
const json =
  '{"id": 48213, "name": "Blue chair", "tags": ["home", "wood"], "price": 129.9, "at": "2024-03-12T10:15:30Z", "ok": true},\n';
const numbers = '2024-03-12 10:15:30.123 INFO 48213 req=7f3a9c12 took 12 ms, 1822 bytes, status 200, peer port 52344\n';
const secrets = `${prose}Ask bob.smith@mail.example.com or 415-555-0134, from 203.0.113.77. `;

/** A text in the pieces in which a model streams it: a few characters at a time. */
function chunksOf(text: string): ChatChunk[] {
  const chunks: ChatChunk[] = [];
  let seed = 1;
  for (let at = 0; at < text.length; ) {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    const size = 2 + (seed % 6);
    const opening = at === 0 ? { open: { kind: 'text' as const } } : {};
    chunks.push({ delta: { content: text.slice(at, at + size) }, ext: { slot: { n: 0, ...opening } } });
    at += size;
  }
  return chunks;
}

const CHARS = 40_000;
const ROUNDS = 7;

function measureAnswers(): string {
  const lines = [
    'answers: microseconds of processor time for each chunk (4.5 characters on average), characters held back',
    '',
  ];
  const rows: [string, string][] = [
    ['prose', prose],
    ['code', code],
    ['json', json],
    ['numbers', numbers],
    ['prose with secrets', secrets],
  ];
  for (const [kind, custom] of [
    ['builtin filters', null],
    ['and 4 patterns', patterns],
  ] as const) {
    const set = filterSetOf([guardrail(custom === null ? null : [...custom])])!;
    for (const [name, text] of rows) {
      const chunks = chunksOf(text.repeat(Math.ceil(CHARS / text.length)));
      const times: number[] = [];
      const held: number[] = [];
      for (let round = 0; round < ROUNDS; round += 1) {
        const filter = createAnswerFilter({
          finder: finderOf(set, () => {}),
          content_is_json: false,
          keeps_signatures: false,
          isOfTurn: () => false,
        });
        let [receivedChars, shown] = [0, 0];
        const begun = process.cpuUsage().user;
        for (const chunk of chunks) {
          const out = filter.take([chunk]);
          if (round > 0) continue;
          receivedChars += chunk.delta.content!.length;
          for (const one of out) shown += one.delta.content?.length ?? 0;
          held.push(receivedChars - shown);
        }
        times.push((process.cpuUsage().user - begun) / chunks.length);
      }
      held.sort((a, b) => a - b);
      const at = (share: number) => held[Math.floor(share * (held.length - 1))];
      const least = Math.min(...times.slice(1)).toFixed(2);
      const middle = times
        .slice(1)
        .sort((a, b) => a - b)[3]!
        .toFixed(2);
      const heldText = name === 'prose with secrets' ? '' : `  held p50 ${at(0.5)}, p99 ${at(0.99)}, most ${at(1)}`;
      lines.push(`${kind.padEnd(16)} ${name.padEnd(20)} ${least} (median ${middle}) us${heldText}`);
    }
  }
  return lines.join('\n');
}

process.stdout.write(`${measureAnswers()}\n`);
