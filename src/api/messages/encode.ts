import type { WholeAnswer } from '../../inference/answer.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { metadataMembers } from '../../schemas/routing-metadata.ts';
import { turnChunks } from '../turn-chunks.ts';
import type { BlockSink } from './block-sink.ts';
import { createBlockWriter, isShownBlock } from './blocks.ts';
import { brokenAnswer } from './errors.ts';
import { ownRest, stopOf, usageOf } from './fields.ts';
import type { MessagesEnvelope } from './stream.ts';

/** Gathers blocks as JSON. A tool's input is written as the model wrote it, numbers included. */
class ContentSink implements BlockSink {
  readonly blocks: string[] = [];
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
    if (this.#input === undefined) {
      this.blocks.push(JSON.stringify(this.#block));
      return;
    }
    const { input: _, ...block } = this.#block;
    this.blocks.push(`${JSON.stringify(block).slice(0, -1)},"input":${objectText(this.#input)}}`);
  }
}

/** Arguments as an object of the wire; what is none is wrapped, as it is on the way to a provider. */
function objectText(told: string): string {
  if (told.trim() === '') return '{}';
  try {
    const value: unknown = JSON.parse(told);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return told;
  } catch {
    // Shown as it is.
  }
  return JSON.stringify({ _raw: told });
}

/** The whole answer as a message (https://platform.claude.com/docs/en/api/messages): what its stream adds up to. */
export function encodeMessage(answer: WholeAnswer, envelope: MessagesEnvelope): string {
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
  return `${head.slice(0, -1)},"content":[${sink.blocks.join(',')}],${tail.slice(1)}`;
}
