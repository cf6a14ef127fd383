import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Media, UpstreamError } from '../../providers/dialect.ts';
import { requiresCall } from '../../providers/tool-template/dialect.ts';
import type { Upstream } from '../../providers/transport/upstream.ts';
import type { Candidate } from '../../routing/plan.ts';
import { choicesOf } from '../../schemas/by-choice.ts';
import type { ChatCompletion, ChatRequest, ChoiceError, TokenClasses } from '../../schemas/inner.ts';
import type { Cancellation } from '../call.ts';
import type { CallState } from '../call-state.ts';
import type { Measure } from '../money/admission.ts';
import { createMeter, type Meter } from '../money/meter.ts';
import type { ChatWork } from '../prepare/chat-work.ts';
import type { SpendBound } from '../prepare/fit-request.ts';
import { Fitting, type FittingOptions } from '../prepare/fitting.ts';
import { NO_MEDIA } from '../prepare/media.ts';
import { servedBy } from '../stream-answer.ts';
import { requireFewParts } from './answer-bounds.ts';
import { attemptStream, attemptWhole, noCall, type OpenStream, type PreparedAttempt } from './attempt.ts';
import { attemptNumber, type Work } from './attempts.ts';
import type { AttemptContext } from './exchange.ts';

/** The beginning of a stream, or a whole answer, with what follows what it uses. */
export interface MeteredStream {
  stream: OpenStream;
  meter: Meter;
}
export interface MeteredCompletion {
  completion: ChatCompletion;
  meter: Meter;
}

/** The request as one endpoint must be told it. */
type Adapt = (request: ChatRequest, candidate: Candidate) => ChatRequest;

/** What the attempts of a chat call do: ask one endpoint for a whole answer, or for a stream. */
export interface ChatAttempts {
  /** Looks at a call once, before its attempts. Throws `GatewayError` 400 for what it asks of the gateway's tools and cannot be. */
  fittingFor(session: CallState): Fitting;
  whole(session: CallState): Work<PreparedAttempt, MeteredCompletion>;
  streamed(session: CallState, adapt?: Adapt): Work<PreparedAttempt, MeteredStream>;
}

export interface ChatAttemptsOptions extends FittingOptions {
  upstream: Upstream;
  first_token_ms_max: number;
  total_ms_max: number;
}

/**
 * An answer that ended in an error before it held anything, or holds nothing and does not say why, is a failure like any other.
 * `told` is why, in the provider's words.
 */
function requireSubstance(meter: Meter, told: ChoiceError | undefined): void {
  if (!meter.is_void) return;
  const is_error = meter.finish_reason === 'error' && meter.native_finish_reason !== null;
  const message = is_error
    ? (told?.message ?? 'The provider ended its answer with an error')
    : 'The provider ended its answer without saying anything';
  throw new UpstreamError('unavailable', message, { status: 200, native_code: meter.native_finish_reason });
}

/**
 * An answer that a call was to be in, for which the prompt can only ask, and that came to its end without one, is a failure. One that
 * was cut or filtered says so by its finish reason, as from a model with native tools.
 */
function requireCall({ encoded }: PreparedAttempt, meter: Meter): void {
  if (!requiresCall(encoded.state) || meter.finish_reason !== 'stop') return;
  throw noCall({ has_ended: true });
}

function meteredCompletion(prepared: PreparedAttempt, completion: ChatCompletion, meter: Meter): MeteredCompletion {
  meter.completion(completion);
  requireFewParts(completion);
  requireSubstance(meter, completion.choices[0].error);
  requireCall(prepared, meter);
  return { completion, meter };
}

function meteredStream(prepared: PreparedAttempt, stream: OpenStream, meter: Meter): MeteredStream {
  try {
    requireSubstance(meter, stream.first.findLast(({ error }) => error !== undefined)?.error);
    requireCall(prepared, meter);
  } catch (error) {
    stream.close();
    throw error;
  }
  return { stream, meter };
}

/** What all attempts share, whichever call they are of. */
interface Parts {
  chat: ChatWork;
  measure: Measure<PreparedAttempt>;
  fittingFor(session: CallState): Fitting;
  contextOf(session: CallState, cancellation?: Cancellation): AttemptContext;
}

/** How attempts of one step are got ready and encoded, however they are answered. A class and not closures: there is one for every call. */
abstract class ChatTries {
  readonly measure: Measure<PreparedAttempt>;
  protected readonly session: CallState;
  protected readonly parts: Parts;
  readonly #request: ChatRequest;
  readonly #fitting: Fitting;
  readonly #adapt: Adapt | undefined;
  /** What the attempt under way needs. */
  #media: Media = NO_MEDIA;
  #asked = 0;
  /** As `used` says. */
  #unshown: Map<Candidate, TokenClasses> | undefined = undefined;

  constructor(session: CallState, parts: Parts, adapt?: Adapt) {
    this.measure = parts.measure;
    this.session = session;
    this.parts = parts;
    this.#request = session.call.request;
    this.#fitting = parts.fittingFor(session);
    this.#adapt = adapt;
  }

  ready(candidate: Candidate, is_beside?: boolean): Promise<void> | undefined {
    this.#media = NO_MEDIA;
    this.#asked += 1;
    const nth = this.#asked;
    const waiting = this.#fitting.adapter?.ready?.(candidate, is_beside);
    const gathering =
      waiting === undefined ? this.#gather(candidate, nth) : waiting.then(() => this.#gather(candidate, nth));
    // Encoding is the next walk over the request.
    if (this.#request.ext?.is_long !== true || is_beside === true) return gathering;
    return gathering === undefined ? nextTurn() : gathering.then(() => nextTurn());
  }

  #gather(candidate: Candidate, nth: number): Promise<void> | undefined {
    const { adapter } = this.#fitting;
    const fitted = adapter === undefined ? this.#request : adapter.fit(this.#request, candidate).request;
    const needs = this.parts.chat.needs(fitted, candidate);
    if (needs.length === 0) return undefined;
    return this.#fitting.gather(needs).then((found) => {
      // A hedge does not wait for it: it may come when another attempt is got ready.
      if (nth === this.#asked) this.#media = found;
    });
  }

  prepare(candidate: Candidate, strip_state: boolean, spend?: SpendBound): PreparedAttempt | Promise<PreparedAttempt> {
    const { chat } = this.parts;
    const { adapter, tools } = this.#fitting;
    const encoding = { strip_state, spend, media: this.#media };
    const adapted = this.#adapt === undefined ? this.#request : this.#adapt(this.#request, candidate);
    const fitted = adapter?.fit(adapted, candidate);
    const request = fitted?.request ?? adapted;
    const prepared = chat.prepare(tools?.declare(request) ?? request, candidate, encoding);
    if (fitted === undefined || fitted.report.length === 0) return prepared;
    const finish = (one: PreparedAttempt) => ({ ...one, report: [...fitted.report, ...one.report] });
    return prepared instanceof Promise ? prepared.then(finish) : finish(prepared);
  }

  /** What the endpoint's last attempt told that it made, though it failed with nothing to show. */
  used(candidate: Candidate): TokenClasses | null {
    return this.#unshown?.get(candidate) ?? null;
  }

  /** Keeps what is billed of an attempt that failed. What the provider itself calls an error is not. */
  protected failed(error: unknown, { candidate, request }: PreparedAttempt, meter: Meter): void {
    if (error instanceof UpstreamError && error.status !== null && error.status >= 400) return;
    const used = meter.usage(request);
    if (used !== null) this.#unshown = (this.#unshown ?? new Map()).set(candidate, used);
  }

  /** What is sent is shown to a client that asks for it. */
  protected echo({ candidate, encoded }: PreparedAttempt): void {
    if (this.#request.debug?.echo_upstream_body !== true) return;
    this.session.bodies.push({ served: servedBy(candidate), body: encoded.body });
  }
}

class WholeAttempts extends ChatTries implements Work<PreparedAttempt, MeteredCompletion> {
  async send(prepared: PreparedAttempt): Promise<MeteredCompletion> {
    this.echo(prepared);
    const meter = createMeter(choicesOf(prepared.request));
    try {
      const context = this.parts.contextOf(this.session);
      return await attemptWhole(prepared, context, (completion) => meteredCompletion(prepared, completion, meter));
    } catch (error) {
      this.failed(error, prepared, meter);
      throw error;
    }
  }
}

class StreamedAttempts extends ChatTries implements Work<PreparedAttempt, MeteredStream> {
  readonly mayBreakOff = true;

  holdsBack({ encoded }: PreparedAttempt): boolean {
    return requiresCall(encoded.state);
  }

  async send(prepared: PreparedAttempt, cancellation?: Cancellation): Promise<MeteredStream> {
    this.echo(prepared);
    const meter = createMeter(choicesOf(prepared.request));
    try {
      const stream = await attemptStream(prepared, this.parts.contextOf(this.session, cancellation), meter);
      return meteredStream(prepared, stream, meter);
    } catch (error) {
      this.failed(error, prepared, meter);
      throw error;
    }
  }

  discard({ stream, meter }: MeteredStream, { request }: PreparedAttempt): TokenClasses | null {
    stream.close();
    return meter.usage(request);
  }
}

export function createChatAttempts(
  options: ChatAttemptsOptions,
  chat: ChatWork,
  measure: Measure<PreparedAttempt>,
): ChatAttempts {
  const { upstream, first_token_ms_max, total_ms_max } = options;

  function fittingFor(session: CallState): Fitting {
    session.fitting ??= new Fitting(session.call, options);
    return session.fitting;
  }

  function contextOf(session: CallState, cancellation?: Cancellation): AttemptContext {
    const call = cancellation === undefined ? session.call : { ...session.call, cancellation };
    return { upstream, call, attempt: attemptNumber(session), step: session.step, first_token_ms_max, total_ms_max };
  }

  const parts: Parts = { chat, measure, fittingFor, contextOf };

  return {
    fittingFor,

    whole: (session) => new WholeAttempts(session, parts),

    streamed: (session, adapt) => new StreamedAttempts(session, parts, adapt),
  };
}
