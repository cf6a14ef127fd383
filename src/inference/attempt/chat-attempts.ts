import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Media, UpstreamError } from '../../providers/dialect.ts';
import { requiresCall } from '../../providers/tool-template/dialect.ts';
import type { Upstream } from '../../providers/transport/upstream.ts';
import type { Candidate } from '../../routing/plan.ts';
import { choicesOf } from '../../schemas/by-choice.ts';
import type { ChatCompletion, ChatRequest, ChoiceError, TokenClasses } from '../../schemas/inner.ts';
import type { Call, Cancellation } from '../call.ts';
import type { Measure } from '../money/admission.ts';
import { createMeter, type Meter } from '../money/meter.ts';
import type { ChatWork } from '../prepare/chat-work.ts';
import type { SpendBound } from '../prepare/fit-request.ts';
import { Fitting, type FittingOptions } from '../prepare/fitting.ts';
import { NO_MEDIA } from '../prepare/media.ts';
import { type Attempt, type CallState, servedBy } from '../state.ts';
import { requireFewParts } from './answer-bounds.ts';
import { attemptStream, attemptWhole, noCall, type OpenStream, type PreparedAttempt } from './attempt.ts';
import type { AttemptContext } from './exchange.ts';
import type { Work } from './work.ts';

/** An attempt of a chat call. */
export type ChatAttempt = Attempt<PreparedAttempt, Meter>;

/** Changes a request for one endpoint. */
type Adapt = (request: ChatRequest, candidate: Candidate) => ChatRequest;

/** Makes the work of chat attempts: one endpoint is asked for a whole answer, or for a stream. `call` has the request to send. */
export interface ChatAttempts {
  /** Looks at a call once, before its attempts. Throws `GatewayError` 400 for tools of the gateway's that cannot be used as requested. */
  fittingFor(state: CallState): Fitting;
  whole(state: CallState, call: Call): Work<PreparedAttempt, ChatCompletion, Meter>;
  streamed(state: CallState, call: Call, adapt?: Adapt): Work<PreparedAttempt, OpenStream, Meter>;
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

function requireWhole(prepared: PreparedAttempt, completion: ChatCompletion, meter: Meter): ChatCompletion {
  meter.completion(completion);
  requireFewParts(completion);
  requireSubstance(meter, completion.choices[0].error);
  requireCall(prepared, meter);
  return completion;
}

function requireBegun(prepared: PreparedAttempt, stream: OpenStream, meter: Meter): OpenStream {
  try {
    requireSubstance(meter, stream.first.findLast(({ error }) => error !== undefined)?.error);
    requireCall(prepared, meter);
  } catch (error) {
    stream.close();
    throw error;
  }
  return stream;
}

/** What all attempts share, whichever call they are of. */
interface Parts {
  chat: ChatWork;
  measure: Measure<PreparedAttempt>;
  fittingFor(state: CallState): Fitting;
  contextOf(attempt: Attempt, cancellation?: Cancellation): AttemptContext;
}

/** How attempts of one step are got ready and encoded, however they are answered. A class and not closures: there is one for every call. */
abstract class ChatTries {
  readonly measure: Measure<PreparedAttempt>;
  readonly call: Call;
  protected readonly parts: Parts;
  readonly #state: CallState;
  readonly #request: ChatRequest;
  readonly #fitting: Fitting;
  readonly #adapt: Adapt | undefined;
  /** What the attempt under way needs. */
  #media: Media = NO_MEDIA;
  #asked = 0;

  constructor(state: CallState, call: Call, parts: Parts, adapt?: Adapt) {
    this.measure = parts.measure;
    this.call = call;
    this.parts = parts;
    this.#state = state;
    this.#request = call.request;
    this.#fitting = parts.fittingFor(state);
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

  /** Keeps what a failed attempt is billed for. What the provider itself calls an error is not billed. */
  protected failed(error: unknown, attempt: ChatAttempt): void {
    if (error instanceof UpstreamError && error.status !== null && error.status >= 400) return;
    attempt.used = attempt.meter.usage(attempt.prepared.request);
  }

  /** Begins to send: keeps the body for a client that debugs, and makes the meter. */
  protected begin(attempt: ChatAttempt): void {
    const { prepared, candidate } = attempt;
    if (this.#request.debug?.echo_upstream_body === true) {
      this.#state.bodies.push({ served: servedBy(candidate), body: prepared.encoded.body });
    }
    attempt.meter = createMeter(choicesOf(prepared.request));
  }
}

class WholeAttempts extends ChatTries implements Work<PreparedAttempt, ChatCompletion, Meter> {
  async send(attempt: ChatAttempt): Promise<ChatCompletion> {
    this.begin(attempt);
    const { prepared, meter } = attempt;
    try {
      const context = this.parts.contextOf(attempt);
      return await attemptWhole(prepared, context, (completion) => requireWhole(prepared, completion, meter));
    } catch (error) {
      this.failed(error, attempt);
      throw error;
    }
  }
}

class StreamedAttempts extends ChatTries implements Work<PreparedAttempt, OpenStream, Meter> {
  readonly mayBreakOff = true;

  holdsBack({ encoded }: PreparedAttempt): boolean {
    return requiresCall(encoded.state);
  }

  async send(attempt: ChatAttempt, cancellation?: Cancellation): Promise<OpenStream> {
    this.begin(attempt);
    const { prepared, meter } = attempt;
    try {
      const stream = await attemptStream(prepared, this.parts.contextOf(attempt, cancellation), meter);
      return requireBegun(prepared, stream, meter);
    } catch (error) {
      this.failed(error, attempt);
      throw error;
    }
  }

  discard(stream: OpenStream, { meter, prepared }: ChatAttempt): TokenClasses | null {
    stream.close();
    return meter.usage(prepared.request);
  }
}

export function createChatAttempts(
  options: ChatAttemptsOptions,
  chat: ChatWork,
  measure: Measure<PreparedAttempt>,
): ChatAttempts {
  const { upstream, first_token_ms_max, total_ms_max } = options;

  function fittingFor(state: CallState): Fitting {
    state.fitting ??= new Fitting(state.call, options);
    return state.fitting;
  }

  function contextOf({ call, number, step }: Attempt, cancellation?: Cancellation): AttemptContext {
    const own = cancellation === undefined ? call : { ...call, cancellation };
    return { upstream, call: own, attempt: number, step, first_token_ms_max, total_ms_max };
  }

  const parts: Parts = { chat, measure, fittingFor, contextOf };

  return {
    fittingFor,

    whole: (state, call) => new WholeAttempts(state, call, parts),

    streamed: (state, call, adapt) => new StreamedAttempts(state, call, parts, adapt),
  };
}
