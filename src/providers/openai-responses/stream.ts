import { limits } from '../../limits.ts';
import { append } from '../../schemas/append.ts';
import type { ChatChunk, ResponseExt } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { type AttemptState, type Frame, type StreamDecoder, UpstreamError } from '../dialect.ts';
import { asObject, asText } from '../shared/json-shape.ts';
import { failureOf, invalid } from './errors.ts';
import { finishReason, nativeFinishReason } from './finish.ts';
import { createTurn } from './turn.ts';
import type { DecoderState } from './turn-context.ts';
import { readUsage } from './usage.ts';
import { asItem, WIRE } from './wire.ts';

/** Turns the wire's events, in order, into chunks. A whole response is its last event: `decodeResponse` goes through it as well. */
export interface EventDecoder {
  push(event: JsonObject): ChatChunk[];
  end(): ChatChunk[];
  /** The answer is whole: what else comes is no part of it. */
  isWhole(): boolean;
}

/** Reads one stream of the Responses API (https://platform.openai.com/docs/api-reference/responses-streaming). */
export function createStreamDecoder(state: AttemptState): StreamDecoder {
  const decoder = createEventDecoder(state);
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
  if (frame.data === '[DONE]' || frame.data === '') return undefined;
  let value: JsonValue;
  try {
    value = JSON.parse(frame.data);
  } catch {
    throw invalid('The provider sent an event that is not JSON.', frame.data);
  }
  const event = asObject(value);
  if (event === undefined) throw invalid('The provider sent an event that is not an object.', frame.data);
  if (event['type'] !== undefined) return event;
  if (event['error'] != null) return { ...event, type: 'error' };
  // A body under the head of a stream.
  if (event['object'] === 'response') return { type: 'response.completed', response: event };
  return frame.event === undefined ? event : { ...event, type: frame.event };
}

/** What a response tells beside its items: of its own, and with which values it answered where its request left them open. */
const KEPT = [
  'model',
  'moderation',
  'tool_usage',
  'content_filters',
  'billing',
  'prompt_cache_diagnostics',
  'prompt_cache_retention',
  'reasoning',
  'temperature',
  'text',
  'top_p',
  'truncation',
];

/** Makes the decoder of one answer. */
export function createEventDecoder(state: DecoderState): EventDecoder {
  const turn = createTurn(state);
  let begun: JsonObject | undefined;
  let isFinished = false;
  let failure: UpstreamError | undefined;

  function begin(response: JsonObject): ChatChunk[] {
    if (begun !== undefined) {
      // Told again while it goes on. Another id means that a broken answer was followed by a second one in the same stream.
      const [former, id] = [asText(begun['id']), asText(response['id'])];
      if (former === '' || id === '' || former === id) return [];
      throw new UpstreamError('unavailable', "The provider's stream broke off and began another answer.", {
        raw: JSON.stringify(response).slice(0, limits.upstream_raw_chars_max),
      });
    }
    begun = response;
    return [{ delta: { role: 'assistant' }, ext: { response: responseExt(response) } }];
  }

  function finish(response: JsonObject): ChatChunk[] {
    const chunks = begin(response);
    if (response['status'] === 'failed') return [...chunks, ...fail(response)];
    isFinished = true;
    append(chunks, turn.finish(response['output']));
    const last: ChatChunk = {
      delta: {},
      finish_reason: finishReason(response, turn),
      native_finish_reason: nativeFinishReason(response),
    };
    // `auto` is what was asked for, not what served it.
    const tier = asText(response['service_tier']);
    if (tier !== '' && tier !== 'auto') last.service_tier = tier;
    chunks.push(last, ...usageOf(response));
    return chunks;
  }

  function usageOf(response: JsonObject): ChatChunk[] {
    const usage = readUsage(response);
    const told = responseExt(response);
    return [{ delta: {}, ext: { response: usage === undefined ? told : { ...told, usage } } }];
  }

  /** What was billed is worth knowing: it goes out before the failure. */
  function fail(response: JsonObject): ChatChunk[] {
    const error = failureOf(asObject(response['error']) ?? {});
    if (readUsage(response) === undefined) throw error;
    failure = error;
    return usageOf(response);
  }

  return {
    push(event) {
      if (failure !== undefined) throw failure;
      if (isFinished) return [];
      const response = asObject(event['response']) ?? {};
      switch (event['type']) {
        case 'error':
          throw failureOf(event);
        case 'response.created':
        case 'response.queued':
        case 'response.in_progress':
          return begin(response);
        case 'response.completed':
        case 'response.incomplete':
          return finish(response);
        case 'response.failed':
          return fail(response);
        default:
          return isBeside(event) ? [] : [...(begun === undefined ? begin({}) : []), ...readItemEvent(event)];
      }
    },
    isWhole: () => isFinished || failure !== undefined,
    end() {
      if (failure !== undefined) throw failure;
      if (isFinished) return [];
      if (begun === undefined) throw invalid('The provider sent no answer.', undefined);
      throw new UpstreamError('unavailable', "The provider's stream ended before its answer did.");
    },
  };

  /**
   * OpenAI says `keepalive`, undocumented, while an answer is long in coming (https://github.com/openai/openai-node/issues/1964).
   * Within an answer nothing of an unknown name is a reason to lose it; at its beginning it may be another wire's.
   */
  function isBeside(event: JsonObject): boolean {
    const type = asText(event['type']);
    if (type.startsWith('response.')) return false;
    if (begun === undefined && type !== 'keepalive' && type !== 'ping') {
      throw invalid('The provider sent an event of another wire.', event);
    }
    return true;
  }

  function readItemEvent(event: JsonObject): ChatChunk[] {
    const type = asText(event['type']);
    if (type !== 'response.output_item.added' && type !== 'response.output_item.done') return turn.add(event);
    const item = asItem(event['item']);
    if (item === undefined) throw invalid('The provider sent an item without a type.', event);
    const index = event['output_index'];
    return type === 'response.output_item.added' ? turn.open(index, item) : turn.close(index, item);
  }
}

function responseExt(response: JsonObject): ResponseExt {
  const rest: JsonObject = {};
  for (const name of KEPT) if (response[name] != null) rest[name] = response[name];
  const requestId = asText(response['id']);
  return requestId === '' ? { wire: WIRE, rest } : { wire: WIRE, rest, requestId };
}
