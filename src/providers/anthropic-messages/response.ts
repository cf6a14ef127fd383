import { limits } from '../../limits.ts';
import { accumulate } from '../../schemas/accumulate.ts';
import type { ChatChunk, ChatCompletion } from '../../schemas/inner.ts';
import type { JsonValue } from '../../schemas/json.ts';
import { type AttemptState, UpstreamError } from '../dialect.ts';
import { errorInside } from './errors.ts';
import { createEventDecoder } from './stream.ts';
import { asArray, asObject, remainder } from './wire.ts';

/**
 * The whole answer. The body is read as the events of the stream that would have carried it, so that one reading serves
 * both and they cannot differ.
 */
export function decodeResponse(body: JsonValue, state: AttemptState, created: number): ChatCompletion {
  const message = asObject(body);
  if (message === undefined) throw invalid(body);
  if (message['type'] === 'error' || message['error'] !== undefined) throw errorInside(message);
  if (!Array.isArray(message['content'])) throw invalid(body);

  const decoder = createEventDecoder(state);
  const chunks: ChatChunk[] = [];
  const { stop_reason, stop_sequence, usage } = message;
  chunks.push(...decoder.push({ type: 'message_start', message: { ...remainder(message, ['content']), usage } }));
  for (const [index, content_block] of asArray(message['content']).entries()) {
    chunks.push(...decoder.push({ type: 'content_block_start', index, content_block }));
    chunks.push(...decoder.push({ type: 'content_block_stop', index }));
  }
  chunks.push(...decoder.push({ type: 'message_delta', delta: { stop_reason, stop_sequence } }));
  chunks.push(...decoder.push({ type: 'message_stop' }));
  return accumulate(chunks, created);
}

function invalid(body: JsonValue): UpstreamError {
  const raw = JSON.stringify(body)?.slice(0, limits.upstream_raw_chars_max);
  return new UpstreamError('invalid_response', 'The provider sent a body that is no message.', { status: 200, raw });
}
