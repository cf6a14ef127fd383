import { append } from '../../schemas/append.ts';
import type { ChatChunk, TokenClasses } from '../../schemas/inner.ts';
import type { JsonValue } from '../../schemas/json.ts';
import type { AttemptState } from '../dialect.ts';
import { asObject } from '../shared/json-shape.ts';
import { failureOf, invalid } from './errors.ts';
import { createEventDecoder } from './stream.ts';
import { readUsage } from './usage.ts';

/** The chunks of a whole response, decoded as the last event of its stream, so that both agree. */
export function decodeResponse(body: JsonValue, state: AttemptState, chunks: ChatChunk[] = []): ChatChunk[] {
  const response = asObject(body);
  if (response === undefined) throw invalid('The provider sent a body that is not a response.', body);
  const { status, output, error } = response;
  if (status === 'failed' || (error != null && !Array.isArray(output))) throw failureOf(response);
  if (!Array.isArray(output)) throw invalid('The provider sent a body that is not a response.', body);
  if (status === 'queued' || status === 'in_progress') {
    throw invalid('The provider has not finished its response.', { id: response['id'], status } as JsonValue);
  }
  const decoder = createEventDecoder(state);
  decoder.push({ type: 'response.completed', response }, chunks);
  append(chunks, decoder.end());
  return chunks;
}

/** The usage of a whole response; undefined if it reports none. */
export function reportedUsage(body: JsonValue): TokenClasses | undefined {
  const response = asObject(body);
  return response && readUsage(response);
}
