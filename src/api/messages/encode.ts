import type { WholeAnswer } from '../../inference/answer.ts';
import { isSeal } from '../../inference/state/seal.ts';
import type { ChatChunk, InnerPart, Message, Slot, UrlCitation } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { type BlockSink, createBlockWriter, isShownBlock } from './blocks.ts';
import { brokenAnswer } from './errors.ts';
import { ownRest, stopOf, usageOf } from './fields.ts';
import type { MessagesEnvelope } from './stream.ts';

/** Gathers blocks as JSON. A tool's input is written as the model wrote it, numbers included. */
class ContentSink implements BlockSink {
  readonly blocks: string[] = [];
  #block: JsonObject = {};
  #input: string | undefined;

  start(block: JsonObject): void {
    this.#block = { ...block };
    this.#input = undefined;
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
    const { citations } = this.#block;
    this.#block['citations'] = [...(Array.isArray(citations) ? citations : []), citation];
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

/** The order in which blocks stand where nothing else is told. */
function canonicalOrder({ reasoning_details, content, refusal, tool_calls }: Message): Slot[] {
  const texts = typeof content === 'string' ? 1 : (content?.length ?? 0);
  return [
    ...(reasoning_details?.length ? [{ kind: 'reasoning', at: 0, span: reasoning_details.length } as const] : []),
    ...Array.from({ length: texts }, (_, at) => ({ kind: 'text', at }) as const),
    ...(refusal ? [{ kind: 'refusal', at: 0 } as const] : []),
    ...(tool_calls ?? []).map((_, at) => ({ kind: 'call', at }) as const),
  ];
}

/** The turn as the chunks that would have told it, block after block. */
function chunksOf(message: Message): ChatChunk[] {
  const all = message.reasoning_details ?? [];
  // The seal stands behind all blocks, and is none of the order.
  const last = all.at(-1);
  const seal = last !== undefined && isSeal(last) ? last : undefined;
  const details = seal === undefined ? all : all.slice(0, -1);
  const turn = { ...message, reasoning_details: details };
  const parts = typeof message.content === 'string' ? [message.content] : (message.content ?? []).map(textOf);
  const cited = citedTexts(message, parts);
  const chunks = (message.ext?.order ?? canonicalOrder(turn)).map((slot, n): ChatChunk => {
    const { kind, at, span = 1, ext } = slot;
    const event = (told: object = {}) => ({
      slot: { n, open: { kind, ...(ext === undefined ? {} : { ext }), ...told }, close: {} },
    });
    switch (kind) {
      case 'reasoning':
        return { delta: { reasoning_details: details.slice(at, at + span) }, ext: event() };
      case 'text':
        return { delta: { content: parts[at] ?? '', ...cited(at) }, ext: event() };
      case 'refusal':
        return { delta: { refusal: message.refusal ?? '' }, ext: event() };
      case 'call': {
        const { id, type, function: called, ext: own } = message.tool_calls![at]!;
        return {
          delta: { tool_calls: [{ index: at, id, type, function: called }] },
          ext: event(own === undefined ? {} : { ext: own }),
        };
      }
      case 'native':
        return { delta: {}, ext: event({ native: message.ext!.natives![at]! }) };
      default:
        return { delta: {}, ext: event() };
    }
  });
  return seal === undefined ? chunks : [...chunks, { delta: { reasoning_details: [seal] } }];
}

function textOf(part: InnerPart): string {
  return part.type === 'text' ? part.text : '';
}

/** Which annotations are of which text: those that end in it; of those without a place, the last text's. */
function citedTexts(
  { annotations }: Message,
  parts: readonly string[],
): (at: number) => { annotations?: UrlCitation[] } {
  const citations = (annotations ?? []).filter((one): one is UrlCitation => one.type === 'url_citation');
  if (citations.length === 0) return () => ({});
  const ends: number[] = [];
  for (const part of parts) ends.push((ends.at(-1) ?? 0) + [...part].length);
  const places = citations.map(({ url_citation: { end_index } }) => {
    const at = end_index === 0 ? -1 : ends.findIndex((end) => end_index <= end);
    return at === -1 ? parts.length - 1 : at;
  });
  return (at) => {
    const own = citations.filter((_, i) => places[i] === at);
    return own.length === 0 ? {} : { annotations: own };
  };
}

/** The whole answer as a message (https://platform.claude.com/docs/en/api/messages): what its stream adds up to. */
export function encodeMessage(answer: WholeAnswer, envelope: MessagesEnvelope): string {
  const { completion, served, classes, usage, metadata } = answer;
  const [{ message, finish_reason, native_finish_reason, error }] = completion.choices;
  if (finish_reason === 'error') throw brokenAnswer(error);
  const response = completion.ext;
  const sink = new ContentSink();
  const blocks = createBlockWriter(sink, envelope);
  for (const chunk of chunksOf(message)) {
    const slot = chunk.ext?.slot;
    if (slot?.open !== undefined && !isShownBlock(slot.open)) continue;
    blocks.add(chunk);
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
    ...(metadata === undefined ? {} : { gateway_metadata: metadata }),
  });
  return `${head.slice(0, -1)},"content":[${sink.blocks.join(',')}],${tail.slice(1)}`;
}
