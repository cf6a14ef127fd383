/**
 * Every recorded answer of every wire, told to a client of the Responses API: its stream keeps to the grammar wherever it was cut,
 * and says what the whole answer says. Answers of the very wire come back as they were.
 */
import { describe, expect, test } from 'vitest';
import { createResponseObject } from '../src/api/responses/response-object.ts';
import { encodeResponse, type ResponseContext } from '../src/api/responses/encode.ts';
import { createResponseStream } from '../src/api/responses/stream.ts';
import { declaredTools } from '../src/api/responses/declared-tools.ts';
import { createEnvelopes } from '../src/inference/state/envelope.ts';
import { NO_USAGE } from '../src/inference/settlement.ts';
import type { AttemptState } from '../src/providers/dialect.ts';
import { dialects } from '../src/providers/dialects.ts';
import { createFramer } from '../src/providers/frames.ts';
import { accumulate } from '../src/schemas/accumulate.ts';
import type { ChatChunk, Wire } from '../src/schemas/inner.ts';
import type { JsonObject } from '../src/schemas/json.ts';
import { checkResponse, checkResponsesStream } from './grammar/responses.ts';
import { whySkipped } from './readings/recordings.ts';
import { type RecordedAnswer, recordedAnswers } from './recorded-upstream.ts';

const generation_id = `gen-1700000000-${'a'.repeat(20)}`;
const served = { model: 'maker/model', provider: 'Host' };
const envelope = createEnvelopes('a secret of thirty-two characters')('org');

function contextOf(body: JsonObject = {}): ResponseContext {
  return {
    generation_id,
    response: createResponseObject({ id: generation_id, created_at: 1_700_000_000, model: 'asked' }, body),
    tools: declaredTools(undefined),
    envelope,
    hide_reasoning: false,
    shows_logprobs: true,
    now: () => 1_700_000_001,
  };
}

/** Whole numbers from 0 up to a bound, the same for one seed. */
function chance(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff;
    return Math.floor((state / 0x8000_0000) * below);
  };
}

/** The chunks of a recorded stream whose bytes came in parts of any length. */
function chunksOf(wire: Wire, bytes: Uint8Array, below: (bound: number) => number): ChatChunk[][] {
  const dialect = dialects.get(wire)!;
  const state: AttemptState = { generation_id };
  const framer = createFramer(dialect.frames);
  const decoder = dialect.createStreamDecoder(state, 0);
  const groups: ChatChunk[][] = [];
  for (let from = 0; from < bytes.length; ) {
    const to = Math.min(bytes.length, from + 1 + below(4_000));
    const frames = framer.push(bytes.subarray(from, to));
    groups.push(frames.flatMap((frame) => decoder.push(frame)));
    from = to;
  }
  groups.push([...framer.end().flatMap((frame) => decoder.push(frame)), ...decoder.end()]);
  return groups;
}

function streamed(groups: readonly ChatChunk[][], context = contextOf()): string {
  const encoder = createResponseStream(context);
  const text = [encoder.open(served), ...groups.map((chunks) => encoder.chunks(chunks))];
  const end = { type: 'end', usage: NO_USAGE, classes: null, metadata: undefined, error: undefined } as const;
  return text.join('') + encoder.end(end);
}

function whole(groups: readonly ChatChunk[][]): JsonObject {
  const completion = accumulate(groups.flat(), 0);
  const told = { completion, served, usage: NO_USAGE, classes: null, metadata: undefined };
  return JSON.parse(encodeResponse(told, contextOf()));
}

for (const wire of dialects.keys()) {
  const answers = recordedAnswers(wire);
  describe.skipIf(answers.length === 0)(`streams over ${wire}${whySkipped(answers, wire)}`, () => {
    const streams = answers.filter(({ kind }) => kind === 'stream');

    test.each(streams)('$name', ({ bytes, name }: RecordedAnswer) => {
      const groups = chunksOf(wire, bytes, chance(name.length));
      const text = streamed(groups);
      const { response } = checkResponsesStream(text);
      expect(streamed(chunksOf(wire, bytes, chance(name.length + 1)))).toBe(text);
      expect(response).toEqual(whole(groups));
    });
  });

  describe.skipIf(answers.length === 0)(`whole answers over ${wire}${whySkipped(answers, wire)}`, () => {
    const wholes = answers.filter(({ kind }) => kind === 'whole');

    test.each(wholes)('$name', ({ bytes }) => {
      const body = JSON.parse(Buffer.from(bytes).toString()) as JsonObject;
      const completion = dialects.get(wire)!.decodeResponse(body, { generation_id }, 0);
      const told = { completion, served, usage: NO_USAGE, classes: null, metadata: undefined };
      checkResponse(JSON.parse(encodeResponse(told, contextOf())));
    });
  });
}
