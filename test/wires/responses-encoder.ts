/** Encodes chunks for a client of the Responses API, without a gateway. */
import { declaredTools } from '../../src/api/responses/declared-tools.ts';
import { type ResponseContext, responseParts } from '../../src/api/responses/encode.ts';
import { createResponseObject } from '../../src/api/responses/response-object.ts';
import { createResponseStream } from '../../src/api/responses/stream.ts';
import { joinParts } from '../../src/api/shared/json-parts.ts';
import type { StreamEnd } from '../../src/inference/events.ts';
import { NO_USAGE } from '../../src/inference/money/answer-usage.ts';
import { createEnvelopes } from '../../src/inference/reasoning/envelope.ts';
import { decodeTools } from '../../src/providers/openai-responses/declared.ts';
import { accumulate } from '../../src/schemas/accumulate.ts';
import type { ChatChunk, ChatCompletion } from '../../src/schemas/inner.ts';
import type { JsonObject } from '../../src/schemas/json.ts';
import { array } from '../readings/recordings.ts';

export const generationId = `gen-1700000000-${'a'.repeat(20)}`;
export const served = { model: 'maker/model', provider: 'Host' };
export const envelope = createEnvelopes('a secret of thirty-two characters')('org');

/** The context in which an answer is encoded for a client's request. */
export function contextOf(body: JsonObject = {}, more: Partial<ResponseContext> = {}): ResponseContext {
  return {
    generation_id: generationId,
    response: createResponseObject({ id: generationId, created_at: 1_700_000_000, model: 'asked' }, body),
    tools: declaredTools(decodeTools(array(body['tools']))),
    envelope,
    hide_reasoning: false,
    wants_summary: false,
    shows_logprobs: true,
    now: () => 1_700_000_001,
    ...more,
  };
}

export const END: StreamEnd = { type: 'end', usage: NO_USAGE, classes: null, metadata: undefined, error: undefined };

/** The text of the stream of these groups of chunks. */
export function streamed(
  groups: readonly (readonly ChatChunk[])[],
  context = contextOf(),
  end: Partial<StreamEnd> = {},
): string {
  const encoder = createResponseStream(context);
  const text = [encoder.open(served), ...groups.map((chunks) => encoder.chunks(chunks))];
  return [...text, encoder.end({ ...END, ...end })].flat().join('');
}

/** The whole answer that these chunks stream. */
export function whole(chunks: readonly ChatChunk[], context = contextOf()): JsonObject {
  return encoded(accumulate(chunks, 0), context);
}

/** A whole answer. */
export function encoded(completion: ChatCompletion, context = contextOf()): JsonObject {
  const outcome = { completion, served, usage: NO_USAGE, classes: null, metadata: undefined };
  return JSON.parse(joinParts(responseParts(outcome, context)));
}
