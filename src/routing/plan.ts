import type { Endpoint, Model } from '../catalog/model.ts';
import { limits } from '../limits.ts';
import type { Provider } from '../providers/provider.ts';
import type { ChatRequest } from '../schemas/inner.ts';
import type { Candidate, Plan, Strategy } from './candidate.ts';
import { cutoffsOf } from './cutoffs.ts';
import type { Health } from './health.ts';
import { type ModelVariant, PRIORITY_TIERS, type Sort, sorts } from './model-variant.ts';
import { isNamed } from './names.ts';
import { needsOf, promptTokensMax } from './needs.ts';
import { inOrder, type OrderContext } from './order.ts';
import { type CredentialUser, credentialsFor, type OwnCredential } from './own-credential.ts';
import { NoEndpoint, refuse } from './refusal.ts';
import { type Asked, laterSteps, listsOf, type Preference, type Rule, rules, soft } from './rules.ts';
import { sendsFor, tiersOf, tierWish } from './tiers.ts';

export type { Candidate, Plan, Strategy } from './candidate.ts';
export { healthId, tagOf } from './candidate.ts';
export type { Sort } from './model-variant.ts';
export { supports, unsupportedParameters } from './needs.ts';
export { NoEndpoint } from './refusal.ts';

export interface PlanContext {
  /** The models that the request names, in order, found in the catalog. Not empty. */
  models: readonly Model[];
  /** What their names ask for beside them. */
  wishes?: ReadonlyMap<Model, ModelVariant> | undefined;
  provider(slug: string): Provider | undefined;
  health: Pick<Health, 'coolingUntil' | 'hadOutage' | 'performance'>;
  now_ms: number;
  /** From 0 to 1, drawn by the caller: which of the endpoints that stand alike comes first. */
  draw: number;
  /** Whether endpoints without a known price may serve. */
  allow_unpriced: boolean;
  /** Credentials of the caller's workspace that are not disabled. */
  own?: readonly OwnCredential[];
  caller?: CredentialUser;
  /** The endpoint as it serves this request; the same one where nothing is special. */
  endpointFor?: ((endpoint: Endpoint, provider: Provider, model: Model) => Endpoint) | undefined;
  /** Why an endpoint cannot serve the operation at all. */
  refuses?: ((candidate: Candidate) => string | undefined) | undefined;
  /** Why the caller's guardrails leave an endpoint out. */
  restricts?: ((candidate: Candidate) => string | undefined) | undefined;
  /** Whether the conversation's opaque state was made there, and may be of use nowhere else. */
  prefers?: ((candidate: Candidate) => boolean) | undefined;
  /** Whether the conversation went there before, so that its prompt may be in that cache. */
  sticky?: ((candidate: Candidate) => boolean) | undefined;
  /** What the caller has as its default, where the request says nothing. */
  default_sort?: Sort | undefined;
  /** How `models` came to be, where it was not by their own names. */
  strategy?: Strategy | undefined;
}

function isSort(text: string): text is Sort {
  return (sorts as readonly string[]).includes(text);
}

/** What the request itself says to sort by. */
function sortOf({ provider }: ChatRequest): Sort | undefined {
  const sort = provider?.sort;
  const by = typeof sort === 'string' ? sort : sort?.by;
  return by != null && isSort(by) ? by : undefined;
}

/** Whether the endpoints of all models are one list (`route: sort` is the older word for it). */
function isUnparted({ provider, route }: ChatRequest): boolean {
  const sort = provider?.sort;
  const partition = typeof sort === 'object' && sort !== null ? sort.partition : undefined;
  return partition == null ? route === 'sort' : partition === 'none';
}

/** Every endpoint, in each service tier that may serve, with every credential that it could be called with. */
function candidatesOf(
  request: ChatRequest,
  context: PlanContext,
  lists: Pick<Asked, 'allowed' | 'order'>,
): Candidate[] {
  const { models, provider: find, own: credentials = [], caller, wishes, endpointFor } = context;
  const named = lists.order === undefined ? lists.allowed : [...lists.allowed, lists.order];
  const candidates: Candidate[] = [];
  for (const model of models) {
    const own = caller && credentials.length > 0 ? credentialsFor(credentials, caller, model.canonical_slug) : [];
    const wish = wishes?.get(model);
    const tiers = tierWish(request, wish, lists.order);
    const add = (endpoint: Endpoint, provider: Provider, tier: string | undefined): void => {
      const sends = sendsFor(request, tier, wish?.sends);
      const facts: Candidate = { model, endpoint, provider, excluded: undefined, because: undefined };
      if (tier !== undefined) facts.tier = tier;
      if (sends !== undefined) facts.sends = sends;
      for (const credential of own) {
        if (credential.provider === provider.slug) candidates.push({ ...facts, own: credential });
      }
      if (!provider.is_own_only) candidates.push(facts);
    };
    for (const known of model.endpoints) {
      const provider = find(known.provider);
      if (!provider) continue;
      const endpoint = endpointFor === undefined ? known : endpointFor(known, provider, model);
      const inTiers = tiersOf(endpoint, tiers, named);
      for (const tier of inTiers) add(endpoint, provider, tier);
      if (inTiers.length === 0 || !tiers.alone) add(endpoint, provider, undefined);
    }
  }
  return candidates;
}

/**
 * What own credentials leave of a request's candidates, after every other filter. A model that a credential stands first
 * for goes to the gateway's own accounts only where each such credential allows it, also when none of them can be used:
 * a dead credential must show, not cost money elsewhere. A credential that says so keeps every call from the gateway's own
 * account at its provider.
 */
function refusedByOwn(
  left: readonly Candidate[],
  credentials: readonly OwnCredential[],
): (candidate: Candidate) => string | undefined {
  const byokOnly = new Set(
    credentials.filter(({ is_byok_only: isByokOnly }) => isByokOnly).map(({ provider }) => provider),
  );
  const bound = new Set(
    left.filter(({ own }) => own && !own.is_fallback && !own.allow_shared_fallback).map(({ model }) => model),
  );
  return ({ model, own, provider }) => {
    if (own !== undefined) return own.unusable;
    if (byokOnly.has(provider.slug)) {
      return "a credential of the workspace (is_byok_only) excludes the gateway's own account at this provider";
    }
    if (!bound.has(model)) return undefined;
    return "a credential of the workspace is used first, and does not allow the gateway's own accounts after it";
  };
}

/** How many endpoints candidates are of: those of one endpoint stand side by side, one for each credential. */
function endpointCount(candidates: readonly Candidate[]): number {
  let count = 0;
  let before: Candidate | undefined;
  for (const one of candidates) {
    if (one.endpoint !== before?.endpoint || one.tier !== before.tier) count += 1;
    before = one;
  }
  return count;
}

/** What is left of a plan's candidates, step by step. */
class CandidateFilter {
  readonly funnel: Plan['funnel'];
  left: readonly Candidate[];
  readonly #asked: Asked;
  #endpointCount: number;

  constructor(candidates: readonly Candidate[], asked: Asked) {
    this.left = candidates;
    this.#asked = asked;
    this.#endpointCount = endpointCount(candidates);
    this.funnel = [{ step: laterSteps.initial.step, endpoint_count: this.#endpointCount }];
  }

  filter({ step, reason }: Pick<Rule, 'step' | 'reason'>): void {
    let refused = false;
    for (let at = 0; at < this.left.length; at += 1) {
      const candidate = this.left[at] as Candidate;
      const why = reason(candidate, this.#asked);
      if (why === undefined) continue;
      candidate.excluded = { step, reason: why };
      refused = true;
    }
    if (refused) {
      this.left = this.left.filter((candidate) => candidate.excluded === undefined);
      this.#endpointCount = endpointCount(this.left);
    }
    this.funnel.push({ step, endpoint_count: this.#endpointCount });
  }

  /**
   * Leaves out what lacks something that another candidate of the same model and kind of credential has. Endpoints that the client
   * put in order stay: it named them.
   */
  prefer({ step, lacks }: Preference): void {
    const asked = this.#asked;
    if (!this.left.some((candidate) => lacks(candidate, asked) !== undefined)) return;
    const group = ({ model, own }: Candidate) => `${model.id} ${own === undefined ? '' : own.is_fallback}`;
    const able = new Set<string>();
    const lacking = new Map<Candidate, string>();
    for (const candidate of this.left) {
      const why = lacks(candidate, asked);
      if (why === undefined) able.add(group(candidate));
      else lacking.set(candidate, why);
    }
    if (able.size === 0) return;
    const reason = (candidate: Candidate) => {
      const why = lacking.get(candidate);
      if (why === undefined || !able.has(group(candidate))) return undefined;
      const isOrdered = asked.order !== undefined && isNamed(asked.order, candidate, asked.tiers_asked);
      return isOrdered ? undefined : why;
    };
    this.filter({ step, reason });
  }
}

/** The first endpoint alone, with every credential that stands as it does. */
function firstAlone(group: Candidate[]): Candidate[] {
  const [first] = group;
  return group.filter(
    ({ endpoint, tier, own }) =>
      endpoint === first?.endpoint && tier === first.tier && own?.is_fallback === first.own?.is_fallback,
  );
}

function orderContext(request: ChatRequest, context: PlanContext): OrderContext {
  const { models, health, now_ms: nowMs, draw, prefers, sticky, wishes, default_sort: defaultSort } = context;
  const said = sortOf(request);
  const isOneList = isUnparted(request);
  const tier = request.service_tier ?? undefined;
  /** Endpoints in a tier that is asked for have an order of their own, as at the public service. */
  const inTier: Sort = tier !== undefined && PRIORITY_TIERS.includes(tier) ? 'throughput' : 'price';
  return {
    health,
    now_ms: nowMs,
    draw,
    prefers,
    sticky,
    cutoffs: cutoffsOf(request.provider ?? {}),
    sortOf(candidate) {
      if (said !== undefined) return said;
      if (candidate.tier !== undefined && tier !== undefined) return inTier;
      // One list has one order: that of the first model's name.
      return wishes?.get(isOneList ? (models[0] as Model) : candidate.model)?.sort ?? defaultSort;
    },
  };
}

/** What is tried of each model, where all are too many: no model takes more than half of what is left while later ones need it. */
function withinLimit(groups: readonly Candidate[][]): readonly Candidate[][] {
  let later = groups.reduce((sum, group) => sum + group.length, 0);
  let room: number = limits.attempts_max;
  if (later <= room) return groups;
  return groups.map((group) => {
    later -= group.length;
    const kept = group.slice(0, Math.max(room - later, Math.ceil(room / 2)));
    room -= kept.length;
    return kept;
  });
}

/** The order over all models: one after another, or as one list; endpoints that miss a wished performance stand behind those of later models. */
function overModels(left: readonly Candidate[], asked: Asked, context: PlanContext): Candidate[] {
  const order = orderContext(asked.request, context);
  const isFirstOnly = asked.preferences.allow_fallbacks === false && asked.order === undefined;
  const arranged = (among: readonly Candidate[]) => {
    const all = inOrder(among, asked, order);
    return isFirstOnly ? firstAlone(all) : all;
  };
  if (context.models.length === 1 || isUnparted(asked.request)) return arranged(left);
  // `allow_fallbacks: false` holds within a model's providers; the next model of `models` is the client's own wish.
  const ofModel = Map.groupBy(left, ({ model }) => model);
  const groups = withinLimit(context.models.map((model) => arranged(ofModel.get(model) ?? [])));
  if (order.cutoffs === undefined) return groups.flat();
  const misses = ({ because }: Candidate) =>
    because?.includes('below_preferred') === true && !because.includes('order');
  return [
    ...groups.flatMap((group) => group.filter((candidate) => !misses(candidate))),
    ...groups.flatMap((group) => group.filter(misses)),
  ];
}

/** Why what could serve is not tried. */
function tellUntried(left: readonly Candidate[], attempts: readonly Candidate[], { order }: Asked): void {
  if (left.length === attempts.length) return;
  const tried = new Set(attempts);
  const excluded =
    attempts.length === limits.attempts_max
      ? { step: 'Limit Attempts', reason: `at most ${limits.attempts_max} are tried` }
      : order === undefined
        ? { step: 'Limit to First', reason: 'fallbacks are not allowed' }
        : { step: laterSteps.order.step, reason: 'it is not in provider.order, and fallbacks are not allowed' };
  for (const candidate of left) {
    if (tried.has(candidate)) continue;
    candidate.excluded = excluded;
    candidate.because = undefined;
  }
}

/**
 * Decides where a request goes: which endpoints may serve it and in what order. Pure. Throws `NoEndpoint`, a 404 with
 * the funnel that shows which step left nothing, when no endpoint may.
 */
export function plan(request: ChatRequest, context: PlanContext): Plan {
  const { models, strategy } = context;
  const isRouted = strategy === 'auto' || strategy === 'free';
  if (!isRouted || models.length <= limits.attempts_max) return planAll(request, context);
  // A router may know hundreds of models, best first: more than are tried are looked at only where the first do not fill the plan.
  try {
    const found = planAll(request, { ...context, models: models.slice(0, limits.attempts_max) });
    if (found.attempts.length === limits.attempts_max) return found;
  } catch (error) {
    if (!(error instanceof NoEndpoint)) throw error;
  }
  return planAll(request, context);
}

function longestPrompt(models: readonly Model[]): number {
  let longest = 0;
  for (const { endpoints } of models) {
    for (const endpoint of endpoints) longest = Math.max(longest, promptTokensMax(endpoint));
  }
  return longest;
}

function planAll(request: ChatRequest, context: PlanContext): Plan {
  const preferences = request.provider ?? {};
  const lists = listsOf(preferences);
  const { allowed, ignored, order } = lists;
  const { wishes, refuses, restricts, allow_unpriced: allowUnpriced } = context;
  const tiersAsked = context.models.some((model) => tierWish(request, wishes?.get(model), order).asked);
  let longest: number | undefined;
  const asked: Asked = {
    request,
    preferences,
    needs: needsOf(request),
    wishes,
    refuses,
    restricts,
    allow_unpriced: allowUnpriced,
    tiers_asked: tiersAsked,
    longestPrompt: () => (longest ??= longestPrompt(context.models)),
    allowed,
    ignored,
    order,
  };
  const candidates = candidatesOf(request, context, lists);
  const sieve = new CandidateFilter(candidates, asked);
  for (let at = 0; at < rules.length; at += 1) if (rules[at]!.applies(asked)) sieve.filter(rules[at]!);
  const { own: credentials = [] } = context;
  if (
    credentials.some(({ is_byok_only: isByokOnly }) => isByokOnly) ||
    candidates.some(({ own }) => own !== undefined)
  ) {
    sieve.filter({ step: laterSteps.own_credentials.step, reason: refusedByOwn(sieve.left, credentials) });
  }
  for (let at = 0; at < soft.length; at += 1) if (soft[at]!.applies(asked)) sieve.prefer(soft[at]!);

  const { left, funnel } = sieve;
  const sort = sortOf(request) ?? wishes?.get(context.models[0] as Model)?.sort ?? context.default_sort;
  const attempts = overModels(left, asked, context).slice(0, limits.attempts_max);
  tellUntried(left, attempts, asked);
  const made: Plan = {
    requested: context.models[0]?.id ?? '',
    strategy: context.strategy ?? (context.models.length > 1 ? 'fallback' : 'direct'),
    candidates,
    attempts,
    funnel,
  };
  if (sort !== undefined) made.sort = sort;
  if (attempts.length === 0) {
    if (left.length > 0) funnel.push({ step: laterSteps.order.step, endpoint_count: 0 });
    throw refuse(made, request);
  }
  return made;
}
