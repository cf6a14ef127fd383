import { limits } from '../../limits.ts';
import { append } from '../../schemas/append.ts';
import type { ChatChunk, ResponseExt } from '../../schemas/inner.ts';
import { type JsonObject, type JsonValue, parseJson } from '../../schemas/json.ts';
import { type AttemptState, type Frame, type StreamDecoder, UpstreamError } from '../dialect.ts';
import { asArray, asObject, remainder } from '../shared/json-shape.ts';
import { errorInside } from './errors.ts';
import { finishReason } from './finish.ts';
import { createTurn, type DecoderState } from './turn.ts';
import { readUsage, usageRest } from './usage.ts';
import { asBlock, extOf, WIRE } from './wire.ts';

/** Converts the wire's events, in order, to chunks. A whole message is one event, so `decodeResponse` uses this as well. */
export interface EventDecoder {
  /** The chunks of a whole message are added to `chunks`, which has those before the fault if it throws. */
  push(event: JsonObject, chunks?: ChatChunk[]): ChatChunk[];
  end(): ChatChunk[];
  /** True once the answer is complete: further events are ignored. */
  isWhole(): boolean;
}

/** The decoder of one stream of the Messages API (https://platform.claude.com/docs/en/build-with-claude/streaming). */
export function createStreamDecoder(state: AttemptState): StreamDecoder {
  const decoder = createEventDecoder(state);
  return {
    push: (frame) => {
      const event = decoder.isWhole() ? undefined : parseFrame(frame);
      return event === undefined ? [] : decoder.push(event);
    },
    isWhole: decoder.isWhole,
    end: () => decoder.end(),
  };
}

function parseFrame(frame: Frame): JsonObject | undefined {
  // Some proxies close the stream the way OpenAI does.
  if (frame.data === '[DONE]' || frame.data === '') return undefined;
  let value: JsonValue;
  try {
    value = parseJson(frame.data);
  } catch {
    throw invalid('The provider sent an event that is not JSON.', frame.data);
  }
  const event = asObject(value);
  if (event === undefined) throw invalid('The provider sent an event that is not an object.', frame.data);
  if (frame.event === 'error' || (event['type'] === undefined && event['error'] != null)) throw errorInside(event);
  // Some proxies name an event only in the SSE `event` field.
  return event['type'] === undefined && frame.event !== undefined ? { ...event, type: frame.event } : event;
}

/** Events that require an answer to have begun. */
const PARTS: ReadonlySet<string> = new Set([
  'content_block_start',
  'content_block_delta',
  'content_block_stop',
  'message_delta',
  'message_stop',
]);

/** The decoder of one answer. */
export function createEventDecoder(state: DecoderState): EventDecoder {
  const turn = createTurn(state);
  let message: JsonObject | undefined;
  let isFinished = false;
  let usage: JsonObject = {};
  let hasOutputCount = false;
  let rest: JsonObject = {};
  let stopReason: string | null = null;
  let stopSequence: string | undefined;

  function begin(started: JsonObject, chunks: ChatChunk[] = []): ChatChunk[] {
    if (message !== undefined) {
      // Proxies repeat the event. Another id means that a broken answer was followed by a second one in the same
      // stream (https://github.com/vercel/ai/issues/18331), and joining the two would look like a complete answer.
      if (started['id'] === message['id']) return [];
      if (stopReason !== null) return finish();
      throw new UpstreamError('unavailable', "The provider's stream broke off and began another answer.", {
        raw: JSON.stringify(started).slice(0, limits.upstream_raw_chars_max),
      });
    }
    message = started;
    usage = { ...asObject(started['usage']) };
    rest = remainder(started, ['id', 'type', 'role', 'content', 'stop_reason', 'stop_sequence', 'usage']);
    // The output count of the first event is a placeholder.
    const { output_tokens: _placeholder, ...input } = usage;
    const chunk: ChatChunk = {
      delta: { role: 'assistant' },
      ext: { response: { ...responseExt(), usage: readUsage(input, modelOf(started)) } },
    };
    const tier = serviceTier(usage['service_tier']);
    if (tier !== undefined) chunk.service_tier = tier;
    chunks.push(chunk);
    readContent(started, chunks);
    // Calls that a container's code makes while it runs are complete in the first event, with the stop reason
    // (https://platform.claude.com/docs/en/agents-and-tools/tool-use/programmatic-tool-calling).
    if (turn.hasOutput()) readStop(started);
    hasOutputCount = stopReason !== null;
    return chunks;
  }

  function readContent(started: JsonObject, chunks: ChatChunk[]): void {
    const content = started['content'];
    const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : asArray(content);
    for (const [i, value] of blocks.entries()) {
      const block = asBlock(value);
      if (block === undefined) throw invalid('The provider sent a block without a type.', started);
      const index = `beginning ${i}`;
      append(chunks, turn.open(index, block));
      append(chunks, turn.close(index));
    }
  }

  function readStop(source: JsonObject): void {
    if (typeof source['stop_reason'] === 'string') stopReason = source['stop_reason'];
    if (typeof source['stop_sequence'] === 'string') stopSequence = source['stop_sequence'];
  }

  function readWhole(whole: JsonObject, chunks: ChatChunk[]): ChatChunk[] {
    const { content } = whole;
    // A body with neither content nor a stop reason is not an answer.
    const isAnswer = Array.isArray(content) || typeof content === 'string' || typeof whole['stop_reason'] === 'string';
    if (!isAnswer) throw invalid('The provider sent a body that is not a message.', whole);
    begin(whole, chunks);
    readStop(whole);
    hasOutputCount = true;
    append(chunks, finish());
    return chunks;
  }

  function responseExt(): ResponseExt {
    const requestId = message?.['id'];
    const usageFields = usageRest(usage);
    return {
      wire: WIRE,
      rest: extOf(usageFields) === undefined ? { ...rest } : { ...rest, usage: usageFields },
      ...(typeof requestId === 'string' ? { requestId } : {}),
    };
  }

  /** Usage in the event of the stop reason is billed if the stream breaks off before its end. */
  function update(event: JsonObject): ChatChunk[] {
    const delta = asObject(event['delta']) ?? {};
    readStop(delta);
    Object.assign(rest, remainder(delta, ['stop_reason', 'stop_sequence']));
    Object.assign(rest, remainder(event, ['type', 'delta', 'usage']));
    for (const [key, value] of Object.entries(asObject(event['usage']) ?? {})) {
      if (value === null) continue;
      usage[key] = value;
      hasOutputCount ||= key === 'output_tokens';
    }
    if (stopReason === null || !hasOutputCount) return [];
    return [
      { delta: {}, ext: { response: { wire: WIRE, rest: {}, usage: readUsage(usage, modelOf(message ?? {})) } } },
    ];
  }

  function finish(): ChatChunk[] {
    isFinished = true;
    if (!hasOutputCount) delete usage['output_tokens'];
    const chunks = turn.closeAll();
    const reason = finishReason(stopReason, turn);
    chunks.push({ delta: {}, finish_reason: reason, native_finish_reason: stopReason });
    const response = { ...responseExt(), usage: readUsage(usage, modelOf(message ?? {})) };
    chunks.push({
      delta: {},
      ext: { response: stopSequence === undefined ? response : { ...response, stopSequence } },
    });
    return chunks;
  }

  return {
    push(event, chunks = []) {
      const type = event['type'];
      if (isFinished) return [];
      if (type === 'error') throw errorInside(event);
      if (type === 'message_start') return begin(asObject(event['message']) ?? {});
      if (type === 'message' && message === undefined) return readWhole(event, chunks);
      if (message === undefined && (typeof type !== 'string' || PARTS.has(type))) {
        throw invalid('The provider sent an answer without a beginning.', event);
      }
      switch (type) {
        case 'content_block_start': {
          const block = asBlock(event['content_block']);
          if (block === undefined) throw invalid('The provider sent a block without a type.', event);
          return turn.open(event['index'], block);
        }
        case 'content_block_delta': {
          const added = turn.add(event['index'], asObject(event['delta']) ?? {});
          if (added === undefined) throw invalid('The provider sent a delta of a block that is not open.', event);
          return added;
        }
        case 'content_block_stop':
          return turn.close(event['index']);
        case 'message_delta':
          return update(event);
        case 'message_stop':
          return finish();
        default:
          // New event types may be added at any time and are skipped.
          return [];
      }
    },
    isWhole: () => isFinished,
    end() {
      if (isFinished) return [];
      if (stopReason !== null) return finish();
      if (message === undefined) throw invalid('The provider sent no answer.', undefined);
      throw new UpstreamError('unavailable', "The provider's stream ended before its answer did.");
    },
  };
}

/** The model that a message names; empty if none. */
export function modelOf(message: JsonObject): string {
  const { model } = message;
  return typeof model === 'string' ? model : '';
}

/** This wire calls the default tier `standard`. */
function serviceTier(value: JsonValue | undefined): string | undefined {
  if (typeof value !== 'string') return undefined;
  return value === 'standard' ? 'default' : value;
}

function invalid(message: string, raw: JsonValue | undefined): UpstreamError {
  const text = typeof raw === 'string' ? raw : raw === undefined ? undefined : JSON.stringify(raw);
  return new UpstreamError('invalid_response', message, {
    status: 200,
    raw: text?.slice(0, limits.upstream_raw_chars_max),
  });
}
