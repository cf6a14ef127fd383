import { setImmediate as nextTurn } from 'node:timers/promises';
import { brokenRule, GatewayError, internalError, shuttingDown } from '../errors.ts';
import { type Events, type Source, withSources } from '../http/sources.ts';
import type { Recorder } from '../ledger/recorder.ts';
import { limits } from '../limits.ts';
import { UpstreamError } from '../providers/dialect.ts';
import type { Candidate } from '../routing/plan.ts';
import { choicesOf } from '../schemas/by-choice.ts';
import type { ChatChunk, TokenClasses } from '../schemas/inner.ts';
import type { JsonObject } from '../schemas/json.ts';
import { outputTokens } from '../schemas/usage.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { OpenStream, PreparedAttempt } from './attempt/attempt.ts';
import { type Attempts, type Ended, mayGoOn, type Reached } from './attempt/attempts.ts';
import type { ChatAttempts, MeteredStream } from './attempt/chat-attempts.ts';
import {
  continuedRequest,
  continuesText,
  fitContinued,
  isContinuable,
  OverlapCut,
  ShownText,
} from './attempt/continuation.ts';
import { abortStopsBilling, CallCancelled, goneAs, outcomeOf, outcomeOfWhole } from './attempt/exchange.ts';
import { fallsOver } from './attempt/failure.ts';
import type { Call, Clock } from './call.ts';
import { type Answered, type CallState, isWithheld } from './call-state.ts';
import type { Admission } from './money/admission.ts';
import type { Meter } from './money/meter.ts';
import { cut, readOn } from './money/overrun.ts';
import type { AnswerUsage, Settlement, SettlementLog } from './money/settlement.ts';
import { type Planner, wireOf } from './plan/planner.ts';
import type { ReasoningStateRecorder, TurnStates } from './reasoning/states.ts';
import { type CitationExtractor, createCiter } from './tools/citation-extractor.ts';
import { afterStep, sealOf, type ToolAnswer, type ToolLoop } from './tools/tool-loop.ts';

/** Who answered, as the client may know it. */
export interface Served {
  model: string;
  provider: string;
}

/** The body that one attempt sent upstream, and whom it went to. */
export interface SentBody {
  served: Served;
  body: JsonObject;
}

/** What a stream is made of: one `open`, then `chunks`, then one `end`. Where another endpoint goes on with it, another `open` says so. */
export type StreamEvent =
  | { type: 'open'; served: Served; upstream_bodies: SentBody[] }
  | { type: 'chunks'; chunks: ChatChunk[] }
  | StreamEnd;

/** What the course of a stream says: events, and what is read for more of them. */
type Told = StreamEvent | Source<StreamEvent>;

/** The end of a stream: what it used and cost, over all its parts. */
export interface StreamEnd {
  type: 'end';
  usage: AnswerUsage;
  /** The same in disjoint classes, as it is priced; null: nothing was used, or it is not known. */
  classes: TokenClasses | null;
  metadata: Record<string, unknown> | undefined;
  error: GatewayError | undefined;
}

export function servedBy(candidate: Candidate): Served {
  return { model: candidate.model.id, provider: candidate.provider.name };
}

/** One attempt's part of the stream. */
interface Flow {
  stream: OpenStream;
  answered: Answered & { meter: Meter };
  view: View;
  /** It broke off, and is charged: another attempt was to go on with it. */
  is_part: boolean;
}

/** What the client gets of what comes. */
interface View {
  /** Throws `UpstreamError` for what cannot be shown. `is_ours`: the gateway made it, between two steps. */
  shown(chunks: ChatChunk[], is_ours?: boolean): ChatChunk[];
  /** What is still held back. */
  rest(): ChatChunk[];
  /** Of ends that the gateway makes. */
  cutShort(ends: ChatChunk[]): ChatChunk[];
}

/** How far a stream has come. */
interface Course {
  /** The attempt under way, or the last one. */
  flow: Flow;
  /** An end that no attempt made: there was no money for its last step, or a filter withholds the rest. */
  finish_reason: 'length' | 'content_filter' | undefined;
}

/** What streaming needs of the flow. */
interface Surroundings {
  clock: Clock;
  log: SettlementLog;
  metrics: Metrics;
  recorder: Recorder;
  states: TurnStates;
  /** Whether broken streams are continued where the request does not say. */
  continuation(): boolean;
  settlement: Settlement;
  admission: Pick<Admission, 'cutReason'>;
  attempts: Pick<Attempts, 'tryEach' | 'blame' | 'credit'>;
  steps: Pick<Planner, 'giveUp' | 'metadataOf' | 'lateError'>;
  chat: Pick<ChatAttempts, 'streamed'>;
  loop: ToolLoop;
}

/** How the call of a stream has ended whose end is this. */
function outcomeOfStream(
  call: Call,
  failure: UpstreamError | CallCancelled | undefined,
): 'completed' | 'failed' | 'cancelled' {
  const outcome = outcomeOfWhole(call);
  return outcome === 'cancelled' || failure === undefined ? outcome : outcomeOf(failure, call);
}

/** Opens a call and streams the answer to it: see `Inference.stream`. */
export function createStreaming({
  clock,
  log,
  metrics,
  recorder,
  states,
  continuation,
  settlement: { note, soFar, breakOff, settle },
  admission: { cutReason },
  attempts: { tryEach, blame, credit },
  steps: { giveUp, metadataOf, lateError },
  chat,
  loop,
}: Surroundings): (open: () => CallState | Promise<CallState>) => Events<StreamEvent> {
  function begin(session: CallState, reached: Reached<PreparedAttempt, MeteredStream>, view: View): Flow {
    const { value, prepared, candidate } = reached;
    const attempt = note(session, candidate, { status: 200, failure: null });
    const answered = { meter: value.meter, candidate, prepared, attempt };
    return { stream: value.stream, answered, view, is_part: false };
  }

  function opened(session: CallState, { answered }: Flow): StreamEvent {
    return { type: 'open', served: servedBy(answered.candidate), upstream_bodies: session.bodies.splice(0) };
  }

  /** What the client gets of an answer of one step. */
  function plainView({ call }: CallState, candidate: Candidate, text: ShownText | undefined): View {
    const keeper = states.keeper(call, candidate, wireOf(candidate));
    const { sources = [] } = call;
    return new PlainView(
      text,
      keeper,
      sources.length === 0 ? undefined : createCiter(sources, choicesOf(call.request)),
    );
  }

  /** The same of one with tools of the gateway's: one view over all its steps. */
  function toolView({ call }: CallState, { turn, told }: ToolAnswer): View {
    const citer = createCiter(call.sources ?? []);
    const show = (chunks: readonly ChatChunk[]) => {
      const shown = citer.add(chunks);
      for (const chunk of shown) told.add(chunk);
      return shown;
    };
    return {
      shown: (chunks, is_ours) => show(is_ours === true ? chunks : turn.add(chunks)),
      rest: () => [],
      // The end of its step is known: it is not asked whether it goes on.
      cutShort: (ends) => show(ends),
    };
  }

  /** The end of such an answer, with its seal before it. */
  function lastView(session: CallState, { turn, told }: ToolAnswer, { answered, view }: Flow): ChatChunk[] {
    const { candidate } = answered;
    // Block by block, a signature cannot come after its block.
    const held = turn.finish(session.call.request.ext?.client.isSequential !== true);
    if (held.length === 0) return [];
    const at = held.findIndex(({ finish_reason }) => finish_reason != null);
    const is_good = held[at]?.finish_reason !== 'error';
    const keeper = is_good ? states.keeper(session.call, candidate, wireOf(candidate)) : undefined;
    const end = view.shown(held, true);
    const seal = sealOf(keeper, turn, told.result(0));
    if (seal === undefined) return end;
    const place = end.findIndex(({ finish_reason }) => finish_reason != null);
    return end.toSpliced(place, 0, { delta: { reasoning_details: [seal] } });
  }

  /** Ends an attempt from our side, of whose end nothing is known. */
  function hangUp({ call }: CallState, { stream, answered, is_part }: Flow): void {
    if (!is_part && !stream.later.ended) answered.may_go_on = !abortStopsBilling(answered.candidate, call);
    stream.close();
  }

  /** Tells the last attempt, and the health of its endpoint, how the stream ended. A part of an answer with tools was told its own end. */
  function noteEnd(
    session: CallState,
    { answered: { attempt, candidate }, is_part }: Flow,
    failure: UpstreamError | CallCancelled | undefined,
    has_tools: boolean,
  ): void {
    if (failure instanceof UpstreamError) {
      if (!is_part || !has_tools) attempt.failure = failure.failure;
      return;
    }
    if (is_part) return;
    if (failure !== undefined && session.call.cancellation.stopped) attempt.failure = goneAs(session.call);
    credit(session, candidate);
  }

  /** Follows what is shown, where the answer may be continued. */
  function textOf({ request }: Call): ShownText | undefined {
    const is_wanted = request.provider?.continuation ?? continuation();
    return is_wanted && isContinuable(request) ? new ShownText() : undefined;
  }

  async function* answerStream(open: () => CallState | Promise<CallState>): AsyncGenerator<Told, void, undefined> {
    const session = await open();
    const { call } = session;
    const reached = await tryEach(session, session.plan.attempts, chat.streamed(session));
    if ('ended' in reached) throw await giveUp(session, reached);
    session.first_token_ms = clock.monotonic_ms();
    const tools = loop.begin(session);
    const text = tools === undefined ? textOf(call) : undefined;
    const view = tools === undefined ? plainView(session, reached.candidate, text) : toolView(session, tools);
    const at: Course = { flow: begin(session, reached, view), finish_reason: undefined };
    metrics.streamOpened();
    // How it ends when neither the upstream's end nor a failure is reached: the consumer stopped reading.
    let unfinished: 'cancelled' | undefined = 'cancelled';
    const close = (outcome: 'completed' | 'failed' | 'cancelled') =>
      settle(session, outcome, at.flow.is_part ? undefined : at.flow.answered, at.finish_reason);
    try {
      yield opened(session, at.flow);
      let failure = yield* read(session, at.flow);
      while (text !== undefined && failure instanceof UpstreamError) {
        const next = await goOn(session, call, at.flow, failure, text);
        if (next === undefined) break;
        if (next instanceof CallCancelled) failure = next;
        else {
          at.flow = next;
          yield opened(session, at.flow);
          failure = yield* read(session, at.flow);
        }
      }
      if (tools !== undefined && failure === undefined) failure = yield* withTools(session, tools, view, at);
      if (isWithheld(session)) at.finish_reason = 'content_filter';
      unfinished = undefined;
      noteEnd(session, at.flow, failure, tools !== undefined);
      const outcome = outcomeOfStream(call, failure);
      const usage = await close(outcome);
      if (failure instanceof CallCancelled && outcome === 'cancelled') throw failure;
      const { candidate } = at.flow.answered;
      if (outcome === 'completed') session.home?.keep(candidate, usage.prompt_tokens_details.cached_tokens);
      const error =
        failure instanceof UpstreamError ? lateError(session, candidate, failure) : failure && shuttingDown();
      const metadata = metadataOf(session, error ? undefined : candidate);
      yield { type: 'end', usage, classes: session.usage, metadata, error };
    } catch (error) {
      if (unfinished === undefined) throw error;
      // A fault of ours, or of what cannot be written: the client is told all the same what its answer cost.
      unfinished = undefined;
      hangUp(session, at.flow);
      if (!at.flow.is_part) at.flow.answered.attempt.failure = 'internal';
      const usage = await close('failed');
      const told = error instanceof GatewayError ? error : internalError(error);
      // What is masked is masked whole.
      yield {
        type: 'end',
        usage,
        classes: session.usage,
        metadata: told.status === 500 ? undefined : metadataOf(session, undefined),
        error: told,
      };
    } finally {
      if (unfinished !== undefined) hangUp(session, at.flow);
      at.flow.stream.close();
      metrics.streamClosed();
      if (unfinished !== undefined) await close(unfinished);
    }
  }

  /** Runs of tools and further steps, until the model is at its end; what comes back ended it before. */
  async function* withTools(
    session: CallState,
    tools: ToolAnswer,
    view: View,
    at: Course,
  ): AsyncGenerator<Told, UpstreamError | CallCancelled | undefined, undefined> {
    while (!isWithheld(session)) {
      const { flow } = at;
      const end = loop.pending(tools);
      if (end === undefined) {
        const last = lastView(session, tools, flow);
        if (last.length > 0) yield { type: 'chunks', chunks: last };
        return undefined;
      }
      const { candidate } = flow.answered;
      flow.is_part = true;
      flow.stream.close();
      try {
        for await (const chunks of loop.runs(session, tools, end, flow.answered)) {
          yield { type: 'chunks', chunks: view.shown(chunks, true) };
        }
      } catch (error) {
        if (error instanceof CallCancelled) return error;
        throw error;
      }
      if (isWithheld(session)) return undefined;
      const tried = await tryEach(session, afterStep(session, candidate), chat.streamed(session));
      if ('ended' in tried) {
        const failure = stepFailure(session, tools, tried);
        if (failure !== undefined) return failure;
        at.finish_reason = 'length';
        const cut: ChatChunk = { delta: {}, finish_reason: 'length', native_finish_reason: null };
        yield { type: 'chunks', chunks: view.cutShort([cut]) };
        return undefined;
      }
      session.step_first_token_ms = clock.monotonic_ms();
      at.flow = begin(session, tried, view);
      if (tried.candidate !== candidate) yield opened(session, at.flow);
      const failure = yield* read(session, at.flow);
      if (failure !== undefined) return failure;
    }
    return undefined;
  }

  /** Why nobody answered a further step; undefined: there is no money for it, and the answer ends with what text it has. Throws what is no endpoint's failure. */
  function stepFailure(
    session: CallState,
    { turn }: ToolAnswer,
    { ended, error }: Ended,
  ): UpstreamError | CallCancelled | undefined {
    if (error instanceof CallCancelled) return error;
    if (ended === 'failed') return session.failed.at(-1)!.error;
    const is_unpaid = ended === 'unsent' && error instanceof GatewayError && error.status === 402;
    if (!is_unpaid || !turn.has_text) throw error;
    return undefined;
  }

  /** Asks the next endpoints that can to go on with a text that broke off; undefined: none does, and it ends here. */
  async function goOn(
    session: CallState,
    call: Call,
    flow: Flow,
    failure: UpstreamError,
    shown: ShownText,
  ): Promise<Flow | CallCancelled | undefined> {
    const { text } = shown;
    const { stream, answered } = flow;
    if (text === undefined || !fallsOver(failure.failure) || call.cancellation.cancelled) return undefined;
    if (session.parts.length >= limits.continuations_max) return undefined;
    const { attempts } = session.plan;
    const later = attempts.slice(attempts.indexOf(answered.candidate) + 1);
    const candidates = later.filter((one) => one.model === answered.candidate.model && continuesText(one));
    const request = continuedRequest(call.request, { text, tokens: madeTokens(session, answered) });
    if (candidates.length === 0 || request === undefined) return undefined;
    stream.close();
    flow.is_part = true;
    breakOff(session, answered, failure.failure);
    blame(session, answered.candidate, failure);
    session.failed.push({ provider: answered.candidate.provider, own: answered.candidate.own, error: failure });
    session.call = { ...call, request };
    const tried = await tryEach(session, candidates, chat.streamed(session, fitContinued));
    if ('ended' in tried) {
      const { ended, error } = tried;
      if (error instanceof CallCancelled) return error;
      if (ended === 'internal' || (ended === 'unsent' && !(error instanceof GatewayError))) throw error;
      return undefined;
    }
    const overlap = new OverlapCut(text);
    return begin(session, tried, {
      // No state of the turn is kept: it is not of one account's making.
      shown(chunks) {
        const kept = overlap.add(chunks);
        shown.add(kept);
        return kept;
      },
      rest: () => overlap.end(),
      cutShort: (ends) => ends,
    });
  }

  /** What came out of an answer so far, over all its parts. */
  function madeTokens({ parts }: CallState, { meter }: Flow['answered']): number {
    return parts.reduce((sum, { usage }) => sum + (usage === null ? 0 : outputTokens(usage)), meter.outputTokens());
  }

  /** One attempt's stream to its end; returns the failure that ended it, if one did. */
  async function* read(
    session: CallState,
    flow: Flow,
  ): AsyncGenerator<Told, UpstreamError | CallCancelled | undefined, undefined> {
    const { stream, view } = flow;
    try {
      const { first } = stream;
      const slice = limits.stream_slice_chunks;
      // It is long where a call was waited for: others are served in between.
      for (let from = 0; from < first.length; from += slice) {
        if (from > 0) await nextTurn();
        yield { type: 'chunks', chunks: view.shown(first.length > slice ? first.slice(from, from + slice) : first) };
      }
      yield new LaterChunks(session, flow, following);
      return undefined;
    } catch (error) {
      if (!(error instanceof UpstreamError || error instanceof CallCancelled)) throw error;
      flow.answered.may_go_on = mayGoOn(error, flow.answered.candidate, session.call);
      return error;
    }
  }

  const following: Following = { clock, log, recorder, soFar, cutReason };

  return (open) => withSources(answerStream(open));
}

/** What the client gets of an answer of one step: nearly always what came. A class and not closures: there is one for every stream. */
class PlainView implements View {
  readonly #text: ShownText | undefined;
  readonly #keeper: ReasoningStateRecorder | undefined;
  readonly #citer: CitationExtractor | undefined;

  constructor(
    text: ShownText | undefined,
    keeper: ReasoningStateRecorder | undefined,
    citer: CitationExtractor | undefined,
  ) {
    this.#text = text;
    this.#keeper = keeper;
    this.#citer = citer;
  }

  shown(chunks: ChatChunk[]): ChatChunk[] {
    this.#text?.add(chunks);
    const kept = this.#keeper?.add(chunks) ?? chunks;
    return this.#citer?.add(kept) ?? kept;
  }

  rest(): ChatChunk[] {
    return [];
  }

  cutShort(ends: ChatChunk[]): ChatChunk[] {
    return this.#citer?.add(ends) ?? ends;
  }
}

function afterSettlement({ call }: CallState): GatewayError {
  return brokenRule('no_chunk_after_settlement', { generation: call.generation_id });
}

/** What is done beside handing on what comes. */
interface Following extends Pick<Surroundings, 'clock' | 'log' | 'recorder'> {
  soFar: Settlement['soFar'];
  cutReason: Admission['cutReason'];
}

/**
 * What comes after the first chunks of an attempt, metered; each time as much as one read brought. A class and not closures:
 * there is one for every stream.
 */
export class LaterChunks implements Source<StreamEvent> {
  ended = false;
  readonly #session: CallState;
  readonly #flow: Flow;
  readonly #following: Following;
  #progress_ms: number;
  /** Why it ends here. */
  #cut: string | undefined = undefined;
  #is_cut = false;
  #failure: { error: unknown } | undefined = undefined;

  constructor(session: CallState, flow: Flow, following: Following) {
    this.#session = session;
    this.#flow = flow;
    this.#following = following;
    this.#progress_ms = following.clock.monotonic_ms();
  }

  coming(): Promise<void> | undefined {
    if (this.#is_cut) return this.#readOn();
    try {
      this.#tellProgress();
      const { grant, hold } = this.#session;
      if (isWithheld(this.#session)) return this.#readOn();
      if (grant !== undefined) {
        const cutting = this.#following.cutReason({ hold, grant, meter: this.#flow.answered.meter });
        if (cutting instanceof Promise) return this.#extended(cutting);
        this.#cut = cutting;
        if (cutting !== undefined) return undefined;
      }
    } catch (error) {
      this.#failure = { error };
      return undefined;
    }
    return this.#flow.stream.later.coming();
  }

  take(): StreamEvent | undefined {
    if (this.#failure !== undefined) throw this.#failure.error;
    if (this.ended) return undefined;
    const { stream, answered, view } = this.#flow;
    if (this.#cut !== undefined) {
      this.#is_cut = true;
      const { log } = this.#following;
      return {
        type: 'chunks',
        chunks: [...view.rest(), ...view.cutShort(cut(this.#session, answered, this.#cut, log))],
      };
    }
    const { later } = stream;
    const chunks = later.take();
    if (chunks !== undefined) {
      // What an attempt was charged has lines: nothing of it can be billed any more.
      if (answered.attempt.charges !== undefined) throw afterSettlement(this.#session);
      for (const chunk of chunks) answered.meter.chunk(chunk);
      return { type: 'chunks', chunks: view.shown(chunks) };
    }
    if (!later.ended) return undefined;
    this.ended = true;
    const held = view.rest();
    return held.length > 0 ? { type: 'chunks', chunks: held } : undefined;
  }

  #tellProgress(): void {
    const { clock, recorder, soFar } = this.#following;
    const now = clock.monotonic_ms();
    if (now - this.#progress_ms < limits.journal_progress_ms) return;
    this.#progress_ms = now;
    const { usage, cost_nano } = soFar(this.#session, this.#flow.answered);
    recorder.progress(this.#session.call.generation_id, usage, cost_nano);
  }

  async #extended(cutting: Promise<string | undefined>): Promise<void> {
    try {
      this.#cut = await cutting;
      if (this.#cut === undefined) await this.#flow.stream.later.coming();
    } catch (error) {
      this.#failure = { error };
    }
  }

  async #readOn(): Promise<void> {
    try {
      await readOn(this.#session, this.#flow.stream, this.#flow.answered);
    } catch (error) {
      this.#failure = { error };
    }
    this.ended = true;
  }
}
