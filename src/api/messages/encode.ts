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

/** Gathers blocks as JSON. A tool's input is written as the model wrote it, numbers included. */
class ContentSink implements BlockSink {
  /** Each after a comma, but for the first. */
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
  /** The block was whole when it began. */
  raw(): void {}
  cite(citation: JsonObject): void {
    // A list of the block's own: what it began with is the answer's.
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

/** The whole answer as a message. */
export function encodeMessage(answer: WholeAnswer, envelope: MessagesEnvelope): string {
  return joinParts(messageParts(answer, envelope));
}

/** The same (https://platform.claude.com/docs/en/api/messages) as the parts of its JSON: what its stream adds up to. */
export function messageParts(answer: WholeAnswer, envelope: MessagesEnvelope): JsonPart[] {
  const { completion, served, classes, usage, metadata } = answer;
  const [{ finish_reason, native_finish_reason, error }] = completion.choices;
  if (finish_reason === 'error') throw brokenAnswer(error);
  const response = completion.ext;
  const sink = new ContentSink();
  const blocks = createBlockWriter(sink, envelope);
  for (const chunk of turnChunks(completion)) {
    const slot = chunk.ext?.slot;
    if (slot?.open === undefined || isShownBlock(slot.open)) blocks.add(chunk);
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
