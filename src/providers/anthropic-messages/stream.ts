import { limits } from '../../limits.ts';
import type { ChatChunk, ResponseExt } from '../../schemas/inner.ts';
import { type JsonObject, type JsonValue, parseJson } from '../../schemas/json.ts';
import { type AttemptState, type Frame, type StreamDecoder, UpstreamError } from '../dialect.ts';
import { asArray, asObject, remainder } from '../shared/json-shape.ts';
import { errorInside } from './errors.ts';
import { finishReason } from './finish.ts';
import { createTurn, type DecoderState } from './turn.ts';
import { readUsage, usageRest } from './usage.ts';
import { asBlock, extOf, WIRE } from './wire.ts';

/** Turns the wire's events, in order, into chunks. A whole message is one event: `decodeResponse` goes through it as well. */
export interface EventDecoder {
  push(event: JsonObject): ChatChunk[];
  end(): ChatChunk[];
  /** The answer is whole: what else comes is no part of it. */
  isWhole(): boolean;
}

/** Reads one stream of the Messages API (https://platform.claude.com/docs/en/build-with-claude/streaming). */
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
  // Some proxies name an event in its head only.
  return event['type'] === undefined && frame.event !== undefined ? { ...event, type: frame.event } : event;
}

/** Events that belong to an answer that has begun. */
const PARTS: ReadonlySet<string> = new Set([
  'content_block_start',
  'content_block_delta',
  'content_block_stop',
  'message_delta',
  'message_stop',
]);

/** Makes the decoder of one answer. */
export function createEventDecoder(state: DecoderState): EventDecoder {
  const turn = createTurn(state);
  let message: JsonObject | undefined;
  let isFinished = false;
  let usage: JsonObject = {};
  let isOutputTold = false;
  let rest: JsonObject = {};
  let stopReason: string | null = null;
  let stopSequence: string | undefined;

  function begin(told: JsonObject): ChatChunk[] {
    if (message !== undefined) {
      // Proxies repeat the event; but another id means that a broken answer was followed by a second one in the same
      // stream (https://github.com/vercel/ai/issues/18331), and joining the two would look like a whole answer.
      if (told['id'] === message['id']) return [];
      if (stopReason !== null) return finish();
      throw new UpstreamError('unavailable', "The provider's stream broke off and began another answer.", {
        raw: JSON.stringify(told).slice(0, limits.upstream_raw_chars_max),
      });
    }
    message = told;
    usage = { ...asObject(told['usage']) };
    rest = remainder(told, ['id', 'type', 'role', 'content', 'stop_reason', 'stop_sequence', 'usage']);
    // The output count that a beginning tells is a placeholder.
    const { output_tokens: _placeholder, ...input } = usage;
    const chunk: ChatChunk = {
      delta: { role: 'assistant' },
      ext: { response: { ...responseExt(), usage: readUsage(input, modelOf(told)) } },
    };
    const tier = serviceTier(usage['service_tier']);
    if (tier !== undefined) chunk.service_tier = tier;
    const chunks = [chunk, ...readContent(told)];
    // Calls that code of a container makes while it runs stand whole in the beginning, with the reason to stop
    // (https://platform.claude.com/docs/en/agents-and-tools/tool-use/programmatic-tool-calling).
    if (turn.hasOutput()) readStop(told);
    isOutputTold = stopReason !== null;
    return chunks;
  }

  function readContent(told: JsonObject): ChatChunk[] {
    const content = told['content'];
    const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : asArray(content);
    return blocks.flatMap((value, i) => {
      const block = asBlock(value);
      if (block === undefined) throw invalid('The provider sent a block without a type.', told);
      const index = `beginning ${i}`;
      return [...turn.open(index, block), ...turn.close(index)];
    });
  }

  function readStop(told: JsonObject): void {
    if (typeof told['stop_reason'] === 'string') stopReason = told['stop_reason'];
    if (typeof told['stop_sequence'] === 'string') stopSequence = told['stop_sequence'];
  }

  function readWhole(told: JsonObject): ChatChunk[] {
    const { content } = told;
    // What says neither what the model wrote nor why it stopped is no answer.
    const isAnswer = Array.isArray(content) || typeof content === 'string' || typeof told['stop_reason'] === 'string';
    if (!isAnswer) throw invalid('The provider sent a body that is no message.', told);
    const chunks = begin(told);
    readStop(told);
    isOutputTold = true;
    return [...chunks, ...finish()];
  }

  function responseExt(): ResponseExt {
    const requestId = message?.['id'];
    const told = usageRest(usage);
    return {
      wire: WIRE,
      rest: extOf(told) === undefined ? { ...rest } : { ...rest, usage: told },
      ...(typeof requestId === 'string' ? { requestId } : {}),
    };
  }

  /** Usage that comes with the reason to stop is what counts should the stream break off before its end. */
  function update(event: JsonObject): ChatChunk[] {
    const delta = asObject(event['delta']) ?? {};
    readStop(delta);
    Object.assign(rest, remainder(delta, ['stop_reason', 'stop_sequence']));
    Object.assign(rest, remainder(event, ['type', 'delta', 'usage']));
    for (const [key, value] of Object.entries(asObject(event['usage']) ?? {})) {
      if (value === null) continue;
      usage[key] = value;
      isOutputTold ||= key === 'output_tokens';
    }
    if (stopReason === null || !isOutputTold) return [];
    return [
      { delta: {}, ext: { response: { wire: WIRE, rest: {}, usage: readUsage(usage, modelOf(message ?? {})) } } },
    ];
  }

  function finish(): ChatChunk[] {
    isFinished = true;
    if (!isOutputTold) delete usage['output_tokens'];
    const chunks = turn.closeAll();
    const finish_reason = finishReason(stopReason, turn);
    chunks.push({ delta: {}, finish_reason, native_finish_reason: stopReason });
    const response = { ...responseExt(), usage: readUsage(usage, modelOf(message ?? {})) };
    chunks.push({
      delta: {},
      ext: { response: stopSequence === undefined ? response : { ...response, stopSequence } },
    });
    return chunks;
  }

  return {
    push(event) {
      const type = event['type'];
      if (isFinished) return [];
      if (type === 'error') throw errorInside(event);
      if (type === 'message_start') return begin(asObject(event['message']) ?? {});
      if (type === 'message' && message === undefined) return readWhole(event);
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
          const chunks = turn.add(event['index'], asObject(event['delta']) ?? {});
          if (chunks === undefined) throw invalid('The provider sent a delta of a block that is not open.', event);
          return chunks;
        }
        case 'content_block_stop':
          return turn.close(event['index']);
        case 'message_delta':
          return update(event);
        case 'message_stop':
          return finish();
        default:
          // New event types may come at any time and are to be passed over.
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

function modelOf(message: JsonObject): string {
  const { model } = message;
  return typeof model === 'string' ? model : '';
}

/** `standard` is what every other wire calls the default tier. */
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
