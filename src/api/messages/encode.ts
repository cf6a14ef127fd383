import { atOnce } from '../../http/turn-work.ts';
import { dividedChunks, sliceEnd } from '../../inference/attempt/chunk-slices.ts';
import type { WholeAnswer } from '../../inference/events.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { metadataMembers } from '../../schemas/routing-metadata.ts';
import { type JsonPart, joinParts } from '../shared/json-parts.ts';
import { turnChunks } from '../shared/turn-chunks.ts';
import type { BlockSink } from './block-sink.ts';
import { createBlockWriter, isShownBlock } from './blocks.ts';
import { brokenAnswer } from './errors.ts';
import { ownRest, stopOf, usageOf } from './fields.ts';
import type { MessagesEnvelope } from './stream.ts';

/** Collects blocks as JSON. The input of a tool is kept as the model wrote it, including its numbers. */
class ContentSink implements BlockSink {
  /** All but the first begin with a comma. */
  readonly blocks: JsonPart[] = [];
  #block: JsonObject = {};
  #input: string | undefined;
  #citations: JsonValue[] | undefined;

  start(block: JsonObject): void {
    this.#block = { ...block };
    this.#input = undefined;
    this.#citations = undefined;
  }
  text(piece: string): void {
    this.#block['text'] = `${this.#block['text'] ?? ''}${piece}`;
  }
  thinking(piece: string): void {
    this.#block['thinking'] = `${this.#block['thinking'] ?? ''}${piece}`;
  }
  signature(signature: string): void {
    this.#block['signature'] = signature;
  }
  input(piece: string): void {
    this.#input = (this.#input ?? '') + piece;
  }
  /** A native block is complete when it begins. */
  raw(): void {}
  cite(citation: JsonObject): void {
    // A copy: the initial list belongs to the answer.
    if (this.#citations === undefined) {
      const { citations } = this.#block;
      this.#citations = Array.isArray(citations) ? [...citations] : [];
      this.#block['citations'] = this.#citations;
    }
    this.#citations.push(citation);
  }
  stop(): void {
    if (this.blocks.length > 0) this.blocks.push(',');
    if (this.#input === undefined) {
      this.blocks.push({ value: this.#block });
      return;
    }
    const { input: _, ...block } = this.#block;
    this.blocks.push(`${JSON.stringify(block).slice(0, -1)},"input":`, { object: this.#input }, '}');
  }
}

/** The whole answer as JSON text. */
export function encodeMessage(answer: WholeAnswer, envelope: MessagesEnvelope): string {
  return joinParts(atOnce(messageParts(answer, envelope)));
}

/**
 * Makes the whole answer as parts of JSON (https://platform.claude.com/docs/en/api/messages), equal to the sum of its stream. Yields, so
 * that others are served, after each slice of a long answer.
 */
export function* messageParts(answer: WholeAnswer, envelope: MessagesEnvelope): Generator<void, JsonPart[], undefined> {
  const { completion, served, classes, usage, metadata } = answer;
  const [{ finish_reason, native_finish_reason, error }] = completion.choices;
  if (finish_reason === 'error') throw brokenAnswer(error);
  const response = completion.ext;
  const sink = new ContentSink();
  const blocks = createBlockWriter(sink, envelope);
  const chunks = dividedChunks(turnChunks(completion));
  for (let at = 0, end = sliceEnd(chunks, 0); at < chunks.length; end = sliceEnd(chunks, end)) {
    if (at > 0) yield;
    for (; at < end; at += 1) {
      const chunk = chunks[at]!;
      const slot = chunk.ext?.slot;
      if (slot?.open === undefined || isShownBlock(slot.open)) blocks.add(chunk);
    }
  }
  blocks.end();
  const { context_management, stop_details = null, container = null, ...rest } = ownRest(response);
  const head = JSON.stringify({ ...rest, id: envelope.id, type: 'message', role: 'assistant', model: served.model });
  const tail = JSON.stringify({
    ...stopOf({ finish_reason, native_finish_reason, refused: blocks.hasRefused(), response }),
    stop_details,
    container,
    ...(context_management === undefined ? {} : { context_management }),
    usage: usageOf(classes, { response, service_tier: completion.service_tier }, usage),
    provider: served.provider,
    ...metadataMembers(metadata),
  });
  return [`${head.slice(0, -1)},"content":[`, ...sink.blocks, `],${tail.slice(1)}`];
}
