import { nextTurn } from '../../next-turn.ts';
import type { Media } from '../../providers/dialect.ts';
import type { MediaFetcher } from '../../providers/transport/fetch-media.ts';
import type { Upstream } from '../../providers/transport/upstream.ts';
import type { Candidate } from '../../routing/plan.ts';
import { choicesOf } from '../../schemas/by-choice.ts';
import { contentsOf } from '../../schemas/contents.ts';
import type { ChatRequest, TokenClasses } from '../../schemas/inner.ts';
import type { Call, Cancellation } from '../call.ts';
import type { Measure } from '../money/admission.ts';
import { feesOf, type Pay } from '../money/fees.ts';
import { AnswerMeter, type Meter } from '../money/meter.ts';
import { type Adapter, type CallAdapter, combineAdapters, subjectsOf } from '../prepare/adapters.ts';
import { type CallMedia, createCallMedia, mediaNeeds, NO_MEDIA } from '../prepare/media.ts';
import type { Attempt, CallState } from '../state.ts';
import { type DeclaredTools, declareTools } from '../tools/declared-tools.ts';
import type { CallResources, CitedSource, Fees, ServerTools } from '../tools/server-tools.ts';
import { type OpenAnswer, openAnswer } from './open-answer.ts';
import { type PreparedAttempt, prepareAttempt, type SpendBound } from './prepare-attempt.ts';
import type { Work } from './work.ts';

/** An attempt of a chat call. */
export type ChatAttempt = Attempt<PreparedAttempt, Meter>;

/** Changes a request for one endpoint. */
type Adapt = (request: ChatRequest, candidate: Candidate) => ChatRequest;

/** The dependencies shared by the attempts of all calls. */
export interface ChatAttemptsParts {
  options: ChatAttemptsOptions;
  measure: Measure<PreparedAttempt>;
  pay: Pay;
}

export interface ChatAttemptsOptions {
  /** Fetches media that the upstream does not fetch itself. */
  media: MediaFetcher;
  /** In the order in which they are applied. */
  adapters: readonly Adapter[];
  /** The tools that the gateway runs. */
  server_tools: ServerTools;
  upstream: Upstream;
  first_token_ms_max: number;
  total_ms_max: number;
}

/**
 * The attempts of one call: fits its requests to the endpoints that are tried, and sends them, for a whole answer or for a stream. A
 * class and not closures: there is one for every call, shared by all its steps.
 */
export class ChatAttempts implements Work<PreparedAttempt, OpenAnswer, Meter>, CallResources {
  readonly measure: Measure<PreparedAttempt>;
  readonly mayBreakOff: boolean;
  needsNothing: boolean;
  /** The call with the request of the current step. */
  call: Call;
  /** The gateway's own tools; undefined if the call requests none. */
  readonly tools: DeclaredTools | undefined;
  readonly sources: CitedSource[];
  readonly candidates: readonly Candidate[];
  readonly #parts: ChatAttemptsParts;
  readonly #state: CallState;
  /** Undefined if the call needs no adapter. */
  readonly #adapter: CallAdapter | undefined;
  /** Changes the request of the current step for one endpoint. */
  #adapt: Adapt | undefined = undefined;
  #fetched: CallMedia | undefined = undefined;
  /** The media of the attempt that is prepared last. */
  #media: Media = NO_MEDIA;
  #prepared = 0;

  /** Throws `GatewayError` 400 if the call requests a tool of the gateway's in a way that is not supported. */
  constructor(state: CallState, parts: ChatAttemptsParts) {
    const { call } = state;
    const { tools, stream, ext } = call.request;
    const { adapters, server_tools } = parts.options;
    this.measure = parts.measure;
    this.mayBreakOff = stream === true;
    this.call = call;
    this.sources = state.sources;
    this.candidates = state.plan.attempts;
    this.#parts = parts;
    this.#state = state;
    const own = tools == null || tools.length === 0 ? undefined : server_tools(call);
    const subjects = subjectsOf(call.request);
    let acting: CallAdapter[] | undefined;
    for (let at = 0; at < adapters.length; at += 1) {
      const feature = adapters[at]!;
      const concerns = feature.of === undefined || subjects.includes(feature.of);
      const adapter = concerns ? feature.create(call, this) : undefined;
      if (adapter === undefined) continue;
      acting ??= [];
      acting.push(adapter);
    }
    this.#adapter = acting === undefined || acting.length === 1 ? acting?.[0] : combineAdapters(acting);
    this.tools = own && declareTools(call.request, own);
    this.needsNothing = acting === undefined && ext?.is_long !== true && !contentsOf(call.request).has_more;
  }

  get fees(): Fees {
    return feesOf(this.#state, this.#parts.pay);
  }

  /** Begins a step with a request of its own. */
  next(call: Call, adapt?: Adapt): this {
    this.call = call;
    this.needsNothing = false;
    this.#adapt = adapt;
    return this;
  }

  ready(candidate: Candidate, isBeside?: boolean): Promise<void> | undefined {
    const { request } = this.call;
    this.#media = NO_MEDIA;
    this.#prepared += 1;
    const waiting = this.#adapter?.ready?.(candidate, isBeside);
    const isLong = request.ext?.is_long === true && isBeside !== true;
    if (waiting !== undefined || isLong) return this.#readyLater(candidate, waiting, isLong);
    return contentsOf(request).has_more ? this.#gather(candidate, this.#prepared) : undefined;
  }

  async #readyLater(candidate: Candidate, waiting: Promise<void> | undefined, isLong: boolean): Promise<void> {
    const nth = this.#prepared;
    await waiting;
    await this.#gather(candidate, nth);
    // Encoding is the next walk over the request.
    if (isLong) await nextTurn();
  }

  #gather(candidate: Candidate, nth: number): Promise<void> | undefined {
    const { request } = this.call;
    const needs = mediaNeeds(this.#adapter?.fit(request, candidate).request ?? request, candidate);
    if (needs.length === 0) return undefined;
    this.#fetched ??= createCallMedia(this.#state.call, this.#parts.options.media);
    return this.#fetched.gather(needs).then((media) => {
      // A hedge does not wait for media: they may arrive while another attempt is prepared.
      if (nth === this.#prepared) this.#media = media;
    });
  }

  prepare(candidate: Candidate, stripState: boolean, spend?: SpendBound): PreparedAttempt | Promise<PreparedAttempt> {
    const adapted = this.#adapt?.(this.call.request, candidate) ?? this.call.request;
    const fitted = this.#adapter?.fit(adapted, candidate);
    const request = fitted?.request ?? adapted;
    const encoding = { strip_state: stripState, spend, media: this.#media, report: fitted?.report };
    return prepareAttempt(this.tools?.declare(request) ?? request, candidate, encoding);
  }

  send(attempt: ChatAttempt, cancellation?: Cancellation): Promise<OpenAnswer> {
    const { prepared, candidate, call, number, step } = attempt;
    if (call.request.debug?.echo_upstream_body === true) {
      const served = { model: candidate.model.id, provider: candidate.provider.name };
      this.#state.bodies.push({ served, body: prepared.encoded.body });
    }
    attempt.meter = new AnswerMeter(choicesOf(prepared.request));
    const own = cancellation === undefined ? call : { ...call, cancellation };
    const { upstream, first_token_ms_max, total_ms_max } = this.#parts.options;
    const context = { upstream, call: own, attempt: number, step, first_token_ms_max, total_ms_max };
    return openAnswer(prepared, context, attempt);
  }

  discard({ later, isWhole, close }: OpenAnswer, { meter, prepared }: ChatAttempt): TokenClasses | null {
    while (isWhole && !later.ended) for (const chunk of later.read() ?? []) meter.chunk(chunk);
    close();
    return meter.usage(prepared.request);
  }
}
