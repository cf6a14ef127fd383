import type { Annotation, ChatChunk, Delta, Native, ReasoningDetail } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { annotationsOf, audioOf, citationsOf, imagesOf } from './attachments.ts';
import { errorInside } from './errors.ts';
import { finishReason } from './finish.ts';
import { logprobsOf } from './logprobs.ts';
import { ReasoningReader } from './reasoning.ts';
import { SlotWriter } from './slots.ts';
import type { KnownState } from './state.ts';
import { createThinkSplitter, type ThinkRun } from './think-tags.ts';
import { type CallReader, type CallStep, createCallReader } from './tool-calls.ts';
import { isObject, scalarText, textOf, type WireChoice, type WireMessage, type WirePart } from './wire.ts';

/** Decodes one choice: converts the deltas of one assistant turn to chunks, block by block. A whole message is one large delta. */
export class TurnWriter {
  /** The upstream's finish reason. */
  native: string | undefined = undefined;
  stopSequence: string | undefined = undefined;
  readonly #known: KnownState;
  readonly #generationId: string;
  readonly #slots = new SlotWriter();
  readonly #splitter: ReturnType<typeof createThinkSplitter> | undefined;
  // Most answers have none of them, so they are created on first use.
  #reasoning: ReasoningReader | undefined = undefined;
  #calls: CallReader | undefined = undefined;
  #tools: ReturnType<typeof createExecutedTools> | undefined = undefined;
  #callSlots: number[] | undefined = undefined;

  constructor(known: KnownState, generationId: string) {
    this.#known = known;
    this.#generationId = generationId;
    this.#splitter = known.think_tags ? createThinkSplitter() : undefined;
  }

  /** Throws `UpstreamError` if the choice contains an error. */
  take(choice: WireChoice, isWhole: boolean, chunks: ChatChunk[]): void {
    const error = choice.error == null ? undefined : errorInside({ error: choice.error });
    if (error !== undefined) throw error;
    // In a stream, a message beside or after deltas repeats them (Perplexity).
    const message = choice.delta ?? (this.#slots.opened > 0 ? undefined : choice.message);
    if (typeof message === 'object' && message !== null && !Array.isArray(message)) {
      this.#takeMessage(message, isWhole || choice.delta == null, chunks);
    }
    const logprobs = choice.logprobs == null ? undefined : logprobsOf(choice.logprobs);
    if (logprobs !== undefined) {
      const last = chunks.at(-1);
      // The probabilities belong to the text in the same event.
      if (last?.delta.content !== undefined || last?.delta.refusal !== undefined) last.logprobs = logprobs;
      else chunks.push({ delta: {}, logprobs });
    }
    if (choice.finish_reason != null) this.native = textOf(choice.finish_reason) ?? this.native;
    if (choice.stop_reason != null || choice.matched_stop != null) {
      this.stopSequence = textOf(choice.stop_reason) ?? textOf(choice.matched_stop) ?? this.stopSequence;
    }
  }

  #takeMessage(message: WireMessage, isWhole: boolean, chunks: ChatChunk[]): void {
    const { content } = message;
    if (message.reasoning_content != null || message.reasoning != null || message.reasoning_details != null) {
      this.#emitReasoning(this.#reasoningReader().read(message, isWhole), chunks);
    }
    if (Array.isArray(message.executed_tools)) {
      this.#tools ??= createExecutedTools(this.#slots);
      this.#tools.take(message.executed_tools, chunks);
    }
    if (typeof content === 'string' && this.#splitter === undefined) {
      if (content !== '') this.#slots.emit('text', { content }, chunks);
    } else if (content != null) this.#takeContent(content, chunks);
    const refusal = message.refusal == null ? undefined : textOf(message.refusal);
    if (refusal !== undefined) this.#slots.emit('refusal', { refusal }, chunks);
    if (message.images) {
      const images = imagesOf(message.images);
      if (images.length > 0) this.#slots.emit('image', { images }, chunks);
    }
    const audio = message.audio != null && isObject(message.audio) ? audioOf(message.audio) : undefined;
    if (audio !== undefined) this.#slots.emit('audio', { audio }, chunks);
    if (message.annotations) {
      const annotations = annotationsOf(message.annotations);
      if (annotations.length > 0) chunks.push({ delta: { annotations } });
    }
    if (message.tool_calls || message.function_call) this.#takeCalls(message, isWhole, chunks);
    if (message.extra_content == null) return;
    const signature = textOf(message.extra_content.google?.thought_signature);
    if (signature !== undefined) this.#emitSignature(signature, undefined, chunks);
  }

  /** Emits held text, closes every block, and emits the finish reason. Returns its chunk. */
  finish(sources: Annotation[], chunks: ChatChunk[]): ChatChunk {
    if (this.#splitter !== undefined) this.#emitRuns(this.#splitter.end(), chunks);
    if (this.#reasoning !== undefined) this.#emitReasoning(this.#reasoning.end(), chunks);
    if (this.#calls !== undefined) for (const step of this.#calls.end()) this.#emitCall(step, chunks);
    this.#slots.close(chunks);
    if (this.#callSlots !== undefined) {
      for (const n of this.#callSlots) this.#slots.closeBeside(n, undefined, chunks);
    }
    this.#tools?.end(chunks);
    if (sources.length > 0) chunks.push({ delta: { annotations: sources } });
    const hasCalls = this.#calls !== undefined && this.#calls.count() > 0;
    const reason = finishReason(this.native, { has_calls: hasCalls, is_empty: this.#slots.opened === 0 });
    const last: ChatChunk = { delta: {}, finish_reason: reason, native_finish_reason: this.native ?? null };
    chunks.push(last);
    return last;
  }

  #reasoningReader(): ReasoningReader {
    if (this.#reasoning !== undefined) return this.#reasoning;
    const reader = new ReasoningReader(this.#known.think_in_reasoning);
    this.#reasoning = reader;
    this.#slots.onReasoningEnd = () => reader.closeBlock();
    return reader;
  }

  #emitSignature(signature: string, callId: string | undefined, chunks: ChatChunk[]): void {
    this.#emitReasoning(this.#reasoningReader().readSignature(signature, callId), chunks);
  }

  #emitReasoning(details: readonly ReasoningDetail[], chunks: ChatChunk[]): void {
    for (const detail of details) {
      const delta: Delta = { reasoning_details: [detail] };
      if (detail.type === 'reasoning.text' && detail.text) delta.reasoning = detail.text;
      if (detail.type === 'reasoning.summary') delta.reasoning = detail.summary;
      this.#slots.emit('reasoning', delta, chunks);
    }
  }

  #emitRuns(runs: ThinkRun[], chunks: ChatChunk[]): void {
    for (const { is_reasoning: isReasoning, text } of runs) {
      if (isReasoning) this.#emitReasoning(this.#reasoningReader().readText(text), chunks);
      else this.#slots.emit('text', { content: text }, chunks);
    }
  }

  #emitText(text: string, chunks: ChatChunk[]): void {
    if (this.#splitter === undefined) this.#slots.emit('text', { content: text }, chunks);
    else this.#emitRuns(this.#splitter.push(text), chunks);
  }

  #emitCall({ ordinal, opens, signature, arguments: piece }: CallStep, chunks: ChatChunk[]): void {
    if (signature !== undefined) this.#emitSignature(signature.data, signature.id, chunks);
    if (opens === undefined) {
      if (piece === '') return;
      const delta: Delta = { tool_calls: [{ index: ordinal, function: { arguments: piece } }] };
      chunks.push({ delta, ext: { slot: { n: this.#callSlots![ordinal]! } } });
      return;
    }
    const call = { name: opens.name, arguments: piece };
    const ext = opens.rest === undefined ? {} : { ext: { wire: 'openai-chat', rest: opens.rest } as const };
    const delta: Delta = { tool_calls: [{ index: ordinal, id: opens.id, type: 'function', function: call }] };
    // The deltas of calls may interleave, so calls stay open to the end.
    this.#callSlots ??= [];
    this.#callSlots[ordinal] = this.#slots.openBeside({ kind: 'call', ...ext }, delta, chunks);
  }

  #takeContent(content: WireMessage['content'], chunks: ChatChunk[]): void {
    if (!Array.isArray(content)) {
      // Cloudflare parses the JSON that a schema requires.
      const text = isObject(content) ? JSON.stringify(content) : scalarText(content);
      if (text !== undefined) this.#emitText(text, chunks);
      return;
    }
    for (const part of content) {
      if (!isObject(part)) continue;
      const thought = thoughtOf(part as WirePart);
      const text = textOf(part['text']);
      if (thought !== undefined) this.#emitReasoning(this.#reasoningReader().readText(thought), chunks);
      else if (text !== undefined) this.#emitText(text, chunks);
      else if (part['type'] === 'image_url') this.#slots.emit('image', { images: imagesOf([part]) }, chunks);
    }
  }

  #takeCalls(message: WireMessage, isWhole: boolean, chunks: ChatChunk[]): void {
    const { tool_calls: toolCalls, function_call: functionCall } = message;
    this.#calls ??= createCallReader(
      this.#generationId,
      this.#known.call_ids,
      (name) => this.#known.tool_names[name] ?? name,
      this.#known.tools,
    );
    if (Array.isArray(toolCalls) && toolCalls.length > 0) {
      for (const step of this.#calls.read(toolCalls, isWhole)) this.#emitCall(step, chunks);
    } else if (isObject(functionCall)) {
      for (const step of this.#calls.read([{ index: 0, function: functionCall }], isWhole))
        this.#emitCall(step, chunks);
    }
  }
}

/** Groq's compound systems report a run twice: at its start, and with its output. The last report is complete. */
function createExecutedTools(slots: SlotWriter) {
  const runs = new Map<number, { n: number; native: Native }>();
  return {
    take(entries: readonly (JsonObject | null)[], chunks: ChatChunk[]): void {
      for (const entry of entries) {
        if (!isObject(entry)) continue;
        const index = typeof entry['index'] === 'number' ? entry['index'] : runs.size;
        const block = { type: 'executed_tool', executed_tool: entry };
        const native: Native = { type: 'native', wire: 'openai-chat', block };
        const run = runs.get(index);
        if (run === undefined) {
          runs.set(index, { n: slots.openBeside({ kind: 'native', native }, {}, chunks), native });
        } else {
          run.native = native;
          chunks.push({ delta: {}, ext: { slot: { n: run.n, raw: entry } } });
        }
        const searchResults = entry['search_results'];
        const annotations = citationsOf(isObject(searchResults) ? searchResults['results'] : undefined);
        if (annotations.length > 0) chunks.push({ delta: { annotations } });
      }
    },
    end(chunks: ChatChunk[]): void {
      for (const { n, native } of runs.values()) slots.closeBeside(n, native, chunks);
    },
  };
}

/** The text of a thinking part (https://docs.mistral.ai/capabilities/reasoning). */
function thoughtOf(part: WirePart): string | undefined {
  if (part.type !== 'thinking') return undefined;
  const { thinking } = part;
  if (!Array.isArray(thinking)) return textOf(thinking) ?? '';
  return thinking.map((piece) => textOf(piece?.text) ?? '').join('');
}
