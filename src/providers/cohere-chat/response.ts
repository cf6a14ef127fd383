import { limits } from '../../limits.ts';
import type { ChatChunk, TokenClasses } from '../../schemas/inner.ts';
import type { JsonValue } from '../../schemas/json.ts';
import { type AttemptState, UpstreamError } from '../dialect.ts';
import { asObject } from '../shared/json-shape.ts';
import { errorInside } from './errors.ts';
import { createAnswerDecoder } from './stream.ts';
import { readUsage } from './usage.ts';

/** The chunks of a whole answer, decoded by the code that decodes streams, so that both agree. */
export function decodeResponse(body: JsonValue, state: AttemptState, chunks: ChatChunk[] = []): ChatChunk[] {
  const answer = asObject(body);
  if (answer === undefined) {
    throw new UpstreamError('invalid_response', 'The provider sent a body that is not an answer.', {
      status: 200,
      raw: JSON.stringify(body)?.slice(0, limits.upstream_raw_chars_max),
    });
  }
  // An answer's `message` is an object, an error's a text.
  if (typeof answer['message'] === 'string') throw errorInside(answer);
  const decoder = createAnswerDecoder(state);
  decoder.readWhole(answer, chunks);
  decoder.end();
  return chunks;
}

/** The usage of a whole answer; undefined if it reports none. */
export function reportedUsage(body: JsonValue): TokenClasses | undefined {
  const usage = asObject(asObject(body)?.['usage']);
  return usage && readUsage(usage);
}
