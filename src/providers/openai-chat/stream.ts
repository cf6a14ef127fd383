import { limits } from '../../limits.ts';
import type { ChatChunk } from '../../schemas/inner.ts';
import { type AttemptState, type Frame, type StreamDecoder, UpstreamError } from '../dialect.ts';
import { ChatAnswerDecoder } from './answer.ts';
import { errorInside } from './errors.ts';
import { isObject, type WireAnswer } from './wire.ts';

/** The decoder of one stream. It emits the finish reason at `[DONE]` or the end of the bytes, and usage in one last chunk. */
export function createStreamDecoder(state: AttemptState): StreamDecoder {
  return new ChatStreamDecoder(state);
}

/** A class instead of closures, for speed, like the readers that it uses. */
class ChatStreamDecoder implements StreamDecoder {
  readonly #answer: ChatAnswerDecoder;
  #isDone = false;
  #failure: UpstreamError | undefined = undefined;

  constructor(state: AttemptState) {
    this.#answer = new ChatAnswerDecoder(state);
  }

  push({ data, event }: Frame): ChatChunk[] {
    if (this.#failure !== undefined) throw this.#failure;
    const answer = this.#answer;
    const chunks: ChatChunk[] = [];
    if (data === '') return chunks;
    if (data.startsWith('[DONE]')) {
      if (!answer.isStarted) throw notThisWire(data);
      if (!this.#isDone) answer.finish(chunks);
      this.#isDone = true;
      return chunks;
    }
    if (this.#isDone) {
      // The answer is complete. Only usage is still read: some upstreams send it after [DONE].
      answer.takeUsage(lateAnswer(data));
      return chunks;
    }
    let value: unknown;
    try {
      value = JSON.parse(data);
    } catch (cause) {
      throw notThisWire(data, cause);
    }
    const error = isPlainAnswer(value) && event !== 'error' ? undefined : errorInside(value, event === 'error');
    if (error !== undefined) {
      // Usage with or before the error is emitted first, since it is billed.
      const hasUsage = isObject(value) && answer.takeUsage(value as WireAnswer);
      if (!hasUsage && !answer.hasOutputUsage()) throw error;
      this.#failure = error;
      answer.emitUsage(chunks);
      return chunks;
    }
    if (typeof value !== 'object' || value === null || Array.isArray(value)) throw notThisWire(data);
    answer.take(value as WireAnswer, false, chunks);
    return chunks;
  }

  isWhole(): boolean {
    return this.#isDone || this.#failure !== undefined;
  }

  end(): ChatChunk[] {
    if (this.#failure !== undefined) throw this.#failure;
    const chunks: ChatChunk[] = [];
    if (!this.#isDone) {
      if (!this.#answer.isComplete()) {
        throw new UpstreamError('unavailable', 'The upstream ended its stream before the answer was complete.');
      }
      this.#answer.finish(chunks);
    }
    this.#answer.emitUsage(chunks);
    return chunks;
  }
}

/** Recognises the common case without checking the shapes of errors. */
export function isPlainAnswer(value: unknown): boolean {
  // Lists and primitive values have no choices.
  const answer = value as Partial<Record<'choices' | 'error' | 'object', unknown>> | null;
  return answer?.choices !== undefined && answer.error == null && answer.object !== 'error';
}

/** An event after the end of the answer; empty if it is not an object. */
function lateAnswer(data: string): WireAnswer {
  try {
    const value: unknown = JSON.parse(data);
    return isObject(value) ? (value as WireAnswer) : {};
  } catch {
    return {};
  }
}

/** The error for data that is not of this wire. */
export function notThisWire(data: string, cause?: unknown): UpstreamError {
  return new UpstreamError('invalid_response', 'The upstream sent something that is not a chat completion.', {
    raw: data.slice(0, limits.upstream_raw_chars_max),
    cause,
  });
}
