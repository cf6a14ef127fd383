import { setImmediate as nextTurn } from 'node:timers/promises';
import { brokenRule, GatewayError, internalError, shuttingDown } from '../errors.ts';
import { type Events, type Source, withSources } from '../http/sources.ts';
import type { Recorder } from '../ledger/recorder.ts';
import { limits } from '../limits.ts';
import { UpstreamError } from '../providers/dialect.ts';
import type { Candidate } from '../routing/plan.ts';
import { choicesOf } from '../schemas/by-choice.ts';
import type { ChatChunk } from '../schemas/inner.ts';
import { outputTokens } from '../schemas/usage.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { OpenStream, PreparedAttempt } from './attempt/attempt.ts';
import { type Attempts, mayGoOn } from './attempt/attempts.ts';
import type { ChatAttempt, ChatAttempts } from './attempt/chat-attempts.ts';
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
import type { Ended, Reached } from './attempt/work.ts';
import type { Call, Clock } from './call.ts';
import type { StreamEvent } from './events.ts';
import type { Admission } from './money/admission.ts';
import type { Meter } from './money/meter.ts';
import { cut, readOn } from './money/overrun.ts';
import type { Settlement, SettlementLog } from './money/settlement.ts';
import { type Planner, wireOf } from './plan/planner.ts';
import type { ReasoningStateRecorder, TurnStates } from './reasoning/states.ts';
import { type CallState, isWithheld, servedBy } from './state.ts';
import { type CitationExtractor, createCiter } from './tools/citation-extractor.ts';
import { afterStep, sealOf, type ToolAnswer, type ToolLoop } from './tools/tool-loop.ts';

/** What the course of a stream says: events, and what is read for more of them. */
type Told = StreamEvent | Source<StreamEvent>;

/** One attempt's part of the stream. */
interface Flow {
  stream: OpenStream;
  attempt: ChatAttempt;
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
  attempts: Pick<Attempts, 'tryEach' | 'reportSuccess' | 'reportFailure'>;
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
  settlement: { soFar, breakOff, settle },
  admission: { cutReason },
  attempts: { tryEach, reportSuccess, reportFailure },
  steps: { giveUp, metadataOf, lateError },
  chat,
  loop,
}: Surroundings): (open: () => CallState | Promise<CallState>) => Events<StreamEvent> {
  function begin({ value, attempt }: Reached<PreparedAttempt, OpenStream, Meter>, view: View): Flow {
    return { stream: value, attempt, view, is_part: false };
  }

  function opened(state: CallState, { attempt }: Flow): StreamEvent {
    return { type: 'open', served: servedBy(attempt.candidate), upstream_bodies: state.bodies.splice(0) };
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
  function lastView({ turn, told, call }: ToolAnswer, { attempt, view }: Flow): ChatChunk[] {
    const { candidate } = attempt;
    // Block by block, a signature cannot come after its block.
    const held = turn.finish(call.request.ext?.client.isSequential !== true);
    if (held.length === 0) return [];
    const at = held.findIndex(({ finish_reason }) => finish_reason != null);
    const is_good = held[at]?.finish_reason !== 'error';
    const keeper = is_good ? states.keeper(call, candidate, wireOf(candidate)) : undefined;
    const end = view.shown(held, true);
    const seal = sealOf(keeper, turn, told.result(0));
    if (seal === undefined) return end;
    const place = end.findIndex(({ finish_reason }) => finish_reason != null);
    return end.toSpliced(place, 0, { delta: { reasoning_details: [seal] } });
  }

  /** Ends an attempt from our side before its end is known. */
  function hangUp({ stream, attempt, is_part }: Flow): void {
    if (!is_part && !stream.later.ended) attempt.mayGoOn = !abortStopsBilling(attempt.candidate, attempt.call);
    stream.close();
  }

  /** Notes the end of the stream in its last attempt and in the health of its endpoint. An attempt that is a part has its own end. */
  function noteEnd(
    { attempt, is_part }: Flow,
    failure: UpstreamError | CallCancelled | undefined,
    has_tools: boolean,
  ): void {
    if (failure instanceof UpstreamError) {
      if (!is_part || !has_tools) attempt.record!.failure = failure.failure;
      return;
    }
    if (is_part) return;
    const { call } = attempt;
    if (failure !== undefined && call.cancellation.stopped) attempt.record!.failure = goneAs(call);
    reportSuccess(attempt);
  }

  /** Follows what is shown, where the answer may be continued. */
  function textOf({ request }: Call): ShownText | undefined {
    const is_wanted = request.provider?.continuation ?? continuation();
    return is_wanted && isContinuable(request) ? new ShownText() : undefined;
  }

  async function* answerStream(open: () => CallState | Promise<CallState>): AsyncGenerator<Told, void, undefined> {
    const state = await open();
    const { call } = state;
    const reached = await tryEach(state, state.plan.attempts, chat.streamed(state, call));
    if ('ended' in reached) throw await giveUp(state, reached);
    const tools = loop.begin(state);
    const text = tools === undefined ? textOf(call) : undefined;
    const view = tools === undefined ? plainView(state, reached.attempt.candidate, text) : toolView(state, tools);
    const at: Course = { flow: begin(reached, view), finish_reason: undefined };
    metrics.streamOpened();
    // How it ends when neither the upstream's end nor a failure is reached: the consumer stopped reading.
    let unfinished: 'cancelled' | undefined = 'cancelled';
    const close = (outcome: 'completed' | 'failed' | 'cancelled') =>
      settle(state, outcome, at.flow.is_part ? undefined : at.flow.attempt, at.finish_reason);
    try {
      yield opened(state, at.flow);
      let failure = yield* read(state, at.flow);
      while (text !== undefined && failure instanceof UpstreamError) {
        const next = await goOn(state, at.flow, failure, text);
        if (next === undefined) break;
        if (next instanceof CallCancelled) failure = next;
        else {
          at.flow = next;
          yield opened(state, at.flow);
          failure = yield* read(state, at.flow);
        }
      }
      if (tools !== undefined && failure === undefined) failure = yield* withTools(state, tools, view, at);
      if (isWithheld(state)) at.finish_reason = 'content_filter';
      unfinished = undefined;
      noteEnd(at.flow, failure, tools !== undefined);
      const outcome = outcomeOfStream(call, failure);
      const usage = await close(outcome);
      if (failure instanceof CallCancelled && outcome === 'cancelled') throw failure;
      const { attempt } = at.flow;
      const { candidate } = attempt;
      if (outcome === 'completed') state.home?.keep(candidate, usage.prompt_tokens_details.cached_tokens);
      const error = failure instanceof UpstreamError ? lateError(state, attempt, failure) : failure && shuttingDown();
      const metadata = metadataOf(state, error ? undefined : candidate);
      yield { type: 'end', usage, classes: state.usage, metadata, error };
    } catch (error) {
      if (unfinished === undefined) throw error;
      // A fault of ours, or of what cannot be written: the client is told all the same what its answer cost.
      unfinished = undefined;
      hangUp(at.flow);
      if (!at.flow.is_part) at.flow.attempt.record!.failure = 'internal';
      const usage = await close('failed');
      const told = error instanceof GatewayError ? error : internalError(error);
      // What is masked is masked whole.
      yield {
        type: 'end',
        usage,
        classes: state.usage,
        metadata: told.status === 500 ? undefined : metadataOf(state, undefined),
        error: told,
      };
    } finally {
      if (unfinished !== undefined) hangUp(at.flow);
      at.flow.stream.close();
      metrics.streamClosed();
      if (unfinished !== undefined) await close(unfinished);
    }
  }

  /** Runs of tools and further steps, until the model is at its end; what comes back ended it before. */
  async function* withTools(
    state: CallState,
    tools: ToolAnswer,
    view: View,
    at: Course,
  ): AsyncGenerator<Told, UpstreamError | CallCancelled | undefined, undefined> {
    while (!isWithheld(state)) {
      const { flow } = at;
      const end = loop.pending(tools);
      if (end === undefined) {
        const last = lastView(tools, flow);
        if (last.length > 0) yield { type: 'chunks', chunks: last };
        return undefined;
      }
      const { candidate } = flow.attempt;
      flow.is_part = true;
      flow.stream.close();
      try {
        for await (const chunks of loop.runs(state, tools, end, flow.attempt)) {
          yield { type: 'chunks', chunks: view.shown(chunks, true) };
        }
      } catch (error) {
        if (error instanceof CallCancelled) return error;
        throw error;
      }
      if (isWithheld(state)) return undefined;
      const tried = await tryEach(state, afterStep(state, candidate), chat.streamed(state, tools.call));
      if ('ended' in tried) {
        const failure = stepFailure(state, tools, tried);
        if (failure !== undefined) return failure;
        at.finish_reason = 'length';
        const cut: ChatChunk = { delta: {}, finish_reason: 'length', native_finish_reason: null };
        yield { type: 'chunks', chunks: view.cutShort([cut]) };
        return undefined;
      }
      at.flow = begin(tried, view);
      if (tried.attempt.candidate !== candidate) yield opened(state, at.flow);
      const failure = yield* read(state, at.flow);
      if (failure !== undefined) return failure;
    }
    return undefined;
  }

  /** Why nobody answered a further step; undefined: there is no money for it, and the answer ends with what text it has. Throws what is no endpoint's failure. */
  function stepFailure(
    state: CallState,
    { turn }: ToolAnswer,
    { ended, error }: Ended,
  ): UpstreamError | CallCancelled | undefined {
    if (error instanceof CallCancelled) return error;
    if (ended === 'failed') return state.failed.at(-1)!.error;
    const is_unpaid = ended === 'unsent' && error instanceof GatewayError && error.status === 402;
    if (!is_unpaid || !turn.has_text) throw error;
    return undefined;
  }

  /** Asks the next endpoints that can to go on with a text that broke off; undefined: none does, and it ends here. */
  async function goOn(
    state: CallState,
    flow: Flow,
    failure: UpstreamError,
    shown: ShownText,
  ): Promise<Flow | CallCancelled | undefined> {
    const { text } = shown;
    const { stream, attempt } = flow;
    const { call } = state;
    if (text === undefined || !fallsOver(failure.failure) || call.cancellation.cancelled) return undefined;
    if (state.parts.length >= limits.continuations_max) return undefined;
    const { attempts } = state.plan;
    const later = attempts.slice(attempts.indexOf(attempt.candidate) + 1);
    const candidates = later.filter((one) => one.model === attempt.candidate.model && continuesText(one));
    const request = continuedRequest(call.request, { text, tokens: madeTokens(state, attempt) });
    if (candidates.length === 0 || request === undefined) return undefined;
    stream.close();
    flow.is_part = true;
    breakOff(state, attempt, failure.failure);
    reportFailure(attempt, failure);
    state.failed.push({ provider: attempt.candidate.provider, own: attempt.candidate.own, error: failure });
    const tried = await tryEach(state, candidates, chat.streamed(state, { ...call, request }, fitContinued));
    if ('ended' in tried) {
      const { ended, error } = tried;
      if (error instanceof CallCancelled) return error;
      if (ended === 'internal' || (ended === 'unsent' && !(error instanceof GatewayError))) throw error;
      return undefined;
    }
    const overlap = new OverlapCut(text);
    return begin(tried, {
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
  function madeTokens({ parts }: CallState, { meter }: ChatAttempt): number {
    return parts.reduce((sum, { usage }) => sum + (usage === null ? 0 : outputTokens(usage)), meter.outputTokens());
  }

  /** One attempt's stream to its end; returns the failure that ended it, if one did. */
  async function* read(
    state: CallState,
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
      yield new LaterChunks(state, flow, following);
      return undefined;
    } catch (error) {
      if (!(error instanceof UpstreamError || error instanceof CallCancelled)) throw error;
      const { attempt } = flow;
      attempt.mayGoOn = mayGoOn(error, attempt.candidate, attempt.call);
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
  readonly #state: CallState;
  readonly #flow: Flow;
  readonly #following: Following;
  #progress_ms: number;
  /** Why it ends here. */
  #cut: string | undefined = undefined;
  #is_cut = false;
  #failure: { error: unknown } | undefined = undefined;

  constructor(state: CallState, flow: Flow, following: Following) {
    this.#state = state;
    this.#flow = flow;
    this.#following = following;
    this.#progress_ms = following.clock.monotonic_ms();
  }

  coming(): Promise<void> | undefined {
    if (this.#is_cut) return this.#readOn();
    try {
      this.#tellProgress();
      const { attempt } = this.#flow;
      const { grant, meter } = attempt;
      if (isWithheld(this.#state)) return this.#readOn();
      if (grant !== undefined) {
        const cutting = this.#following.cutReason({ hold: this.#state.hold, grant, meter });
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
    const { stream, attempt, view } = this.#flow;
    if (this.#cut !== undefined) {
      this.#is_cut = true;
      const { log } = this.#following;
      return {
        type: 'chunks',
        chunks: [...view.rest(), ...view.cutShort(cut(attempt, this.#cut, log))],
      };
    }
    const { later } = stream;
    const chunks = later.take();
    if (chunks !== undefined) {
      // What an attempt was charged has lines: nothing of it can be billed any more.
      if (attempt.charge !== undefined) throw afterSettlement(this.#state);
      for (const chunk of chunks) attempt.meter.chunk(chunk);
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
    const { usage, cost_nano } = soFar(this.#state, this.#flow.attempt);
    recorder.progress(this.#state.call.generation_id, usage, cost_nano);
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
      await readOn(this.#flow.stream, this.#flow.attempt);
    } catch (error) {
      this.#failure = { error };
    }
    this.ended = true;
  }
}
