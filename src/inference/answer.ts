import type { Model } from '../catalog/model.ts';
import { GatewayError, internalError } from '../errors.ts';
import { METERED, type Metered } from '../http/metered.ts';
import type { Recorder } from '../ledger/recorder.ts';
import { limits } from '../limits.ts';
import { type ChatDialect, UpstreamError } from '../providers/dialect.ts';
import { type Upstream, wasNeverSent } from '../providers/upstream.ts';
import type { Health } from '../routing/health.ts';
import type { OwnCredential } from '../routing/own-credential.ts';
import { type Candidate, healthId, NoEndpoint, type Plan, plan } from '../routing/plan.ts';
import type { ChatChunk, ChatCompletion, Wire } from '../schemas/inner.ts';
import type { JsonObject } from '../schemas/json.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { createAdmission, type SpendingRules } from './admission.ts';
import {
  abortStopsBilling,
  attemptStream,
  attemptWhole,
  ClientGone,
  type OpenStream,
  type PreparedAttempt,
  prepareAttempt,
} from './attempt.ts';
import type { Call, Clock } from './call.ts';
import { clientError, earlierErrors, type FailedAttempt, fallsOver, isOfEndpoint } from './failure.ts';
import { openRecord } from './generation.ts';
import { routingMetadata } from './metadata.ts';
import { createMeter, type Meter } from './meter.ts';
import { type ModelSource, requestedModels } from './requested-models.ts';
import { type Answered, type AnswerUsage, createSettlement, type Session, type SettlementLog } from './settlement.ts';
import type { Tokenizer } from './tokenizer.ts';

export interface InferenceOptions {
  /** Asked once a request, so that a reload takes effect at once. */
  catalog(): ModelSource;
  /** The same with the providers that are on for those alone who bring a credential. */
  wholeCatalog(): ModelSource;
  /** The credentials of the caller's workspace that are not disabled: at once for a workspace seen lately. */
  ownCredentials(caller: Call['principal']): readonly OwnCredential[] | Promise<readonly OwnCredential[]>;
  dialect(wire: Wire): ChatDialect | undefined;
  upstream: Upstream;
  recorder: Recorder;
  tokenizer: Tokenizer;
  health: Health;
  clock: Clock;
  metrics: Metrics;
  log: SettlementLog;
  rules: SpendingRules;
  default_model: string | undefined;
  allow_unpriced: boolean;
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
}

/**
 * Whether a failure leaves open if the provider answered, and bills it: it broke off or took too long without a status. A
 * refused connection and every status, also one told inside a stream, cost nothing.
 */
function mayHaveAnswered(error: UpstreamError): boolean {
  if (error.status !== null || wasNeverSent(error)) return false;
  return error.failure === 'unavailable' || error.failure === 'timeout';
}

/**
 * Where a refusal before the send leaves other attempts to try: another endpoint's wire may carry the request, and where
 * money is short a credential of the organization's own may serve, or an endpoint that asks for less.
 */
function stepPassed(error: unknown, candidate: Candidate, { attempts }: Plan): string | undefined {
  if (!(error instanceof GatewayError)) return undefined;
  if (error.status === 400) return 'Encode';
  if (error.status !== 402) return undefined;
  const later = attempts.slice(attempts.indexOf(candidate) + 1);
  const may_serve = later.some((other) => other.own !== candidate.own || asksLess(other, candidate));
  return may_serve ? 'Admit' : undefined;
}

function asksLess({ endpoint: { pricing: one } }: Candidate, { endpoint: { pricing: other } }: Candidate): boolean {
  return (one.prompt ?? 0) < (other.prompt ?? 0) || (one.completion ?? 0) < (other.completion ?? 0);
}

/** A refusal of the next attempt, with the failures that made it necessary. */
function withEarlier(error: GatewayError, failed: readonly FailedAttempt[]): GatewayError {
  if (failed.length === 0) return error;
  const { status, message, metadata, headers, cause } = error;
  return new GatewayError(status, message, {
    metadata: { ...metadata, previous_errors: earlierErrors(failed) },
    ...(headers ? { headers } : {}),
    cause,
  });
}

/** The same error, with the routing that led to it. */
function withRouting(error: GatewayError, gateway_metadata: Record<string, unknown>): GatewayError {
  const { status, message, metadata, headers, cause } = error;
  return new GatewayError(status, message, {
    gateway_metadata,
    ...(metadata ? { metadata } : {}),
    ...(headers ? { headers } : {}),
    cause,
  });
}

export function createInference(options: InferenceOptions): Inference {
  const { clock, health, metrics, recorder } = options;
  const { note, soFar, settle } = createSettlement(options);
  const { admit, cutReason } = createAdmission(options);
  async function open(call: Call): Promise<Session> {
    if (!recorder.admits()) {
      throw new GatewayError(503, 'The gateway cannot record requests at the moment; try again later', {
        headers: { 'retry-after': '1' },
      });
    }
    const asked = options.ownCredentials(call.principal);
    const own = asked instanceof Promise ? await asked : asked;
    const catalog = catalogFor(own);
    const { models, requested } = requestedModels(call.request, catalog, options.default_model);
    return {
      call,
      catalog,
      plan: planFor(call, { catalog, models, requested, own }),
      requested,
      record: undefined,
      hold: { id: call.generation_id, lines: [], granted_nano: 0 },
      grant: undefined,
      attempts: [],
      shown: [],
      failed: [],
      report: [],
      bodies: [],
      service_tier: undefined,
      is_sent: false,
      sent_ms: 0,
      first_token_ms: undefined,
    };
  }

  /** A provider that is on for those who bring a credential is there for them alone. */
  function catalogFor(own: readonly OwnCredential[]): ModelSource {
    const catalog = options.catalog();
    return own.every(({ provider }) => catalog.provider(provider) !== undefined) ? catalog : options.wholeCatalog();
  }

  function planFor(
    call: Call,
    {
      catalog,
      models,
      requested,
      own,
    }: { catalog: ModelSource; models: Model[]; requested: string; own: readonly OwnCredential[] },
  ): Plan {
    try {
      return plan(call.request, {
        models,
        provider: (slug) => catalog.provider(slug),
        health,
        now_ms: clock.now_ms(),
        allow_unpriced: options.allow_unpriced,
        own,
        caller: call.principal,
      });
    } catch (error) {
      if (!(error instanceof NoEndpoint) || !call.wants_metadata) throw error;
      const nothing = { attempts: [], selected: undefined, report: [] };
      throw withRouting(error, routingMetadata({ plan: error.plan, requested, ...nothing }));
    }
  }

  function metadataOf(session: Session, selected: Candidate | undefined): Record<string, unknown> | undefined {
    if (!session.call.wants_metadata) return undefined;
    const { plan, requested, shown: attempts, report } = session;
    return routingMetadata({ plan, requested, attempts, selected, report });
  }

  /** Encodes for an endpoint, sets aside what the attempt may cost, makes it durable, and sends it. */
  async function tryOne<T>(
    session: Session,
    candidate: Candidate,
    strip_state: boolean,
    send: (prepared: PreparedAttempt) => Promise<T>,
  ): Promise<{ value: T; prepared: PreparedAttempt }> {
    const { call } = session;
    const dialect = options.dialect(candidate.provider.dialect);
    if (dialect === undefined) throw new Error(`no dialect ${candidate.provider.dialect} is registered`);
    const { prepared, hold, grant } = await admit({
      call,
      hold: session.hold,
      is_byok: candidate.own !== undefined,
      prepare: (spend) => prepareAttempt(call.request, candidate, dialect, strip_state, spend),
    });
    session.hold = hold;
    session.grant = grant;
    if (call.cancellation.cancelled) throw new ClientGone({ may_be_billed: false });
    const record = openRecord(call, candidate);
    await recorder.attempt({
      id: call.generation_id,
      attempt: session.attempts.length + 1,
      endpoint: candidate.endpoint.id,
      record: { ...record, attempts: session.attempts },
      hold,
    });
    session.record = record;
    session.report = prepared.report;
    session.bodies.push(prepared.encoded.body);
    session.service_tier = prepared.service_tier;
    session.sent_ms = clock.monotonic_ms();
    session.is_sent = true;
    if (call.cancellation.cancelled) throw new ClientGone({ may_be_billed: false });
    return { value: await send(prepared), prepared };
  }

  /** The attempt loop: endpoints in order, until one answers. What failed is noted; the last failure becomes the client's. */
  async function tryInOrder<T>(
    session: Session,
    send: (prepared: PreparedAttempt) => Promise<T>,
  ): Promise<{ value: T; prepared: PreparedAttempt; candidate: Candidate }> {
    let refused: GatewayError | undefined;
    for (const candidate of session.plan.attempts) {
      for (let strip_state = false; ; strip_state = true) {
        session.is_sent = false;
        try {
          const { value, prepared } = await tryOne(session, candidate, strip_state, send);
          health.succeeded(healthId(candidate));
          return { value, prepared, candidate };
        } catch (error) {
          if (!session.is_sent) {
            const step = stepPassed(error, candidate, session.plan);
            if (!(error instanceof GatewayError) || step === undefined) throw await giveUp(session, error);
            candidate.excluded = { step, reason: error.message };
            refused = error;
            break;
          }
          if (error instanceof ClientGone) {
            note(session, candidate, { status: null, failure: 'client_gone', is_unknown: error.may_be_billed });
            await settle(session, 'cancelled', undefined);
            throw error;
          }
          if (!(error instanceof UpstreamError)) throw await failUnexpectedly(session, candidate, error);
          const is_unknown = mayHaveAnswered(error);
          note(session, candidate, { status: error.status, failure: error.failure, is_unknown });
          session.failed.push({ provider: candidate.provider, own: candidate.own, error });
          if (error.failure === 'state_rejected' && !strip_state) continue;
          blame(session, candidate, error);
          if (!fallsOver(error.failure)) throw await fail(session);
          break;
        }
      }
    }
    const is_refused = session.failed.length === 0 || refused?.status === 402;
    if (refused && is_refused) throw await giveUp(session, refused);
    throw await fail(session);
  }

  /** A call that ends before its next attempt was sent: no money for it, no journal, or no client any more. What earlier attempts may have cost is settled. */
  async function giveUp(session: Session, error: unknown): Promise<unknown> {
    if (session.record === undefined) recorder.release(session.hold);
    else await settle(session, error instanceof ClientGone ? 'cancelled' : 'failed', undefined);
    if (!(error instanceof GatewayError) || error.status !== 402) return error;
    const refusal = withEarlier(error, session.failed);
    const gateway_metadata = metadataOf(session, undefined);
    return gateway_metadata === undefined ? refusal : withRouting(refusal, gateway_metadata);
  }

  function blame({ call }: Session, candidate: Candidate, error: UpstreamError): void {
    if (isOfEndpoint(error, call.request))
      health.failed(healthId(candidate), error.failure, error.retry_after_ms, clock.now_ms());
  }

  /** A fault of ours in the middle of an attempt: the record is closed all the same. */
  async function failUnexpectedly(session: Session, candidate: Candidate, error: unknown): Promise<unknown> {
    note(session, candidate, { status: null, failure: 'internal', is_unknown: true });
    await settle(session, 'failed', undefined);
    return error;
  }

  async function fail(session: Session): Promise<GatewayError> {
    await settle(session, 'failed', undefined);
    const error = clientError(session.failed);
    const gateway_metadata = metadataOf(session, undefined);
    return gateway_metadata === undefined ? error : withRouting(error, gateway_metadata);
  }

  function attemptContext({ call, attempts }: Session) {
    const { upstream, first_token_ms_max, total_ms_max } = options;
    return { upstream, call, attempt: attempts.length + 1, first_token_ms_max, total_ms_max };
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
      const session = await open(call);
      const { value, prepared, candidate } = await tryInOrder(session, async (prepared) => {
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
      return { completion, served: served(candidate), usage, metadata: metadataOf(session, candidate) };
    },

    async *stream(call) {
      const session = await open(call);
      const { value, prepared, candidate } = await tryInOrder(session, async (prepared) => {
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
      metrics.streamOpened();
      // How it ends when neither the upstream's end nor a failure is reached: the consumer stopped reading.
      let unfinished: 'cancelled' | undefined = 'cancelled';
      try {
        yield { type: 'open', served: served(candidate), upstream_bodies: session.bodies };
        if (stream.first.length > 0) yield { type: 'chunks', chunks: stream.first };
        const failure = yield* rest(session, stream, answered);
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
        yield { type: 'end', usage, metadata: metadataOf(session, candidate), error: internalError(error) };
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
    answered: Answered,
  ): AsyncGenerator<StreamEvent, UpstreamError | ClientGone | undefined, undefined> {
    const { meter } = answered;
    let progress_ms = clock.monotonic_ms();
    try {
      for (;;) {
        const reason = session.grant && (await cutReason({ hold: session.hold, grant: session.grant, meter }));
        if (reason !== undefined) {
          yield { type: 'chunks', chunks: [cut(session, answered, reason)] };
          await readOn(session, stream, answered);
          return undefined;
        }
        const chunks = await stream.next();
        if (chunks === undefined) return undefined;
        for (const chunk of chunks) meter.chunk(chunk);
        if (chunks.length > 0) yield { type: 'chunks', chunks };
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

  /** Ends an answer from our side, as if the output bound had been reached. */
  function cut(session: Session, { meter, candidate }: Answered, reason: string): ChatChunk {
    const chunk: ChatChunk = { delta: {}, finish_reason: 'length', native_finish_reason: null };
    meter.chunk(chunk);
    session.report = [...session.report, { kind: 'clamped', field: 'max_tokens', reason }];
    const tokens = meter.outputTokens();
    options.log.warn(
      { generation: session.call.generation_id, endpoint: candidate.endpoint.id, tokens, reason },
      'an answer was cut',
    );
    return chunk;
  }

  /** After a cut, where closing the connection does not end the bill: reads on for a bounded time, so that what is billed is known. */
  async function readOn(session: Session, stream: OpenStream, { meter, prepared }: Answered): Promise<void> {
    if (abortStopsBilling(prepared, session.call)) {
      stream.close();
      return;
    }
    const late = setTimeout(() => stream.close(), limits.drain_ms_max);
    try {
      for (let chunks = await stream.next(); chunks !== undefined; chunks = await stream.next()) {
        for (const { finish_reason: _theirs, ...chunk } of chunks) meter.chunk(chunk);
        if (meter.outputTokens() > limits.drain_tokens_max) return;
      }
    } catch (error) {
      if (!(error instanceof UpstreamError || error instanceof ClientGone)) throw error;
    } finally {
      clearTimeout(late);
    }
  }

  function lateError(session: Session, candidate: Candidate, failure: UpstreamError): GatewayError {
    blame(session, candidate, failure);
    session.failed.push({ provider: candidate.provider, own: candidate.own, error: failure });
    return clientError(session.failed.slice(-1));
  }
}
