import { expect, test } from 'vitest';
import { filterSetOf } from '../src/guardrails/policy/filter-set.ts';
import { UNRESTRICTED } from '../src/guardrails/policy/guardrail.ts';
import { finderOf } from '../src/guardrails/policy/output-filters.ts';
import { createAnswerFilter } from '../src/guardrails/streams/answer-filter.ts';
import { AnswerMeter, type Meter } from '../src/inference/money/meter.ts';
import { transformWhole } from '../src/inference/transform.ts';
import { type AttemptState, UpstreamError } from '../src/providers/dialect.ts';
import { dialects } from '../src/providers/dialects.ts';
import { accumulate } from '../src/schemas/accumulate.ts';
import { chunksOf } from '../src/schemas/chunks.ts';
import type { BoundGuardrail } from '../src/schemas/guardrail.ts';
import type { ChatChunk, Wire } from '../src/schemas/inner.ts';
import { recordingsOf } from './readings/recordings.ts';

/** Every recorded whole answer: its chunks and the answer collected from them are the same for every reader. */

interface WholeAnswerChunks {
  wire: Wire;
  name: string;
  chunks: ChatChunk[];
}

const STATE: AttemptState = { generation_id: 'gen-recorded' };

const answers = [...dialects].flatMap(([wire, dialect]) =>
  recordingsOf(wire).flatMap(({ name, recording: { response } }): WholeAnswerChunks[] => {
    if (response.status !== 200 || response.json === undefined) return [];
    try {
      return [{ wire, name, chunks: dialect.decodeResponse(response.json, STATE) }];
    } catch (error) {
      if (error instanceof UpstreamError) return [];
      throw error;
    }
  }),
);

const REQUEST = { messages: [{ role: 'user' as const, content: 'How many?' }] };

/** All values that are read from a meter. */
function readingOf(meter: Meter) {
  const { produced, is_void, finish_reason, native_finish_reason, open_choices, service_tier, upstream_id } = meter;
  return {
    ...{ produced, is_void, finish_reason, native_finish_reason, open_choices, service_tier, upstream_id },
    usage: meter.usage(REQUEST),
    output_tokens: meter.outputTokens(),
    progress: meter.progress(REQUEST),
    tool_calls: meter.calledTools?.count(finish_reason),
  };
}

const guardrail: BoundGuardrail = {
  id: 'g',
  scope: 'api-key',
  ...UNRESTRICTED,
  content_filter_builtins: null,
  content_filters: [{ label: 'word', pattern: '\\b[a-z]{5}\\b', action: 'redact' }],
  content_filter_output: true,
  content_filter_reversible: null,
};
const words = filterSetOf([guardrail])!;
const filterOf = () =>
  createAnswerFilter({
    finder: finderOf(words, () => {}),
    content_is_json: false,
    keeps_signatures: false,
    isOfTurn: () => false,
  });

test('every wire has recorded whole answers', () => {
  expect(new Set(answers.map(({ wire }) => wire)).size).toBe(dialects.size);
});

test.each(answers)('$wire, $name: the chunks are metered like the collected answer', ({ chunks }) => {
  const whole = new AnswerMeter();
  for (const chunk of chunksOf(accumulate(chunks, 0))) whole.chunk(chunk);
  const streamed = new AnswerMeter();
  for (const chunk of chunks) streamed.chunk(chunk);
  expect(readingOf(streamed)).toEqual(readingOf(whole));
});

test.each(answers)('$wire, $name: usage follows the last text, which it includes', ({ chunks }) => {
  const usage = chunks.findLastIndex(({ ext }) => ext?.response?.usage !== undefined);
  const text = chunks.findLastIndex(({ delta }) => delta.content || delta.reasoning || delta.tool_calls?.length);
  if (usage !== -1) expect(usage).toBeGreaterThanOrEqual(text);
});

test.each(answers)('$wire, $name: the chunks are filtered like the collected answer', ({ chunks }) => {
  const filter = filterOf();
  const filtered = accumulate([...filter.take(chunks), ...filter.end()], 0);
  expect(filtered).toEqual(transformWhole(accumulate(chunks, 0), filterOf()));
});
