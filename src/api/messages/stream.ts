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

/** Sent during silence. Clients of this API ignore pings. */
export const PING = 'event: ping\ndata: {"type":"ping"}\n\n';

/** Facts about the call that the encoding of an answer needs. */
export interface MessagesEnvelope extends ThinkingOptions {
  /** The id of the generation, which is also that of the message. */
  id: string;
  /** The estimated tokens of the prompt, for the beginning of a message whose provider counts only at its end. Default: 0. */
  promptTokens?: () => number;
}

/** An event as text of the wire. */
function frame(type: string, fields: JsonObject): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
}

/** Writes blocks as events. The common beginning of a block's deltas is made once per block. */
class EventSink implements BlockSink {
  text_out = '';
  #index = -1;
  #head = '';

  take(): string {
    const text = this.text_out;
    this.text_out = '';
    return text;
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

/** The fields that were not sent yet. */
function unlike(rest: JsonObject, sent: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(rest).filter(([name, value]) => sent[name] !== value));
}

/** Makes the encoder of one stream (https://platform.claude.com/docs/en/build-with-claude/streaming). */
export function createMessagesStream(envelope: MessagesEnvelope): StreamEncoder {
  const sink = new EventSink();
  const blocks = createBlockWriter(sink, envelope);
  const order = createBlockOrder(blocks.add, isShownBlock);
  let served: Served | undefined;
  let response: Partial<ResponseExt> = {};
  /** The fields of the remainder that were sent at the beginning. Undefined before the beginning. */
  let sent: JsonObject | undefined;
  let finishReason: FinishReason | null = null;
  let nativeFinishReason: string | null = null;
  let failure: { message: string } | undefined;
  let serviceTier: string | null = null;

  function messageStart(): string {
    // Only the fields that have arrived; later ones are sent at the end.
    sent = { ...ownRest(response) };
    // Some wires report counts from the first chunk on. Without output there is no reasoning in it either.
    const { output_tokens_details: _, ...input } = usageOf(response.usage, { response, service_tier: serviceTier });
    const inputTokens =
      response.usage?.in_uncached === undefined ? (envelope.promptTokens?.() ?? 0) : (input['input_tokens'] ?? 0);
    const usage = { ...input, input_tokens: inputTokens, output_tokens: 0 };
    return frame('message_start', {
      message: {
        stop_details: null,
        container: null,
        ...sent,
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
    if (chunk.finish_reason != null) finishReason = chunk.finish_reason;
    if (chunk.native_finish_reason != null) nativeFinishReason = chunk.native_finish_reason;
    if (chunk.service_tier != null) serviceTier = chunk.service_tier;
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
    debug: ({ body: echoUpstreamBody }) => frame('ping', { debug: { echo_upstream_body: echoUpstreamBody } }),
    chunks(chunks) {
      let opening = '';
      for (const chunk of chunks) {
        follow(chunk);
        if (sent === undefined) opening = messageStart();
        order.take(chunk);
      }
      return opening + sink.take();
    },
    end({ usage, classes, metadata, error }) {
      let text = sent === undefined ? messageStart() : '';
      const shown = metadataMembers(metadata);
      const counted = usageOf(classes, { response, service_tier: serviceTier }, usage);
      order.flush();
      const late = error ?? (finishReason === 'error' ? brokenAnswer(failure) : undefined);
      if (late !== undefined) return `${text}${sink.take()}${errorEvent(late, { usage: counted, ...shown })}`;
      blocks.end();
      const { context_management, stop_details = null, container = null, ...rest } = ownRest(response);
      const stop = stopOf({
        finish_reason: finishReason,
        native_finish_reason: nativeFinishReason,
        refused: blocks.hasRefused(),
        response,
      });
      text += sink.take();
      text += frame('message_delta', {
        delta: { ...unlike(rest, sent ?? {}), stop_details, container, ...stop },
        usage: counted,
        ...(context_management === undefined ? {} : { context_management }),
      });
      return `${text}${frame('message_stop', shown)}`;
    },
    failed: (error) => errorEvent(error, {}),
  };
}
