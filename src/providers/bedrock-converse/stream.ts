import { limits } from '../../limits.ts';
import type { ChatChunk, ResponseExt } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { type AttemptState, type Frame, type StreamDecoder, UpstreamError } from '../dialect.ts';
import { asObject, remainder } from '../shared/json-shape.ts';
import { exceptionInside } from './errors.ts';
import { finishOf } from './finish.ts';
import { createTurn } from './turn.ts';
import { readUsage } from './usage.ts';
import { WIRE } from './wire.ts';

/** Converts the wire's events, in order, to chunks. A whole answer is converted to its events, so `decodeResponse` uses this as well. */
export interface EventDecoder {
  push(type: string, event: JsonObject): ChatChunk[];
  end(): ChatChunk[];
  /** True once the answer is complete: further events are ignored. */
  isWhole(): boolean;
}

/** The decoder of one stream of ConverseStream (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html). */
export function createStreamDecoder(state: AttemptState): StreamDecoder {
  const decoder = createEventDecoder(state);
  return {
    push(frame) {
      if (frame.failure === true) throw exceptionInside(frame);
      return decoder.isWhole() || frame.event === undefined ? [] : decoder.push(frame.event, parseFrame(frame));
    },
    isWhole: decoder.isWhole,
    end: decoder.end,
  };
}

function parseFrame({ data }: Frame): JsonObject {
  let value: JsonValue;
  try {
    value = JSON.parse(data);
  } catch {
    throw invalid('The provider sent an event that is not JSON.', data);
  }
  const event = asObject(value);
  if (event === undefined) throw invalid('The provider sent an event that is not an object.', data);
  return event;
}

/** The decoder of one answer. */
export function createEventDecoder(state: AttemptState): EventDecoder {
  const turn = createTurn(state);
  let hasBegun = false;
  let isStopped = false;
  let hasMetadata = false;

  function begin(): ChatChunk[] {
    if (hasBegun) return [];
    hasBegun = true;
    const requestId = state.headers?.['x-amzn-requestid'];
    const response: Partial<ResponseExt> = { wire: WIRE, rest: {} };
    if (typeof requestId === 'string') response.requestId = requestId;
    return [{ delta: { role: 'assistant' }, ext: { response } }];
  }

  function stop(event: JsonObject): ChatChunk[] {
    isStopped = true;
    const { stopReason } = event;
    const nativeFinishReason = typeof stopReason === 'string' ? stopReason : null;
    const chunks = turn.closeAll();
    const { finish_reason: finishReason, error } = finishOf(nativeFinishReason, turn);
    const rest = remainder(event, ['stopReason', 'p']);
    chunks.push({
      delta: {},
      finish_reason: finishReason,
      native_finish_reason: nativeFinishReason,
      ...(error === undefined ? {} : { error }),
      ...(Object.keys(rest).length === 0 ? {} : { ext: { response: { wire: WIRE, rest } } }),
    });
    return chunks;
  }

  function readMetadata(event: JsonObject): ChatChunk[] {
    hasMetadata = true;
    const usage = asObject(event['usage']);
    const response: Partial<ResponseExt> = { wire: WIRE, rest: remainder(event, ['usage', 'p']) };
    if (usage !== undefined) response.usage = readUsage(usage);
    const chunk: ChatChunk = { delta: {}, ext: { response } };
    const tier = asObject(event['serviceTier'])?.['type'];
    if (typeof tier === 'string') chunk.service_tier = tier;
    return [chunk];
  }

  function read(type: string, event: JsonObject): ChatChunk[] {
    const index = event['contentBlockIndex'];
    switch (type) {
      case 'contentBlockStart':
        return turn.open(index, asObject(event['start']) ?? {});
      case 'contentBlockDelta': {
        const chunks = turn.add(index, asObject(event['delta']) ?? {});
        if (chunks === undefined) throw invalid('The provider sent a delta of a call that is not open.', event);
        return chunks;
      }
      case 'contentBlockStop':
        return turn.close(index);
      case 'messageStop':
        return stop(event);
      case 'metadata':
        return readMetadata(event);
      default:
        // `messageStart` has no content; new event types may be added at any time and are skipped.
        return [];
    }
  }

  return {
    push(type, event) {
      // Only usage follows the stop reason.
      if (isStopped && type !== 'metadata') return [];
      return [...begin(), ...read(type, event)];
    },
    isWhole: () => isStopped && hasMetadata,
    end() {
      if (isStopped) return [];
      if (!hasBegun) throw invalid('The provider sent no answer.', undefined);
      throw new UpstreamError('unavailable', "The provider's stream ended before its answer did.");
    },
  };
}

function invalid(message: string, raw: JsonValue | undefined): UpstreamError {
  const text = typeof raw === 'string' ? raw : raw === undefined ? undefined : JSON.stringify(raw);
  return new UpstreamError('invalid_response', message, {
    status: 200,
    raw: text?.slice(0, limits.upstream_raw_chars_max),
  });
}
