import type { Annotation, ChatChunk, ResponseExt, TokenClasses } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { outputTokens } from '../../schemas/usage.ts';
import type { AttemptState } from '../dialect.ts';
import { citationsOf } from './attachments.ts';
import { errorInside } from './errors.ts';
import { finishReason } from './finish.ts';
import { logprobsOf } from './logprobs.ts';
import { type KnownState, readState } from './state.ts';
import { TurnWriter } from './turn.ts';
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
export class AnswerReader {
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
  /** The classes that were told before the end, as none: a later count may leave out what it has no more. */
  #none: TokenClasses = {};
  #sources: Annotation[] = [];

  constructor(state: AttemptState) {
    this.#known = readState(state);
    this.#turn = new TurnWriter(this.#known, state.generation_id);
  }

  isStarted(): boolean {
    return this.#isStarted;
  }

  /** Whether the upstream said why its answer is over. Usage says no such thing: some tell it as they go. */
  isComplete(): boolean {
    return this.#native !== undefined;
  }

  /** Throws `UpstreamError` where a choice holds an error. */
  take(answer: WireAnswer, is_whole: boolean, chunks: ChatChunk[]): void {
    this.#start(answer, chunks);
    const choices = Array.isArray(answer.choices) ? answer.choices : [];
    for (const choice of choices) {
      const isOurs = isObject(choice) && !numberOf(choice['index']);
      if (isOurs) this.#takeChoice(choice as WireChoice, is_whole, chunks);
    }
    // Told before the end, it is what counts should the stream break off.
    if (this.takeUsage(answer) && this.#native === undefined && this.hasToldOutput()) {
      const usage = this.#classes()!;
      const { counts: _, ...told } = usage;
      this.#none = Object.fromEntries(Object.keys(told).map((name) => [name, 0]));
      chunks.push({ delta: {}, ext: { response: { wire: 'openai-chat', rest: {}, usage } } });
    }
    if (answer.search_results != null || answer.citations != null) {
      const found = citationsOf(answer.search_results);
      this.#sources =
        found.length > 0 ? found : this.#sources.length > 0 ? this.#sources : citationsOf(answer.citations);
    }
    // Kept for the record as they came.
    if (answer.moderation != null) this.#rest['moderation'] = answer.moderation;
    if (answer.prompt_filter_results != null) this.#rest['prompt_filter_results'] = answer.prompt_filter_results;
    if (answer.usage_breakdown != null) this.#rest['usage_breakdown'] = answer.usage_breakdown;
  }

  /** Closes all blocks and says why the answer ended. */
  finish(chunks: ChatChunk[]): void {
    this.#turn.end(chunks);
    if (this.#sources.length > 0) chunks.push({ delta: { annotations: this.#sources } });
    const reason = finishReason(this.#native, {
      has_calls: this.#turn.hasCalls(),
      is_empty: !this.#turn.hasProduced(),
    });
    const last: ChatChunk = { delta: {}, finish_reason: reason, native_finish_reason: this.#native ?? null };
    if (this.#serviceTier !== this.#toldTier) last.service_tier = this.#serviceTier ?? null;
    chunks.push(last);
  }

  /** One last chunk: usage and remainder. */
  emitUsage(chunks: ChatChunk[]): void {
    const response: Partial<ResponseExt> = { wire: 'openai-chat', rest: this.#rest };
    const classes = this.#classes();
    if (this.#usage !== undefined) this.#rest['usage'] = this.#usage;
    if (classes !== undefined) response.usage = classes;
    if (this.#stopSequence !== undefined) response.stopSequence = this.#stopSequence;
    if (!this.#isIdTold && this.#requestId !== undefined) response.requestId = this.#requestId;
    chunks.push({ delta: {}, ext: { response } });
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

  /** Whether usage was told that counts what came out, and not only what went in. */
  hasToldOutput(): boolean {
    const classes = this.#classes();
    return classes !== undefined && outputTokens(classes) > 0;
  }

  #classes(): TokenClasses | undefined {
    const classes = this.#usage === undefined ? undefined : readUsage(this.#usage, this.#known.cachedTokens());
    return classes && { ...this.#none, ...classes };
  }

  /** True when the object told usage. */
  takeUsage(answer: WireAnswer): boolean {
    const told = isObject(answer.usage) ? answer.usage : answer.x_groq?.usage;
    if (!isObject(told) || (this.#usage !== undefined && isZeroUsage(told))) return false;
    this.#usage = told;
    return true;
  }
}

/** Groq's `on_demand` is what others call `default`. */
function tierOf(value: unknown): string | undefined {
  const tier = textOf(value);
  return tier === 'on_demand' ? 'default' : tier;
}
