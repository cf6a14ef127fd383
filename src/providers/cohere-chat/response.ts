import { limits } from '../../limits.ts';
import type { ChatChunk } from '../../schemas/inner.ts';
import type { JsonValue } from '../../schemas/json.ts';
import { type AttemptState, UpstreamError } from '../dialect.ts';
import { asObject } from '../shared/json-shape.ts';
import { errorInside } from './errors.ts';
import { createAnswerDecoder } from './stream.ts';

/** The chunks of a whole answer, decoded by the code that decodes streams, so that both agree. */
export function decodeResponse(body: JsonValue, state: AttemptState): ChatChunk[] {
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
  const chunks = decoder.readWhole(answer);
  decoder.end();
  return chunks;
}
