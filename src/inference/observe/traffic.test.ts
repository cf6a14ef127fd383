import { expect, test } from 'vitest';
import { UpstreamError } from '../../providers/dialect.ts';
import type { Candidate } from '../../routing/candidate.ts';
import type { Sample } from '../../routing/endpoint-bucket.ts';
import { type AnswerFacts, createTraffic } from './traffic.ts';

const facts = (over: Partial<AnswerFacts> = {}): AnswerFacts => ({
  is_streamed: true,
  sent_ms: 1_000,
  first_token_ms: 1_200,
  end_ms: 3_200,
  usage: { in_uncached: 10, out_text: 80, out_reasoning: 21 },
  tool_calls: undefined,
  is_completed: true,
  is_error: false,
  ...over,
});

test.each<[string, Partial<AnswerFacts>, Partial<Sample>]>([
  ['a stream', {}, { result: 'success', latency_ms: 200, tokens_per_second: 50 }],
  [
    'a whole answer',
    { is_streamed: false, first_token_ms: 3_200 },
    { latency_ms: 2_200, tokens_per_second: 101 / 2.2 },
  ],
  ['a stream in one chunk', { first_token_ms: 3_195 }, { latency_ms: 2_195, tokens_per_second: 101 / 2.2 }],
  ['one token', { usage: { out_text: 1 } }, { latency_ms: 200, tokens_per_second: undefined }],
  ['vectors', { usage: { in_uncached: 5 } }, { result: 'success', tokens_per_second: undefined }],
  ['no usage', { usage: null }, { result: 'success', tokens_per_second: undefined }],
  [
    'an answer that ends with an error',
    { is_error: true, tool_calls: { count: 2, valid: 1 } },
    { result: 'error', latency_ms: 200, tokens_per_second: undefined, tool_calls: undefined },
  ],
  [
    'a client that disconnected, whatever the finish reason',
    { is_completed: false, is_error: true },
    { result: undefined },
  ],
  [
    'a client that disconnected',
    { is_completed: false },
    { result: undefined, latency_ms: 200, tokens_per_second: undefined },
  ],
  [
    'an answer without a duration',
    { is_streamed: false, first_token_ms: 1_000, end_ms: 1_000 },
    { tokens_per_second: undefined },
  ],
  [
    'a first token of an earlier attempt',
    { first_token_ms: 200 },
    { latency_ms: undefined, tokens_per_second: 101 / 2.2 },
  ],
  ['tools', { tool_calls: { count: 2, valid: 1 } }, { tool_calls: 2, tool_calls_valid: 1 }],
  [
    'tool calls for a client that disconnected',
    { is_completed: false, tool_calls: { count: 2, valid: 1 } },
    { tool_calls: undefined },
  ],
])('the sample of %s', (_title, over, expected) => {
  const { seen, traffic } = counting();
  traffic.answered(candidate(), facts(over));
  expect(seen).toMatchObject([['e', expected]]);
});

function counting() {
  const seen: [string, Sample][] = [];
  const traffic = createTraffic({ observe: (id, sample) => void seen.push([id, sample]) }, { nowMs: () => 0 });
  return { seen, traffic };
}

const candidate = (over: object = {}) => ({ endpoint: { id: 'e' }, ...over }) as unknown as Candidate;

test('attempts at an organization’s own account are not counted', () => {
  const { seen, traffic } = counting();
  const own = candidate({ own: { id: 'c', version: 1 } });
  traffic.answered(own, facts());
  traffic.failed(own, new UpstreamError('unavailable', 'x', { status: 500 }));
  expect(seen).toEqual([]);
});

test('each service tier is counted by itself', () => {
  const { seen, traffic } = counting();
  traffic.answered(candidate({ tier: 'flex' }), facts());
  traffic.answered(candidate(), facts());
  expect(seen.map(([id]) => id)).toEqual(['e flex', 'e']);
});

test.each([
  ['unavailable', 500, 'error'],
  ['overloaded', 529, 'error'],
  ['timeout', null, 'error'],
  ['unavailable', null, 'error'],
  ['credential', 401, 'error'],
  ['payment', 402, 'error'],
  ['not_found', 404, 'error'],
  ['invalid_response', 200, 'error'],
  ['rate_limited', 429, 'rate_limited'],
  ['credential', 403, undefined],
  ['conflict', 409, undefined],
] as const)('%s with status %s counts as %s', (failure, status, result) => {
  const { seen, traffic } = counting();
  traffic.failed(candidate(), new UpstreamError(failure, 'x', { status }));
  expect(seen).toEqual(result === undefined ? [] : [['e', { result }]]);
});
