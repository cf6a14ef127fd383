import type { Annotation, ChatChunk, Delta, Ext, ToolCallDelta } from '../../schemas/inner.ts';
import { mintCallId } from '../shared/tool-ids.ts';
import type { ToolTemplate } from './markup.ts';
import { type Run, ToolCallParser } from './parser.ts';

/** Converts the chunks of an answer in text to those of an answer with calls, block by block. */
export class TemplateReader {
  readonly #parser: ToolCallParser;
  readonly #generationId: string;
  /** The numbers of blocks other than text: the upstream's to ours. */
  readonly #slots = new Map<number, number>();
  /** The upstream's text blocks. */
  readonly #texts = new Set<number>();
  #slotCount = 0;
  #callCount = 0;
  /** Calls that the upstream made natively nevertheless, by their index. */
  #nativeCalls: Map<number, number> | undefined = undefined;
  /** Our open text block. */
  #openText: number | undefined = undefined;
  #openingExt: Ext | undefined = undefined;
  #isReading = false;
  /** Whether calls were cut from the text. */
  #isCut = false;

  constructor(template: ToolTemplate, generationId: string) {
    this.#parser = new ToolCallParser(template);
    this.#generationId = generationId;
  }

  take(upstreamChunks: readonly ChatChunk[]): ChatChunk[] {
    const chunks: ChatChunk[] = [];
    for (const chunk of upstreamChunks) this.#take(chunk, chunks);
    return chunks;
  }

  /** The chunks of the text held back, at the end of the answer. */
  end(): ChatChunk[] {
    const chunks: ChatChunk[] = [];
    this.#endText(chunks);
    return chunks;
  }

  #take(chunk: ChatChunk, chunks: ChatChunk[]): void {
    const slot = chunk.ext?.slot;
    if (slot?.open?.kind === 'text') {
      this.#endText(chunks);
      this.#texts.add(slot.n);
      this.#openingExt = slot.open.ext;
    }
    const isText = slot === undefined ? Boolean(chunk.delta.content) : this.#texts.has(slot.n);
    if (isText) this.#takeText(chunk, chunks);
    else this.#takeOther(chunk, chunks);
  }

  #takeText(chunk: ChatChunk, chunks: ChatChunk[]): void {
    const { delta, ext, logprobs, ...rest } = chunk;
    const { content, annotations, ...others } = delta;
    const from = chunks.length;
    if (content) {
      this.#isReading = true;
      this.#write(this.#parser.push(content), chunks);
    }
    const close = ext?.slot?.close;
    if (close !== undefined) this.#endText(chunks, close.ext);
    if (logprobs !== undefined) {
      const textChunk = chunks.findLast((one, at) => at >= from && one.delta.content !== undefined);
      if (textChunk === undefined) chunks.push({ delta: {}, logprobs });
      else textChunk.logprobs = logprobs;
    }
    const remaining: Delta =
      annotations === undefined ? others : { ...others, annotations: this.#withoutOffsets(annotations) };
    const response = ext?.response;
    if (Object.keys(remaining).length === 0 && response === undefined && Object.keys(rest).length === 0) return;
    if (rest.finish_reason != null) this.#endText(chunks);
    chunks.push(
      this.#finished({ ...rest, delta: remaining, ...(response === undefined ? {} : { ext: { response } }) }),
    );
  }

  #takeOther(chunk: ChatChunk, chunks: ChatChunk[]): void {
    const { delta, ext } = chunk;
    const slot = ext?.slot;
    // Only one text block is open at a time.
    if (slot?.open !== undefined || chunk.finish_reason != null) this.#endText(chunks);
    let converted = chunk;
    if (slot !== undefined) {
      const n = this.#slots.get(slot.n) ?? this.#nextSlot();
      this.#slots.set(slot.n, n);
      converted = { ...converted, ext: { ...ext, slot: { ...slot, n } } };
    }
    if (delta.tool_calls !== undefined) {
      converted = { ...converted, delta: { ...delta, tool_calls: delta.tool_calls.map((call) => this.#native(call)) } };
    }
    if (delta.annotations !== undefined) {
      converted = { ...converted, delta: { ...converted.delta, annotations: this.#withoutOffsets(delta.annotations) } };
    }
    chunks.push(this.#finished(converted));
  }

  #nextSlot(): number {
    this.#slotCount += 1;
    return this.#slotCount - 1;
  }

  #native(call: ToolCallDelta): ToolCallDelta {
    this.#nativeCalls ??= new Map();
    let index = this.#nativeCalls.get(call.index);
    if (index === undefined) {
      index = this.#callCount;
      this.#callCount += 1;
      this.#nativeCalls.set(call.index, index);
    }
    return { ...call, index };
  }

  #finished(chunk: ChatChunk): ChatChunk {
    return chunk.finish_reason === 'stop' && this.#callCount > 0 ? { ...chunk, finish_reason: 'tool_calls' } : chunk;
  }

  #write(runs: readonly Run[], chunks: ChatChunk[]): void {
    for (const run of runs) {
      if ('text' in run) this.#emitText(run.text, chunks);
      else this.#call(run, chunks);
    }
  }

  #emitText(content: string, chunks: ChatChunk[]): void {
    if (this.#openText !== undefined) {
      chunks.push({ delta: { content }, ext: { slot: { n: this.#openText } } });
      return;
    }
    const n = this.#nextSlot();
    const ext = this.#openingExt;
    this.#openText = n;
    this.#openingExt = undefined;
    const open = { kind: 'text' as const, ...(ext === undefined ? {} : { ext }) };
    chunks.push({ delta: { content }, ext: { slot: { n, open } } });
  }

  #call({ name, arguments: text }: Extract<Run, { name: string }>, chunks: ChatChunk[]): void {
    this.#closeText(chunks);
    this.#isCut = true;
    const index = this.#callCount;
    this.#callCount += 1;
    const id = mintCallId(this.#generationId, index);
    const call = { index, id, type: 'function' as const, function: { name, arguments: text } };
    const n = this.#nextSlot();
    chunks.push({ delta: { tool_calls: [call] }, ext: { slot: { n, open: { kind: 'call' }, close: {} } } });
  }

  #closeText(chunks: ChatChunk[], ext?: Ext): void {
    if (this.#openText === undefined) return;
    const close = ext === undefined ? {} : { ext };
    chunks.push({ delta: {}, ext: { slot: { n: this.#openText, close } } });
    this.#openText = undefined;
  }

  #endText(chunks: ChatChunk[], ext?: Ext): void {
    if (this.#isReading) this.#write(this.#parser.end(), chunks);
    this.#isReading = false;
    this.#closeText(chunks, ext);
  }

  /** Offsets into a text from which calls were cut are unknown: they become 0. */
  #withoutOffsets(annotations: Annotation[]): Annotation[] {
    if (!this.#isCut) return annotations;
    return annotations.map((one): Annotation => {
      if (one.type !== 'url_citation') return one;
      return { ...one, url_citation: { ...one.url_citation, start_index: 0, end_index: 0 } };
    });
  }
}
