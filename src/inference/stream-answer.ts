import { GatewayError, internalError } from '../errors.ts';
import type { Recorder } from '../ledger/recorder.ts';
import { limits } from '../limits.ts';
import { UpstreamError } from '../providers/dialect.ts';
import type { Candidate } from '../routing/plan.ts';
import type { ChatChunk, TokenClasses } from '../schemas/inner.ts';
import type { JsonObject } from '../schemas/json.ts';
import { outputTokens } from '../schemas/usage.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { Admission } from './admission.ts';
import type { OpenStream, PreparedAttempt } from './attempt.ts';
import type { Attempts, Reached } from './attempts.ts';
import type { Call, Clock } from './call.ts';
import type { ChatAttempts, MeteredStream } from './chat-attempts.ts';
import { continuedRequest, continuesText, fitContinued, isContinuable, OverlapCut, ShownText } from './continuation.ts';
import { ClientGone } from './exchange.ts';
import { fallsOver } from './failure.ts';
import type { Meter } from './meter.ts';
import { cut, readOn } from './overrun.ts';
import type { Answered, AnswerUsage, Session, Settlement, SettlementLog } from './settlement.ts';
import type { TurnStates } from './state/states.ts';
import { type Steps, wireOf } from './steps.ts';

/** Who answered, as the client may know it. */
export interface Served {
  model: string;
  provider: string;
}

/** What a stream is made of: one `open`, then `chunks`, then one `end`. Where another endpoint goes on with it, another `open` says so. */
export type StreamEvent =
  | { type: 'open'; served: Served; upstream_bodies: JsonObject[] }
  | { type: 'chunks'; chunks: ChatChunk[] }
  | StreamEnd;

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
  /** What the client gets of what came. Throws `UpstreamError` for what cannot be shown. */
  shown(chunks: ChatChunk[]): ChatChunk[];
  /** What is still held back of it. */
  rest(): ChatChunk[];
  /** It broke off, and is charged: another attempt was to go on with it. */
  is_part: boolean;
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
  steps: Pick<Steps, 'tryInOrder' | 'metadataOf' | 'lateError'>;
  chat: Pick<ChatAttempts, 'streamed'>;
}

/** Streams the answer to an opened call: see `Inference.stream`. */
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
  steps: { tryInOrder, metadataOf, lateError },
  chat,
}: Surroundings): (session: Session) => AsyncGenerator<StreamEvent, void, undefined> {
  function begin(session: Session, reached: Reached<PreparedAttempt, MeteredStream>): Omit<Flow, 'shown' | 'rest'> {
    const { value, prepared, candidate } = reached;
    const attempt = note(session, candidate, { status: 200, failure: null });
    const answered = { meter: value.meter, candidate, prepared, attempt };
    return { stream: value.stream, answered, is_part: false };
  }

  function opened(session: Session, { answered }: Flow): StreamEvent {
    return { type: 'open', served: servedBy(answered.candidate), upstream_bodies: session.bodies.splice(0) };
  }

  /** Follows what is shown, where the answer may be continued. */
  function textOf({ request }: Call): ShownText | undefined {
    const is_wanted = request.provider?.continuation ?? continuation();
    return is_wanted && isContinuable(request) ? new ShownText() : undefined;
  }

  async function* answerStream(session: Session): AsyncGenerator<StreamEvent, void, undefined> {
    const { call } = session;
    const reached = await tryInOrder(session, chat.streamed(session));
    session.first_token_ms = clock.monotonic_ms();
    const text = textOf(call);
    const keeper = states.keeper(call, reached.candidate, wireOf(reached.candidate));
    let flow: Flow = {
      ...begin(session, reached),
      shown(chunks) {
        text?.add(chunks);
        return keeper?.add(chunks) ?? chunks;
      },
      rest: () => [],
    };
    metrics.streamOpened();
    // How it ends when neither the upstream's end nor a failure is reached: the consumer stopped reading.
    let unfinished: 'cancelled' | undefined = 'cancelled';
    const close = (outcome: 'completed' | 'failed' | 'cancelled') =>
      settle(session, outcome, flow.is_part ? undefined : flow.answered);
    try {
      yield opened(session, flow);
      let failure = yield* read(session, flow);
      while (text !== undefined && failure instanceof UpstreamError) {
        const next = await goOn(session, call, flow, failure, text);
        if (next === undefined) break;
        if (next instanceof ClientGone) failure = next;
        else {
          flow = next;
          yield opened(session, flow);
          failure = yield* read(session, flow);
        }
      }
      unfinished = undefined;
      const outcome =
        failure instanceof ClientGone || call.cancellation.cancelled ? 'cancelled' : failure ? 'failed' : 'completed';
      if (failure instanceof UpstreamError) flow.answered.attempt.failure = failure.failure;
      else if (!flow.is_part) credit(session, flow.answered.candidate);
      const usage = await close(outcome);
      if (failure instanceof ClientGone) throw failure;
      const { candidate } = flow.answered;
      if (outcome === 'completed') session.home?.keep(candidate, usage.prompt_tokens_details.cached_tokens);
      const error = failure ? lateError(session, candidate, failure) : undefined;
      const metadata = metadataOf(session, error ? undefined : candidate);
      yield { type: 'end', usage, classes: session.usage, metadata, error };
    } catch (error) {
      if (unfinished === undefined) throw error;
      // A fault of ours, or of what cannot be written: the client is told all the same what its answer cost.
      unfinished = undefined;
      flow.stream.close();
      if (!flow.is_part) flow.answered.attempt.failure = 'internal';
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
      flow.stream.close();
      metrics.streamClosed();
      if (unfinished !== undefined) await close(unfinished);
    }
  }

  /** Asks the next endpoints that can to go on with a text that broke off; undefined: none does, and it ends here. */
  async function goOn(
    session: Session,
    call: Call,
    flow: Flow,
    failure: UpstreamError,
    shown: ShownText,
  ): Promise<Flow | ClientGone | undefined> {
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
      if (error instanceof ClientGone) return error;
      if (ended === 'internal' || (ended === 'unsent' && !(error instanceof GatewayError))) throw error;
      return undefined;
    }
    const overlap = new OverlapCut(text);
    return {
      ...begin(session, tried),
      // No state of the turn is kept: it is not of one account's making.
      shown(chunks) {
        const kept = overlap.add(chunks);
        shown.add(kept);
        return kept;
      },
      rest: () => overlap.end(),
    };
  }

  /** What came out of an answer so far, over all its parts. */
  function madeTokens({ parts }: Session, { meter }: Flow['answered']): number {
    return parts.reduce((sum, { usage }) => sum + (usage === null ? 0 : outputTokens(usage)), meter.outputTokens());
  }

  /** One attempt's stream to its end; returns the failure that ended it, if one did. */
  async function* read(
    session: Session,
    { stream, answered, shown, rest }: Flow,
  ): AsyncGenerator<StreamEvent, UpstreamError | ClientGone | undefined, undefined> {
    const { meter } = answered;
    let progress_ms = clock.monotonic_ms();
    const show = (chunks: ChatChunk[]): StreamEvent => ({ type: 'chunks', chunks });
    try {
      if (stream.first.length > 0) yield show(shown(stream.first));
      for (;;) {
        const reason = session.grant && (await cutReason({ hold: session.hold, grant: session.grant, meter }));
        if (reason !== undefined) {
          yield show([...rest(), cut(session, answered, reason, log)]);
          await readOn(session, stream, answered);
          return undefined;
        }
        const chunks = await stream.next();
        if (chunks === undefined) {
          const held = rest();
          if (held.length > 0) yield show(held);
          return undefined;
        }
        for (const chunk of chunks) meter.chunk(chunk);
        if (chunks.length > 0) yield show(shown(chunks));
        const now = clock.monotonic_ms();
        if (now - progress_ms >= limits.journal_progress_ms) {
          progress_ms = now;
          const { usage, cost_nano } = soFar(session, answered);
          recorder.progress(session.call.generation_id, usage, cost_nano);
        }
      }
    } catch (error) {
      if (error instanceof UpstreamError || error instanceof ClientGone) return error;
      throw error;
    }
  }

  return answerStream;
}
