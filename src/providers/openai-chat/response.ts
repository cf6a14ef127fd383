import type { ChatChunk, TokenClasses } from '../../schemas/inner.ts';
import type { JsonValue } from '../../schemas/json.ts';
import type { AttemptState } from '../dialect.ts';
import { ChatAnswerDecoder } from './answer.ts';
import { errorInside } from './errors.ts';
import { isPlainAnswer, notThisWire } from './stream.ts';
import { isObject, type WireAnswer } from './wire.ts';

/** The chunks of a whole answer, decoded by the code that decodes streams, so that both agree. */
export function decodeResponse(body: JsonValue, state: AttemptState, chunks: ChatChunk[] = []): ChatChunk[] {
  const error = isPlainAnswer(body) ? undefined : errorInside(body);
  if (error !== undefined) throw error;
  if (!isObject(body) || !Array.isArray(body['choices']) || body['choices'].length === 0) {
    throw notThisWire(JSON.stringify(body) ?? '');
  }
  const answer = new ChatAnswerDecoder(state);
  answer.take(body as WireAnswer, true, chunks);
  answer.finish(chunks);
  answer.emitUsage(chunks);
  return chunks;
}

/** The usage of a whole answer; undefined if it reports none. */
export function reportedUsage(body: JsonValue, state: AttemptState): TokenClasses | undefined {
  if (!isObject(body)) return undefined;
  const answer = new ChatAnswerDecoder(state);
  answer.takeUsage(body as WireAnswer);
  return answer.usage();
}
