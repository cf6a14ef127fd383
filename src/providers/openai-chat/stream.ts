import { limits } from '../../limits.ts';
import type {
  Annotation,
  ChatChunk,
  Delta,
  OutputAudio,
  OutputImage,
  ReasoningDetail,
  ResponseExt,
  Slot,
  SlotEvent,
} from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { type AttemptState, type StreamDecoder, UpstreamError } from '../dialect.ts';
import { errorInside } from './errors.ts';
import { finishReason } from './finish.ts';
import { createReasoningReader } from './reasoning.ts';
import { readState } from './state.ts';
import { createThinkSplitter } from './think-tags.ts';
import { type CallStep, createCallReader } from './tool-calls.ts';
import { isZeroUsage, readUsage } from './usage.ts';
import {
  isObject,
  textOf,
  type WireAnswer,
  type WireChoice,
  type WireMessage,
  type WirePart,
  type WireUsage,
} from './wire.ts';

const WIRE = 'openai-chat';

/** Reads the events of one stream. The finish comes with `[DONE]` or the end of the bytes, usage in one last chunk. */
export function createStreamDecoder(state: AttemptState): StreamDecoder {
  const answer = createAnswerReader(state);
  let isDone = false;
  let failure: UpstreamError | undefined;

  return {
    push({ data, event }) {
      if (failure !== undefined) throw failure;
      const chunks: ChatChunk[] = [];
      if (data === '') return chunks;
      if (data.startsWith('[DONE]')) {
        if (!answer.isStarted()) throw notThisWire(data);
        if (!isDone) answer.finish(chunks);
        isDone = true;
        return chunks;
      }
      const value = parse(data);
      const fault = isPlainAnswer(value) && event !== 'error' ? undefined : errorInside(value, event === 'error');
      if (fault !== undefined) {
        // What the upstream has billed is worth knowing: usage beside the error goes out first.
        if (!isObject(value) || !answer.takeUsage(value as WireAnswer)) throw fault;
        failure = fault;
        answer.emitUsage(chunks);
        return chunks;
      }
      if (!isObject(value)) throw notThisWire(data);
      // After [DONE] only usage is still read: some upstreams send it there.
      if (isDone) answer.takeUsage(value as WireAnswer);
      else answer.take(value as WireAnswer, false, chunks);
      return chunks;
    },
    end() {
      if (failure !== undefined) throw failure;
      const chunks: ChatChunk[] = [];
      if (!isDone) {
        if (!answer.isComplete()) {
          throw new UpstreamError('unavailable', 'The upstream ended its stream before the answer was complete.');
        }
        answer.finish(chunks);
      }
      answer.emitUsage(chunks);
      return chunks;
    },
  };
}

/** The chunks that a whole answer would have been streamed as. */
export function readWholeAnswer(body: JsonValue, state: AttemptState): ChatChunk[] {
  const fault = errorInside(body);
  if (fault !== undefined) throw fault;
  if (!isObject(body) || !Array.isArray(body['choices']) || body['choices'].length === 0) {
    throw notThisWire(JSON.stringify(body) ?? '');
  }
  const chunks: ChatChunk[] = [];
  const answer = createAnswerReader(state);
  answer.take(body as WireAnswer, true, chunks);
  answer.finish(chunks);
  answer.emitUsage(chunks);
  return chunks;
}

/** The common case, told without looking for the shapes of errors. */
function isPlainAnswer(value: unknown): boolean {
  return isObject(value) && value['choices'] !== undefined && value['error'] == null && value['object'] !== 'error';
}

function parse(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch (cause) {
    throw notThisWire(data, cause);
  }
}

function notThisWire(data: string, cause?: unknown): UpstreamError {
  return new UpstreamError('invalid_response', 'The upstream sent what is not a chat completion.', {
    raw: data.slice(0, limits.upstream_raw_chars_max),
    cause,
  });
}

interface AnswerReader {
  take(answer: WireAnswer, is_whole: boolean, chunks: ChatChunk[]): void;
  /** True when the object told usage. */
  takeUsage(answer: WireAnswer): boolean;
  isStarted(): boolean;
  /** Whether the upstream said that its answer is over. */
  isComplete(): boolean;
  finish(chunks: ChatChunk[]): void;
  emitUsage(chunks: ChatChunk[]): void;
}

/** The one reader of this wire's answers, streamed or whole: a whole message is one large delta. */
function createAnswerReader(state: AttemptState): AnswerReader {
  const known = readState(state);
  const calls = createCallReader(state.generation_id, known.call_ids, (name) => known.tool_names[name] ?? name);
  const reasoning = createReasoningReader(known.think_in_reasoning);
  const splitter = known.think_tags ? createThinkSplitter() : undefined;
  const callSlots: number[] = [];
  const toolSlots = new Map<number, { n: number; block: JsonObject }>();
  const rest: JsonObject = {};
  let isStarted = false;
  let requestId: string | undefined;
  let isIdTold = false;
  let serviceTier: string | undefined;
  let slotsOpened = 0;
  let openSlot: { kind: Slot['kind']; n: number } | undefined;
  let hasProduced = false;
  let native: string | undefined;
  let stopSequence: string | undefined;
  let hasLastUsage = false;
  let usage: WireUsage | undefined;
  let sources: Annotation[] | undefined;

  function closeSlot(chunks: ChatChunk[]): void {
    if (openSlot === undefined) return;
    chunks.push({ delta: {}, ext: { slot: { n: openSlot.n, close: {} } } });
    if (openSlot.kind === 'reasoning') reasoning.closeBlock();
    openSlot = undefined;
  }

  /** The slot event of a delta of this kind: a kind that is open goes on, another one closes it. */
  function slotOf(kind: Slot['kind'], chunks: ChatChunk[]): SlotEvent {
    if (openSlot?.kind === kind) return { n: openSlot.n };
    closeSlot(chunks);
    openSlot = { kind, n: slotsOpened };
    slotsOpened += 1;
    return { n: openSlot.n, open: { kind } };
  }

  function emit(kind: Slot['kind'], delta: Delta, chunks: ChatChunk[]): void {
    hasProduced = true;
    const slot = slotOf(kind, chunks);
    chunks.push({ delta, ext: { slot } });
  }

  function emitReasoning(details: ReasoningDetail[], chunks: ChatChunk[]): void {
    for (const detail of details) {
      const text =
        detail.type === 'reasoning.text' ? detail.text : detail.type === 'reasoning.summary' ? detail.summary : '';
      const delta: Delta = { reasoning_details: [detail] };
      if (text) delta.reasoning = text;
      emit('reasoning', delta, chunks);
    }
  }

  function emitText(text: string, chunks: ChatChunk[]): void {
    if (splitter === undefined) {
      emit('text', { content: text }, chunks);
      return;
    }
    for (const run of splitter.push(text)) emitRun(run.is_reasoning, run.text, chunks);
  }

  function emitRun(is_reasoning: boolean, text: string, chunks: ChatChunk[]): void {
    if (is_reasoning) emitReasoning(reasoning.readText(text), chunks);
    else emit('text', { content: text }, chunks);
  }

  function emitCall(step: CallStep, chunks: ChatChunk[]): void {
    hasProduced = true;
    const { ordinal, opens, signature } = step;
    if (signature !== undefined) emitReasoning(reasoning.readSignature(signature.data, signature.id), chunks);
    if (opens === undefined) {
      if (step.arguments === '') return;
      const delta: Delta = { tool_calls: [{ index: ordinal, function: { arguments: step.arguments } }] };
      chunks.push({ delta, ext: { slot: { n: callSlots[ordinal]! } } });
      return;
    }
    // Calls may interleave, so they stay open to the end; whatever else is open ends here.
    closeSlot(chunks);
    const n = slotsOpened;
    slotsOpened += 1;
    callSlots[ordinal] = n;
    const call = { name: opens.name, arguments: step.arguments };
    const ext = opens.rest === undefined ? {} : { ext: { wire: WIRE, rest: opens.rest } as const };
    chunks.push({
      delta: { tool_calls: [{ index: ordinal, id: opens.id, type: 'function', function: call }] },
      ext: { slot: { n, open: { kind: 'call', ...ext } } },
    });
  }

  function emitCalls(message: WireMessage, is_whole: boolean, chunks: ChatChunk[]): void {
    const { tool_calls, function_call } = message;
    if (Array.isArray(tool_calls) && tool_calls.length > 0) {
      for (const step of calls.read(tool_calls, is_whole)) emitCall(step, chunks);
    } else if (isObject(function_call)) {
      for (const step of calls.read([{ index: 0, function: function_call }], is_whole)) emitCall(step, chunks);
    }
  }

  /** Groq tells a run twice: when it begins, and with its output. The last telling is the whole of it. */
  function takeExecutedTools(entries: readonly (JsonObject | null)[], chunks: ChatChunk[]): void {
    for (const entry of entries) {
      if (!isObject(entry)) continue;
      hasProduced = true;
      const index = typeof entry['index'] === 'number' ? entry['index'] : toolSlots.size;
      const native = {
        type: 'native' as const,
        wire: WIRE,
        block: { type: 'executed_tool', executed_tool: entry },
      } as const;
      const begun = toolSlots.get(index);
      if (begun === undefined) {
        closeSlot(chunks);
        toolSlots.set(index, { n: slotsOpened, block: native.block });
        chunks.push({ delta: {}, ext: { slot: { n: slotsOpened, open: { kind: 'native', native } } } });
        slotsOpened += 1;
      } else {
        begun.block = native.block;
        chunks.push({ delta: {}, ext: { slot: { n: begun.n, raw: entry } } });
      }
      const results = isObject(entry['search_results']) ? entry['search_results']['results'] : undefined;
      const annotations = citationsOf(results);
      if (annotations.length > 0) chunks.push({ delta: { annotations } });
    }
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
      if (thought !== undefined) emitReasoning(reasoning.readText(thought), chunks);
      else if (textOf(part['text']) !== undefined) emitText(part['text'] as string, chunks);
      else if (part['type'] === 'image_url') emit('image', { images: imagesOf([part]) }, chunks);
    }
  }

  function takeMessage(message: WireMessage, is_whole: boolean, chunks: ChatChunk[]): void {
    emitReasoning(reasoning.read(message, is_whole), chunks);
    if (Array.isArray(message.executed_tools)) takeExecutedTools(message.executed_tools, chunks);
    takeContent(message.content, chunks);
    const refusal = textOf(message.refusal);
    if (refusal !== undefined) emit('refusal', { refusal }, chunks);
    const images = imagesOf(message.images);
    if (images.length > 0) emit('image', { images }, chunks);
    const audio = isObject(message.audio) ? audioOf(message.audio) : undefined;
    if (audio !== undefined) emit('audio', { audio }, chunks);
    const annotations = annotationsOf(message.annotations);
    if (annotations.length > 0) chunks.push({ delta: { annotations } });
    if (message.tool_calls != null || message.function_call != null) emitCalls(message, is_whole, chunks);
    const signature = textOf(message.extra_content?.google?.thought_signature);
    if (signature !== undefined) emitReasoning(reasoning.readSignature(signature, undefined), chunks);
  }

  function takeChoice(choice: WireChoice, is_whole: boolean, chunks: ChatChunk[]): void {
    // In a stream, a message beside or after deltas repeats them (Perplexity).
    const message = choice.delta ?? (hasProduced ? undefined : choice.message);
    if (isObject(message)) takeMessage(message as WireMessage, is_whole || choice.delta == null, chunks);
    if (choice.logprobs != null && hasMembers(choice.logprobs)) {
      const last = chunks.at(-1);
      // The probabilities belong to the text they come with.
      if (last?.delta.content !== undefined || last?.delta.refusal !== undefined) last.logprobs = choice.logprobs;
      else chunks.push({ delta: {}, logprobs: choice.logprobs });
    }
    native = textOf(choice.finish_reason) ?? native;
    stopSequence = textOf(choice.stop_reason) ?? textOf(choice.matched_stop) ?? stopSequence;
    if (choice.content_filter_results != null) rest['content_filter_results'] = choice.content_filter_results;
  }

  function start(answer: WireAnswer, chunks: ChatChunk[]): void {
    const id = textOf(answer.id);
    // Groq's compound systems end with an id of "stub".
    if (requestId === undefined && id !== undefined && id !== 'stub') requestId = id;
    const tier = tierOf(answer.service_tier);
    if (isStarted) {
      if (tier !== undefined && tier !== serviceTier) chunks.push({ delta: {}, service_tier: tier });
      serviceTier = tier ?? serviceTier;
      return;
    }
    isStarted = true;
    serviceTier = tier;
    isIdTold = requestId !== undefined;
    const response: Partial<ResponseExt> = { wire: WIRE, rest: {} };
    if (requestId !== undefined) response.requestId = requestId;
    const fingerprint = textOf(answer.system_fingerprint);
    chunks.push({
      delta: { role: 'assistant' },
      ...(fingerprint === undefined ? {} : { system_fingerprint: fingerprint }),
      ...(tier === undefined ? {} : { service_tier: tier }),
      ext: { response },
    });
  }

  function takeUsage(answer: WireAnswer): boolean {
    const told = isObject(answer.usage) ? answer.usage : answer.x_groq?.usage;
    if (!isObject(told) || (usage !== undefined && isZeroUsage(told))) return false;
    usage = told;
    return true;
  }

  return {
    take(answer, is_whole, chunks) {
      const choices = Array.isArray(answer.choices) ? answer.choices : [];
      start(answer, chunks);
      const produced = chunks.length;
      for (const choice of choices) {
        if (!isObject(choice) || (typeof choice['index'] === 'number' && choice['index'] > 0)) continue;
        const fault = choice['error'] == null ? undefined : errorInside({ error: choice['error'] });
        if (fault !== undefined) throw fault;
        takeChoice(choice as WireChoice, is_whole, chunks);
      }
      const toldUsage = takeUsage(answer);
      // Where usage comes on every chunk, only one that says nothing else is the last.
      if (chunks.length > produced) hasLastUsage = false;
      else if (toldUsage && (hasProduced || choices.length === 0)) hasLastUsage = true;
      if (answer.citations != null || answer.search_results != null) {
        sources = annotationsOfSources(answer.search_results, answer.citations);
      }
      for (const name of ['moderation', 'prompt_filter_results', 'usage_breakdown'] as const) {
        const value = (answer as JsonObject)[name];
        if (value != null) rest[name] = value;
      }
    },
    takeUsage,
    isStarted: () => isStarted,
    isComplete: () => native !== undefined || hasLastUsage,
    finish(chunks) {
      if (!isStarted) start({}, chunks);
      if (splitter !== undefined) for (const run of splitter.end()) emitRun(run.is_reasoning, run.text, chunks);
      emitReasoning(reasoning.end(), chunks);
      for (const step of calls.end()) emitCall(step, chunks);
      closeSlot(chunks);
      for (const n of callSlots) chunks.push({ delta: {}, ext: { slot: { n, close: {} } } });
      for (const { n, block } of toolSlots.values()) {
        chunks.push({ delta: {}, ext: { slot: { n, close: { native: { type: 'native', wire: WIRE, block } } } } });
      }
      if (sources !== undefined && sources.length > 0) chunks.push({ delta: { annotations: sources } });
      const reason = finishReason(native, { has_calls: calls.count > 0, is_empty: !hasProduced });
      chunks.push({ delta: {}, finish_reason: reason, native_finish_reason: native ?? null });
    },
    emitUsage(chunks) {
      const response: Partial<ResponseExt> = { wire: WIRE, rest };
      const classes = usage === undefined ? undefined : readUsage(usage, known.cachedTokens());
      if (usage !== undefined) rest['usage'] = usage;
      if (classes !== undefined) response.usage = classes;
      if (stopSequence !== undefined) response.stopSequence = stopSequence;
      if (!isIdTold && requestId !== undefined) response.requestId = requestId;
      chunks.push({ delta: {}, ext: { response } });
    },
  };
}

function thoughtOf(part: WirePart): string | undefined {
  if (part.type !== 'thinking') return undefined;
  const { thinking } = part;
  if (!Array.isArray(thinking)) return textOf(thinking) ?? '';
  return thinking.map((piece) => textOf(piece?.text) ?? '').join('');
}

function imagesOf(value: unknown): OutputImage[] {
  if (!Array.isArray(value)) return [];
  const images: OutputImage[] = [];
  for (const entry of value) {
    const image = isObject(entry) ? entry['image_url'] : undefined;
    const url = textOf(isObject(image) ? image['url'] : image);
    if (url !== undefined) images.push({ type: 'image_url', image_url: { url } });
  }
  return images;
}

function audioOf(value: JsonObject): OutputAudio | undefined {
  const audio: OutputAudio = {};
  const id = textOf(value['id']);
  const data = textOf(value['data']);
  const transcript = textOf(value['transcript']);
  if (id !== undefined) audio.id = id;
  if (data !== undefined) audio.data = data;
  if (transcript !== undefined) audio.transcript = transcript;
  if (typeof value['expires_at'] === 'number' && value['expires_at'] > 0) audio.expires_at = value['expires_at'];
  return Object.keys(audio).length === 0 ? undefined : audio;
}

function annotationsOf(value: unknown): Annotation[] {
  if (!Array.isArray(value)) return [];
  const annotations: Annotation[] = [];
  for (const entry of value) {
    if (!isObject(entry)) continue;
    const { type, url_citation: citation } = entry;
    if (type === 'file') annotations.push({ ...entry, type });
    if (type !== 'url_citation' || !isObject(citation)) continue;
    const url = textOf(citation['url']);
    if (url === undefined) continue;
    annotations.push(
      citationOf(url, citation, {
        start_index: offsetOf(citation['start_index']),
        end_index: offsetOf(citation['end_index']),
      }),
    );
  }
  return annotations;
}

/** Sources that the upstream names without saying where in the text they belong. */
function citationsOf(results: unknown): Annotation[] {
  if (!Array.isArray(results)) return [];
  const annotations: Annotation[] = [];
  for (const result of results) {
    const url = textOf(isObject(result) ? result['url'] : result);
    if (url !== undefined)
      annotations.push(citationOf(url, isObject(result) ? result : {}, { start_index: 0, end_index: 0 }));
  }
  return annotations;
}

function annotationsOfSources(results: unknown, urls: unknown): Annotation[] {
  const annotations = citationsOf(results);
  return annotations.length > 0 ? annotations : citationsOf(urls);
}

function citationOf(url: string, told: JsonObject, place: { start_index: number; end_index: number }): Annotation {
  const title = textOf(told['title']);
  const content = textOf(told['content']) ?? textOf(told['snippet']);
  return {
    type: 'url_citation',
    url_citation: {
      url,
      ...(title === undefined ? {} : { title }),
      ...(content === undefined ? {} : { content }),
      ...place,
    },
  };
}

function offsetOf(value: unknown): number {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 ? value : 0;
}

/** Groq's `on_demand` is what others call `default`. */
function tierOf(value: unknown): string | undefined {
  const tier = textOf(value);
  return tier === 'on_demand' ? 'default' : tier;
}

function hasMembers(logprobs: JsonValue): boolean {
  return isObject(logprobs) && Object.values(logprobs).some((member) => member !== null);
}
