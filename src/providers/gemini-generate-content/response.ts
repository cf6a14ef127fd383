import { limits } from '../../limits.ts';
import { append } from '../../schemas/append.ts';
import type { ChatChunk, TokenClasses } from '../../schemas/inner.ts';
import type { JsonValue } from '../../schemas/json.ts';
import { type AttemptState, UpstreamError } from '../dialect.ts';
import { asArray, asObject } from '../shared/json-shape.ts';
import { createGrounding } from './grounding.ts';
import { createEventDecoder } from './stream.ts';
import type { DecoderState } from './turn.ts';
import { createUsageReader, withSearches } from './usage.ts';

/** The chunks of a whole answer, decoded by the code that decodes streams, so that both agree. */
export function decodeResponse(body: JsonValue, state: AttemptState, chunks: ChatChunk[] = []): ChatChunk[] {
  // A stream without `alt=sse` is a list of its events.
  const events = Array.isArray(body) ? body : [body];
  const decoder = createEventDecoder(state);
  for (const value of events) {
    const event = asObject(value);
    if (event === undefined) {
      const raw = JSON.stringify(body)?.slice(0, limits.upstream_raw_chars_max);
      throw new UpstreamError('invalid_response', 'The provider sent a body that is not an answer.', {
        status: 200,
        raw,
      });
    }
    decoder.push(event, chunks);
  }
  append(chunks, decoder.end(!Array.isArray(body)));
  return chunks;
}

/** The usage of a whole answer; undefined if it reports none. */
export function reportedUsage(body: JsonValue, state: DecoderState): TokenClasses | undefined {
  const usage = createUsageReader();
  const grounding = createGrounding();
  for (const value of Array.isArray(body) ? body : [body]) {
    const event = asObject(value);
    const counted = asObject(event?.['usageMetadata']);
    if (counted !== undefined) usage.take(counted);
    grounding.take(asObject(asObject(asArray(event?.['candidates'])[0])?.['groundingMetadata']));
  }
  return withSearches(usage.classes(true), grounding.searches(state.generation));
}
