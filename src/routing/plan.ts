import type { Endpoint, Model } from '../catalog/model.ts';
import { limits } from '../limits.ts';
import type { Provider } from '../providers/provider.ts';
import type { ChatRequest, ProviderPreferences } from '../schemas/inner.ts';
import type { Candidate, Plan, Strategy } from './candidate.ts';
import { cutoffsOf } from './cutoffs.ts';
import type { Health } from './health.ts';
import { type ModelVariant, PRIORITY_TIERS, type Sort, sorts } from './model-variant.ts';
import { isNamed } from './names.ts';
import { needsOf, promptTokensMax } from './needs.ts';
import { explain, inOrder, type OrderContext } from './order.ts';
import { type CredentialUser, credentialsFor, type OwnCredential } from './own-credential.ts';
import { NoEndpoint, refuse } from './refusal.ts';
import { laterSteps, listsOf, NO_NAMES, type Preference, type Rule, type RuleInput, rules, soft } from './rules.ts';
import { NO_TIER, NO_TIERS, sendsFor, tierSelection, tiersOf } from './tiers.ts';

export type { Candidate, Plan, Strategy } from './candidate.ts';
export { healthId, tagOf } from './candidate.ts';
export type { Sort } from './model-variant.ts';
export { supports, unsupportedParameters } from './needs.ts';
export { NoEndpoint } from './refusal.ts';

export interface PlanContext {
  /** The models that the request names, in order, from the catalog. Not empty. */
  models: readonly Model[];
  /** The options in the models' names. */
  variants?: ReadonlyMap<Model, ModelVariant> | undefined;
  provider(slug: string): Provider | undefined;
  health: Pick<Health, 'coolingUntil' | 'hadOutage' | 'performance'>;
  now_ms: number;
  /** From 0 to 1, drawn by the caller: selects the first of the endpoints of equal rank. */
  draw: number;
  /** Whether endpoints without a known price may serve. */
  allow_unpriced: boolean;
  /** Credentials of the caller's workspace that are not disabled. */
  own?: readonly OwnCredential[];
  caller?: CredentialUser;
  /** The endpoint as adapted to this request; the same object if nothing changes. */
  endpointFor?: ((endpoint: Endpoint, provider: Provider, model: Model) => Endpoint) | undefined;
  /** Why an endpoint cannot serve the operation at all. */
  refuses?: ((candidate: Candidate) => string | undefined) | undefined;
  /** Why the caller's guardrails exclude an endpoint. */
  restricts?: ((candidate: Candidate) => string | undefined) | undefined;
  /** Whether the conversation's opaque state was created there, and may be useless elsewhere. */
  prefers?: ((candidate: Candidate) => boolean) | undefined;
  /** Whether the conversation was sent there before, so that its prompt may be cached there. */
  sticky?: ((candidate: Candidate) => boolean) | undefined;
  /** The caller's default, if the request sets none. */
  default_sort?: Sort | undefined;
  /** How `models` were selected, if not by name. */
  strategy?: Strategy | undefined;
}

function isSort(text: string): text is Sort {
  return (sorts as readonly string[]).includes(text);
}

/** The sort order that the request itself sets. */
function sortOf({ sort }: ProviderPreferences): Sort | undefined {
  const by = typeof sort === 'string' ? sort : sort?.by;
  return by != null && isSort(by) ? by : undefined;
}

/** Whether the endpoints of all models form one list (`route: sort` is an older notation). */
function isOneList({ provider, route }: ChatRequest): boolean {
  const sort = provider?.sort;
  const partition = typeof sort === 'object' && sort !== null ? sort.partition : undefined;
  return partition == null ? route === 'sort' : partition === 'none';
}

/** Every endpoint, in each service tier that may serve, with every credential that may be used. */
function candidatesOf(
  request: ChatRequest,
  context: PlanContext,
  lists: Pick<RuleInput, 'allowed' | 'order'>,
): { candidates: Candidate[]; selectsTiers: boolean } {
  const { models, provider: find, own: credentials = [], caller, variants, endpointFor } = context;
  const named = lists.order === undefined ? lists.allowed : [...lists.allowed, lists.order];
  const candidates: Candidate[] = [];
  let selectsTiers = false;
  for (const model of models) {
    const own = caller && credentials.length > 0 ? credentialsFor(credentials, caller, model.canonical_slug) : [];
    const variant = variants?.get(model);
    const selectsNone = request.service_tier == null && variant?.tiers === undefined;
    const tiers = selectsNone ? NO_TIERS : tierSelection(request, variant, lists.order);
    selectsTiers ||= tiers.isExplicit;
    for (const known of model.endpoints) {
      const provider = find(known.provider);
      if (!provider) continue;
      const endpoint = endpointFor === undefined ? known : endpointFor(known, provider, model);
      for (const tier of endpoint.service_tiers === undefined ? NO_TIER : tiersOf(endpoint, tiers, named)) {
        const facts: Candidate = { model, endpoint, provider, excluded: undefined, because: undefined };
        if (tier !== undefined) facts.tier = tier;
        const isPlain = tier === undefined && request.service_tier == null;
        const sends = isPlain ? variant?.sends : sendsFor(request, tier, variant?.sends);
        if (sends !== undefined) facts.sends = sends;
        for (const credential of own) {
          if (credential.provider === provider.slug) candidates.push({ ...facts, own: credential });
        }
        if (!provider.is_own_only) candidates.push(facts);
      }
    }
  }
  return { candidates, selectsTiers };
}

/**
 * Excludes candidates by own credentials, after all other filters. A model with a credential that is used first may use the gateway's own
 * accounts only if each such credential allows it, even if none of them works: a dead credential must be visible, not cost money
 * elsewhere. A credential with `is_byok_only` excludes the gateway's own account at its provider from every call.
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

/** The number of endpoints of candidates, which are grouped by endpoint, with one candidate for each credential. */
function endpointCount(candidates: readonly Candidate[]): number {
  let count = 0;
  let before: Candidate | undefined;
  for (const one of candidates) {
    if (one.endpoint !== before?.endpoint || one.tier !== before.tier) count += 1;
    before = one;
  }
  return count;
}

/** The remaining candidates of a plan, step by step. */
class CandidateFilter {
  readonly funnel: Plan['funnel'];
  left: readonly Candidate[];
  readonly #input: RuleInput;
  #endpointCount: number;

  constructor(candidates: readonly Candidate[], input: RuleInput) {
    this.left = candidates;
    this.#input = input;
    this.#endpointCount = candidates.length < 2 ? candidates.length : endpointCount(candidates);
    this.funnel = [{ step: laterSteps.initial.step, endpoint_count: this.#endpointCount }];
  }

  filter({ step, reason }: Pick<Rule, 'step' | 'reason'>): void {
    let refused = false;
    for (let at = 0; at < this.left.length; at += 1) {
      const candidate = this.left[at] as Candidate;
      const excludedBecause = reason(candidate, this.#input);
      if (excludedBecause === undefined) continue;
      candidate.excluded = { step, reason: excludedBecause };
      refused = true;
    }
    if (refused) {
      this.left = this.left.filter((candidate) => candidate.excluded === undefined);
      this.#endpointCount = endpointCount(this.left);
    }
    this.funnel.push({ step, endpoint_count: this.#endpointCount });
  }

  /**
   * Excludes candidates that lack something which another candidate of the same model and kind of credential has. Endpoints in the
   * client's order are kept.
   */
  prefer({ step, lacks }: Preference): void {
    const input = this.#input;
    if (!this.left.some((candidate) => lacks(candidate, input) !== undefined)) return;
    const group = ({ model, own }: Candidate) => `${model.id} ${own === undefined ? '' : own.is_fallback}`;
    const able = new Set<string>();
    const lacking = new Map<Candidate, string>();
    for (const candidate of this.left) {
      const lack = lacks(candidate, input);
      if (lack === undefined) able.add(group(candidate));
      else lacking.set(candidate, lack);
    }
    if (able.size === 0) return;
    const reason = (candidate: Candidate) => {
      const lack = lacking.get(candidate);
      if (lack === undefined || !able.has(group(candidate))) return undefined;
      const isOrdered = input.order !== undefined && isNamed(input.order, candidate, input.selectsTiers);
      return isOrdered ? undefined : lack;
    };
    this.filter({ step, reason });
  }
}

/** The candidates of the first endpoint only, with every credential of the same kind. */
function firstOnly(group: Candidate[]): Candidate[] {
  const [first] = group;
  return group.filter(
    ({ endpoint, tier, own }) =>
      endpoint === first?.endpoint && tier === first.tier && own?.is_fallback === first.own?.is_fallback,
  );
}

function orderContext(request: ChatRequest, context: PlanContext, requestedSort: Sort | undefined): OrderContext {
  const { models, health, now_ms: nowMs, draw, prefers, sticky, variants, default_sort: defaultSort } = context;
  const hasOneList = variants !== undefined && isOneList(request);
  const tier = request.service_tier ?? undefined;
  /** Endpoints in a requested tier have their own order, as at the public service. */
  const inTier: Sort = tier !== undefined && PRIORITY_TIERS.includes(tier) ? 'throughput' : 'price';
  return {
    health,
    now_ms: nowMs,
    draw,
    prefers,
    sticky,
    cutoffs: request.provider == null ? undefined : cutoffsOf(request.provider),
    sortOf(candidate) {
      if (requestedSort !== undefined) return requestedSort;
      if (candidate.tier !== undefined && tier !== undefined) return inTier;
      // One list has one order: that of the first model's name.
      return variants?.get(hasOneList ? (models[0] as Model) : candidate.model)?.sort ?? defaultSort;
    },
  };
}

/** The candidates to try of each model if there are too many: no model gets more than half of the remaining attempts while later ones need them. */
function withinLimit(groups: readonly Candidate[][]): readonly Candidate[][] {
  let later = groups.reduce((sum, group) => sum + group.length, 0);
  let remaining: number = limits.attempts_max;
  if (later <= remaining) return groups;
  return groups.map((group) => {
    later -= group.length;
    const kept = group.slice(0, Math.max(remaining - later, Math.ceil(remaining / 2)));
    remaining -= kept.length;
    return kept;
  });
}

/** The order over all models: one after another, or as one list. Endpoints that miss a preferred performance are behind those of later models. */
function overModels(
  left: readonly Candidate[],
  input: RuleInput,
  context: PlanContext,
  requestedSort: Sort | undefined,
): readonly Candidate[] {
  const order = orderContext(input.request, context, requestedSort);
  const [first] = left;
  const isUnordered = input.order === undefined && input.request.service_tier == null;
  // One candidate is only explained.
  if (first !== undefined && left.length === 1 && first.own === undefined && isUnordered) {
    explain(first, input, order);
    return left;
  }
  const isFirstOnly = input.preferences.allow_fallbacks === false && input.order === undefined;
  const arranged = (among: readonly Candidate[]) => {
    const all = inOrder(among, input, order);
    return isFirstOnly ? firstOnly(all) : all;
  };
  if (context.models.length === 1 || isOneList(input.request)) return arranged(left);
  // `allow_fallbacks: false` applies to the providers of one model; the next model of `models` is requested explicitly.
  const byModel = Map.groupBy(left, ({ model }) => model);
  const groups = withinLimit(context.models.map((model) => arranged(byModel.get(model) ?? [])));
  if (order.cutoffs === undefined) return groups.flat();
  const misses = ({ because }: Candidate) =>
    because?.includes('below_preferred') === true && !because.includes('order');
  return [
    ...groups.flatMap((group) => group.filter((candidate) => !misses(candidate))),
    ...groups.flatMap((group) => group.filter(misses)),
  ];
}

/** Sets the reason of candidates that could serve but are not tried. */
function excludeUntried(left: readonly Candidate[], attempts: readonly Candidate[], { order }: RuleInput): void {
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

function longestPrompt(models: readonly Model[]): number {
  let longest = 0;
  for (const { endpoints } of models) {
    for (const endpoint of endpoints) longest = Math.max(longest, promptTokensMax(endpoint));
  }
  return longest;
}

/**
 * A router may have hundreds of models, best first: more than can be tried are considered only if the first do not fill the plan.
 * Undefined if they do not.
 */
function planFirst(request: ChatRequest, context: PlanContext): Plan | undefined {
  try {
    const planned = plan(request, { ...context, models: context.models.slice(0, limits.attempts_max) });
    return planned.attempts.length === limits.attempts_max ? planned : undefined;
  } catch (error) {
    if (!(error instanceof NoEndpoint)) throw error;
    return undefined;
  }
}

/**
 * Plans a request: which endpoints may serve it and in what order. Pure. Throws `NoEndpoint`, a 404 with the funnel that shows which step
 * left none, if no endpoint may.
 */
export function plan(request: ChatRequest, context: PlanContext): Plan {
  const isRouted = context.strategy === 'auto' || context.strategy === 'free';
  const first = isRouted && context.models.length > limits.attempts_max ? planFirst(request, context) : undefined;
  if (first !== undefined) return first;
  const stated = request.provider ?? undefined;
  const { allowed, ignored, order } = stated === undefined ? NO_NAMES : listsOf(stated);
  const { variants, refuses, restricts, allow_unpriced: allowUnpriced, own: credentials = [] } = context;
  const { candidates, selectsTiers } = candidatesOf(request, context, { allowed, order });
  const needs = needsOf(request);
  let longest: number | undefined;
  const input: RuleInput = {
    request,
    preferences: stated ?? {},
    stated,
    needs,
    variants,
    refuses,
    restricts,
    requires_price: allowUnpriced ? undefined : true,
    is_sized: needs.prompt_tokens_min > 0 || variants !== undefined ? true : undefined,
    answers: request.n !== undefined && request.n > 1 ? request.n : undefined,
    selectsTiers,
    longestPrompt: () => (longest ??= longestPrompt(context.models)),
    allowed,
    ignored,
    order,
  };
  const filter = new CandidateFilter(candidates, input);
  for (let at = 0; at < rules.length; at += 1) {
    const rule = rules[at]!;
    if ((rule.of === undefined || input[rule.of] !== undefined) && rule.applies?.(input) !== false) filter.filter(rule);
  }
  if (
    credentials.some(({ is_byok_only: isByokOnly }) => isByokOnly) ||
    (credentials.length > 0 && candidates.some(({ own }) => own !== undefined))
  ) {
    filter.filter({ step: laterSteps.own_credentials.step, reason: refusedByOwn(filter.left, credentials) });
  }
  // Of one endpoint, nothing else is better.
  if (filter.left.length > 1) for (const one of soft) if (one.applies(input)) filter.prefer(one);

  const { left, funnel } = filter;
  const requestedSort = stated === undefined ? undefined : sortOf(stated);
  const sort = requestedSort ?? variants?.get(context.models[0] as Model)?.sort ?? context.default_sort;
  const attempts = overModels(left, input, context, requestedSort).slice(0, limits.attempts_max);
  if (left.length !== attempts.length) excludeUntried(left, attempts, input);
  const result: Plan = {
    requested: context.models[0]?.id ?? '',
    strategy: context.strategy ?? (context.models.length > 1 ? 'fallback' : 'direct'),
    candidates,
    attempts,
    funnel,
  };
  if (sort !== undefined) result.sort = sort;
  if (attempts.length === 0) {
    if (left.length > 0) funnel.push({ step: laterSteps.order.step, endpoint_count: 0 });
    throw refuse(result, request);
  }
  return result;
}
