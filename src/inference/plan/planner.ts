import { GatewayError } from '../../errors.ts';
import { restrictionStages } from '../../guardrails/policy/restrictions.ts';
import type { Recorder } from '../../ledger/recorder.ts';
import type { Report, UpstreamError } from '../../providers/dialect.ts';
import type { Health } from '../../routing/health.ts';
import type { OwnCredential } from '../../routing/own-credential.ts';
import { type Candidate, NoEndpoint, type Plan, plan } from '../../routing/plan.ts';
import type { Stickiness } from '../../routing/stickiness.ts';
import { withOne } from '../../schemas/append.ts';
import { contentsOf } from '../../schemas/contents.ts';
import type { Wire } from '../../schemas/inner.ts';
import { attemptFacts } from '../attempt/attempt-facts.ts';
import type { Attempts } from '../attempt/attempts.ts';
import { clientError, earlierErrors, type FailedAttempt } from '../attempt/failure.ts';
import { outcomeOf } from '../attempt/upstream-call.ts';
import type { Ended } from '../attempt/work.ts';
import type { Call, Clock } from '../call.ts';
import type { Settlement } from '../money/settlement.ts';
import { routingMetadata, type ShownAttempt, shownOwn } from '../observe/metadata.ts';
import type { Traffic } from '../observe/traffic.ts';
import { subjectsOf } from '../prepare/adapters.ts';
import { inClientsWords } from '../prepare/client-fields.ts';
import type { PrepareCall, PreparedCall } from '../prepare/prepare-call.ts';
import { type Attempt, CallState } from '../state.ts';
import { defaultModel, defaultSort, type RoutingRules } from './caller-defaults.ts';
import { allowedBy, restrictedFacts, restrictionOf } from './guardrail-restrictions.ts';
import type { RateLimits } from './rate-limits.ts';
import { type ModelSource, onlyModel, type Requested, requestedModels } from './requested-models.ts';
import { ConversationAffinity, type SessionAffinity } from './session-affinity.ts';

export interface PlannerOptions {
  /** Called once for each request, so that a reload takes effect at once. */
  catalog(): ModelSource;
  /** The catalog with the providers that are only active for callers with their own credential. */
  wholeCatalog(): ModelSource;
  /** The enabled credentials of the caller's workspace. Synchronous if the workspace was used recently. */
  ownCredentials(
    caller: Call['principal'],
    storeWait?: Call['store_wait'],
  ): readonly OwnCredential[] | Promise<readonly OwnCredential[]>;
  recorder: Recorder;
  health: Health;
  /** Receives the observations of calls about their endpoints. */
  traffic: Traffic;
  clock: Clock;
  /** A random number from 0 to below 1. */
  chance(): number;
  allow_unpriced: boolean;
  /** Called once for each request, so that a reload takes effect at once. */
  routing(): RoutingRules;
  /** Prepares chat calls; calls of other operations are planned as they are. */
  prepareCall: PrepareCall;
  /** The model of requests that name none. */
  default_model: string | undefined;
  /** Keeps conversations at their endpoints. */
  stickiness: Stickiness;
  /** Counts requests and tokens against the operator's rate limits. Not set if there are none. */
  rates?: RateLimits;
}

/** The wire of an endpoint: its own, or that of its provider. */
export function wireOf({ endpoint, provider }: Pick<Candidate, 'endpoint' | 'provider'>): Wire {
  return endpoint.dialect ?? provider.dialect;
}

const NO_CHANGES: readonly Report[] = [];

/** How an operation other than chat finds the models of a call, and the conditions for their endpoints. */
export interface Wanted {
  /** Throws the operation's refusal of a model that is unknown or does not support the operation. */
  models(catalog: ModelSource): Requested;
  /** The reason why an endpoint cannot serve this operation; undefined if it can. Not set if the call says it (`Call.refuses`). */
  refuses?: ((candidate: Candidate) => string | undefined) | undefined;
}

/** Plans calls of every operation, counts them against rate limits, and ends those that no endpoint answers. `wanted`: not set for chat. */
export interface Planner {
  /** Plans a call without side effects; at once if nothing has to be read for it. Throws or rejects as `open` does. */
  planned(call: Call, wanted?: Wanted): CallState | Promise<CallState>;
  /** See `Inference.routingOf`. */
  routingOf(call: Call, wanted?: Wanted): Promise<Record<string, unknown> | undefined>;
  /**
   * Plans a call and counts it against rate limits; at once if nothing has to be waited for. Throws `GatewayError`, or rejects with it, if
   * no endpoint can be tried.
   */
  open(call: Call, wanted?: Wanted): CallState | Promise<CallState>;
  /**
   * Settles a call that no endpoint answered. Returns the error to throw: the last failure as the client's `GatewayError`, or
   * `CallCancelled` if the client left.
   */
  giveUp(state: CallState, ended: Ended): Promise<unknown>;
  /** The routing metadata, for a client that requests it. */
  metadataOf(state: CallState, selected: Candidate | undefined): Record<string, unknown> | undefined;
  /** The client's error for a failure after the endpoint began to answer. */
  lateError(state: CallState, attempt: Attempt, failure: UpstreamError): GatewayError;
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

/** What the plan of a call is made of, besides its request. */
interface Basis {
  wanted: Wanted | undefined;
  own: readonly OwnCredential[];
  catalog: ModelSource;
  rules: RoutingRules;
  named: Requested;
  home: () => SessionAffinity;
}

/** An attempt as routing metadata shows it. */
function shownAttempt({ candidate: { provider, model, own }, record }: Attempt): ShownAttempt {
  const { status } = record!;
  return { provider: provider.name, model: model.id, status: status ?? 0, ...shownOwn(own), ...attemptFacts(record!) };
}

export function createPlanner(
  options: PlannerOptions,
  { settle }: Pick<Settlement, 'settle'>,
  { reportFailure }: Pick<Attempts, 'reportFailure'>,
): Planner {
  const { clock, health, prepareCall, rates, recorder } = options;

  function planned(received: Call, wanted?: Wanted): CallState | Promise<CallState> {
    if (!recorder.admits()) {
      throw new GatewayError(503, 'The gateway cannot record requests at the moment; try again soon', {
        headers: { 'retry-after': '1' },
      });
    }
    const own = options.ownCredentials(received.principal, received.store_wait);
    return own instanceof Promise
      ? own.then((read) => plannedWith(received, wanted, read))
      : plannedWith(received, wanted, own);
  }

  function plannedWith(
    received: Call,
    wanted: Wanted | undefined,
    own: readonly OwnCredential[],
  ): CallState | Promise<CallState> {
    // The providers that require an own credential are in it only if the caller has one for them.
    const usual = options.catalog();
    const isUsual = own.length === 0 || own.every(({ provider }) => usual.provider(provider) !== undefined);
    const catalog = isUsual ? usual : options.wholeCatalog();
    let affinity: SessionAffinity | undefined;
    const home = () => {
      affinity ??= new ConversationAffinity(received, options.stickiness, clock);
      return affinity;
    };
    const rules = options.routing();
    let named: Requested;
    try {
      named =
        wanted?.models(catalog) ?? onlyModel(received.request, catalog) ?? namedBy(received, catalog, rules, home);
    } catch (error) {
      throw shownTo(received, error, received.request.model ?? received.request.models?.[0]);
    }
    const call = named.request === undefined ? received : { ...received, request: named.request };
    const basis: Basis = { wanted, own, catalog, rules, named, home };
    // Reasoning state may be missing, or a preparation may concern the request.
    if (wanted === undefined && (contentsOf(call.request).is_stateful || subjectsOf(call.request).length > 0)) {
      const preparing = prepareCall(call, { models: named.models, catalog });
      return preparing instanceof Promise
        ? preparing.then((prepared) => stateOf(prepared, basis))
        : stateOf(preparing, basis);
    }
    return stateOf({ call, report: NO_CHANGES }, basis);
  }

  /** The state of a call that is ready to be planned. */
  function stateOf({ call, report, prefers }: PreparedCall, basis: Basis): CallState {
    const { wanted, own, catalog, rules, named, home } = basis;
    const isChat = wanted === undefined;
    const mayHaveSort = call.principal.defaults?.default_provider_sort != null || rules.users.size > 0;
    try {
      const planOfCall = plan(call.request, {
        models: named.models,
        variants: named.variants,
        strategy: named.strategy,
        default_sort: mayHaveSort ? defaultSort(call.principal, rules) : undefined,
        provider: catalog.provider,
        health,
        now_ms: clock.nowMs(),
        draw: options.chance(),
        allow_unpriced: options.allow_unpriced,
        own,
        caller: call.principal,
        refuses: wanted?.refuses ?? call.refuses,
        endpointFor: call.endpointFor,
        restricts: call.principal.guardrails.length === 0 ? undefined : restrictionOf(call.principal),
        prefers,
        sticky: isChat ? (candidate) => home().isAt(candidate) : undefined,
      });
      const changes = call.changes === undefined ? report : [...call.changes, ...report];
      return new CallState({
        call,
        catalog,
        plan: planOfCall,
        named,
        report: changes,
        home: isChat ? home : undefined,
      });
    } catch (error) {
      throw shownTo(call, error, named.requested);
    }
  }

  /** The models of a call that does not name exactly one by its id. */
  function namedBy(call: Call, catalog: ModelSource, rules: RoutingRules, home: () => SessionAffinity): Requested {
    return requestedModels(call.request, {
      catalog,
      routers: rules,
      draw: options.chance,
      defaultModel: () => defaultModel(call.principal, rules, options.default_model, call.request),
      home: (router) => home().ofRouter(router),
      allows: (model) => allowedBy(call, catalog)?.(model) !== false,
    });
  }

  function open(call: Call, wanted?: Wanted): CallState | Promise<CallState> {
    const state = planned(call, wanted);
    return state instanceof Promise ? state.then(counted) : counted(state);
  }

  /** Counts a planned call: the last check, so that refused calls do not count. */
  function counted(state: CallState): CallState | Promise<CallState> {
    const counting = rates?.open({ call: state.call, plan: state.plan, variants: state.named.variants });
    if (counting instanceof Promise) {
      return counting.then((reservation) => {
        state.reservation = reservation;
        return state;
      });
    }
    state.reservation = counting;
    return state;
  }

  /** A refusal of routing, with the routing metadata if the client asks for it. */
  function shownTo(call: Call, error: unknown, requested: string | undefined): unknown {
    if (!(error instanceof NoEndpoint) || !call.wants_metadata) return error;
    const { plan } = error;
    const stages = error.status === 403 ? stagesOf(call, plan) : call.stages;
    const nothing = { attempts: [], selected: undefined, report: [] };
    const facts = { call: { ...call, stages }, plan, requested: requested ?? plan.requested, ...nothing };
    return error.with({ gateway_metadata: routingMetadata(facts) });
  }

  /** The stages of a call whose guardrails exclude all endpoints, with the stages of these guardrails. */
  function stagesOf({ principal, stages }: Call, { candidates }: Plan): Call['stages'] {
    return [...stages, ...restrictionStages(principal.guardrails, candidates.map(restrictedFacts))];
  }

  function metadataOf(state: CallState, selected: Candidate | undefined): Record<string, unknown> | undefined {
    const { plan, named, attempts, report: planReport, lastSent, routing, usage } = state;
    const call = lastSent?.call ?? state.call;
    if (!call.wants_metadata) return undefined;
    const report = [...planReport, ...(lastSent?.report ?? [])];
    const facts = { call, plan, requested: named.requested, routing, usage, selected, report };
    return routingMetadata({ ...facts, attempts: attempts.map(shownAttempt) });
  }

  async function routingOf(call: Call, wanted?: Wanted): Promise<Record<string, unknown> | undefined> {
    if (!call.wants_metadata) return undefined;
    try {
      const { plan, named, call: suited } = await planned(call, wanted);
      return routingMetadata({
        call: suited,
        plan,
        requested: named.requested,
        attempts: [],
        selected: undefined,
        report: [],
        is_refused: true,
      });
    } catch (error) {
      return error instanceof GatewayError ? error.gateway_metadata : undefined;
    }
  }

  async function giveUp(state: CallState, { ended, error }: Ended): Promise<unknown> {
    switch (ended) {
      case 'unsent':
        return withdrawn(state, error);
      case 'failed':
        await settle(state, 'failed', undefined);
        return withMetadata(state, clientError(state.failed));
      case 'cancelled':
      case 'internal':
        await settle(state, outcomeOf(error, state.call), undefined);
        return error;
    }
  }

  /** Ends a call whose next attempt was not sent: no money, no journal, or the client left. The cost of earlier attempts is settled. */
  async function withdrawn(state: CallState, error: unknown): Promise<unknown> {
    if (state.record === undefined) {
      recorder.release(state.hold);
      state.reservation?.release();
    } else await settle(state, outcomeOf(error, state.call), undefined);
    if (error instanceof GatewayError && error.status === 429) return withEarlier(error, state.failed);
    // Routing metadata is only for refusals that depend on the endpoint.
    if (!(error instanceof GatewayError) || (error.status !== 402 && error.status !== 400)) return error;
    return withMetadata(state, withEarlier(inClientsWords(error, state.call), state.failed));
  }

  /** The client's error with the routing metadata, if the client asks for it. */
  function withMetadata(state: CallState, error: GatewayError): GatewayError {
    const metadata = metadataOf(state, undefined);
    return metadata === undefined ? error : error.with({ gateway_metadata: metadata });
  }

  function lateError(state: CallState, attempt: Attempt, failure: UpstreamError): GatewayError {
    const known = state.failed.find(({ error }) => error === failure);
    if (known !== undefined) return clientError([known]);
    reportFailure(attempt, failure);
    const { provider, own } = attempt.candidate;
    state.failed = withOne(state.failed, { provider, own, error: failure });
    return clientError(state.failed.slice(-1));
  }

  return { planned, routingOf, open, giveUp, metadataOf, lateError };
}
