import { limits } from '../../limits.ts';
import { accumulate } from '../../schemas/accumulate.ts';
import type { ChatCompletion } from '../../schemas/inner.ts';
import type { JsonValue } from '../../schemas/json.ts';
import { type AttemptState, UpstreamError } from '../dialect.ts';
import { asObject } from '../json-shape.ts';
import { errorInside } from './errors.ts';
import { createEventDecoder } from './stream.ts';

/**
 * The whole answer. The body is read as the events of the stream that would have carried it, so that one reading serves
 * both and they cannot differ.
 */
export function decodeResponse(body: JsonValue, state: AttemptState, created: number): ChatCompletion {
  const message = asObject(body);
  if (message === undefined) throw invalid(body);
  if (message['type'] === 'error' || message['error'] != null) throw errorInside(message);
  return accumulate(createEventDecoder(state).push({ ...message, type: 'message' }), created);
}

function invalid(body: JsonValue): UpstreamError {
  const raw = JSON.stringify(body)?.slice(0, limits.upstream_raw_chars_max);
  return new UpstreamError('invalid_response', 'The provider sent a body that is no message.', { status: 200, raw });
}
