import type { Model } from '../../catalog/model.ts';
import { GatewayError, invalidField } from '../../errors.ts';
import type { ChatDialect, Media, MediaNeed } from '../../providers/dialect.ts';
import { dialectOf } from '../../providers/dialects.ts';
import { inlinesMedia, leftAddress, webMedia, withInlineMedia } from '../../providers/shared/media-addresses.ts';
import type { Candidate } from '../../routing/plan.ts';
import type { Stickiness } from '../../routing/stickiness.ts';
import { contentsOf } from '../../schemas/contents.ts';
import type { ChatRequest, Wire } from '../../schemas/inner.ts';
import { type PreparedAttempt, prepareAttempt } from '../attempt/attempt.ts';
import type { Call, Clock } from '../call.ts';
import { defaultModel, type RoutingRules } from '../plan/caller-defaults.ts';
import { restrictionOf, type Suited, type Wanted, wireOf } from '../plan/planner.ts';
import { type ModelSource, requestedModels } from '../plan/requested-models.ts';
import { ConversationAffinity } from '../plan/session-affinity.ts';
import { issuerOf, type Recalled, type TurnStates } from '../reasoning/states.ts';
import type { Preparation } from './adapters.ts';
import type { SpendBound } from './fit-request.ts';
import { leftOut } from './left-out.ts';

export interface ChatWorkOptions {
  dialect(wire: Wire): ChatDialect | undefined;
  /** What clients lose of former turns. */
  states: TurnStates;
  default_model: string | undefined;
  /** Asked once a request, so that a reload takes effect at once. */
  routing(): RoutingRules;
  stickiness: Stickiness;
  clock: Clock;
  chance(): number;
  /** What changes calls before they are planned. Absent: nothing does. */
  prepareCall?: Preparation | undefined;
}

/** What an attempt is encoded with, besides its request. */
export interface Encoding {
  strip_state: boolean;
  spend: SpendBound | undefined;
  media: Media;
}

/** A chat call as routing and encoding see it, whether it is sent or only explained. */
export interface ChatWork {
  wanted(call: Call): Wanted;
  /** What must be fetched before it can be encoded for an endpoint. */
  needs(request: ChatRequest, candidate: Candidate): MediaNeed[];
  /** Encodes for one endpoint. Throws `GatewayError` 400 for what its wire cannot carry. */
  prepare(request: ChatRequest, candidate: Candidate, encoding: Encoding): PreparedAttempt | Promise<PreparedAttempt>;
}

type Known = Parameters<NonNullable<Wanted['recall']>>[1];

function suited({ call, report, issuer }: Recalled): Suited {
  if (issuer === undefined) return { call, told: report };
  return { call, told: report, prefers: (candidate) => issuerOf(candidate) === issuer };
}

/** Whether an endpoint that a call may go to can take back opaque state. */
function mayCarry({ models, catalog }: Known): boolean {
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

/** What could not be put in place of its address, such as files inside blocks of one wire, must be sent as data. */
function refuseAddress({ encoded, candidate }: PreparedAttempt): void {
  const left = leftAddress(encoded.body);
  if (left === undefined) return;
  const rule = `must be sent as data: ${candidate.provider.name} receives no addresses`;
  throw invalidField(left.field, rule);
}

/** Whether the guardrails of a caller leave an endpoint of a model; undefined where none of them leaves anything out. */
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
  const { states, stickiness, clock, chance } = options;

  function dialectFor(candidate: Candidate): ChatDialect {
    const wire = wireOf(candidate);
    const found = options.dialect(wire);
    if (found === undefined) throw new Error(`no dialect ${wire} is registered`);
    return found;
  }

  /** The models that a call names, and where its conversation is at home. */
  function wanted(call: Call): Wanted {
    const home = new ConversationAffinity(call, stickiness, clock);
    const routers = options.routing();
    const default_model = defaultModel(call.principal, routers, options.default_model, call.request);
    const homeAt = (router: string) => home.ofRouter(router);
    return {
      home,
      models: (catalog) =>
        requestedModels(call.request, {
          catalog,
          default_model,
          routers,
          draw: chance,
          home: homeAt,
          allows: allowedBy(call, catalog),
        }),
      refuses: call.refuses,
      recall,
    };
  }

  /** What came back of former turns is the client's as well: it may be older than the filters that hold now. */
  async function screened(found: Recalled | Promise<Recalled>, given: Call): Promise<Recalled> {
    const recalled = await found;
    const { messages } = recalled.call.request;
    const back = messages.filter((message, at) => message !== given.request.messages[at]);
    if (given.screening === undefined || back.length === 0) return recalled;
    const clean = await given.screening.messages(back);
    const told = new Map(back.map((message, at) => [message, clean[at]!]));
    const request = { ...recalled.call.request, messages: messages.map((message) => told.get(message) ?? message) };
    return { ...recalled, call: { ...recalled.call, request } };
  }

  /** What its client lost of former turns is back, and what the gateway changes of it is changed. */
  function recall(given: Call, known: Known): Suited | Promise<Suited> {
    const recalled = states.recall(given, () => mayCarry(known));
    if (!(recalled instanceof Promise) && given.screening === undefined) return ready(recalled, known);
    return screened(recalled, given).then((clean) => ready(clean, known));
  }

  function ready(recalled: Recalled, { models }: Known): Suited | Promise<Suited> {
    const found = suited(recalled);
    const prepared = options.prepareCall?.(found.call, models) ?? found.call;
    if (prepared instanceof Promise) return prepared.then((call) => ({ ...found, call }));
    return prepared === found.call ? found : { ...found, call: prepared };
  }

  return {
    wanted,

    needs(request, candidate) {
      const dialect = dialectFor(candidate);
      const needs = dialect.requiredMedia(request, candidate.endpoint);
      const is_inline = inlinesMedia(dialect, candidate.endpoint) && contentsOf(request).has_more;
      if (!is_inline) return needs;
      const known = new Set(needs.map(({ url }) => url));
      return [...needs, ...webMedia(request.messages).filter(({ url }) => !known.has(url))];
    },

    prepare(request, candidate, { strip_state, spend, media }) {
      const dialect = dialectFor(candidate);
      if (request.max_tokens === 0 && !dialect.facts.takesZeroOutput) refuseZeroOutput();
      const { sends } = candidate;
      const fit = states.fit(sends === undefined ? request : { ...request, ...sends }, candidate);
      const is_inline = inlinesMedia(dialect, candidate.endpoint);
      const filled = is_inline ? withInlineMedia(fit.request, media) : fit.request;
      const prepared = prepareAttempt(filled, candidate, dialect, strip_state, spend, media);
      const told = [...fit.report, ...leftOut(request, dialect.wire)];
      const finish = (one: PreparedAttempt) => {
        if (is_inline) refuseAddress(one);
        return told.length === 0 ? one : { ...one, report: [...told, ...one.report] };
      };
      return prepared instanceof Promise ? prepared.then(finish) : finish(prepared);
    },
  };
}
