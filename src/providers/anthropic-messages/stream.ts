import { limits } from '../../limits.ts';
import type {
  Annotation,
  ChatChunk,
  Delta,
  ReasoningDetail,
  ResponseExt,
  Slot,
  SlotEvent,
  UrlCitation,
} from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { type AttemptState, type Frame, type StreamDecoder, UpstreamError } from '../dialect.ts';
import { errorInside } from './errors.ts';
import { finishReason } from './finish.ts';
import { mintCallId } from './names.ts';
import { readUsage, usageRest } from './usage.ts';
import {
  ANTHROPIC_FORMAT,
  asArray,
  asBlock,
  asObject,
  extOf,
  nativeOf,
  remainder,
  WIRE,
  type WireBlock,
} from './wire.ts';

/** What decoding must know of the attempt's request. */
export interface DecoderState {
  generation_id: string;
  /** Wire name to the client's name, for the tools that were renamed. */
  tool_names?: Record<string, string>;
  /** The call ids of the conversation so far. */
  call_ids?: readonly string[];
  /** The forced tool whose input is the answer's text. */
  shim?: string;
}

/** Turns the wire's events, in order, into chunks. `decodeResponse` and the history of a client go through it as well. */
export interface EventDecoder {
  push(event: JsonObject): ChatChunk[];
  end(): ChatChunk[];
}

/** Reads one stream of the Messages API (https://platform.claude.com/docs/en/build-with-claude/streaming). */
export function createStreamDecoder(state: AttemptState): StreamDecoder {
  const decoder = createEventDecoder(state);
  return {
    push: (frame) => {
      const event = parseFrame(frame);
      return event === undefined ? [] : decoder.push(event);
    },
    end: () => decoder.end(),
  };
}

function parseFrame(frame: Frame): JsonObject | undefined {
  // Some proxies close the stream the way OpenAI does.
  if (frame.data === '[DONE]' || frame.data === '') return undefined;
  let value: JsonValue;
  try {
    value = JSON.parse(frame.data);
  } catch {
    throw invalid('The provider sent an event that is not JSON.', frame.data);
  }
  const event = asObject(value);
  if (event === undefined) throw invalid('The provider sent an event that is not an object.', frame.data);
  if (frame.event === 'error' || (event['type'] === undefined && event['error'] !== undefined))
    throw errorInside(event);
  return event;
}

/** One block of the turn while it is open. */
interface OpenBlock {
  kind: Slot['kind'];
  /** Undefined until the block said something: a block that says nothing is no slot. */
  n: number | undefined;
  block: WireBlock;
  /** Index of the reasoning detail, ordinal of the call, or code points before the text. */
  at: number;
  /** The fragments of a native block's input or content; for a call only whether there were any. */
  fragments: string[];
  isSilent: boolean;
  citations: JsonValue[];
  rest: JsonObject;
}

/** Makes the decoder of one answer. */
export function createEventDecoder(state: DecoderState): EventDecoder {
  const open = new Map<JsonValue | undefined, OpenBlock>();
  const ids = new Set(state.call_ids);
  let message: JsonObject | undefined;
  let slots = 0;
  let details = 0;
  let calls = 0;
  let codePoints = 0;
  let hasOutput = false;
  let isFinished = false;
  let usage: JsonObject = {};
  let rest: JsonObject = {};
  let stopReason: string | null = null;
  let stopSequence: string | undefined;

  /** One chunk of a block; the first one opens its slot. */
  function say(block: OpenBlock, delta: Delta, event: Omit<SlotEvent, 'n' | 'open'> = {}): ChatChunk {
    block.isSilent = false;
    hasOutput = true;
    if (block.n !== undefined) return { delta, ext: { slot: { n: block.n, ...event } } };
    block.n = slots;
    slots += 1;
    const ext = extOf(block.rest);
    const opening: NonNullable<SlotEvent['open']> = { kind: block.kind };
    if (block.kind === 'native') opening.native = nativeOf(block.block);
    else if (ext !== undefined) opening.ext = ext;
    return { delta, ext: { slot: { n: block.n, open: opening, ...event } } };
  }

  function sayText(block: OpenBlock, text: string): ChatChunk[] {
    if (text === '') return [];
    codePoints += countCodePoints(text);
    return [say(block, { content: text })];
  }

  function sayReasoning(block: OpenBlock, detail: DetailBody): ChatChunk[] {
    const whole = { ...detail, format: ANTHROPIC_FORMAT, id: null, index: block.at } as ReasoningDetail;
    const delta: Delta = { reasoning_details: [whole] };
    if (detail.type === 'reasoning.text' && detail.text) delta.reasoning = detail.text;
    return [say(block, delta)];
  }

  function sayArguments(block: OpenBlock, fragment: string): ChatChunk[] {
    if (fragment === '') return [];
    block.fragments.push(fragment);
    if (block.kind === 'text') return sayText(block, fragment);
    return [say(block, { tool_calls: [{ index: block.at, function: { arguments: fragment } }] })];
  }

  function sayCitation(block: OpenBlock, citation: JsonValue, raw: JsonObject): ChatChunk[] {
    block.citations.push(citation);
    return [say(block, {}, { raw })];
  }

  function start(index: JsonValue | undefined, content: WireBlock): ChatChunk[] {
    const chunks = stop(index);
    const block: OpenBlock = {
      kind: 'native',
      n: undefined,
      block: content,
      at: 0,
      fragments: [],
      isSilent: true,
      citations: [],
      rest: {},
    };
    open.set(index, block);
    switch (content.type) {
      case 'text':
        block.kind = 'text';
        block.at = codePoints;
        block.rest = remainder(content, ['type', 'text', 'citations']);
        for (const citation of asArray(content['citations'])) {
          chunks.push(...sayCitation(block, citation, { type: 'citations_delta', citation }));
        }
        chunks.push(...sayText(block, asText(content['text'])));
        return chunks;
      case 'thinking': {
        block.kind = 'reasoning';
        block.at = details;
        details += 1;
        block.rest = remainder(content, ['type', 'thinking', 'signature']);
        const text = asText(content['thinking']);
        if (text !== '') chunks.push(...sayReasoning(block, { type: 'reasoning.text', text }));
        chunks.push(...sign(block, asText(content['signature'])));
        return chunks;
      }
      case 'redacted_thinking':
        block.kind = 'reasoning';
        block.at = details;
        details += 1;
        block.rest = remainder(content, ['type', 'data']);
        return [...chunks, ...sayReasoning(block, { type: 'reasoning.encrypted', data: asText(content['data']) })];
      case 'tool_use':
        return [...chunks, ...startCall(block, content)];
      default:
        return [...chunks, say(block, {})];
    }
  }

  function startCall(block: OpenBlock, content: WireBlock): ChatChunk[] {
    const wireName = asText(content['name']);
    if (state.shim !== undefined && wireName === state.shim) {
      block.kind = 'text';
      block.at = codePoints;
      return [];
    }
    block.kind = 'call';
    block.at = calls;
    calls += 1;
    block.rest = remainder(content, ['type', 'id', 'name', 'input']);
    const wireId = asText(content['id']);
    const isTaken = wireId === '' || ids.has(wireId);
    const id = isTaken ? mintCallId(state.generation_id, block.at) : wireId;
    if (isTaken && wireId !== '') block.rest['id'] = wireId;
    ids.add(id);
    const name = state.tool_names?.[wireName] ?? wireName;
    return [say(block, { tool_calls: [{ index: block.at, id, type: 'function', function: { name, arguments: '' } }] })];
  }

  function sign(block: OpenBlock, signature: string): ChatChunk[] {
    if (signature === '') return [];
    // A block whose thinking is not shown still carries a signature, and its text is the empty one.
    const text = block.isSilent ? { text: '' } : {};
    return sayReasoning(block, { type: 'reasoning.text', ...text, signature });
  }

  function push(index: JsonValue | undefined, delta: JsonObject): ChatChunk[] {
    const block = open.get(index);
    if (block === undefined) throw invalid('The provider sent a delta of a block that is not open.', delta);
    if (block.kind === 'native') {
      block.fragments.push(asText(delta['partial_json'] ?? delta['content']));
      return [say(block, {}, { raw: delta })];
    }
    switch (delta['type']) {
      case 'text_delta':
        return block.kind === 'text' ? sayText(block, asText(delta['text'])) : [];
      case 'thinking_delta': {
        const text = asText(delta['thinking']);
        return block.kind === 'reasoning' && text !== '' ? sayReasoning(block, { type: 'reasoning.text', text }) : [];
      }
      case 'signature_delta':
        return block.kind === 'reasoning' ? sign(block, asText(delta['signature'])) : [];
      case 'input_json_delta':
        return block.block.type === 'tool_use' ? sayArguments(block, asText(delta['partial_json'])) : [];
      case 'citations_delta':
        return block.kind === 'text' && delta['citation'] !== undefined
          ? sayCitation(block, delta['citation'], delta)
          : [];
      default:
        return [];
    }
  }

  function stop(index: JsonValue | undefined): ChatChunk[] {
    const block = open.get(index);
    if (block === undefined) return [];
    open.delete(index);
    const chunks: ChatChunk[] = [];
    if (block.block.type === 'tool_use' && block.fragments.length === 0) {
      // No fragment came: the start event held the whole input, or the tool takes none.
      chunks.push(...sayArguments(block, JSON.stringify(asObject(block.block['input']) ?? {})));
    }
    if (block.n === undefined) return chunks;
    if (block.kind === 'native') {
      const native = nativeOf(finishNative(block.block, block.fragments.join('')));
      return [...chunks, say(block, {}, { close: { native } })];
    }
    const delta: Delta = {};
    const annotations = annotationsOf(block.citations, block.at, codePoints);
    if (annotations.length > 0) delta.annotations = annotations;
    const ext = block.citations.length > 0 ? extOf({ citations: block.citations }) : undefined;
    return [...chunks, say(block, delta, { close: ext === undefined ? {} : { ext } })];
  }

  function begin(told: JsonObject): ChatChunk[] {
    if (message !== undefined) {
      // Proxies repeat the event; but another id means that a broken answer was followed by a second one in the same
      // stream (https://github.com/vercel/ai/issues/18331), and joining the two would look like a whole answer.
      if (told['id'] === message['id']) return [];
      throw new UpstreamError('unavailable', "The provider's stream broke off and began another answer.", {
        raw: JSON.stringify(told).slice(0, limits.upstream_raw_chars_max),
      });
    }
    message = told;
    usage = { ...asObject(told['usage']) };
    rest = remainder(told, ['id', 'type', 'role', 'content', 'stop_reason', 'stop_sequence', 'usage']);
    // The output count of the first event is a placeholder.
    const { output_tokens: _placeholder, ...input } = usage;
    const chunk: ChatChunk = {
      delta: { role: 'assistant' },
      ext: { response: { ...responseExt(), usage: readUsage(input, modelOf(told)) } },
    };
    const tier = serviceTier(usage['service_tier']);
    if (tier !== undefined) chunk.service_tier = tier;
    return [chunk];
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

  function update(event: JsonObject): void {
    const delta = asObject(event['delta']) ?? {};
    if (typeof delta['stop_reason'] === 'string') stopReason = delta['stop_reason'];
    if (typeof delta['stop_sequence'] === 'string') stopSequence = delta['stop_sequence'];
    Object.assign(rest, remainder(delta, ['stop_reason', 'stop_sequence']));
    Object.assign(rest, remainder(event, ['type', 'delta', 'usage']));
    for (const [key, value] of Object.entries(asObject(event['usage']) ?? {})) {
      if (value !== null) usage[key] = value;
    }
  }

  function finish(): ChatChunk[] {
    isFinished = true;
    const chunks = [...open.keys()].flatMap(stop);
    const finish_reason = finishReason(stopReason, { hasCalls: calls > 0, hasOutput });
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
      if (type === 'error') throw errorInside(event);
      if (isFinished || type === 'ping') return [];
      if (type === 'message_start') return begin(asObject(event['message']) ?? {});
      if (message === undefined) throw invalid('The provider sent an answer without its beginning.', event);
      switch (type) {
        case 'content_block_start': {
          const block = asBlock(event['content_block']);
          if (block === undefined) throw invalid('The provider sent a block without a type.', event);
          return start(event['index'], block);
        }
        case 'content_block_delta':
          return push(event['index'], asObject(event['delta']) ?? {});
        case 'content_block_stop':
          return stop(event['index']);
        case 'message_delta':
          update(event);
          return [];
        case 'message_stop':
          return finish();
        default:
          // New event types may come at any time and are to be passed over.
          return [];
      }
    },
    end() {
      if (isFinished) return [];
      if (stopReason !== null) return finish();
      if (message === undefined) throw invalid('The provider sent no answer.', undefined);
      throw new UpstreamError('unavailable', "The provider's stream ended before its answer did.");
    },
  };
}

type DetailBody =
  | { type: 'reasoning.text'; text?: string; signature?: string }
  | { type: 'reasoning.encrypted'; data: string };

function asText(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : '';
}

function modelOf(message: JsonObject): string {
  return asText(message['model']);
}

/** `standard` is what every other wire calls the default tier. */
function serviceTier(value: JsonValue | undefined): string | undefined {
  if (typeof value !== 'string') return undefined;
  return value === 'standard' ? 'default' : value;
}

/** The block as it stands at its end: a server tool's input is told in fragments, a compaction's content too. */
function finishNative(block: WireBlock, told: string): WireBlock {
  if (told === '') return block;
  if (!('input' in block)) return { ...block, content: `${asText(block['content'])}${told}` };
  let input: JsonValue;
  try {
    input = JSON.parse(told);
  } catch {
    input = { _raw: told };
  }
  return { ...block, input };
}

/** A citation that names an address becomes an annotation over its whole block; those of documents have no public form. */
function annotationsOf(citations: readonly JsonValue[], start_index: number, end_index: number): Annotation[] {
  const annotations: Annotation[] = [];
  for (const value of citations) {
    const citation = asObject(value);
    if (citation === undefined) continue;
    // A search result that the client supplied names its origin as `source`, often an address.
    const url = asText(citation['url']) || asText(citation['source']);
    if (!/^https?:\/\//i.test(url)) continue;
    const url_citation: UrlCitation['url_citation'] = { url, start_index, end_index };
    if (typeof citation['title'] === 'string') url_citation.title = citation['title'];
    if (typeof citation['cited_text'] === 'string') url_citation.content = citation['cited_text'];
    annotations.push({ type: 'url_citation', url_citation });
  }
  return annotations;
}

/** Low surrogates are not counted, so a pair counts once, also when it is split over two deltas. */
function countCodePoints(text: string): number {
  let count = 0;
  for (let i = 0; i < text.length; i += 1) {
    const unit = text.charCodeAt(i);
    if (unit < 0xdc00 || unit > 0xdfff) count += 1;
  }
  return count;
}

function invalid(message: string, raw: JsonValue | undefined): UpstreamError {
  const text = typeof raw === 'string' ? raw : raw === undefined ? undefined : JSON.stringify(raw);
  return new UpstreamError('invalid_response', message, {
    status: 200,
    raw: text?.slice(0, limits.upstream_raw_chars_max),
  });
}
