import type { GatewayError } from '../../errors.ts';
import type { Served } from '../../inference/events.ts';
import type { ChatChunk, FinishReason, ResponseExt } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { metadataMembers } from '../../schemas/routing-metadata.ts';
import type { StreamEncoder } from '../shared/answer-call.ts';
import { createBlockOrder } from '../shared/block-order.ts';
import type { BlockSink } from './block-sink.ts';
import { createBlockWriter, isShownBlock } from './blocks.ts';
import { brokenAnswer, messagesError } from './errors.ts';
import { ownRest, stopOf, usageOf } from './fields.ts';
import type { ThinkingOptions } from './thinking.ts';

/** What is sent in silence: every client of this API passes pings over. */
export const PING = 'event: ping\ndata: {"type":"ping"}\n\n';

/** What one answer's encoding knows of its call. */
export interface MessagesEnvelope extends ThinkingOptions {
  /** The generation's id, which is the message's. */
  id: string;
  /** The tokens of the prompt by our count, for the beginning of a message whose provider counts at its end. Absent: 0. */
  promptTokens?: () => number;
}

/** An event as the wire frames it. */
function frame(type: string, fields: JsonObject): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
}

/** Writes blocks as events. What all deltas of a block begin with is made once for each block. */
class EventSink implements BlockSink {
  text_out = '';
  #index = -1;
  #head = '';

  take(): string {
    const told = this.text_out;
    this.text_out = '';
    return told;
  }
  start(block: JsonObject): void {
    this.#index += 1;
    this.#head = `event: content_block_delta\ndata: {"type":"content_block_delta","index":${this.#index},"delta":`;
    this.text_out += frame('content_block_start', { index: this.#index, content_block: block });
  }
  text(piece: string): void {
    this.text_out += `${this.#head}{"type":"text_delta","text":${JSON.stringify(piece)}}}\n\n`;
  }
  thinking(piece: string): void {
    this.text_out += `${this.#head}{"type":"thinking_delta","thinking":${JSON.stringify(piece)}}}\n\n`;
  }
  signature(signature: string): void {
    this.text_out += `${this.#head}{"type":"signature_delta","signature":${JSON.stringify(signature)}}}\n\n`;
  }
  input(piece: string): void {
    this.text_out += `${this.#head}{"type":"input_json_delta","partial_json":${JSON.stringify(piece)}}}\n\n`;
  }
  raw(delta: JsonObject): void {
    this.text_out += `${this.#head}${JSON.stringify(delta)}}\n\n`;
  }
  cite(citation: JsonObject): void {
    this.raw({ type: 'citations_delta', citation });
  }
  stop(): void {
    this.text_out += frame('content_block_stop', { index: this.#index });
  }
}

/** What was not told yet. */
function unlike(rest: JsonObject, told: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(rest).filter(([name, value]) => told[name] !== value));
}

/** Streams a Messages answer (https://platform.claude.com/docs/en/build-with-claude/streaming). */
export function createMessagesStream(envelope: MessagesEnvelope): StreamEncoder {
  const sink = new EventSink();
  const blocks = createBlockWriter(sink, envelope);
  const order = createBlockOrder(blocks.add, isShownBlock);
  let served: Served | undefined;
  let response: Partial<ResponseExt> = {};
  /** What was told of the remainder when the message began. */
  let told: JsonObject | undefined;
  let finish_reason: FinishReason | null = null;
  let native_finish_reason: string | null = null;
  let failure: { message: string } | undefined;
  let service_tier: string | null = null;

  function messageStart(): string {
    // What came by now: the rest goes on.
    told = { ...ownRest(response) };
    // Some wires count from the first chunk on; what has no output has no thinking in it either.
    const { output_tokens_details: _, ...input } = usageOf(response.usage, { response, service_tier });
    const input_tokens =
      response.usage?.in_uncached === undefined ? (envelope.promptTokens?.() ?? 0) : (input['input_tokens'] ?? 0);
    const usage = { ...input, input_tokens, output_tokens: 0 };
    return frame('message_start', {
      message: {
        stop_details: null,
        container: null,
        ...told,
        id: envelope.id,
        type: 'message',
        role: 'assistant',
        model: served?.model ?? '',
        provider: served?.provider ?? null,
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage,
      },
    });
  }

  function follow(chunk: ChatChunk): void {
    const next = chunk.ext?.response;
    if (next !== undefined)
      response = Object.assign(response, next, { rest: Object.assign(response.rest ?? {}, next.rest) });
    if (chunk.finish_reason != null) finish_reason = chunk.finish_reason;
    if (chunk.native_finish_reason != null) native_finish_reason = chunk.native_finish_reason;
    if (chunk.service_tier != null) service_tier = chunk.service_tier;
    if (chunk.error !== undefined) failure = chunk.error;
  }

  const errorEvent = (error: GatewayError, beside: JsonObject): string => {
    const { type, ...fields } = messagesError(error, { user_id: null, generation_id: envelope.id });
    return frame('error', { ...(fields as JsonObject), ...beside });
  };

  return {
    open(next) {
      if (served !== undefined) {
        order.flush();
        blocks.continue();
      }
      served = next;
      return sink.take();
    },
    debug: ({ body: echo_upstream_body }) => frame('ping', { debug: { echo_upstream_body } }),
    chunks(chunks) {
      let begun = '';
      for (const chunk of chunks) {
        follow(chunk);
        if (told === undefined) begun = messageStart();
        order.take(chunk);
      }
      return begun + sink.take();
    },
    end({ usage, classes, metadata, error }) {
      let text = told === undefined ? messageStart() : '';
      const shown = metadataMembers(metadata);
      const counted = usageOf(classes, { response, service_tier }, usage);
      order.flush();
      const late = error ?? (finish_reason === 'error' ? brokenAnswer(failure) : undefined);
      if (late !== undefined) return `${text}${sink.take()}${errorEvent(late, { usage: counted, ...shown })}`;
      blocks.end();
      const { context_management, stop_details = null, container = null, ...rest } = ownRest(response);
      const stop = stopOf({ finish_reason, native_finish_reason, refused: blocks.hasRefused(), response });
      text += sink.take();
      text += frame('message_delta', {
        delta: { ...unlike(rest, told ?? {}), stop_details, container, ...stop },
        usage: counted,
        ...(context_management === undefined ? {} : { context_management }),
      });
      return `${text}${frame('message_stop', shown)}`;
    },
    failed: (error) => errorEvent(error, {}),
  };
}
