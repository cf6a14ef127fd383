import { append, grown } from './append.ts';
import {
  type Annotation,
  CHAT_WIRE,
  type ChatChunk,
  type ChatCompletion,
  type Choice,
  type ChoiceError,
  type Ext,
  type FinishReason,
  type Message,
  type MessageExt,
  type Native,
  type OutputAudio,
  type OutputImage,
  type ReasoningDetail,
  type ResponseExt,
  type Slot,
  type SlotEvent,
  type ToolCall,
  type ToolCallDelta,
  type Wire,
} from './inner.ts';
import type { JsonObject, JsonValue } from './json.ts';

/** Builds a whole answer from its chunks. */
export interface Accumulator {
  add(chunk: ChatChunk): void;
  /** The answer so far. `created` is in Unix seconds. Can be called at any time, and repeatedly. */
  result(created: number): ChatCompletion;
}

/** The whole answer that these chunks stream: equal to what decoding the whole body of that answer returns. */
export function accumulate(chunks: Iterable<ChatChunk>, created: number): ChatCompletion {
  const accumulator = createAccumulator();
  for (const chunk of chunks) accumulator.add(chunk);
  return accumulator.result(created);
}

/** One block of the turn, as it grows. */
interface Block {
  kind: Slot['kind'];
  text: string;
  details: ReasoningDetail[];
  /** The details by type and index; made once there are many. */
  detailsByKey: Map<string, ReasoningDetail> | undefined;
  images: OutputImage[];
  call: ToolCall | undefined;
  ext: Ext | undefined;
  native: Native | undefined;
}

/** The order of blocks if a message states none. */
const CANONICAL: readonly Slot['kind'][] = ['reasoning', 'text', 'refusal', 'image', 'audio', 'call'];

const NO_BLOCKS: Block[] = [];

/** A class rather than closures: every answer has one, and most are one text. */
class AnswerAccumulator implements Accumulator {
  /** Never changed while it is empty. */
  #blocks: Block[] = NO_BLOCKS;
  #blocksBySlot: (Block | undefined)[] | undefined = undefined;
  #calls: (Block | undefined)[] | undefined = undefined;
  #audio: OutputAudio | undefined = undefined;
  #annotations: Annotation[] | undefined = undefined;
  #finishReason: FinishReason | null = null;
  #nativeFinishReason: string | null = null;
  #logprobs: JsonValue | undefined = undefined;
  #error: ChoiceError | undefined = undefined;
  #systemFingerprint: string | null | undefined = undefined;
  #serviceTier: string | null | undefined = undefined;
  #response: Partial<ResponseExt> | undefined = undefined;
  /** The choices after the first. */
  #others: AnswerAccumulator[] | undefined = undefined;
  /** False while `#response` is the object of the first chunk, which must not be changed. */
  #ownsResponse = false;
  /** The last block of each detail; made at the first detail that is identified by its index alone. */
  #blocksByDetail: Map<string, Block> | undefined = undefined;

  #open(kind: Slot['kind']): Block {
    const block: Block = {
      kind,
      text: '',
      details: [],
      detailsByKey: undefined,
      images: [],
      call: undefined,
      ext: undefined,
      native: undefined,
    };
    this.#blocks = grown(this.#blocks, block);
    return block;
  }

  #blockOf(kind: Slot['kind'], slotted: Block | undefined): Block {
    if (slotted?.kind === kind) return slotted;
    const last = this.#blocks.at(-1);
    return last?.kind === kind ? last : this.#open(kind);
  }

  /** Without a slot, a detail is identified by its index, even if other blocks lie between. */
  #reasoningBlock(detail: ReasoningDetail, slotted: Block | undefined): Block {
    if (slotted?.kind !== 'reasoning' && detail.index !== undefined) {
      this.#blocksByDetail ??= new Map(
        this.#blocks.flatMap((block) => block.details.map((other) => [keyOf(other), block] as const)),
      );
      const known = this.#blocksByDetail.get(keyOf(detail));
      if (known !== undefined) return known;
    }
    return this.#blockOf('reasoning', slotted);
  }

  #addDetail(block: Block, detail: ReasoningDetail): void {
    addDetail(block, detail);
    const known = this.#blocksByDetail;
    if (known === undefined) return;
    const key = keyOf(detail);
    if (known.get(key) !== block) known.set(key, block);
  }

  /** Merges facts of the response: later values replace earlier ones, field by field. */
  #addResponse(update: Partial<ResponseExt>): void {
    if (this.#response === undefined) {
      this.#response = update;
      return;
    }
    if (!this.#ownsResponse) {
      this.#response = { ...this.#response };
      if (this.#response.rest !== undefined) this.#response.rest = { ...this.#response.rest };
      this.#ownsResponse = true;
    }
    const { rest } = this.#response;
    Object.assign(this.#response, update);
    if (rest === undefined) {
      if (update.rest !== undefined) this.#response.rest = { ...update.rest };
    } else this.#response.rest = Object.assign(rest, update.rest);
  }

  #addSlot(slot: SlotEvent): Block | undefined {
    let block = this.#blocksBySlot?.[slot.n];
    if (block === undefined && slot.open !== undefined) {
      block = this.#open(slot.open.kind);
      if (this.#blocksBySlot === undefined && slot.n === 0) this.#blocksBySlot = [block];
      else {
        this.#blocksBySlot ??= [];
        this.#blocksBySlot[slot.n] = block;
      }
    }
    if (block === undefined) return undefined;
    if (slot.open !== undefined) keep(block, slot.open);
    if (slot.close !== undefined) keep(block, slot.close);
    return block;
  }

  #addCall(delta: ToolCallDelta, slotted: Block | undefined): void {
    this.#calls ??= [];
    let block = this.#calls[delta.index];
    if (block === undefined) {
      block = slotted?.kind === 'call' && slotted.call === undefined ? slotted : this.#open('call');
      block.call = { id: '', type: 'function', function: { name: '', arguments: '' } };
      this.#calls[delta.index] = block;
    }
    const call = block.call!;
    if (delta.id !== undefined) call.id = delta.id;
    if (delta.function.name !== undefined) call.function.name = delta.function.name;
    if (delta.function.arguments !== undefined) call.function.arguments += delta.function.arguments;
  }

  add(chunk: ChatChunk): void {
    const { delta, ext } = chunk;
    if (chunk.choice) {
      this.#other(chunk.choice).add({ ...chunk, choice: 0 });
      return;
    }
    const slotted = ext?.slot === undefined ? undefined : this.#addSlot(ext.slot);
    if (delta.reasoning_details !== undefined) {
      for (const detail of delta.reasoning_details) this.#addDetail(this.#reasoningBlock(detail, slotted), detail);
    } else if (delta.reasoning) {
      const plain: ReasoningDetail = { type: 'reasoning.text', text: delta.reasoning, format: 'unknown' };
      this.#addDetail(this.#blockOf('reasoning', slotted), plain);
    }
    if (delta.content) this.#blockOf('text', slotted).text += delta.content;
    if (delta.refusal) this.#blockOf('refusal', slotted).text += delta.refusal;
    if (delta.images !== undefined) append(this.#blockOf('image', slotted).images, delta.images);
    if (delta.audio !== undefined) {
      if (this.#audio === undefined) this.#blockOf('audio', slotted);
      this.#audio = mergeAudio(this.#audio, delta.audio);
    }
    if (delta.tool_calls !== undefined) for (const call of delta.tool_calls) this.#addCall(call, slotted);
    if (delta.annotations !== undefined) {
      this.#annotations ??= [];
      append(this.#annotations, delta.annotations);
    }
    if (chunk.finish_reason != null) this.#finishReason = chunk.finish_reason;
    if (chunk.native_finish_reason != null) this.#nativeFinishReason = chunk.native_finish_reason;
    if (chunk.logprobs != null) this.#logprobs = mergeLogprobs(this.#logprobs, chunk.logprobs);
    if (chunk.error !== undefined) this.#error = chunk.error;
    if (chunk.system_fingerprint !== undefined) {
      this.#systemFingerprint = chunk.system_fingerprint ?? this.#systemFingerprint;
    }
    if (chunk.service_tier !== undefined) this.#serviceTier = chunk.service_tier ?? this.#serviceTier;
    if (ext?.response !== undefined) this.#addResponse(ext.response);
  }

  #other(choice: number): AnswerAccumulator {
    this.#others ??= [];
    while (this.#others.length < choice) this.#others.push(new AnswerAccumulator());
    return this.#others[choice - 1]!;
  }

  #wire(): Wire {
    const wire = this.#response?.wire ?? this.#blocks.find((block) => block.ext !== undefined)?.ext?.wire;
    return wire ?? CHAT_WIRE;
  }

  #choice(index: number, wire: Wire): Choice {
    const message = buildMessage(this.#blocks, wire);
    if (this.#audio !== undefined) message.audio = this.#audio;
    if (this.#annotations?.length) message.annotations = [...this.#annotations];
    const choice: Choice = {
      index,
      message,
      finish_reason: this.#finishReason,
      native_finish_reason: this.#nativeFinishReason,
    };
    if (this.#logprobs !== undefined) choice.logprobs = copyLists(this.#logprobs);
    if (this.#error !== undefined) choice.error = this.#error;
    return choice;
  }

  result(created: number): ChatCompletion {
    const response = this.#response;
    const wire = this.#wire();
    const others = this.#others?.map((other, at) => other.#choice(at + 1, wire)) ?? [];
    const completion: Partial<ChatCompletion> = { choices: [this.#choice(0, wire), ...others], created };
    if (this.#systemFingerprint != null) completion.system_fingerprint = this.#systemFingerprint;
    if (this.#serviceTier != null) completion.service_tier = this.#serviceTier;
    completion.ext = { ...response, wire, rest: { ...response?.rest } };
    return completion as ChatCompletion;
  }
}

/**
 * Makes an empty accumulator.
 *
 * A chunk names the block of its delta by its slot; a delta without a slot continues the last block of its kind. The `ext` of a call is
 * stored in the tool call itself, that of other blocks in the `order` of the message.
 */
export function createAccumulator(): Accumulator {
  return new AnswerAccumulator();
}

function keep(block: Block, { ext, native }: { ext?: Ext; native?: Native }): void {
  if (ext !== undefined) block.ext = mergeExt(block.ext, ext);
  if (native !== undefined) block.native = native;
}

/** The reasoning as one string: texts and summaries, separated by a blank line; null if there is none. */
export function joinReasoning(details: readonly ReasoningDetail[]): string | null {
  let joined: string | null = null;
  for (const detail of details) {
    const text =
      detail.type === 'reasoning.text' ? detail.text : detail.type === 'reasoning.summary' ? detail.summary : undefined;
    if (text) joined = joined === null ? text : `${joined}\n\n${text}`;
  }
  return joined;
}

/** Up to this many details are searched one by one. More occur only in histories, and are looked up by key. */
const SEARCHED_MAX = 16;

const keyOf = ({ type, index }: ReasoningDetail) => `${type} ${index}`;

/** The existing detail that a delta continues; undefined for a new one. */
function findDetail(block: Block, delta: ReasoningDetail): ReasoningDetail | undefined {
  const { details } = block;
  if (details.length <= SEARCHED_MAX) return details.findLast((other) => isSameDetail(other, delta));
  block.detailsByKey ??= new Map(details.map((other) => [keyOf(other), other]));
  return block.detailsByKey.get(keyOf(delta));
}

function addDetail(block: Block, delta: ReasoningDetail): void {
  const detail = findDetail(block, delta);
  // Encrypted parts without an index are never deltas of one detail: each is complete.
  if (detail === undefined || (delta.type === 'reasoning.encrypted' && delta.index === undefined)) {
    const added = { ...delta };
    block.details.push(added);
    block.detailsByKey?.set(keyOf(added), added);
    return;
  }
  if (detail.type === 'reasoning.text' && delta.type === 'reasoning.text') {
    if (delta.text != null) detail.text = (detail.text ?? '') + delta.text;
    if (delta.signature != null) detail.signature = delta.signature;
  } else if (detail.type === 'reasoning.summary' && delta.type === 'reasoning.summary') {
    detail.summary += delta.summary;
  } else if (detail.type === 'reasoning.encrypted' && delta.type === 'reasoning.encrypted') {
    detail.data = delta.data;
  }
  if (delta.id != null) detail.id = delta.id;
  if (delta.format != null) detail.format = delta.format;
}

function isSameDetail(a: ReasoningDetail, b: ReasoningDetail): boolean {
  return a.index === b.index && a.type === b.type;
}

function buildMessage(blocks: readonly Block[], wire: Wire): Message & { role: 'assistant' } {
  const details: ReasoningDetail[] = [];
  let texts: string[] = [];
  const images: OutputImage[] = [];
  const calls: ToolCall[] = [];
  const natives: Native[] = [];
  let order: Slot[] = [];
  let refusal = '';
  let rank = 0;
  let isStated = false;

  for (const block of blocks) {
    const slot: Slot = { kind: block.kind, at: 0 };
    let taken = 1;
    if (block.kind === 'reasoning') {
      slot.at = details.length;
      taken = block.details.length;
      for (const detail of block.details) details.push({ ...detail, index: detail.index ?? details.length });
      // An empty block is kept for its `ext`. It has no detail.
      if (taken === 0 && block.ext !== undefined) {
        order.push({ ...slot, span: 0, ext: block.ext });
        isStated = true;
        continue;
      }
    } else if (block.kind === 'text') {
      slot.at = texts.length;
      // An empty block is kept only for its `ext`.
      taken = block.text === '' && block.ext === undefined ? 0 : 1;
      if (taken > 0) texts = grown(texts, block.text);
    } else if (block.kind === 'image') {
      slot.at = images.length;
      taken = block.images.length;
      append(images, block.images);
    } else if (block.kind === 'call') {
      slot.at = calls.length;
      taken = block.call === undefined ? 0 : 1;
      if (block.call !== undefined) calls.push(finishCall(block.call, block.ext));
    } else if (block.kind === 'native') {
      slot.at = natives.length;
      taken = block.native === undefined ? 0 : 1;
      if (block.native !== undefined) natives.push(block.native);
    } else if (block.kind === 'refusal') {
      // A message has one refusal: all blocks are joined.
      taken = block.text === '' || refusal !== '' ? 0 : 1;
      refusal += block.text;
    }
    if (taken === 0) continue;
    if (taken > 1) slot.span = taken;
    if (block.ext !== undefined && block.kind !== 'call') slot.ext = block.ext;
    const kindRank = CANONICAL.indexOf(block.kind);
    isStated ||= kindRank < rank || slot.ext !== undefined;
    rank = kindRank;
    order = grown(order, slot);
  }

  const message: Message & { role: 'assistant' } = { role: 'assistant', content: contentOf(texts) };
  if (refusal !== '') message.refusal = refusal;
  if (details.length > 0) {
    message.reasoning = joinReasoning(details);
    message.reasoning_details = details;
  }
  if (images.length > 0) message.images = images;
  if (calls.length > 0) message.tool_calls = calls;
  if (isStated) {
    const ext: MessageExt = { wire, rest: {}, order };
    if (natives.length > 0) ext.natives = natives;
    message.ext = ext;
  }
  return message;
}

function contentOf(texts: readonly string[]): Message['content'] {
  if (texts.length < 2) return texts[0] ?? null;
  return texts.map((text) => ({ type: 'text', text }));
}

function finishCall(call: ToolCall, ext: Ext | undefined): ToolCall {
  return { ...call, function: { ...call.function }, ...(ext === undefined ? {} : { ext }) };
}

function mergeExt(former: Ext | undefined, update: Ext): Ext {
  return former === undefined ? update : { wire: update.wire, rest: { ...former.rest, ...update.rest } };
}

function mergeAudio(former: OutputAudio | undefined, delta: OutputAudio): OutputAudio {
  if (former === undefined) return { ...delta };
  const merged = { ...former, ...delta };
  if (former.data !== undefined && delta.data !== undefined) merged.data = former.data + delta.data;
  if (former.transcript !== undefined && delta.transcript !== undefined) {
    merged.transcript = former.transcript + delta.transcript;
  }
  return merged;
}

/** Merges log probabilities: lists grow by deltas, other values are replaced. `former` belongs to the accumulator and is changed. */
function mergeLogprobs(former: JsonValue | undefined, delta: JsonValue): JsonValue {
  if (!isObject(delta)) return delta;
  if (!isObject(former)) return copyLists(delta);
  for (const [key, value] of Object.entries(delta)) {
    const previous = former[key];
    if (Array.isArray(previous) && Array.isArray(value)) append(previous, value);
    else if (value !== null || previous === undefined) former[key] = Array.isArray(value) ? [...value] : value;
  }
  return former;
}

function copyLists(value: JsonValue): JsonValue {
  if (!isObject(value)) return value;
  const copy: JsonObject = {};
  for (const [key, entry] of Object.entries(value)) copy[key] = Array.isArray(entry) ? [...entry] : entry;
  return copy;
}

/** Whether a value is a JSON object. */
export function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
