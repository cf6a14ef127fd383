import type { Model } from '../../catalog/model.ts';
import { GatewayError, invalidField } from '../../errors.ts';
import { inTurns } from '../../http/in-turns.ts';
import { limits } from '../../limits.ts';
import type { Media, MediaNeed, Report } from '../../providers/dialect.ts';
import { dialectOf } from '../../providers/dialects.ts';
import {
  inlinesMedia,
  type LeftAddress,
  leftAddress,
  leftAddressSteps,
  webMedia,
  withInlineMedia,
} from '../../providers/shared/media-addresses.ts';
import type { Candidate } from '../../routing/plan.ts';
import type { Stickiness } from '../../routing/stickiness.ts';
import { contentsOf } from '../../schemas/contents.ts';
import type { ChatRequest } from '../../schemas/inner.ts';
import { type PreparedAttempt, prepareAttempt, type SpendBound } from '../attempt/attempt.ts';
import type { Call } from '../call.ts';
import { defaultModel, type RoutingRules } from '../plan/caller-defaults.ts';
import { type PreparedCall, restrictionOf, type Wanted, wireOf } from '../plan/planner.ts';
import { type ModelSource, requestedModels } from '../plan/requested-models.ts';
import { issuerOf, type RestoredCall, type TurnStates } from '../reasoning/states.ts';
import type { Preparation } from './adapters.ts';
import { leftOut } from './left-out.ts';

export interface ChatWorkOptions {
  /** Restores the reasoning state that clients do not send back. */
  states: TurnStates;
  default_model: string | undefined;
  /** Read for each call: a reload takes effect at once. */
  routing(): RoutingRules;
  stickiness: Stickiness;
  chance(): number;
  /** Change calls before they are planned, in order. */
  preparations?: readonly Preparation[] | undefined;
}

/** How an attempt is encoded, besides its request. */
export interface Encoding {
  strip_state: boolean;
  spend: SpendBound | undefined;
  media: Media;
  /** Changes that were made to the request for this endpoint before. Not set: none. */
  report?: readonly Report[] | undefined;
}

/** Chat calls as routing and encoding see them, whether they are sent or only explained. */
export interface ChatWork {
  readonly wanted: Wanted;
  /** The media to fetch before the request can be encoded for an endpoint. */
  needs(request: ChatRequest, candidate: Candidate): readonly MediaNeed[];
  /** Encodes for one endpoint. Throws `GatewayError` 400 if its wire cannot carry the request. */
  prepare(request: ChatRequest, candidate: Candidate, encoding: Encoding): PreparedAttempt | Promise<PreparedAttempt>;
}

type PlanContext = Parameters<NonNullable<Wanted['prepareCall']>>[1];

const NO_REPORT: readonly Report[] = [];
const NO_CHANGES: Omit<PreparedCall, 'call'> = { report: NO_REPORT };
const NO_NEEDS: readonly MediaNeed[] = [];

/** Whether an endpoint that may serve the call accepts opaque reasoning state. */
function mayCarryState({ models, catalog }: PlanContext): boolean {
  return models.some(({ endpoints }) =>
    endpoints.some((endpoint) => {
      const wire = endpoint.dialect ?? catalog.provider(endpoint.provider)?.dialect;
      return wire !== undefined && dialectOf(wire).facts.carriesState(endpoint.quirks);
    }),
  );
}

/** Refuses an output bound of 0, which the endpoint's wire does not accept. */
function refuseZeroOutput(): never {
  throw new GatewayError(400, 'max_tokens must be at least 1: this provider does not accept 0', {
    metadata: { violations: [{ path: 'max_tokens', rule: 'must be at least 1' }] },
  });
}

/** Filters restored turns as well: they may be older than the current filters of the caller. */
async function filterRestored(restoring: RestoredCall | Promise<RestoredCall>, original: Call): Promise<RestoredCall> {
  const restoredCall = await restoring;
  const { messages } = restoredCall.call.request;
  const restored = messages.filter((message, at) => message !== original.request.messages[at]);
  if (original.screening === undefined || restored.length === 0) return restoredCall;
  const filtered = await original.screening.messages(restored);
  const replacements = new Map(restored.map((message, at) => [message, filtered[at]!]));
  const request = {
    ...restoredCall.call.request,
    messages: messages.map((message) => replacements.get(message) ?? message),
  };
  return { ...restoredCall, call: { ...restoredCall.call, request } };
}

/** Whether the caller's guardrails allow an endpoint of the model; undefined if they exclude none. */
function allowedBy(call: Call, catalog: ModelSource): ((model: Model) => boolean) | undefined {
  const restricts = restrictionOf(call.principal);
  if (restricts === undefined) return undefined;
  return (model) =>
    model.endpoints.some((endpoint) => {
      const provider = catalog.provider(endpoint.provider);
      return provider !== undefined && restricts({ model, provider, endpoint }) === undefined;
    });
}

export function createChatWork(options: ChatWorkOptions): ChatWork {
  const { states, chance, preparations = [] } = options;

  /** The call with its reasoning state restored, and changed by the preparations. */
  function restoreAndPrepare(call: Call, context: PlanContext): PreparedCall | Promise<PreparedCall> {
    const prepareRestored = ({ issuer, ...restored }: RestoredCall) => {
      const prefers = issuer === undefined ? undefined : (candidate: Candidate) => issuerOf(candidate) === issuer;
      return prepareCall(restored.call, context, { report: restored.report, prefers });
    };
    const restored = states.restore(call, () => mayCarryState(context));
    if (!(restored instanceof Promise) && call.screening === undefined) return prepareRestored(restored);
    return filterRestored(restored, call).then(prepareRestored);
  }

  /** `restored`: the changes of a call whose reasoning state is restored. */
  function prepareCall(
    original: Call,
    context: PlanContext,
    restored?: Omit<PreparedCall, 'call'>,
  ): PreparedCall | Promise<PreparedCall> {
    if (restored === undefined && contentsOf(original.request).is_stateful) return restoreAndPrepare(original, context);
    const { models } = context;
    const rest = restored ?? NO_CHANGES;
    let prepared: Call | Promise<Call> = original;
    for (const prepare of preparations) {
      prepared =
        prepared instanceof Promise ? prepared.then((call) => prepare(call, models)) : prepare(prepared, models);
    }
    return prepared instanceof Promise ? prepared.then((call) => ({ ...rest, call })) : { ...rest, call: prepared };
  }

  return {
    wanted: {
      stickiness: options.stickiness,
      models(catalog, call, home) {
        const routers = options.routing();
        return requestedModels(call.request, {
          catalog,
          routers,
          draw: chance,
          defaultModel: () => defaultModel(call.principal, routers, options.default_model, call.request),
          home: (router) => home?.ofRouter(router),
          allows: (model) => allowedBy(call, catalog)?.(model) !== false,
        });
      },
      prepareCall,
    },

    needs(request, candidate) {
      if (!contentsOf(request).has_more) return NO_NEEDS;
      const dialect = dialectOf(wireOf(candidate));
      const needs = dialect.requiredMedia(request, candidate.endpoint);
      if (!inlinesMedia(dialect, candidate.endpoint)) return needs;
      const urls = new Set(needs.map(({ url }) => url));
      return [...needs, ...webMedia(request.messages).filter(({ url }) => !urls.has(url))];
    },

    prepare(request, candidate, { strip_state, spend, media, report: changes = NO_REPORT }) {
      const { sends, endpoint, provider } = candidate;
      const dialect = dialectOf(endpoint.dialect ?? provider.dialect);
      if (request.max_tokens === 0 && !dialect.facts.takesZeroOutput) refuseZeroOutput();
      let fitted = sends === undefined ? request : { ...request, ...sends };
      let report = changes;
      if (contentsOf(fitted).is_issued) {
        const fit = states.fit(fitted, candidate);
        fitted = fit.request;
        report = [...report, ...fit.report];
      }
      const isInline = endpoint.quirks.inline_media === true && inlinesMedia(dialect, endpoint);
      if (isInline && media.size > 0) fitted = withInlineMedia(fitted, media);
      const preparing = prepareAttempt(fitted, candidate, dialect, strip_state, spend, media);
      const { ext } = request;
      if (ext !== undefined && ext.wire !== dialect.wire) report = [...report, ...leftOut(request, dialect.wire)];
      if (!isInline && report.length === 0) return preparing;
      const reported = (prepared: PreparedAttempt, left: LeftAddress | undefined) => {
        if (left !== undefined) {
          throw invalidField(left.field, `must be sent as data: ${provider.name} receives no addresses`);
        }
        return { ...prepared, report: [...report, ...prepared.report] };
      };
      const finish = (prepared: PreparedAttempt) => {
        if (!isInline) return reported(prepared, undefined);
        // An address that could not be replaced, such as a file inside a block of one wire.
        const { body } = prepared.encoded;
        if (prepared.payload.length < limits.json_long_chars_min) return reported(prepared, leftAddress(body));
        return inTurns(leftAddressSteps(body)).then((left) => reported(prepared, left));
      };
      return preparing instanceof Promise ? preparing.then(finish) : finish(preparing);
    },
  };
}
