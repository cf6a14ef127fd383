/**
 * How one chat call is answered, from top to bottom: begin (attempts until an endpoint answers), the body (its chunks; then the next
 * step of an answer with tools, or a continuation of a text that broke off), finish (settle). A whole answer and a stream take the
 * same way. Every transition of a call is in this file.
 */

import { GatewayError, internalError, shuttingDown } from '../errors.ts';
import { limits } from '../limits.ts';
import { nextTurn } from '../next-turn.ts';
import { UpstreamError } from '../providers/dialect.ts';
import type { Candidate } from '../routing/plan.ts';
import { cachesCheaply } from '../routing/stickiness.ts';
import { withOne } from '../schemas/append.ts';
import { choicesOf } from '../schemas/by-choice.ts';
import { chunksOf } from '../schemas/chunks.ts';
import type { FinishReason } from '../schemas/inner.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { type Attempts, mayGoOn } from './attempt/attempts.ts';
import { type ChatAttempt, ChatAttempts, type ChatAttemptsParts } from './attempt/chat-attempts.ts';
import { ContinuedView, continuationOf, fitContinued, isContinuable, ShownText } from './attempt/continuation.ts';
import type { OpenAnswer } from './attempt/open-answer.ts';
import { abortStopsBilling, CallCancelled, cancellationFailure, outcomeOf } from './attempt/upstream-call.ts';
import type { Ended } from './attempt/work.ts';
import { type BodyParts, LaterChunks, PlainView, type View } from './body.ts';
import type { Call } from './call.ts';
import type { StreamEnd, StreamPart, WholeAnswer } from './events.ts';
import type { Settlement } from './money/settlement.ts';
import type { RoutingRules } from './plan/caller-defaults.ts';
import type { Planner } from './plan/planner.ts';
import type { TurnStates } from './reasoning/states.ts';
import type { AnswerWatch, CallState } from './state.ts';
import { createCitationExtractor } from './tools/citation-extractor.ts';
import { afterStep, type ToolAnswer, type ToolLoop } from './tools/tool-loop.ts';

/** The dependencies of the engine. */
export interface EngineParts extends BodyParts {
  metrics: Metrics;
  states: TurnStates;
  /** Called once for each stream, so that a reload takes effect at once. */
  routing(): Pick<RoutingRules, 'continuation'>;
  settlement: Settlement;
  attempts: Pick<Attempts, 'tryEach' | 'reportSuccess' | 'reportFailure'>;
  planner: Pick<Planner, 'open' | 'giveUp' | 'metadataOf' | 'lateError'>;
  chat: ChatAttemptsParts;
  loop: ToolLoop;
}

/** Why a body ended early. */
type Failure = UpstreamError | CallCancelled;

/** A call that an endpoint answers. */
interface Answer {
  readonly state: CallState;
  readonly requests: ChatAttempts;
  /** The attempt that makes the current part of the answer, and its body. */
  attempt: ChatAttempt;
  body: OpenAnswer;
  /** Undefined if the client is shown the chunks themselves. */
  view: View | undefined;
  /** Undefined if the gateway runs no tools for the answer. */
  readonly tools: ToolAnswer | undefined;
  /** The text so far; undefined if the answer is not continued when it breaks off. */
  readonly text: ShownText | undefined;
  /** The finish reason, if the gateway ends the answer: there is no money for the next step, or a filter withholds the rest. */
  finishReason: FinishReason | undefined;
}

/** Answers chat calls. */
export interface ChatEngine {
  complete(call: Call, watch?: AnswerWatch): Promise<WholeAnswer>;
  stream(call: Call, watch?: AnswerWatch): AsyncGenerator<StreamPart, void, undefined>;
}

export function createEngine(parts: EngineParts): ChatEngine {
  const { metrics, states, routing, settlement, attempts, planner, chat, loop } = parts;
  const { tryEach, reportSuccess, reportFailure } = attempts;

  /** Plans a call and tries endpoints. Throws the client's error if none answers; the call is settled then. */
  async function begin(received: Call, watch: AnswerWatch | undefined): Promise<Answer> {
    const planning = planner.open(received);
    const state = planning instanceof Promise ? await planning : planning;
    state.watch = watch;
    const { call, plan, sources } = state;
    let requests: ChatAttempts;
    try {
      requests = new ChatAttempts(state, chat);
    } catch (error) {
      state.reservation?.release();
      throw error;
    }
    const { tools: declared } = requests;
    const reached = await tryEach(state, plan.attempts, requests);
    if ('ended' in reached) throw await planner.giveUp(state, reached);
    const { attempt, value: body } = reached;
    try {
      const tools = declared === undefined || declared.byName.size === 0 ? undefined : loop.begin(state, declared);
      const { request } = call;
      const continues =
        request.stream === true && tools === undefined && (request.provider?.continuation ?? routing().continuation);
      const text = continues && isContinuable(request) ? new ShownText() : undefined;
      let view: View | undefined = tools?.view;
      if (tools === undefined) {
        const { dialect } = attempt.prepared;
        const carriesState = dialect.facts.carriesState(attempt.candidate.endpoint.quirks);
        const reasoning = carriesState ? states.recorder(attempt.call, attempt.candidate, dialect.wire) : undefined;
        if (text !== undefined || reasoning !== undefined || sources.length > 0) {
          const citations = sources.length === 0 ? undefined : createCitationExtractor(sources, choicesOf(request));
          view = new PlainView(text, reasoning, citations);
        }
      }
      return { state, requests, attempt, body, view, tools, text, finishReason: undefined };
    } catch (error) {
      attempt.mayGoOn = !abortStopsBilling(attempt.candidate, attempt.call);
      attempt.record!.failure = 'internal';
      body.close();
      await settlement.settle(state, 'failed', attempt, undefined);
      throw error;
    }
  }

  /** All parts of an answer, from attempt to attempt. Returns the failure that ended it, if one did. */
  async function* partsOf(answer: Answer): AsyncGenerator<StreamPart, Failure | undefined, undefined> {
    const { state, tools, text } = answer;
    let served: Candidate | undefined;
    for (;;) {
      const { attempt, body, view } = answer;
      if (attempt.candidate !== served) {
        served = attempt.candidate;
        const { model, provider } = served;
        const shown = { model: model.id, provider: provider.name };
        yield { type: 'open', served: shown, upstream_bodies: state.bodies.splice(0) };
      }
      let failure: Failure | undefined;
      try {
        const first = body.completion === undefined ? body.first : chunksOf(body.completion);
        const slice = limits.stream_slice_chunks;
        // Many chunks may arrive before a forced tool call: other requests are served in between.
        for (let from = 0; from < first.length; from += slice) {
          if (from > 0) await nextTurn();
          const chunks = first.length > slice ? first.slice(from, from + slice) : first;
          yield { type: 'chunks', chunks: view === undefined ? chunks : view.show(chunks) };
        }
        if (body.completion === undefined) yield new LaterChunks(state, attempt, body, view, parts);
      } catch (error) {
        if (!(error instanceof UpstreamError || error instanceof CallCancelled)) throw error;
        attempt.mayGoOn = mayGoOn(error, attempt.candidate, attempt.call);
        failure = error;
      }
      if (failure instanceof UpstreamError && text !== undefined) {
        failure = await continueText(answer, failure, text);
        if (failure === undefined) {
          served = undefined;
          continue;
        }
      }
      if (failure !== undefined || tools === undefined) return failure;
      const next = yield* nextStep(answer, tools);
      if (next !== 'follows') return next;
    }
  }

  /** Lets another endpoint continue a text that broke off. Returns the failure that ends the answer if none does. */
  async function continueText(answer: Answer, failure: UpstreamError, text: ShownText): Promise<Failure | undefined> {
    const { state, attempt } = answer;
    const next = continuationOf(state, attempt, text, failure);
    if (next === undefined) return failure;
    answer.body.close();
    settlement.breakOff(state, attempt, failure.failure);
    reportFailure(attempt, failure);
    const { provider, own } = attempt.candidate;
    state.failed = withOne(state.failed, { provider, own, error: failure });
    const reached = await tryEach(state, next.candidates, answer.requests.next(next.call, fitContinued));
    if ('ended' in reached) {
      const { ended, error } = reached;
      if (error instanceof CallCancelled) return error;
      if (ended === 'internal' || (ended === 'unsent' && !(error instanceof GatewayError))) throw error;
      return failure;
    }
    answer.attempt = reached.attempt;
    answer.body = reached.value;
    answer.view = new ContinuedView(text);
    return undefined;
  }

  /** Runs the tools that a step called and begins the next step. If none follows, returns the failure that ended the answer, if one did. */
  async function* nextStep(
    answer: Answer,
    tools: ToolAnswer,
  ): AsyncGenerator<StreamPart, Failure | 'follows' | undefined, undefined> {
    const { state, attempt } = answer;
    const isWithheld = () => state.watch?.isWithheld === true;
    if (isWithheld()) return undefined;
    const end = tools.turn.stepEnd();
    if (end.calls.length === 0) {
      const last = loop.end(tools, attempt);
      if (last.length > 0) yield { type: 'chunks', chunks: last };
      return undefined;
    }
    answer.body.close();
    const begun = loop.endStep(state, tools, end, attempt);
    if (begun.length > 0) yield { type: 'chunks', chunks: begun };
    try {
      const ended = await loop.run(state, tools, end, attempt);
      if (ended.length > 0) yield { type: 'chunks', chunks: ended };
    } catch (error) {
      if (error instanceof CallCancelled) return error;
      throw error;
    }
    if (isWithheld()) return undefined;
    const reached = await tryEach(state, afterStep(state, attempt.candidate), answer.requests.next(tools.call));
    if (!('ended' in reached)) {
      answer.attempt = reached.attempt;
      answer.body = reached.value;
      return 'follows';
    }
    const failure = stepFailure(answer, tools, reached);
    if (failure !== undefined) return failure;
    answer.finishReason = 'length';
    yield {
      type: 'chunks',
      chunks: tools.view.showOwn([{ delta: {}, finish_reason: 'length', native_finish_reason: null }]),
    };
    return undefined;
  }

  /** Why no endpoint answered a later step; undefined if the money is short: the answer ends with the text that it has. Throws any other refusal. */
  function stepFailure({ state }: Answer, { turn }: ToolAnswer, { ended, error }: Ended): Failure | undefined {
    if (error instanceof CallCancelled) return error;
    if (ended === 'failed') return state.failed.at(-1)!.error;
    const isUnpaid = ended === 'unsent' && error instanceof GatewayError && error.status === 402;
    if (!isUnpaid || !turn.has_text) throw error;
    return undefined;
  }

  /** Notes the end of the last attempt and settles the answer. Throws `CallCancelled` if the client has left. */
  async function finish(answer: Answer, failure: Failure | undefined): Promise<StreamEnd> {
    const { state, attempt, tools } = answer;
    const { call } = state;
    const { cancelled, stopped } = call.cancellation;
    if (state.watch?.isWithheld === true) answer.finishReason = 'content_filter';
    const record = attempt.record!;
    // The end of a charged attempt is noted already.
    if (failure instanceof UpstreamError) {
      if (!attempt.isCharged || tools === undefined) record.failure = failure.failure;
    } else if (!attempt.isCharged) {
      if (failure !== undefined && stopped) record.failure = cancellationFailure(call);
      // The success of an endpoint with a whole answer was reported when it answered.
      if (call.request.stream === true) reportSuccess(attempt);
    }
    const isLeft = cancelled && !stopped;
    const outcome = isLeft ? 'cancelled' : failure === undefined ? 'completed' : outcomeOf(failure, call);
    const usage = await settlement.settle(state, outcome, attempt, answer.finishReason);
    if (failure instanceof CallCancelled && outcome === 'cancelled') throw failure;
    const { candidate } = attempt;
    if (outcome === 'completed' && cachesCheaply(candidate)) {
      state.home?.().keep(candidate, usage.prompt_tokens_details.cached_tokens);
    }
    const error =
      failure instanceof UpstreamError ? planner.lateError(state, attempt, failure) : failure && shuttingDown();
    const metadata = call.wants_metadata ? planner.metadataOf(state, error ? undefined : candidate) : undefined;
    return { type: 'end', usage, classes: state.usage, metadata, error };
  }

  /** Settles an answer after a fault of the gateway, or if its client cannot be written to. The end of the stream has its cost. */
  async function fail(answer: Answer, fault: unknown): Promise<StreamEnd> {
    const { state, attempt } = answer;
    hangUp(answer);
    if (!attempt.isCharged) attempt.record!.failure = 'internal';
    const usage = await settlement.settle(state, 'failed', attempt, answer.finishReason);
    const error = fault instanceof GatewayError ? fault : internalError(fault);
    // A masked error shows nothing of the call.
    const metadata = error.status === 500 ? undefined : planner.metadataOf(state, undefined);
    return { type: 'end', usage, classes: state.usage, metadata, error };
  }

  /** Ends the current attempt before its end is known. */
  function hangUp({ attempt, body }: Answer): void {
    if (!attempt.isCharged && !body.later.ended) attempt.mayGoOn = !abortStopsBilling(attempt.candidate, attempt.call);
    body.close();
  }

  /** Takes all steps of a whole answer. Returns the failure that ended it, if one did. */
  async function allSteps(answer: Answer): Promise<Failure | undefined> {
    const steps = partsOf(answer);
    let step = await steps.next();
    while (step.done !== true) step = await steps.next();
    return step.value;
  }

  async function* events(call: Call, watch?: AnswerWatch): AsyncGenerator<StreamPart, void, undefined> {
    const answer = await begin(call, watch);
    metrics.streamOpened();
    let isFinished = false;
    try {
      const failure = yield* partsOf(answer);
      isFinished = true;
      yield await finish(answer, failure);
    } catch (error) {
      if (isFinished) throw error;
      isFinished = true;
      yield await fail(answer, error);
    } finally {
      // The consumer stopped reading.
      if (!isFinished) hangUp(answer);
      answer.body.close();
      metrics.streamClosed();
      if (!isFinished) await settlement.settle(answer.state, 'cancelled', answer.attempt, answer.finishReason);
    }
  }

  return {
    // Nothing begins before the first event is read, so that heartbeats and a leaving client are handled from the start.
    stream: events,

    async complete(call, watch) {
      const answer = await begin(call, watch);
      const { tools } = answer;
      let completion = answer.body.completion!;
      let failure: Failure | undefined;
      try {
        if (tools !== undefined) {
          failure = await allSteps(answer);
          completion = tools.view.completion(completion.created);
        }
        const reviewing = failure === undefined ? watch?.review(completion) : undefined;
        if (reviewing !== undefined) await reviewing;
      } catch (error) {
        await fail(answer, error);
        throw error;
      }
      const { usage, classes, metadata, error } = await finish(answer, failure);
      if (error !== undefined) throw error;
      const shown = answer.view === undefined ? completion : answer.view.whole(completion);
      const { model, provider } = answer.attempt.candidate;
      const served = { model: model.id, provider: provider.name };
      return { completion: shown, served, usage, classes, metadata };
    },
  };
}
