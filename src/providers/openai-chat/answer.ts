import type { Annotation, ChatChunk, ResponseExt } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import type { AttemptState } from '../dialect.ts';
import { citationsOf } from './attachments.ts';
import { errorInside } from './errors.ts';
import { finishReason } from './finish.ts';
import { logprobsOf } from './logprobs.ts';
import { type KnownState, readState } from './state.ts';
import { createTurnWriter, type TurnWriter } from './turn.ts';
import { isZeroUsage, readUsage } from './usage.ts';
import {
  isObject,
  numberOf,
  textOf,
  type WireAnswer,
  type WireChoice,
  type WireMessage,
  type WireUsage,
} from './wire.ts';

/** The one reader of this wire's answers, streamed or whole. */
export interface AnswerReader {
  /** Throws `UpstreamError` where a choice holds an error. */
  take(answer: WireAnswer, is_whole: boolean, chunks: ChatChunk[]): void;
  /** True when the object told usage. */
  takeUsage(answer: WireAnswer): boolean;
  isStarted(): boolean;
  /** Whether the upstream said why its answer is over. Usage says no such thing: some tell it as they go. */
  isComplete(): boolean;
  /** Closes all blocks and says why the answer ended. */
  finish(chunks: ChatChunk[]): void;
  /** One last chunk: usage and remainder. */
  emitUsage(chunks: ChatChunk[]): void;
}

/** A class and not closures: every answer has one. */
class Reader implements AnswerReader {
  readonly #known: KnownState;
  readonly #turn: TurnWriter;
  readonly #rest: JsonObject = {};
  #isStarted = false;
  #requestId: string | undefined = undefined;
  #isIdTold = false;
  #serviceTier: string | undefined = undefined;
  #toldTier: string | undefined = undefined;
  #native: string | undefined = undefined;
  #stopSequence: string | undefined = undefined;
  #usage: WireUsage | undefined = undefined;
  #sources: Annotation[] | undefined = undefined;

  constructor(state: AttemptState) {
    this.#known = readState(state);
    this.#turn = createTurnWriter(this.#known, state.generation_id);
  }

  #start(answer: WireAnswer, chunks: ChatChunk[]): void {
    // Groq's compound systems end with an id of "stub".
    if (this.#requestId === undefined && answer.id !== 'stub') this.#requestId = textOf(answer.id);
    this.#serviceTier = tierOf(answer.service_tier) ?? this.#serviceTier;
    if (this.#isStarted) return;
    this.#isStarted = true;
    this.#isIdTold = this.#requestId !== undefined;
    const response: Partial<ResponseExt> = { wire: 'openai-chat', rest: {} };
    if (this.#requestId !== undefined) response.requestId = this.#requestId;
    const first: ChatChunk = { delta: { role: 'assistant' }, ext: { response } };
    const fingerprint = textOf(answer.system_fingerprint);
    if (fingerprint !== undefined) first.system_fingerprint = fingerprint;
    if (this.#serviceTier !== undefined) first.service_tier = this.#serviceTier;
    this.#toldTier = this.#serviceTier;
    chunks.push(first);
  }

  #takeChoice(choice: WireChoice, is_whole: boolean, chunks: ChatChunk[]): void {
    const fault = choice.error == null ? undefined : errorInside({ error: choice.error });
    if (fault !== undefined) throw fault;
    // In a stream, a message beside or after deltas repeats them (Perplexity).
    const message = choice.delta ?? (this.#turn.hasProduced() ? undefined : choice.message);
    if (isObject(message)) this.#turn.take(message as WireMessage, is_whole || choice.delta == null, chunks);
    const logprobs = choice.logprobs == null ? undefined : logprobsOf(choice.logprobs);
    if (logprobs !== undefined) {
      const last = chunks.at(-1);
      // The probabilities belong to the text they come with.
      if (last?.delta.content !== undefined || last?.delta.refusal !== undefined) last.logprobs = logprobs;
      else chunks.push({ delta: {}, logprobs });
    }
    this.#native = textOf(choice.finish_reason) ?? this.#native;
    this.#stopSequence = textOf(choice.stop_reason) ?? textOf(choice.matched_stop) ?? this.#stopSequence;
    if (choice.content_filter_results != null) this.#rest['content_filter_results'] = choice.content_filter_results;
  }

  take(answer: WireAnswer, is_whole: boolean, chunks: ChatChunk[]): void {
    this.#start(answer, chunks);
    if (Array.isArray(answer.choices)) {
      for (const choice of answer.choices) {
        const isOurs = isObject(choice) && !numberOf(choice['index']);
        if (isOurs) this.#takeChoice(choice as WireChoice, is_whole, chunks);
      }
    }
    this.takeUsage(answer);
    if (answer.search_results != null || answer.citations != null) {
      const found = citationsOf(answer.search_results);
      if (found.length > 0) this.#sources = found;
      else if (!this.#sources?.length) this.#sources = citationsOf(answer.citations);
    }
    // Kept for the record as they came.
    if (answer.moderation != null) this.#rest['moderation'] = answer.moderation;
    if (answer.prompt_filter_results != null) this.#rest['prompt_filter_results'] = answer.prompt_filter_results;
    if (answer.usage_breakdown != null) this.#rest['usage_breakdown'] = answer.usage_breakdown;
  }

  takeUsage(answer: WireAnswer): boolean {
    const told = isObject(answer.usage) ? answer.usage : answer.x_groq?.usage;
    if (!isObject(told) || (this.#usage !== undefined && isZeroUsage(told))) return false;
    this.#usage = told;
    return true;
  }

  isStarted(): boolean {
    return this.#isStarted;
  }

  isComplete(): boolean {
    return this.#native !== undefined;
  }

  finish(chunks: ChatChunk[]): void {
    const turn = this.#turn;
    turn.end(chunks);
    if (this.#sources?.length) chunks.push({ delta: { annotations: this.#sources } });
    const native = this.#native;
    const reason = finishReason(native, { has_calls: turn.hasCalls(), is_empty: !turn.hasProduced() });
    const last: ChatChunk = { delta: {}, finish_reason: reason, native_finish_reason: native ?? null };
    if (this.#serviceTier !== this.#toldTier) last.service_tier = this.#serviceTier ?? null;
    chunks.push(last);
  }

  emitUsage(chunks: ChatChunk[]): void {
    const response: Partial<ResponseExt> = { wire: 'openai-chat', rest: this.#rest };
    const usage = this.#usage;
    const classes = usage === undefined ? undefined : readUsage(usage, this.#known.cachedTokens());
    if (usage !== undefined) this.#rest['usage'] = usage;
    if (classes !== undefined) response.usage = classes;
    if (this.#stopSequence !== undefined) response.stopSequence = this.#stopSequence;
    if (!this.#isIdTold && this.#requestId !== undefined) response.requestId = this.#requestId;
    chunks.push({ delta: {}, ext: { response } });
  }
}

/** Makes the reader of one answer. */
export function createAnswerReader(state: AttemptState): AnswerReader {
  return new Reader(state);
}

/** Groq's `on_demand` is what others call `default`. */
function tierOf(value: unknown): string | undefined {
  const tier = textOf(value);
  return tier === 'on_demand' ? 'default' : tier;
}
