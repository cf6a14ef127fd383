import { append } from '../../schemas/append.ts';
import type { Annotation, ChatChunk, ResponseExt, TokenClasses } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { outputTokens } from '../../schemas/usage.ts';
import type { AttemptState } from '../dialect.ts';
import { citationsOf } from './attachments.ts';
import { cachedTokensIn, type KnownState, readState } from './state.ts';
import { TurnWriter } from './turn.ts';
import { isZeroUsage, readUsage } from './usage.ts';
import { isObject, numberOf, textOf, type WireAnswer, type WireChoice, type WireUsage } from './wire.ts';

const NO_SOURCES: Annotation[] = [];

/** Decodes this wire's answers, streamed or whole. */
export class ChatAnswerDecoder {
  readonly #state: AttemptState;
  readonly #known: KnownState;
  readonly #generationId: string;
  readonly #first: TurnWriter;
  /** The other choices that have begun, by their index. */
  #others: Map<number, TurnWriter> | undefined = undefined;
  readonly #rest: JsonObject = {};
  isStarted = false;
  #requestId: string | undefined = undefined;
  #isIdEmitted = false;
  /** As the upstream wrote it in its last event, and as clients see it. */
  #wireTier: string | null | undefined = undefined;
  #serviceTier: string | undefined = undefined;
  #emittedTier: string | undefined = undefined;
  #usage: WireUsage | undefined = undefined;
  /** Zero for each class that was reported before the end: the final usage may omit classes. Undefined if none was. */
  #zeroClasses: TokenClasses | undefined = undefined;
  #sources = NO_SOURCES;

  constructor(state: AttemptState) {
    this.#state = state;
    this.#known = readState(state);
    this.#generationId = state.generation_id;
    this.#first = new TurnWriter(this.#known, state.generation_id);
  }

  /** Whether the upstream sent a finish reason for all choices. Usage is no sign: some send it during the answer. */
  isComplete(): boolean {
    if (this.#known.choices === 1) return this.#first.native !== undefined;
    const ended = [this.#first, ...(this.#others?.values() ?? [])].filter(({ native }) => native !== undefined);
    return ended.length === this.#known.choices;
  }

  /** Throws `UpstreamError` if a choice contains an error. */
  take(answer: WireAnswer, isWhole: boolean, chunks: ChatChunk[]): void {
    const bringsId = this.#requestId === undefined && answer.id != null;
    if (!this.isStarted || bringsId || answer.service_tier !== this.#wireTier) this.#start(answer, chunks);
    const choices = Array.isArray(answer.choices) ? answer.choices : [];
    // By index: there is an object for each turn of this loop otherwise.
    for (let at = 0; at < choices.length; at += 1) {
      const choice = choices[at];
      if (typeof choice !== 'object' || choice === null || Array.isArray(choice)) continue;
      const index = choice.index === 0 ? 0 : (numberOf(choice.index) ?? 0);
      if (index === 0) {
        this.#first.take(choice, isWhole, chunks);
        if (choice.content_filter_results != null) this.#rest['content_filter_results'] = choice.content_filter_results;
      } else if (Number.isInteger(index) && index < this.#known.choices) {
        this.#takeOther(index, choice, isWhole, chunks);
      }
    }
    // Usage reported before the end is billed if the stream breaks off.
    const hasUsage = (answer.usage != null || answer.x_groq != null) && this.takeUsage(answer);
    if (hasUsage && this.#first.native === undefined && this.hasOutputUsage()) {
      const usage = this.usage()!;
      const { counts: _, ...reported } = usage;
      this.#zeroClasses = Object.fromEntries(Object.keys(reported).map((name) => [name, 0]));
      chunks.push({ delta: {}, ext: { response: { wire: 'openai-chat', rest: {}, usage } } });
    }
    if (answer.search_results != null || answer.citations != null) {
      const results = citationsOf(answer.search_results);
      this.#sources =
        results.length > 0 ? results : this.#sources.length > 0 ? this.#sources : citationsOf(answer.citations);
    }
    // Stored unchanged for the record.
    if (answer.moderation != null) this.#rest['moderation'] = answer.moderation;
    if (answer.prompt_filter_results != null) this.#rest['prompt_filter_results'] = answer.prompt_filter_results;
    if (answer.usage_breakdown != null) this.#rest['usage_breakdown'] = answer.usage_breakdown;
  }

  /** Closes all blocks and emits the finish reasons. */
  finish(chunks: ChatChunk[]): void {
    if (this.#others !== undefined) {
      for (const [choice, reader] of this.#others) {
        const from = chunks.length;
        reader.finish(this.#sources, chunks);
        tag(chunks, from, choice);
      }
    }
    const last = this.#first.finish(this.#sources, chunks);
    if (this.#serviceTier !== this.#emittedTier) last.service_tier = this.#serviceTier ?? null;
  }

  /** The last chunk: usage and the remaining fields. */
  emitUsage(chunks: ChatChunk[]): void {
    const response: Partial<ResponseExt> = { wire: 'openai-chat', rest: this.#rest };
    const classes = this.usage();
    if (this.#usage !== undefined) this.#rest['usage'] = this.#usage;
    if (classes !== undefined) response.usage = classes;
    const { stopSequence } = this.#first;
    if (stopSequence !== undefined) response.stopSequence = stopSequence;
    if (!this.#isIdEmitted && this.#requestId !== undefined) response.requestId = this.#requestId;
    chunks.push({ delta: {}, ext: { response } });
  }

  #start(answer: WireAnswer, chunks: ChatChunk[]): void {
    // Groq's compound systems end with an id of "stub".
    if (this.#requestId === undefined && answer.id !== 'stub') this.#requestId = textOf(answer.id);
    this.#wireTier = answer.service_tier;
    if (answer.service_tier != null) this.#serviceTier = tierOf(answer.service_tier) ?? this.#serviceTier;
    if (this.isStarted) return;
    this.isStarted = true;
    this.#isIdEmitted = this.#requestId !== undefined;
    const response: Partial<ResponseExt> = { wire: 'openai-chat', rest: {} };
    if (this.#requestId !== undefined) response.requestId = this.#requestId;
    const first: ChatChunk = { delta: { role: 'assistant' }, ext: { response } };
    const fingerprint = textOf(answer.system_fingerprint);
    if (fingerprint !== undefined) first.system_fingerprint = fingerprint;
    if (this.#serviceTier !== undefined) first.service_tier = this.#serviceTier;
    this.#emittedTier = this.#serviceTier;
    chunks.push(first);
  }

  #takeOther(index: number, choice: WireChoice, isWhole: boolean, chunks: ChatChunk[]): void {
    this.#others ??= new Map();
    let reader = this.#others.get(index);
    const from = chunks.length;
    if (reader === undefined) {
      // Part of the seed of call ids, which must be unique in an answer.
      reader = new TurnWriter(this.#known, `${this.#generationId}#${index}`);
      this.#others.set(index, reader);
      chunks.push({ delta: { role: 'assistant' } });
    }
    const own: ChatChunk[] = [];
    reader.take(choice, isWhole, own);
    append(chunks, own);
    tag(chunks, from, index);
  }

  /** Whether the reported usage counts output, and not only the prompt. */
  hasOutputUsage(): boolean {
    const classes = this.usage();
    return classes !== undefined && outputTokens(classes) > 0;
  }

  /** The usage that was read. */
  usage(): TokenClasses | undefined {
    if (this.#usage === undefined) return undefined;
    const header = this.#known.cached_tokens_header;
    const classes = readUsage(this.#usage, header === undefined ? undefined : cachedTokensIn(this.#state, header));
    return classes && this.#zeroClasses ? { ...this.#zeroClasses, ...classes } : classes;
  }

  /** Reads usage. Returns whether the object had any. */
  takeUsage(answer: WireAnswer): boolean {
    const usage = isObject(answer.usage) ? answer.usage : answer.x_groq?.usage;
    if (!isObject(usage) || (this.#usage !== undefined && isZeroUsage(usage))) return false;
    this.#usage = usage;
    return true;
  }
}

/** Sets the choice of all chunks from an index on. */
function tag(chunks: ChatChunk[], from: number, choice: number): void {
  for (let at = from; at < chunks.length; at += 1) chunks[at]!.choice = choice;
}

/** Groq calls the default tier `on_demand`. */
function tierOf(value: unknown): string | undefined {
  const tier = textOf(value);
  return tier === 'on_demand' ? 'default' : tier;
}
