import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Media, UpstreamError } from '../../providers/dialect.ts';
import type { Upstream } from '../../providers/transport/upstream.ts';
import type { Candidate } from '../../routing/plan.ts';
import { choicesOf } from '../../schemas/by-choice.ts';
import { contentsOf } from '../../schemas/contents.ts';
import type { ChatRequest, TokenClasses } from '../../schemas/inner.ts';
import type { Call, Cancellation } from '../call.ts';
import type { Measure } from '../money/admission.ts';
import { feesOf, type Pay } from '../money/fees.ts';
import { AnswerMeter, type Meter } from '../money/meter.ts';
import type { ChatWork } from '../prepare/chat-work.ts';
import type { SpendBound } from '../prepare/fit-request.ts';
import { Fitting, type FittingOptions } from '../prepare/fitting.ts';
import { NO_MEDIA } from '../prepare/media.ts';
import type { Attempt, CallState } from '../state.ts';
import type { PreparedAttempt } from './attempt.ts';
import { type OpenAnswer, openAnswer } from './open-answer.ts';
import type { Work } from './work.ts';

/** An attempt of a chat call. */
export type ChatAttempt = Attempt<PreparedAttempt, Meter>;

/** Changes a request for one endpoint. */
type Adapt = (request: ChatRequest, candidate: Candidate) => ChatRequest;

/** Makes the work of chat attempts: one endpoint is asked for a whole answer, or for a stream. `call` has the request to send. */
export interface ChatAttempts {
  /** Looks at a call once, before its attempts. Throws `GatewayError` 400 for tools of the gateway's that cannot be used as requested. */
  fittingFor(state: CallState): Fitting;
  work(state: CallState, call: Call, adapt?: Adapt): Work<PreparedAttempt, OpenAnswer, Meter>;
}

export interface ChatAttemptsOptions extends FittingOptions {
  upstream: Upstream;
  first_token_ms_max: number;
  total_ms_max: number;
}

/** The parts that the attempts of all calls share. */
interface Parts {
  options: ChatAttemptsOptions;
  chat: ChatWork;
  measure: Measure<PreparedAttempt>;
}

/** The attempts of one step of a call. A class and not closures: there is one for every call. */
class ChatTries implements Work<PreparedAttempt, OpenAnswer, Meter> {
  readonly measure: Measure<PreparedAttempt>;
  readonly call: Call;
  readonly mayBreakOff: boolean;
  readonly #parts: Parts;
  readonly #state: CallState;
  readonly #fitting: Fitting;
  readonly #adapt: Adapt | undefined;
  /** The media of the attempt that is prepared last. */
  #media: Media = NO_MEDIA;
  #prepared = 0;

  constructor(state: CallState, call: Call, parts: Parts, adapt?: Adapt) {
    this.measure = parts.measure;
    this.call = call;
    this.mayBreakOff = call.request.stream === true;
    this.#parts = parts;
    this.#state = state;
    this.#fitting = state.fitting!;
    this.#adapt = adapt;
  }

  ready(candidate: Candidate, isBeside?: boolean): Promise<void> | undefined {
    const { request } = this.call;
    this.#media = NO_MEDIA;
    this.#prepared += 1;
    const waiting = this.#fitting.adapter?.ready?.(candidate, isBeside);
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
    const { adapter } = this.#fitting;
    const { request } = this.call;
    const needs = this.#parts.chat.needs(adapter?.fit(request, candidate).request ?? request, candidate);
    if (needs.length === 0) return undefined;
    return this.#fitting.gather(needs).then((media) => {
      // A hedge does not wait for it: it may come when another attempt is got ready.
      if (nth === this.#prepared) this.#media = media;
    });
  }

  prepare(candidate: Candidate, stripState: boolean, spend?: SpendBound): PreparedAttempt | Promise<PreparedAttempt> {
    const { adapter, tools } = this.#fitting;
    const adapted = this.#adapt?.(this.call.request, candidate) ?? this.call.request;
    const fitted = adapter?.fit(adapted, candidate);
    const request = fitted?.request ?? adapted;
    const encoding = { strip_state: stripState, spend, media: this.#media, report: fitted?.report };
    return this.#parts.chat.prepare(tools?.declare(request) ?? request, candidate, encoding);
  }

  async send(attempt: ChatAttempt, cancellation?: Cancellation): Promise<OpenAnswer> {
    const { prepared, candidate, call, number, step } = attempt;
    if (call.request.debug?.echo_upstream_body === true) {
      const served = { model: candidate.model.id, provider: candidate.provider.name };
      this.#state.bodies.push({ served, body: prepared.encoded.body });
    }
    attempt.meter = new AnswerMeter(choicesOf(prepared.request));
    const own = cancellation === undefined ? call : { ...call, cancellation };
    const { upstream, first_token_ms_max, total_ms_max } = this.#parts.options;
    const context = { upstream, call: own, attempt: number, step, first_token_ms_max, total_ms_max };
    try {
      return await openAnswer(prepared, context, attempt.meter);
    } catch (error) {
      // A failed attempt is billed for what it used, unless the provider itself calls it an error.
      const isRefused = error instanceof UpstreamError && error.status !== null && error.status >= 400;
      if (!isRefused) attempt.used = attempt.meter.usage(prepared.request);
      throw error;
    }
  }

  discard({ later, isWhole, close }: OpenAnswer, { meter, prepared }: ChatAttempt): TokenClasses | null {
    while (isWhole && !later.ended) for (const chunk of later.read() ?? []) meter.chunk(chunk);
    close();
    return meter.usage(prepared.request);
  }
}

export function createChatAttempts(
  options: ChatAttemptsOptions,
  chat: ChatWork,
  measure: Measure<PreparedAttempt>,
  pay: Pay,
): ChatAttempts {
  const parts: Parts = { options, chat, measure };

  return {
    fittingFor(state) {
      const { call, sources, plan } = state;
      state.fitting = new Fitting(call, { fees: feesOf(state, pay), sources, candidates: plan.attempts }, options);
      return state.fitting;
    },

    work: (state, call, adapt) => new ChatTries(state, call, parts, adapt),
  };
}
