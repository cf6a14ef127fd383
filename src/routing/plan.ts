import type { Endpoint, Model } from '../catalog/model.ts';
import { GatewayError } from '../errors.ts';
import { limits } from '../limits.ts';
import type { Provider } from '../providers/provider.ts';
import { type EndpointParameter, endpointParameters } from '../schemas/endpoint.ts';
import type { ChatRequest, InnerPart, ProviderPreferences } from '../schemas/inner.ts';
import { isPriced, type Prices } from '../schemas/prices.ts';
import { type Candidate, healthId, type Strategy } from './candidate.ts';
import type { Health } from './health.ts';
import { type CredentialUser, credentialsFor, type OwnCredential } from './own-credential.ts';

export type { Candidate, Place, Strategy } from './candidate.ts';
export { healthId, pricesOf, tagOf } from './candidate.ts';

/** How one request will be tried: endpoints in order, and everything that was considered. */
export interface Plan {
  requested: string;
  strategy: Strategy;
  /** What the endpoints of each model are sorted by; absent: by a weighted draw. */
  sort?: Sort;
  candidates: Candidate[];
  /** The candidates to try, in order. Empty only in a `NoEndpoint`. */
  attempts: Candidate[];
  /** How many endpoints each filter left. */
  funnel: { step: string; endpoint_count: number }[];
}

export type Sort = 'price' | 'throughput' | 'latency' | 'exacto';

export interface PlanContext {
  /** The models that the request names, in order, found in the catalog. Not empty. */
  models: readonly Model[];
  provider(slug: string): Provider | undefined;
  health: Health;
  now_ms: number;
  /** From 0 to 1, drawn by the caller: which of the endpoints that stand alike comes first. */
  draw: number;
  /** Whether endpoints without a known price may serve. */
  allow_unpriced: boolean;
  /** Credentials of the caller's workspace that are not disabled. */
  own?: readonly OwnCredential[];
  caller?: CredentialUser;
  /** Why an endpoint cannot serve the operation at all. */
  refuses?: ((candidate: Candidate) => string | undefined) | undefined;
  /** Whether the conversation's opaque state was made there, and may be of use nowhere else. */
  prefers?: ((candidate: Candidate) => boolean) | undefined;
  /** Whether the conversation went there before, so that its prompt may be in that cache. */
  sticky?: ((candidate: Candidate) => boolean) | undefined;
  /** What the caller has as its default, where the request says nothing. */
  default_sort?: Sort | undefined;
  /** How `models` came to be, where it was not by their own names. */
  strategy?: Strategy | undefined;
}

type Filter = { step: string; reason(candidate: Candidate): string | undefined };

/** Whether a name of a client's list means this endpoint: a provider's slug or display name, or an endpoint's own tag. */
function names(name: string, candidate: Candidate): boolean {
  const wanted = name.toLowerCase();
  const { provider, endpoint } = candidate;
  return wanted === provider.slug || wanted === provider.name.toLowerCase() || wanted === endpoint.tag.toLowerCase();
}

function listed(list: readonly string[] | null | undefined, candidate: Candidate): boolean {
  return (list ?? []).some((name) => names(name, candidate));
}

/** USD per million tokens, or per unit, as pico-USD per token or unit. */
function picoLimit(value: number | string, per_million: boolean): number {
  const usd = typeof value === 'number' ? value : Number(value);
  if (!Number.isFinite(usd) || usd < 0) throw new GatewayError(400, 'provider.max_price must hold numbers of USD');
  return usd * (per_million ? 1e6 : 1e12);
}

const CAPPED: readonly ['prompt' | 'completion' | 'request' | 'image' | 'audio', boolean][] = [
  ['prompt', true],
  ['completion', true],
  ['request', false],
  ['image', false],
  ['audio', false],
];

function overPrice(preferences: ProviderPreferences, prices: Prices): string | undefined {
  for (const [name, per_million] of CAPPED) {
    const cap = preferences.max_price?.[name];
    if (cap === undefined || cap === null) continue;
    if ((prices[name] ?? 0) > picoLimit(cap, per_million))
      return `its ${name} price is above provider.max_price.${name}`;
  }
  return undefined;
}

/** Kinds of content that the request holds, beyond text. */
function inputModalities(request: ChatRequest): Set<string> {
  const found = new Set<string>();
  for (const message of request.messages) {
    if (!Array.isArray(message.content)) continue;
    for (const part of message.content as InnerPart[]) {
      if (part.type === 'image_url') found.add('image');
      else if (part.type === 'input_audio') found.add('audio');
      else if (part.type === 'video_url') found.add('video');
    }
  }
  return found;
}

type Field = Exclude<EndpointParameter, 'max_tokens' | 'max_completion_tokens' | 'structured_outputs'>;

/** Request fields that an endpoint may not support. A bound is lowered rather than taken away; the last is no field. */
const FIELDS = endpointParameters.filter(
  (name): name is Field => !['max_tokens', 'max_completion_tokens', 'structured_outputs'].includes(name),
);

/** The parameters of a request that this endpoint does not list as supported. */
export function unsupportedParameters(request: ChatRequest, endpoint: Endpoint): string[] {
  const supported = endpoint.supported_parameters;
  if (supported === undefined) return [];
  const found: string[] = [];
  for (const name of FIELDS) {
    const value = request[name];
    if (value === undefined || value === null || supported.includes(name)) continue;
    // One capability under several names.
    if (name === 'tool_choice' && supported.includes('tools')) continue;
    if (name === 'parallel_tool_calls' && supported.includes('tools')) continue;
    if (name === 'response_format' && supported.includes('structured_outputs')) continue;
    if (/reasoning/.test(name) && supported.includes('reasoning')) continue;
    found.push(name);
  }
  return found;
}

function filters(request: ChatRequest, context: PlanContext): Filter[] {
  const preferences = request.provider ?? {};
  const media = [...inputModalities(request)];
  const output = request.modalities ?? [];
  const list: Filter[] = [
    ...(context.refuses ? [{ step: 'Filter by Operation', reason: context.refuses }] : []),
    {
      step: 'Filter by Input Modalities',
      reason: ({ model, endpoint }) => {
        const missing = media.find((kind) => !endpoint.input_modalities.includes(kind));
        if (missing === undefined) return undefined;
        return `${model.input_modalities.includes(missing) ? 'it' : 'the model'} does not take ${missing} input`;
      },
    },
    {
      step: 'Filter by Model Output Modalities',
      reason: ({ model }) => {
        const missing = output.find((kind) => !model.output_modalities.includes(kind));
        return missing === undefined ? undefined : `the model does not make ${missing} output`;
      },
    },
  ];
  if (!context.allow_unpriced) {
    list.push({
      step: 'Filter by Known Price',
      reason: ({ endpoint }) => (isPriced(endpoint.pricing) ? undefined : 'its price is not known'),
    });
  }
  if (preferences.only?.length) {
    list.push({
      step: 'Filter by Allowed Providers',
      reason: (candidate) => (listed(preferences.only, candidate) ? undefined : 'it is not in provider.only'),
    });
  }
  if (preferences.ignore?.length) {
    list.push({
      step: 'Filter by Ignored Providers',
      reason: (candidate) => (listed(preferences.ignore, candidate) ? 'it is in provider.ignore' : undefined),
    });
  }
  if (preferences.data_collection === 'deny') {
    list.push({
      step: 'Filter by Data Policy',
      reason: ({ provider: { data_policy } }) =>
        data_policy.training === false ? undefined : 'its provider may train on data',
    });
  }
  if (preferences.zdr === true) {
    list.push({
      step: 'Filter by Zero Data Retention',
      reason: ({ provider: { data_policy } }) =>
        data_policy.retention_days === 0 ? undefined : 'its provider is not known to keep no data',
    });
  }
  if (preferences.require_parameters === true) {
    list.push({
      step: 'Filter by Parameters',
      reason: ({ endpoint }) => {
        const missing = unsupportedParameters(request, endpoint);
        return missing.length === 0 ? undefined : `it does not support ${missing.join(', ')}`;
      },
    });
  }
  if (preferences.quantizations?.length) {
    list.push({
      step: 'Filter by Quantization',
      reason: ({ endpoint }) =>
        preferences.quantizations?.includes(endpoint.quantization)
          ? undefined
          : `its quantization is ${endpoint.quantization}`,
    });
  }
  if (preferences.max_price) {
    list.push({ step: 'Filter by Max Price', reason: ({ endpoint }) => overPrice(preferences, endpoint.pricing) });
  }
  return list;
}

const OWN_CREDENTIALS = 'Filter by Own Credentials';

/**
 * What own credentials leave of a request's candidates, after every other filter. A model that a credential stands first
 * for goes to the gateway's own accounts only where each such credential allows it, also when none of them can be used:
 * a dead credential must show, not cost money elsewhere.
 */
function ownFilter(left: readonly Candidate[]): Filter {
  const bound = new Set(
    left.filter(({ own }) => own && !own.is_fallback && !own.allow_shared_fallback).map(({ model }) => model),
  );
  return {
    step: OWN_CREDENTIALS,
    reason: ({ model, own }) => {
      if (own !== undefined) return own.unusable;
      if (!bound.has(model)) return undefined;
      return "a credential of the workspace stands first, and does not allow the gateway's own accounts after it";
    },
  };
}

/** No endpoint may serve the request; `plan` shows which were considered, and why each was left out. */
export class NoEndpoint extends GatewayError {
  readonly plan: Plan;

  constructor(plan: Plan, message: string, metadata: Record<string, unknown>) {
    super(404, message, { metadata });
    this.plan = plan;
  }
}

const MESSAGES: Record<string, string> = {
  'Filter by Max Price': 'No endpoints found that satisfy the max price for this request',
  'Filter by Allowed Providers': 'No allowed providers are available for the selected model',
  'Filter by Ignored Providers': 'All providers of the selected model are ignored by this request',
  'Filter by Data Policy': 'No endpoints found matching your data policy',
  'Filter by Zero Data Retention': 'No endpoints found with zero data retention',
  'Filter by Parameters': 'No endpoints found that can handle the requested parameters',
  'Filter by Quantization': 'No endpoints found with the requested quantizations',
  'Filter by Provider Order': 'No provider of provider.order serves the selected model, and fallbacks are not allowed',
  [OWN_CREDENTIALS]: 'No credential of the workspace can be used for the selected model',
  'Filter by Known Price':
    'The price of the selected model is not known; the operator can set it or allow unpriced models',
};

function refuse(plan: Omit<Plan, 'attempts'>, request: ChatRequest): NoEndpoint {
  const failed = plan.funnel.find((entry) => entry.endpoint_count === 0)?.step ?? 'Initial Endpoints';
  const reasons = [...new Set(plan.candidates.flatMap((candidate) => candidate.excluded?.reason ?? []))];
  const message =
    MESSAGES[failed] ??
    (failed === 'Initial Endpoints'
      ? `No endpoints found for ${plan.requested}; no provider that serves it is configured`
      : `No endpoints found for ${plan.requested}: ${reasons.join('; ')}`);
  const metadata: Record<string, unknown> = { routing_funnel: plan.funnel, failed_routing_step: failed };
  if (request.provider?.only?.length) {
    metadata['available_providers'] = [...new Set(plan.candidates.map((candidate) => candidate.provider.slug))];
    metadata['requested_providers'] = request.provider.only;
  }
  return new NoEndpoint({ ...plan, attempts: [] }, message, metadata);
}

/** What a typical call costs: three prompt tokens and one of completion; what transcribes by the second has no price of these. */
function typicalPrice({ prompt = 0, completion = 0, audio_second = 0 }: Prices): number {
  return 3 * prompt + completion + audio_second;
}

/**
 * Those who made the conversation's state first, then ascending by what a typical call costs (three prompt tokens to one of
 * completion); endpoints that cool down come last.
 */
function byRank({ health, now_ms, prefers }: PlanContext) {
  const rank = (candidate: Candidate) => ({
    cooling: health.coolingUntil(healthId(candidate), now_ms),
    strange: prefers === undefined || prefers(candidate) ? 0 : 1,
    price: typicalPrice(candidate.endpoint.pricing),
  });
  return (a: Candidate, b: Candidate) => {
    const [left, right] = [rank(a), rank(b)];
    return left.cooling - right.cooling || left.strange - right.strange || left.price - right.price;
  };
}

/**
 * The order within one model: own credentials, the gateway's, own credentials that are a fallback (the public service's
 * documentation, "BYOK": own ones stand before the client's `order`).
 */
function arrange(candidates: Candidate[], preferences: ProviderPreferences, context: PlanContext): Candidate[] {
  if (candidates.every(({ own }) => own === undefined)) return arrangeAlike(candidates, preferences, context);
  const groups = [
    candidates.filter(({ own }) => own?.is_fallback === false),
    candidates.filter(({ own }) => own === undefined),
    candidates.filter(({ own }) => own?.is_fallback === true),
  ];
  return groups.flatMap((group) => arrangeAlike(group, preferences, context));
}

/** Among credentials of one kind: the client's `order` first, as given; then the rest by rank, when fallbacks are allowed. */
function arrangeAlike(candidates: Candidate[], preferences: ProviderPreferences, context: PlanContext): Candidate[] {
  const ranked = [...candidates].sort(byRank(context));
  if (!preferences.order?.length) return ranked;
  const first = preferences.order.flatMap((name) => ranked.filter((candidate) => names(name, candidate)));
  const chosen = [...new Set(first)];
  if (preferences.allow_fallbacks === false) return chosen;
  return [...chosen, ...ranked.filter((candidate) => !chosen.includes(candidate))];
}

/** The first endpoint alone, with every credential that stands as it does. */
function firstAlone(group: Candidate[]): Candidate[] {
  const [first] = group;
  return group.filter(
    ({ endpoint, own }) => endpoint === first?.endpoint && own?.is_fallback === first.own?.is_fallback,
  );
}

/** Every endpoint with every credential that it could be called with. */
function candidatesOf({ models, provider: find, own: credentials = [], caller }: PlanContext): Candidate[] {
  const candidates: Candidate[] = [];
  for (const model of models) {
    const own = caller && credentials.length > 0 ? credentialsFor(credentials, caller, model.canonical_slug) : [];
    for (const endpoint of model.endpoints) {
      const provider = find(endpoint.provider);
      if (!provider) continue;
      for (const credential of own) {
        if (credential.provider !== provider.slug) continue;
        candidates.push({ model, endpoint, provider, own: credential, excluded: undefined });
      }
      if (!provider.is_own_only) candidates.push({ model, endpoint, provider, excluded: undefined });
    }
  }
  return candidates;
}

/**
 * Decides where a request goes: which endpoints may serve it and in what order. Pure. Throws `NoEndpoint`, a 404 with
 * the funnel that shows which step left nothing, when no endpoint may.
 */
export function plan(request: ChatRequest, context: PlanContext): Plan {
  const candidates = candidatesOf(context);
  const has_own = candidates.some(({ own }) => own !== undefined);
  const count = (list: readonly Candidate[]) =>
    has_own ? new Set(list.map(({ endpoint }) => endpoint)).size : list.length;
  const funnel = [{ step: 'Initial Endpoints', endpoint_count: count(candidates) }];
  let left = candidates;
  const filter = ({ step, reason }: Filter) => {
    let refused = false;
    for (const candidate of left) {
      const why = reason(candidate);
      if (why === undefined) continue;
      candidate.excluded = { step, reason: why };
      refused = true;
    }
    if (refused) left = left.filter((candidate) => candidate.excluded === undefined);
    funnel.push({ step, endpoint_count: count(left) });
  };
  for (const one of filters(request, context)) filter(one);
  if (has_own) filter(ownFilter(left));
  const requested = context.models[0]?.id ?? '';
  const base = {
    requested,
    strategy: context.strategy ?? (context.models.length > 1 ? ('fallback' as const) : ('direct' as const)),
    candidates,
    funnel,
  };
  const preferences = request.provider ?? {};
  const arranged = context.models.map((model) =>
    arrange(
      left.filter((candidate) => candidate.model === model),
      preferences,
      context,
    ),
  );
  // `allow_fallbacks: false` holds within a model's providers; the next model of `models` is the client's own wish.
  const attempts = arranged.flatMap((group) =>
    preferences.allow_fallbacks === false && !preferences.order?.length ? firstAlone(group) : group,
  );
  if (attempts.length === 0) {
    if (left.length > 0) funnel.push({ step: 'Filter by Provider Order', endpoint_count: 0 });
    throw refuse(base, request);
  }
  return { ...base, attempts: attempts.slice(0, limits.attempts_max) };
}
