import { GatewayError, internalError } from '../errors.ts';
import { METERED, type Metered } from '../http/metered.ts';
import { limits } from '../limits.ts';
import { type Media, UpstreamError } from '../providers/dialect.ts';
import type { MediaFetcher } from '../providers/fetch-media.ts';
import type { Upstream } from '../providers/upstream.ts';
import type { Candidate } from '../routing/plan.ts';
import type { ChatChunk, ChatCompletion } from '../schemas/inner.ts';
import type { JsonObject } from '../schemas/json.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { createAdmission, type Prepared, type SpendingRules } from './admission.ts';
import { attemptStream, attemptWhole, type OpenStream, type PreparedAttempt } from './attempt.ts';
import { createAttempts } from './attempts.ts';
import type { Call } from './call.ts';
import { type ChatWorkOptions, createChatWork } from './chat-work.ts';
import { ClientGone } from './exchange.ts';
import { createExplain, type Explanation } from './explain.ts';
import { createMeasure } from './measure.ts';
import { createCallMedia, NO_MEDIA } from './media.ts';
import { createMeter, type Meter } from './meter.ts';
import { cut, readOn } from './overrun.ts';
import { type Answered, type AnswerUsage, createSettlement, type Session, type SettlementLog } from './settlement.ts';
import { createSteps, type StepsOptions, wireOf } from './steps.ts';
import { runTask, type Task, type TaskAnswer } from './task.ts';
import type { Tokenizer } from './tokenizer.ts';

export interface InferenceOptions extends StepsOptions, ChatWorkOptions {
  upstream: Upstream;
  /** Fetches what an upstream does not fetch itself. */
  media: MediaFetcher;
  tokenizer: Tokenizer;
  metrics: Metrics;
  log: SettlementLog;
  rules: SpendingRules;
  first_token_ms_max: number;
  total_ms_max: number;
}

/** Who answered, as the client may know it. */
export interface Served {
  model: string;
  provider: string;
}

export interface WholeAnswer {
  completion: ChatCompletion;
  served: Served;
  usage: AnswerUsage;
  metadata: Record<string, unknown> | undefined;
}

/** What a stream is made of: one `open`, then `chunks`, then one `end`. */
export type StreamEvent =
  | { type: 'open'; served: Served; upstream_bodies: JsonObject[] }
  | { type: 'chunks'; chunks: ChatChunk[] }
  | { type: 'end'; usage: AnswerUsage; metadata: Record<string, unknown> | undefined; error: GatewayError | undefined };

/**
 * How one call is answered: plan, attempt endpoints in order until one answers, meter, settle. The generation's record
 * is written exactly once, before the client sees the end, also when it left.
 */
export interface Inference extends Metered {
  /** Throws `GatewayError`; `ClientGone` when the client left first. */
  complete(call: Call): Promise<WholeAnswer>;
  /**
   * Throws `GatewayError` before `open`, `ClientGone` any time; after `open` failures arrive in `end`. The consumer reads
   * to the end, also after its client has left.
   */
  stream(call: Call): AsyncGenerator<StreamEvent, void, undefined>;
  /** What would become of a chat call that came now. Throws `GatewayError` for a request that nobody could route. */
  explain(call: Call): Promise<Explanation>;
  /** A call that is not chat. Throws `GatewayError`; `ClientGone` when the client left first. */
  run<P extends Prepared, A>(call: Call, task: Task<P, A>): Promise<TaskAnswer<A>>;
}

export function createInference(options: InferenceOptions): Inference {
  const { clock, log, metrics, recorder, states } = options;
  const settlement = createSettlement(options);
  const { note, soFar, settle } = settlement;
  const admission = createAdmission(options);
  const { cutReason } = admission;
  const measure = createMeasure(options.tokenizer);
  const attempts = createAttempts(options, admission, settlement);
  const steps = createSteps(options, settlement, attempts);
  const { metadataOf, lateError } = steps;

  const chat = createChatWork(options);
  function tryChat<T>(session: Session, send: (prepared: PreparedAttempt) => Promise<T>) {
    const { call } = session;
    const { request } = call;
    const fetched = createCallMedia(call, options.media);
    /** What the attempt under way needs. */
    let media: Media = NO_MEDIA;
    return steps.tryInOrder(session, {
      ready(candidate) {
        media = NO_MEDIA;
        const needs = chat.needs(request, candidate);
        if (needs.length === 0) return undefined;
        return fetched.gather(needs).then((found) => {
          media = found;
        });
      },
      prepare: (candidate, strip_state, spend) => chat.prepare(request, candidate, { strip_state, spend, media }),
      measure,
      send(prepared) {
        if (request.debug?.echo_upstream_body === true) session.bodies.push(prepared.encoded.body);
        return send(prepared);
      },
    });
  }

  function attemptContext({ call, attempts }: Session) {
    const { upstream, first_token_ms_max, total_ms_max } = options;
    return { upstream, call, attempt: attempts.length + 1, first_token_ms_max, total_ms_max };
  }

  function keeperOf({ call }: Session, candidate: Candidate) {
    return states.keeper(call, candidate, wireOf(candidate));
  }

  function served(candidate: Candidate): Served {
    return { model: candidate.model.id, provider: candidate.provider.name };
  }

  /** An answer that ended in an error before it held anything is a failure like any other. */
  function requireSubstance(meter: Meter): void {
    if (!meter.produced && meter.finish_reason === 'error') {
      throw new UpstreamError('unavailable', 'The provider ended its answer with an error', {
        status: 200,
        native_code: meter.native_finish_reason,
      });
    }
  }

  return {
    [METERED]: true,
    async complete(call) {
      const session = await steps.open(call, chat.wanted(call));
      const { value, prepared, candidate } = await tryChat(session, async (prepared) => {
        const completion = await attemptWhole(prepared, attemptContext(session));
        const meter = createMeter();
        meter.completion(completion);
        requireSubstance(meter);
        return { completion, meter };
      });
      const { completion, meter } = value;
      session.first_token_ms = clock.monotonic_ms();
      const attempt = note(session, candidate, { status: 200, failure: null });
      const outcome = call.cancellation.cancelled ? 'cancelled' : 'completed';
      const usage = await settle(session, outcome, { meter, candidate, prepared, attempt });
      const kept = keeperOf(session, candidate)?.whole(completion) ?? completion;
      return { completion: kept, served: served(candidate), usage, metadata: metadataOf(session, candidate) };
    },

    explain: createExplain(options, steps, chat, measure),

    run: (call, task) => runTask(call, task, { ...options, ...steps, note, settle }),

    async *stream(call) {
      const session = await steps.open(call, chat.wanted(call));
      const { value, prepared, candidate } = await tryChat(session, async (prepared) => {
        const stream = await attemptStream(prepared, attemptContext(session));
        const meter = createMeter();
        for (const chunk of stream.first) meter.chunk(chunk);
        try {
          requireSubstance(meter);
        } catch (error) {
          stream.close();
          throw error;
        }
        return { stream, meter };
      });
      const { stream, meter } = value;
      session.first_token_ms = clock.monotonic_ms();
      const attempt = note(session, candidate, { status: 200, failure: null });
      const answered = { meter, candidate, prepared, attempt };
      const keeper = keeperOf(session, candidate);
      const shown = (chunks: ChatChunk[]): StreamEvent => ({ type: 'chunks', chunks: keeper?.add(chunks) ?? chunks });
      metrics.streamOpened();
      // How it ends when neither the upstream's end nor a failure is reached: the consumer stopped reading.
      let unfinished: 'cancelled' | undefined = 'cancelled';
      try {
        yield { type: 'open', served: served(candidate), upstream_bodies: session.bodies };
        if (stream.first.length > 0) yield shown(stream.first);
        const failure = yield* rest(session, stream, answered, shown);
        unfinished = undefined;
        const outcome =
          failure instanceof ClientGone || call.cancellation.cancelled ? 'cancelled' : failure ? 'failed' : 'completed';
        if (failure instanceof UpstreamError) attempt.failure = failure.failure;
        const usage = await settle(session, outcome, answered);
        if (failure instanceof ClientGone) throw failure;
        const error = failure ? lateError(session, candidate, failure) : undefined;
        yield { type: 'end', usage, metadata: metadataOf(session, candidate), error };
      } catch (error) {
        if (unfinished === undefined) throw error;
        // A fault of ours, or of what cannot be written: the client is told all the same what its answer cost.
        unfinished = undefined;
        stream.close();
        attempt.failure = 'internal';
        const usage = await settle(session, 'failed', answered);
        const told = error instanceof GatewayError ? error : internalError(error);
        yield { type: 'end', usage, metadata: metadataOf(session, candidate), error: told };
      } finally {
        stream.close();
        metrics.streamClosed();
        if (unfinished !== undefined) await settle(session, unfinished, answered);
      }
    },
  };

  /** The reads after the first; returns the failure that ended the stream, if one did. */
  async function* rest(
    session: Session,
    stream: OpenStream,
    answered: Answered & { meter: Meter },
    shown: (chunks: ChatChunk[]) => StreamEvent,
  ): AsyncGenerator<StreamEvent, UpstreamError | ClientGone | undefined, undefined> {
    const { meter } = answered;
    let progress_ms = clock.monotonic_ms();
    try {
      for (;;) {
        const reason = session.grant && (await cutReason({ hold: session.hold, grant: session.grant, meter }));
        if (reason !== undefined) {
          yield { type: 'chunks', chunks: [cut(session, answered, reason, log)] };
          await readOn(session, stream, answered);
          return undefined;
        }
        const chunks = await stream.next();
        if (chunks === undefined) return undefined;
        for (const chunk of chunks) meter.chunk(chunk);
        if (chunks.length > 0) yield shown(chunks);
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
}
