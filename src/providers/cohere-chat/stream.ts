import { limits } from '../../limits.ts';
import { append } from '../../schemas/append.ts';
import type { ChatChunk, ResponseExt } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { lookupTable } from '../../schemas/lookup-table.ts';
import { type AttemptState, type FailureClass, type Frame, type StreamDecoder, UpstreamError } from '../dialect.ts';
import { asArray, asObject, asText } from '../shared/json-shape.ts';
import { errorInside } from './errors.ts';
import { finishReason } from './finish.ts';
import { argumentsOf, callOf, createTurn, PLAN } from './turn.ts';
import { readUsage } from './usage.ts';
import { WIRE } from './wire.ts';

/** Converts the wire's events, in order, to chunks. `readWhole` converts a whole answer by the same code. */
export interface AnswerDecoder {
  push(event: JsonObject): ChatChunk[];
  /** Adds the chunks to `chunks`, which has those before the fault if it throws. */
  readWhole(body: JsonObject, chunks: ChatChunk[]): void;
  isWhole(): boolean;
  /** Throws if the answer failed or did not end. */
  end(): ChatChunk[];
}

/** The decoder of one stream (https://docs.cohere.com/v2/docs/streaming). */
export function createStreamDecoder(state: AttemptState): StreamDecoder {
  const decoder = createAnswerDecoder(state);
  return {
    push: (frame) => {
      const event = decoder.isWhole() ? undefined : parseFrame(frame);
      return event === undefined ? [] : decoder.push(event);
    },
    isWhole: decoder.isWhole,
    end: decoder.end,
  };
}

function parseFrame(frame: Frame): JsonObject | undefined {
  if (frame.data === '' || frame.data === '[DONE]') return undefined;
  let value: JsonValue;
  try {
    value = JSON.parse(frame.data);
  } catch {
    throw invalid('The provider sent an event that is not JSON.', frame.data);
  }
  const event = asObject(value);
  if (event === undefined) throw invalid('The provider sent an event that is not an object.', frame.data);
  if (frame.event === 'error' || event['type'] === 'error') throw errorInside(event);
  if (event['type'] !== undefined) return event;
  if (event['message'] !== undefined || event['error'] !== undefined) throw errorInside(event);
  return frame.event === undefined ? event : { ...event, type: frame.event };
}

/** Finish reasons that are failures. */
const FAILURES: Readonly<Record<string, { failure: FailureClass; status: number }>> = lookupTable({
  ERROR: { failure: 'unavailable', status: 500 },
  TIMEOUT: { failure: 'timeout', status: 504 },
});

/** The decoder of one answer. */
export function createAnswerDecoder(state: AttemptState): AnswerDecoder {
  const turn = createTurn(state);
  let requestId: string | undefined;
  let isBegun = false;
  let isFinished = false;
  let failure: UpstreamError | undefined;

  function begin(id: JsonValue | undefined): ChatChunk[] {
    if (isBegun) {
      if (id === requestId) return [];
      throw new UpstreamError('unavailable', "The provider's stream broke off and began another answer.");
    }
    isBegun = true;
    requestId = typeof id === 'string' ? id : undefined;
    return [{ delta: { role: 'assistant' }, ext: { response: responseExt() } }];
  }

  function responseExt(): ResponseExt {
    return { wire: WIRE, rest: {}, ...(requestId === undefined ? {} : { requestId }) };
  }

  function finish(native: string | undefined, message: string, usage: JsonObject | undefined): ChatChunk[] {
    isFinished = true;
    const chunks = turn.closeAll();
    const failureKind =
      FAILURES[native ?? ''] ?? (native === undefined && message !== '' ? FAILURES['ERROR'] : undefined);
    if (failureKind === undefined) {
      chunks.push({ delta: {}, finish_reason: finishReason(native, turn), native_finish_reason: native ?? null });
    } else {
      const text = message || `The provider ended its answer with ${native}.`;
      failure = new UpstreamError(failureKind.failure, text, {
        status: failureKind.status,
        native_code: native ?? null,
      });
    }
    const response = responseExt();
    if (usage !== undefined) response.rest['usage'] = usage;
    const classes = usage === undefined ? undefined : readUsage(usage);
    if (classes !== undefined) response.usage = classes;
    chunks.push({ delta: {}, ext: { response } });
    return chunks;
  }

  /** The chunks of an event, by its type. */
  function read(type: string, event: JsonObject): ChatChunk[] {
    const { index } = event;
    const delta = asObject(event['delta']) ?? {};
    const message = asObject(delta['message']) ?? {};
    switch (type) {
      case 'content-start':
      case 'content-delta': {
        const content = asObject(message['content']) ?? {};
        const chunks = [
          ...turn.append('reasoning', index, asText(content['thinking'])),
          ...turn.append('text', index, asText(content['text'])),
        ];
        return withLogprobs(chunks, [event['logprobs'] ?? null]);
      }
      case 'tool-plan-delta':
        return turn.append('text', PLAN, asText(message['tool_plan']));
      case 'tool-call-start': {
        const call = firstObject(message['tool_calls']);
        return turn.openCall(index, callOf(call, asObject(call?.['function'])));
      }
      case 'tool-call-delta': {
        const definition = asObject(firstObject(message['tool_calls'])?.['function']);
        const chunks = turn.addArguments(index, argumentsOf(definition?.['arguments']));
        if (chunks === undefined) throw invalid('The provider sent arguments of a call that is not open.', event);
        return chunks;
      }
      case 'tool-call-end':
        return turn.closeCall(index);
      case 'citation-start': {
        const citations = message['citations'];
        return objectsOf(Array.isArray(citations) ? citations : [citations ?? null]).flatMap((citation) =>
          turn.cite(citation),
        );
      }
      case 'message-end':
        return finish(nativeReason(delta), asText(delta['error']), asObject(delta['usage']));
      default:
        // The ends of contents and citations, `debug` and unknown events have no content.
        return [];
    }
  }

  return {
    push(event) {
      if (isFinished) return [];
      const { type } = event;
      if (type === 'message-start') return begin(event['id']);
      if (!isBegun || typeof type !== 'string')
        throw invalid('The provider sent an answer without a beginning.', event);
      return read(type, event);
    },
    readWhole(body, chunks) {
      const message = asObject(body['message']);
      if (message === undefined) throw invalid('The provider sent a body that is not an answer.', body);
      append(chunks, begin(body['id']));
      append(chunks, turn.append('text', PLAN, asText(message['tool_plan'])));
      const citations = objectsOf(message['citations']);
      const byBlock = Map.groupBy(citations, placeOf);
      const cite = (index: number | typeof PLAN): ChatChunk[] =>
        (byBlock.get(index) ?? []).flatMap((citation) => turn.cite(citation));
      append(chunks, cite(PLAN));
      const { content } = message;
      const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : asArray(content);
      for (const [index, block] of blocks.entries()) {
        const fields = asObject(block) ?? {};
        append(chunks, turn.append('reasoning', index, asText(fields['thinking'])));
        append(chunks, turn.append('text', index, asText(fields['text'])));
        append(chunks, cite(index));
      }
      for (const [index, call] of asArray(message['tool_calls']).entries()) {
        const fields = asObject(call);
        append(chunks, turn.openCall(index, callOf(fields, asObject(fields?.['function']))));
        append(chunks, turn.closeCall(index));
      }
      append(chunks, withLogprobs([], asArray(body['logprobs'])));
      append(chunks, finish(nativeReason(body), '', asObject(body['usage'])));
    },
    isWhole: () => isFinished,
    end() {
      if (failure !== undefined) throw failure;
      if (isFinished) return [];
      if (!isBegun) throw invalid('The provider sent no answer.', undefined);
      throw new UpstreamError('unavailable', "The provider's stream ended before its answer did.");
    },
  };
}

function objectsOf(value: JsonValue | undefined): JsonObject[] {
  return asArray(value)
    .map(asObject)
    .filter((entry) => entry !== undefined);
}

/** The block that a citation of a whole answer belongs to. */
function placeOf(citation: JsonObject): number | typeof PLAN {
  if (citation['type'] === 'PLAN') return PLAN;
  return typeof citation['content_index'] === 'number' ? citation['content_index'] : 0;
}

function nativeReason(message: JsonObject): string | undefined {
  return asText(message['finish_reason']) || undefined;
}

/** The call of a stream's event: an object in practice, a list in the reference. */
function firstObject(value: JsonValue | undefined): JsonObject | undefined {
  return asObject(Array.isArray(value) ? value[0] : value);
}

/**
 * Adds log probabilities to the chunk of their text. An item may cover several tokens without their separate texts: it is one
 * entry with the product of their probabilities.
 */
function withLogprobs(chunks: ChatChunk[], items: readonly JsonValue[]): ChatChunk[] {
  const content = items.flatMap((item) => {
    const fields = asObject(item);
    const numbers = asArray(fields?.['logprobs']).filter((value) => typeof value === 'number');
    if (numbers.length === 0) return [];
    const logprob = numbers.reduce((sum, value) => sum + value, 0);
    return [{ token: asText(fields?.['text']), logprob, bytes: null, top_logprobs: [] }];
  });
  if (content.length === 0) return chunks;
  const last = chunks.at(-1);
  if (last?.delta.content !== undefined) last.logprobs = { content };
  else chunks.push({ delta: {}, logprobs: { content } });
  return chunks;
}

function invalid(message: string, raw: JsonValue | undefined): UpstreamError {
  const text = typeof raw === 'string' ? raw : raw === undefined ? undefined : JSON.stringify(raw);
  return new UpstreamError('invalid_response', message, {
    status: 200,
    raw: text?.slice(0, limits.upstream_raw_chars_max),
  });
}
