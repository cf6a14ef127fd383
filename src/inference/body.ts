/** The body of one attempt's answer: its chunks, metered, cut when the money is used up, and in the form that the client gets. */
import { brokenRule } from '../errors.ts';
import type { Source } from '../http/sources.ts';
import type { Recorder } from '../ledger/recorder.ts';
import { limits } from '../limits.ts';
import { UpstreamError } from '../providers/dialect.ts';
import { accumulate } from '../schemas/accumulate.ts';
import { ends } from '../schemas/by-choice.ts';
import { chunksOf } from '../schemas/chunks.ts';
import type { ChatChunk, ChatCompletion } from '../schemas/inner.ts';
import { mayGoOn } from './attempt/attempts.ts';
import type { ChatAttempt } from './attempt/chat-attempts.ts';
import type { OpenAnswer } from './attempt/open-answer.ts';
import { abortStopsBilling, CallCancelled } from './attempt/upstream-call.ts';
import type { Clock } from './call.ts';
import type { StreamEvent } from './events.ts';
import type { Admission } from './money/admission.ts';
import type { Settlement, SettlementLog } from './money/settlement.ts';
import type { ReasoningStateRecorder } from './reasoning/states.ts';
import type { CallState } from './state.ts';
import type { CitationExtractor } from './tools/citation-extractor.ts';

/** The time between two entries about the progress of a stream. */
const JOURNAL_PROGRESS_MS = 2_000;

/** Changes what the client is shown of an answer. Most answers have none. */
export interface View {
  /** The chunks as the client gets them. Throws `UpstreamError` for an answer that cannot be shown. */
  show(chunks: ChatChunk[]): ChatChunk[];
  /** Chunks that are still held back when the attempt ends. */
  rest(): ChatChunk[];
  /** Chunks that the gateway makes: an end, or the runs of tools between two steps. */
  showOwn(chunks: ChatChunk[]): ChatChunk[];
  /** A whole answer as the client gets it. After the settlement: what is added is not part of the provider's answer. */
  whole(completion: ChatCompletion): ChatCompletion;
}

/** Follows the text of an answer that may be continued. */
export interface TextFollower {
  add(chunks: readonly ChatChunk[]): void;
}

/** The view of an answer of one step that is followed for a continuation, has reasoning state, or may cite sources. */
export class PlainView implements View {
  readonly #text: TextFollower | undefined;
  readonly #reasoning: ReasoningStateRecorder | undefined;
  readonly #citations: CitationExtractor | undefined;

  constructor(
    text: TextFollower | undefined,
    reasoning: ReasoningStateRecorder | undefined,
    citations: CitationExtractor | undefined,
  ) {
    this.#text = text;
    this.#reasoning = reasoning;
    this.#citations = citations;
  }

  show(chunks: ChatChunk[]): ChatChunk[] {
    this.#text?.add(chunks);
    const sealed = this.#reasoning?.add(chunks) ?? chunks;
    return this.#citations?.add(sealed) ?? sealed;
  }

  rest(): ChatChunk[] {
    return [];
  }

  showOwn(chunks: ChatChunk[]): ChatChunk[] {
    return this.#citations?.add(chunks) ?? chunks;
  }

  whole(completion: ChatCompletion): ChatCompletion {
    const sealed = this.#reasoning?.whole(completion) ?? completion;
    if (this.#citations === undefined) return sealed;
    return accumulate(this.#citations.add(chunksOf(sealed)), sealed.created);
  }
}

/** The parts of the engine that the later chunks use. */
export interface BodyParts {
  clock: Clock;
  log: SettlementLog;
  recorder: Recorder;
  settlement: Pick<Settlement, 'soFar'>;
  admission: Pick<Admission, 'cutReason'>;
}

/** The later chunks of an attempt, metered, one read at a time. One for every stream. */
export class LaterChunks implements Source<StreamEvent> {
  ended = false;
  readonly #state: CallState;
  readonly #attempt: ChatAttempt;
  readonly #answer: OpenAnswer;
  readonly #view: View | undefined;
  readonly #parts: BodyParts;
  #progressMs: number;
  /** Why the answer is cut. */
  #cutReason: string | undefined = undefined;
  #isCut = false;
  #failure: { error: unknown } | undefined = undefined;

  constructor(state: CallState, attempt: ChatAttempt, answer: OpenAnswer, view: View | undefined, parts: BodyParts) {
    this.#state = state;
    this.#attempt = attempt;
    this.#answer = answer;
    this.#view = view;
    this.#parts = parts;
    this.#progressMs = parts.clock.monotonicMs();
  }

  ready(): Promise<void> | undefined {
    if (this.#isCut) return this.#drain();
    try {
      const now = this.#parts.clock.monotonicMs();
      if (now - this.#progressMs >= JOURNAL_PROGRESS_MS) this.#recordProgress(now);
      if (this.#state.watch?.isWithheld === true) return this.#drain();
      const { grant, meter } = this.#attempt;
      if (grant !== undefined && !this.#answer.isWhole) {
        const { hold } = this.#state;
        const cutting = this.#parts.admission.cutReason({ hold, grant, meter });
        if (cutting instanceof Promise) return this.#extend(cutting);
        this.#cutReason = cutting;
        if (cutting !== undefined) return undefined;
      }
    } catch (error) {
      this.#failure = { error };
      return undefined;
    }
    return this.#answer.later.ready();
  }

  read(): StreamEvent | undefined {
    if (this.#failure !== undefined) throw this.#failure.error;
    if (this.ended) return undefined;
    if (this.#cutReason !== undefined) return { type: 'chunks', chunks: this.#cut(this.#cutReason) };
    const { later } = this.#answer;
    const chunks = later.read();
    if (chunks !== undefined) {
      const { meter, charge, call } = this.#attempt;
      // A charged attempt has its bill: no later chunk can be on it.
      if (charge !== undefined) throw brokenRule('no_chunk_after_settlement', { generation: call.generation_id });
      for (const chunk of chunks) meter.chunk(chunk);
      return { type: 'chunks', chunks: this.#view === undefined ? chunks : this.#view.show(chunks) };
    }
    if (!later.ended) return undefined;
    this.ended = true;
    const held = this.#view?.rest() ?? [];
    return held.length > 0 ? { type: 'chunks', chunks: held } : undefined;
  }

  #recordProgress(now: number): void {
    const { recorder, settlement } = this.#parts;
    this.#progressMs = now;
    const { usage, cost_nano } = settlement.soFar(this.#state, this.#attempt);
    recorder.progress(this.#attempt.call.generation_id, usage, cost_nano);
  }

  async #extend(cutting: Promise<string | undefined>): Promise<void> {
    try {
      this.#cutReason = await cutting;
      if (this.#cutReason === undefined) await this.#answer.later.ready();
    } catch (error) {
      this.#failure = { error };
    }
  }

  /** Ends the answer as if its output bound had been reached: all its choices that are open. */
  #cut(reason: string): ChatChunk[] {
    this.#isCut = true;
    const attempt = this.#attempt;
    const { meter, call, candidate } = attempt;
    const cut = ends(meter.open_choices, { delta: {}, finish_reason: 'length', native_finish_reason: null });
    for (const chunk of cut) meter.chunk(chunk);
    attempt.report = [...attempt.report, { kind: 'clamped', field: 'max_tokens', reason }];
    const facts = { generation: call.generation_id, endpoint: candidate.endpoint.id, tokens: meter.outputTokens() };
    this.#parts.log.warn({ ...facts, reason }, 'an answer was cut');
    return this.#view === undefined ? cut : [...this.#view.rest(), ...this.#view.showOwn(cut)];
  }

  /**
   * The client gets no more. If closing the connection ends the bill, closes it: chunks of a withheld answer that have arrived are
   * billed, those of a cut one are not, since its limit is reached. Otherwise reads on for a bounded time to learn the usage.
   */
  async #drain(): Promise<void> {
    const attempt = this.#attempt;
    const { call, meter, candidate } = attempt;
    const { later } = this.#answer;
    this.#cutReason = undefined;
    const isClosed = abortStopsBilling(candidate, call);
    const timer = setTimeout(() => this.#answer.close(), limits.drain_ms_max);
    attempt.mayGoOn = !isClosed;
    try {
      while (!later.ended) {
        const { isBuffered } = later;
        const coming = later.ready();
        if (isClosed && (this.#isCut || (coming !== undefined && !isBuffered))) break;
        if (coming !== undefined) await coming;
        for (const { finish_reason: _theirs, ...chunk } of later.read() ?? []) meter.chunk(chunk);
        if (meter.outputTokens() > limits.drain_tokens_max && !later.isBuffered) return;
      }
      attempt.mayGoOn = false;
    } catch (error) {
      if (error instanceof UpstreamError) attempt.mayGoOn = mayGoOn(error, candidate, call);
      else if (!(error instanceof CallCancelled)) this.#failure = { error };
    } finally {
      clearTimeout(timer);
      if (isClosed) this.#answer.close();
      this.ended = true;
    }
  }
}
