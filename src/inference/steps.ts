import type { Model } from '../catalog/model.ts';
import { GatewayError } from '../errors.ts';
import type { Recorder } from '../ledger/recorder.ts';
import { type Report, UpstreamError } from '../providers/dialect.ts';
import { wasNeverSent } from '../providers/upstream.ts';
import type { Health } from '../routing/health.ts';
import type { OwnCredential } from '../routing/own-credential.ts';
import { type Candidate, healthId, NoEndpoint, type Plan, plan } from '../routing/plan.ts';
import type { TokenClasses, Wire } from '../schemas/inner.ts';
import type { Admission, Measure, Prepared } from './admission.ts';
import { type AttemptFacts, attemptFacts } from './attempt-facts.ts';
import type { Call, Clock } from './call.ts';
import { ClientGone } from './exchange.ts';
import { clientError, earlierErrors, type FailedAttempt, fallsOver, isOfEndpoint } from './failure.ts';
import type { SpendBound } from './fit-request.ts';
import { openRecord } from './generation.ts';
import { routingMetadata } from './metadata.ts';
import type { ModelSource } from './requested-models.ts';
import type { Session, Settlement } from './settlement.ts';

export interface StepsOptions {
  /** Asked once a request, so that a reload takes effect at once. */
  catalog(): ModelSource;
  /** The same with the providers that are on for those alone who bring a credential. */
  wholeCatalog(): ModelSource;
  /** The credentials of the caller's workspace that are not disabled: at once for a workspace seen lately. */
  ownCredentials(caller: Call['principal']): readonly OwnCredential[] | Promise<readonly OwnCredential[]>;
  recorder: Recorder;
  health: Health;
  clock: Clock;
  /** A number from 0 to 1, below 1: routing has no chance of its own. */
  chance(): number;
  allow_unpriced: boolean;
}

/** The wire of an endpoint: its own, where it speaks another than its provider. */
export function wireOf({ endpoint, provider }: Candidate): Wire {
  return endpoint.dialect ?? provider.dialect;
}

/** What a call is for: which models, and at which of their endpoints. */
export interface Wanted {
  /** Throws the operation's own refusal of a model that there is not, or that is for something else. */
  models(catalog: ModelSource): { models: Model[]; requested: string };
  /** Why an endpoint cannot serve this operation at all; undefined: it can. Absent: all can. */
  refuses?: ((candidate: Candidate) => string | undefined) | undefined;
  /** The call as it is planned, once its models are known, and which candidates suit it best. Absent: as it came. */
  recall?(call: Call, known: { models: readonly Model[]; catalog: ModelSource }): Suited | Promise<Suited>;
}

/** A call, and where its conversation is at home. */
export interface Suited {
  call: Call;
  /** What is changed of it, wherever it goes. */
  told: readonly Report[];
  prefers?: ((candidate: Candidate) => boolean) | undefined;
}

/** A call, and where it may go. */
export interface Planned {
  call: Call;
  /** What can be called, at the prices that hold for the call. */
  catalog: ModelSource;
  plan: Plan;
  requested: string;
  /** What is changed of the request, wherever it goes. */
  told: readonly Report[];
}

/** One kind of call, as it is taken through the steps. */
export interface Work<P extends Prepared, T> {
  /** Gets ready what encoding for this endpoint needs. Throws `GatewayError` as `prepare` does, or `ClientGone`. Absent: nothing is needed. */
  ready?(candidate: Candidate): Promise<void> | undefined;
  /** Encodes for one endpoint. Throws `GatewayError` 400 for what its wire cannot carry: another's may. */
  prepare(candidate: Candidate, strip_state: boolean, spend?: SpendBound): P;
  /** What it may cost. */
  measure: Measure<P>;
  /** Sends what is durable now, and waits until it is sure that this endpoint answers. Throws `UpstreamError` or `ClientGone`. */
  send(prepared: P): Promise<T>;
  /** What of an attempt that failed was answered all the same, and is billed. Absent: nothing ever is. */
  used?(): TokenClasses | null;
}

/** An endpoint that answered. */
export interface Reached<P, T> {
  value: T;
  prepared: P;
  candidate: Candidate;
}

/** The steps that every call to a model takes, whatever it asks for: plan, then for each endpoint money, journal and send. */
export interface Steps {
  /** Where a call would go. Nothing comes of it. Throws as `open` does. */
  planned(call: Call, wanted: Wanted): Promise<Planned>;
  /** Throws `GatewayError` where nothing can be tried. */
  open(call: Call, wanted: Wanted): Promise<Session>;
  /**
   * Endpoints in order, until one answers. What failed is noted, and where none is left settled; then the last failure is
   * thrown as the client's `GatewayError`. Throws `ClientGone`, settled as well, when the client left.
   */
  tryInOrder<P extends Prepared, T>(session: Session, work: Work<P, T>): Promise<Reached<P, T>>;
  /** How the call was routed, for a client that asks. */
  metadataOf(session: Session, selected: Candidate | undefined): Record<string, unknown> | undefined;
  /** The client's error for a failure that came after the endpoint had begun to answer. */
  lateError(session: Session, candidate: Candidate, failure: UpstreamError): GatewayError;
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
  const prices = ['prompt', 'completion', 'audio_second'] as const;
  return prices.some((name) => (one[name] ?? 0) < (other[name] ?? 0));
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

function factsAt({ attempts }: Session, at: number): AttemptFacts | undefined {
  const attempt = attempts[at];
  return attempt && attemptFacts(attempt);
}

export function createSteps(
  options: StepsOptions,
  { admit }: Pick<Admission, 'admit'>,
  { note, settle }: Pick<Settlement, 'note' | 'settle'>,
): Steps {
  const { clock, health, recorder } = options;

  async function planned(given: Call, { models: pick, refuses, recall }: Wanted): Promise<Planned> {
    if (!recorder.admits()) {
      throw new GatewayError(503, 'The gateway cannot record requests at the moment; try again later', {
        headers: { 'retry-after': '1' },
      });
    }
    const asked = options.ownCredentials(given.principal);
    const own = asked instanceof Promise ? await asked : asked;
    const catalog = catalogFor(own);
    const { models, requested } = pick(catalog);
    const suited = recall?.(given, { models, catalog });
    const { call, told, prefers } = (suited instanceof Promise ? await suited : suited) ?? { call: given, told: [] };
    const plan = planFor(call, { catalog, models, requested, own, refuses, prefers });
    return { call, catalog, plan, requested, told };
  }

  async function open(given: Call, wanted: Wanted): Promise<Session> {
    const routed = await planned(given, wanted);
    return {
      ...routed,
      record: undefined,
      hold: { id: given.generation_id, lines: [], granted_nano: 0 },
      grant: undefined,
      attempts: [],
      shown: [],
      failed: [],
      report: [],
      bodies: [],
      service_tier: undefined,
      is_sent: false,
      sent_ms: 0,
      waited_ms: 0,
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
      refuses,
      prefers,
    }: {
      catalog: ModelSource;
      models: Model[];
      requested: string;
      own: readonly OwnCredential[];
      refuses: Wanted['refuses'];
      prefers: Suited['prefers'];
    },
  ): Plan {
    try {
      return plan(call.request, {
        models,
        provider: (slug) => catalog.provider(slug),
        health,
        now_ms: clock.now_ms(),
        draw: options.chance(),
        allow_unpriced: options.allow_unpriced,
        own,
        caller: call.principal,
        refuses,
        prefers,
      });
    } catch (error) {
      if (!(error instanceof NoEndpoint) || !call.wants_metadata) throw error;
      const nothing = { attempts: [], selected: undefined, report: [] };
      throw withRouting(error, routingMetadata({ plan: error.plan, requested, ...nothing }));
    }
  }

  function metadataOf(session: Session, selected: Candidate | undefined): Record<string, unknown> | undefined {
    if (!session.call.wants_metadata) return undefined;
    const { plan, requested, shown, told, report } = session;
    const attempts = shown.map((one, at) => ({ ...one, ...factsAt(session, at) }));
    return routingMetadata({ plan, requested, attempts, selected, report: [...told, ...report] });
  }

  /** Encodes for an endpoint, sets aside what the attempt may cost, makes it durable, and sends it. */
  async function tryOne<P extends Prepared, T>(
    session: Session,
    candidate: Candidate,
    strip_state: boolean,
    work: Work<P, T>,
  ): Promise<{ value: T; prepared: P }> {
    const { call } = session;
    const begun_ms = clock.monotonic_ms();
    const waiting = work.ready?.(candidate);
    if (waiting !== undefined) await waiting;
    const { prepared, hold, grant } = await admit({
      call,
      hold: session.hold,
      is_byok: candidate.own !== undefined,
      prepare: (spend) => work.prepare(candidate, strip_state, spend),
      measure: work.measure,
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
    session.service_tier = prepared.service_tier;
    session.sent_ms = clock.monotonic_ms();
    session.waited_ms = session.sent_ms - begun_ms;
    session.is_sent = true;
    if (call.cancellation.cancelled) throw new ClientGone({ may_be_billed: false });
    return { value: await work.send(prepared), prepared };
  }

  /** The attempt loop: endpoints in order, until one answers. What failed is noted; the last failure becomes the client's. */
  async function tryInOrder<P extends Prepared, T>(session: Session, work: Work<P, T>): Promise<Reached<P, T>> {
    let refused: GatewayError | undefined;
    for (const candidate of session.plan.attempts) {
      for (let strip_state = false; ; strip_state = true) {
        session.is_sent = false;
        try {
          const { value, prepared } = await tryOne(session, candidate, strip_state, work);
          health.succeeded(healthId(candidate), clock.now_ms());
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
            note(session, candidate, {
              status: null,
              failure: 'client_gone',
              is_unknown: error.may_be_billed,
              used: work.used?.(),
            });
            await settle(session, 'cancelled', undefined);
            throw error;
          }
          if (!(error instanceof UpstreamError)) throw await failUnexpectedly(session, candidate, error);
          const is_unknown = mayHaveAnswered(error);
          note(session, candidate, { status: error.status, failure: error.failure, is_unknown, used: work.used?.() });
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

  function lateError(session: Session, candidate: Candidate, failure: UpstreamError): GatewayError {
    blame(session, candidate, failure);
    session.failed.push({ provider: candidate.provider, own: candidate.own, error: failure });
    return clientError(session.failed.slice(-1));
  }

  return { planned, open, tryInOrder, metadataOf, lateError };
}
