import type { Annotation, ChatChunk, Delta, Ext, ToolCallDelta } from '../../schemas/inner.ts';
import { mintCallId } from '../shared/tool-ids.ts';
import type { ToolTemplate } from './markup.ts';
import { type Run, ToolCallParser } from './parser.ts';

/** Turns the chunks of an answer in text into those of an answer with calls, block by block. */
export class TemplateReader {
  readonly #parser: ToolCallParser;
  readonly #generation_id: string;
  /** Numbers of blocks that are no text, as they came and as they go on. */
  readonly #slots = new Map<number, number>();
  /** The blocks of text that came. */
  readonly #texts = new Set<number>();
  #slot_count = 0;
  #call_count = 0;
  /** Calls that the upstream made natively all the same, by their index. */
  #native_calls: Map<number, number> | undefined = undefined;
  /** The block of text that is open on our side. */
  #open_text: number | undefined = undefined;
  #opening_ext: Ext | undefined = undefined;
  #is_reading = false;
  /** Calls were taken out of the text. */
  #is_cut = false;

  constructor(template: ToolTemplate, generationId: string) {
    this.#parser = new ToolCallParser(template);
    this.#generation_id = generationId;
  }

  take(given: readonly ChatChunk[]): ChatChunk[] {
    const chunks: ChatChunk[] = [];
    for (const chunk of given) this.#take(chunk, chunks);
    return chunks;
  }

  /** What is still held back at the end of the answer. */
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
      this.#opening_ext = slot.open.ext;
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
      this.#is_reading = true;
      this.#write(this.#parser.push(content), chunks);
    }
    const close = ext?.slot?.close;
    if (close !== undefined) this.#endText(chunks, close.ext);
    if (logprobs !== undefined) {
      const said = chunks.findLast((one, at) => at >= from && one.delta.content !== undefined);
      if (said === undefined) chunks.push({ delta: {}, logprobs });
      else said.logprobs = logprobs;
    }
    const left: Delta = annotations === undefined ? others : { ...others, annotations: this.#placed(annotations) };
    const response = ext?.response;
    if (Object.keys(left).length === 0 && response === undefined && Object.keys(rest).length === 0) return;
    if (rest.finish_reason != null) this.#endText(chunks);
    chunks.push(this.#finished({ ...rest, delta: left, ...(response === undefined ? {} : { ext: { response } }) }));
  }

  #takeOther(chunk: ChatChunk, chunks: ChatChunk[]): void {
    const { delta, ext } = chunk;
    const slot = ext?.slot;
    // One block of prose is open at a time.
    if (slot?.open !== undefined || chunk.finish_reason != null) this.#endText(chunks);
    let made = chunk;
    if (slot !== undefined) {
      const n = this.#slots.get(slot.n) ?? this.#nextSlot();
      this.#slots.set(slot.n, n);
      made = { ...made, ext: { ...ext, slot: { ...slot, n } } };
    }
    if (delta.tool_calls !== undefined) {
      made = { ...made, delta: { ...delta, tool_calls: delta.tool_calls.map((call) => this.#native(call)) } };
    }
    if (delta.annotations !== undefined) {
      made = { ...made, delta: { ...made.delta, annotations: this.#placed(delta.annotations) } };
    }
    chunks.push(this.#finished(made));
  }

  #nextSlot(): number {
    this.#slot_count += 1;
    return this.#slot_count - 1;
  }

  #native(call: ToolCallDelta): ToolCallDelta {
    this.#native_calls ??= new Map();
    let index = this.#native_calls.get(call.index);
    if (index === undefined) {
      index = this.#call_count;
      this.#call_count += 1;
      this.#native_calls.set(call.index, index);
    }
    return { ...call, index };
  }

  #finished(chunk: ChatChunk): ChatChunk {
    return chunk.finish_reason === 'stop' && this.#call_count > 0 ? { ...chunk, finish_reason: 'tool_calls' } : chunk;
  }

  #write(runs: readonly Run[], chunks: ChatChunk[]): void {
    for (const run of runs) {
      if ('text' in run) this.#say(run.text, chunks);
      else this.#call(run, chunks);
    }
  }

  #say(content: string, chunks: ChatChunk[]): void {
    if (this.#open_text !== undefined) {
      chunks.push({ delta: { content }, ext: { slot: { n: this.#open_text } } });
      return;
    }
    const n = this.#nextSlot();
    const ext = this.#opening_ext;
    this.#open_text = n;
    this.#opening_ext = undefined;
    const open = { kind: 'text' as const, ...(ext === undefined ? {} : { ext }) };
    chunks.push({ delta: { content }, ext: { slot: { n, open } } });
  }

  #call({ name, arguments: text }: Extract<Run, { name: string }>, chunks: ChatChunk[]): void {
    this.#closeText(chunks);
    this.#is_cut = true;
    const index = this.#call_count;
    this.#call_count += 1;
    const id = mintCallId(this.#generation_id, index);
    const call = { index, id, type: 'function' as const, function: { name, arguments: text } };
    const n = this.#nextSlot();
    chunks.push({ delta: { tool_calls: [call] }, ext: { slot: { n, open: { kind: 'call' }, close: {} } } });
  }

  #closeText(chunks: ChatChunk[], ext?: Ext): void {
    if (this.#open_text === undefined) return;
    const close = ext === undefined ? {} : { ext };
    chunks.push({ delta: {}, ext: { slot: { n: this.#open_text, close } } });
    this.#open_text = undefined;
  }

  #endText(chunks: ChatChunk[], ext?: Ext): void {
    if (this.#is_reading) this.#write(this.#parser.end(), chunks);
    this.#is_reading = false;
    this.#closeText(chunks, ext);
  }

  /** Places in a text from which calls were taken out are not known any more. */
  #placed(annotations: Annotation[]): Annotation[] {
    if (!this.#is_cut) return annotations;
    return annotations.map((one): Annotation => {
      if (one.type !== 'url_citation') return one;
      return { ...one, url_citation: { ...one.url_citation, start_index: 0, end_index: 0 } };
    });
  }
}
