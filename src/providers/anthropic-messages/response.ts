import { limits } from '../../limits.ts';
import type { ChatChunk, TokenClasses } from '../../schemas/inner.ts';
import type { JsonValue } from '../../schemas/json.ts';
import { type AttemptState, UpstreamError } from '../dialect.ts';
import { asObject } from '../shared/json-shape.ts';
import { errorInside } from './errors.ts';
import { createEventDecoder, modelOf } from './stream.ts';
import { readUsage } from './usage.ts';

/** The chunks of a whole answer, decoded by the code that decodes streams, so that both agree. */
export function decodeResponse(body: JsonValue, state: AttemptState, chunks: ChatChunk[] = []): ChatChunk[] {
  const message = asObject(body);
  if (message === undefined) throw invalid(body);
  if (message['type'] === 'error' || message['error'] != null) throw errorInside(message);
  return createEventDecoder(state).push({ ...message, type: 'message' }, chunks);
}

/** The usage of a whole answer; undefined if it reports none. */
export function reportedUsage(body: JsonValue): TokenClasses | undefined {
  const message = asObject(body);
  const usage = asObject(message?.['usage']);
  return message === undefined || usage === undefined ? undefined : readUsage(usage, modelOf(message));
}

function invalid(body: JsonValue): UpstreamError {
  const raw = JSON.stringify(body)?.slice(0, limits.upstream_raw_chars_max);
  return new UpstreamError('invalid_response', 'The provider sent a body that is not a message.', { status: 200, raw });
}
