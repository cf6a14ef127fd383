import { limits } from '../../limits.ts';
import { append } from '../../schemas/append.ts';
import type { ChatChunk } from '../../schemas/inner.ts';
import type { JsonValue } from '../../schemas/json.ts';
import { type AttemptState, UpstreamError } from '../dialect.ts';
import { asObject } from '../shared/json-shape.ts';
import { createEventDecoder } from './stream.ts';

/** The chunks of a whole answer, decoded by the code that decodes streams, so that both agree. */
export function decodeResponse(body: JsonValue, state: AttemptState): ChatChunk[] {
  // A stream without `alt=sse` is a list of its events.
  const events = Array.isArray(body) ? body : [body];
  const decoder = createEventDecoder(state);
  const chunks = events.flatMap((value) => {
    const event = asObject(value);
    if (event === undefined) {
      const raw = JSON.stringify(body)?.slice(0, limits.upstream_raw_chars_max);
      throw new UpstreamError('invalid_response', 'The provider sent a body that is not an answer.', {
        status: 200,
        raw,
      });
    }
    return decoder.push(event);
  });
  append(chunks, decoder.end(!Array.isArray(body)));
  return chunks;
}
