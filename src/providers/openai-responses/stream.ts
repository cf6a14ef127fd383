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

/** Converts the wire's events, in order, to chunks. A whole response is its last event, so `decodeResponse` uses this as well. */
export interface EventDecoder {
  /** The chunks of a complete response are added to `chunks`, which has those before the fault if it throws. */
  push(event: JsonObject, chunks?: ChatChunk[]): ChatChunk[];
  end(): ChatChunk[];
  /** True once the answer is complete: further events are ignored. */
  isWhole(): boolean;
}

/** The decoder of one stream of the Responses API (https://platform.openai.com/docs/api-reference/responses-streaming). */
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
  // A whole body under the headers of a stream.
  if (event['object'] === 'response') return { type: 'response.completed', response: event };
  return frame.event === undefined ? event : { ...event, type: frame.event };
}

/** Fields of a response other than its items that are kept: its own, and the effective values of parameters. */
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

/** The decoder of one answer. */
export function createEventDecoder(state: DecoderState): EventDecoder {
  const turn = createTurn(state);
  let startedResponse: JsonObject | undefined;
  let isFinished = false;
  let failure: UpstreamError | undefined;

  function begin(response: JsonObject): ChatChunk[] {
    if (startedResponse !== undefined) {
      // Repeated during the answer. Another id means that a broken answer was followed by a second one in the same stream.
      const [startedId, id] = [asText(startedResponse['id']), asText(response['id'])];
      if (startedId === '' || id === '' || startedId === id) return [];
      throw new UpstreamError('unavailable', "The provider's stream broke off and began another answer.", {
        raw: JSON.stringify(response).slice(0, limits.upstream_raw_chars_max),
      });
    }
    startedResponse = response;
    return [{ delta: { role: 'assistant' }, ext: { response: responseExt(response) } }];
  }

  function finish(response: JsonObject, chunks: ChatChunk[]): ChatChunk[] {
    append(chunks, begin(response));
    if (response['status'] === 'failed') return [...chunks, ...fail(response)];
    isFinished = true;
    turn.finish(response['output'], chunks);
    const last: ChatChunk = {
      delta: {},
      finish_reason: finishReason(response, turn),
      native_finish_reason: nativeFinishReason(response),
    };
    // `auto` is the requested tier, not the one that was used.
    const tier = asText(response['service_tier']);
    if (tier !== '' && tier !== 'auto') last.service_tier = tier;
    chunks.push(last, ...usageOf(response));
    return chunks;
  }

  function usageOf(response: JsonObject): ChatChunk[] {
    const usage = readUsage(response);
    const ext = responseExt(response);
    return [{ delta: {}, ext: { response: usage === undefined ? ext : { ...ext, usage } } }];
  }

  /** Emits usage before the failure, since it is billed. */
  function fail(response: JsonObject): ChatChunk[] {
    const error = failureOf(asObject(response['error']) ?? {});
    if (readUsage(response) === undefined) throw error;
    failure = error;
    return usageOf(response);
  }

  return {
    push(event, chunks = []) {
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
          return finish(response, chunks);
        case 'response.failed':
          return fail(response);
        default:
          return isUnrelated(event)
            ? []
            : [...(startedResponse === undefined ? begin({}) : []), ...readItemEvent(event)];
      }
    },
    isWhole: () => isFinished || failure !== undefined,
    end() {
      if (failure !== undefined) throw failure;
      if (isFinished) return [];
      if (startedResponse === undefined) throw invalid('The provider sent no answer.', undefined);
      throw new UpstreamError('unavailable', "The provider's stream ended before its answer did.");
    },
  };

  /**
   * Whether an event is not part of an answer. OpenAI sends `keepalive`, undocumented, during long answers
   * (https://github.com/openai/openai-node/issues/1964). Within an answer unknown events are ignored; before it they may be of another wire.
   */
  function isUnrelated(event: JsonObject): boolean {
    const type = asText(event['type']);
    if (type.startsWith('response.')) return false;
    if (startedResponse === undefined && type !== 'keepalive' && type !== 'ping') {
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
