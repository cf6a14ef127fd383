import type { Model } from '../../catalog/model.ts';
import type { Report } from '../../providers/dialect.ts';
import { dialectOf } from '../../providers/dialects.ts';
import type { Candidate } from '../../routing/plan.ts';
import { contentsOf } from '../../schemas/contents.ts';
import type { Call } from '../call.ts';
import type { ModelSource } from '../plan/requested-models.ts';
import { issuerOf, type RestoredCall, type TurnStates } from '../reasoning/states.ts';
import { type Preparation, subjectsOf } from './adapters.ts';

export interface PrepareCallOptions {
  /** Restores the reasoning state that clients do not send back. */
  states: TurnStates;
  /** Change calls before they are planned, in order. */
  preparations?: readonly Preparation[] | undefined;
}

/** The facts about a call before its plan. */
interface PlanContext {
  models: readonly Model[];
  catalog: ModelSource;
}

/** A call that is ready to be planned, and the candidates that it prefers. */
export interface PreparedCall {
  call: Call;
  /** Changes that were made to the request for all endpoints. */
  report: readonly Report[];
  prefers?: ((candidate: Candidate) => boolean) | undefined;
}

/** Prepares a chat call for its plan when its models are known. */
export type PrepareCall = (call: Call, context: PlanContext) => PreparedCall | Promise<PreparedCall>;

const NO_CHANGES: Omit<PreparedCall, 'call'> = { report: [] };

/** Whether an endpoint that may serve the call accepts opaque reasoning state. */
function mayCarryState({ models, catalog }: PlanContext): boolean {
  return models.some(({ endpoints }) =>
    endpoints.some((endpoint) => {
      const wire = endpoint.dialect ?? catalog.provider(endpoint.provider)?.dialect;
      return wire !== undefined && dialectOf(wire).facts.carriesState(endpoint.quirks);
    }),
  );
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

export function createPrepareCall({ states, preparations = [] }: PrepareCallOptions): PrepareCall {
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
    const subjects = subjectsOf(original.request);
    for (const feature of preparations) {
      if (!subjects.includes(feature.of)) continue;
      prepared =
        prepared instanceof Promise
          ? prepared.then((call) => feature.prepare(call, models))
          : feature.prepare(prepared, models);
    }
    return prepared instanceof Promise ? prepared.then((call) => ({ ...rest, call })) : { ...rest, call: prepared };
  }

  return prepareCall;
}
