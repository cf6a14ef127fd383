import type { ChatChunk, Delta, Native, ReasoningDetail } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { annotationsOf, audioOf, citationsOf, imagesOf } from './attachments.ts';
import { createReasoningReader } from './reasoning.ts';
import { createSlotWriter, type SlotWriter } from './slots.ts';
import type { KnownState } from './state.ts';
import { createThinkSplitter, type ThinkRun } from './think-tags.ts';
import { type CallReader, type CallStep, createCallReader } from './tool-calls.ts';
import { isObject, textOf, type WireMessage, type WirePart } from './wire.ts';

/** Turns the deltas of one assistant turn into chunks, block by block. A whole message is one large delta. */
export interface TurnWriter {
  /** Whether anything came that a client would see. */
  hasProduced(): boolean;
  hasCalls(): boolean;
  take(message: WireMessage, is_whole: boolean, chunks: ChatChunk[]): void;
  /** Hands out what was held back and closes every block. */
  end(chunks: ChatChunk[]): void;
}

/** Makes the writer of one turn. */
export function createTurnWriter(known: KnownState, generation_id: string): TurnWriter {
  const reasoning = createReasoningReader(known.think_in_reasoning);
  const slots = createSlotWriter((kind) => {
    if (kind === 'reasoning') reasoning.closeBlock();
  });
  // Most answers hold neither, so their readers are made when one comes.
  let calls: CallReader | undefined;
  let tools: ReturnType<typeof createExecutedTools> | undefined;
  const splitter = known.think_tags ? createThinkSplitter() : undefined;
  const callSlots: number[] = [];

  function emitReasoning(details: ReasoningDetail[], chunks: ChatChunk[]): void {
    for (const detail of details) {
      const delta: Delta = { reasoning_details: [detail] };
      if (detail.type === 'reasoning.text' && detail.text) delta.reasoning = detail.text;
      if (detail.type === 'reasoning.summary') delta.reasoning = detail.summary;
      slots.emit('reasoning', delta, chunks);
    }
  }

  function emitRuns(runs: ThinkRun[], chunks: ChatChunk[]): void {
    for (const { is_reasoning, text } of runs) {
      if (is_reasoning) emitReasoning(reasoning.readText(text), chunks);
      else slots.emit('text', { content: text }, chunks);
    }
  }

  function emitText(text: string, chunks: ChatChunk[]): void {
    if (splitter === undefined) slots.emit('text', { content: text }, chunks);
    else emitRuns(splitter.push(text), chunks);
  }

  function emitCall({ ordinal, opens, signature, arguments: piece }: CallStep, chunks: ChatChunk[]): void {
    if (signature !== undefined) emitReasoning(reasoning.readSignature(signature.data, signature.id), chunks);
    if (opens === undefined) {
      if (piece === '') return;
      const delta: Delta = { tool_calls: [{ index: ordinal, function: { arguments: piece } }] };
      chunks.push({ delta, ext: { slot: { n: callSlots[ordinal]! } } });
      return;
    }
    const call = { name: opens.name, arguments: piece };
    const ext = opens.rest === undefined ? {} : { ext: { wire: 'openai-chat', rest: opens.rest } as const };
    const delta: Delta = { tool_calls: [{ index: ordinal, id: opens.id, type: 'function', function: call }] };
    // The deltas of calls may interleave, so calls stay open to the end.
    callSlots[ordinal] = slots.openBeside({ kind: 'call', ...ext }, delta, chunks);
  }

  function takeContent(content: WireMessage['content'], chunks: ChatChunk[]): void {
    if (typeof content === 'string') {
      if (content !== '') emitText(content, chunks);
      return;
    }
    if (!Array.isArray(content)) return;
    for (const part of content) {
      if (!isObject(part)) continue;
      const thought = thoughtOf(part as WirePart);
      const text = textOf(part['text']);
      if (thought !== undefined) emitReasoning(reasoning.readText(thought), chunks);
      else if (text !== undefined) emitText(text, chunks);
      else if (part['type'] === 'image_url') slots.emit('image', { images: imagesOf([part]) }, chunks);
    }
  }

  function takeCalls(message: WireMessage, is_whole: boolean, chunks: ChatChunk[]): void {
    const { tool_calls, function_call } = message;
    calls ??= createCallReader(generation_id, known.call_ids, (name) => known.tool_names[name] ?? name);
    if (Array.isArray(tool_calls) && tool_calls.length > 0) {
      for (const step of calls.read(tool_calls, is_whole)) emitCall(step, chunks);
    } else if (isObject(function_call)) {
      for (const step of calls.read([{ index: 0, function: function_call }], is_whole)) emitCall(step, chunks);
    }
  }

  return {
    hasProduced: slots.hasOpened,
    hasCalls: () => calls !== undefined && calls.count() > 0,
    take(message, is_whole, chunks) {
      emitReasoning(reasoning.read(message, is_whole), chunks);
      if (Array.isArray(message.executed_tools)) {
        tools ??= createExecutedTools(slots);
        tools.take(message.executed_tools, chunks);
      }
      if (message.content) takeContent(message.content, chunks);
      const refusal = textOf(message.refusal);
      if (refusal !== undefined) slots.emit('refusal', { refusal }, chunks);
      if (message.images) {
        const images = imagesOf(message.images);
        if (images.length > 0) slots.emit('image', { images }, chunks);
      }
      const audio = isObject(message.audio) ? audioOf(message.audio) : undefined;
      if (audio !== undefined) slots.emit('audio', { audio }, chunks);
      if (message.annotations) {
        const annotations = annotationsOf(message.annotations);
        if (annotations.length > 0) chunks.push({ delta: { annotations } });
      }
      if (message.tool_calls || message.function_call) takeCalls(message, is_whole, chunks);
      const signature = textOf(message.extra_content?.google?.thought_signature);
      if (signature !== undefined) emitReasoning(reasoning.readSignature(signature, undefined), chunks);
    },
    end(chunks) {
      if (splitter !== undefined) emitRuns(splitter.end(), chunks);
      emitReasoning(reasoning.end(), chunks);
      if (calls !== undefined) for (const step of calls.end()) emitCall(step, chunks);
      slots.close(chunks);
      for (const n of callSlots) slots.closeBeside(n, undefined, chunks);
      tools?.end(chunks);
    },
  };
}

/** Groq's compound systems tell a run twice: when it begins, and with its output. The last telling is the whole of it. */
function createExecutedTools(slots: SlotWriter) {
  const runs = new Map<number, { n: number; native: Native }>();
  return {
    take(entries: readonly (JsonObject | null)[], chunks: ChatChunk[]): void {
      for (const entry of entries) {
        if (!isObject(entry)) continue;
        const index = typeof entry['index'] === 'number' ? entry['index'] : runs.size;
        const block = { type: 'executed_tool', executed_tool: entry };
        const native: Native = { type: 'native', wire: 'openai-chat', block };
        const begun = runs.get(index);
        if (begun === undefined) {
          runs.set(index, { n: slots.openBeside({ kind: 'native', native }, {}, chunks), native });
        } else {
          begun.native = native;
          chunks.push({ delta: {}, ext: { slot: { n: begun.n, raw: entry } } });
        }
        const found = entry['search_results'];
        const annotations = citationsOf(isObject(found) ? found['results'] : undefined);
        if (annotations.length > 0) chunks.push({ delta: { annotations } });
      }
    },
    end(chunks: ChatChunk[]): void {
      for (const { n, native } of runs.values()) slots.closeBeside(n, native, chunks);
    },
  };
}

/** https://docs.mistral.ai/capabilities/reasoning: a part of text pieces. */
function thoughtOf(part: WirePart): string | undefined {
  if (part.type !== 'thinking') return undefined;
  const { thinking } = part;
  if (!Array.isArray(thinking)) return textOf(thinking) ?? '';
  return thinking.map((piece) => textOf(piece?.text) ?? '').join('');
}
