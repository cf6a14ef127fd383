import type { Endpoint, Model } from '../catalog/model.ts';
import { GatewayError } from '../errors.ts';
import type { ChatRequest } from '../schemas/inner.ts';
import type { JsonValue } from '../schemas/json.ts';
import { lookupTable } from '../schemas/lookup-table.ts';
import { matchesPattern } from '../schemas/model-pattern.ts';
import { type Needs, promptTokensMax, supports } from './needs.ts';
import { typicalPrice } from './order.ts';
import type { Plan } from './plan.ts';
import { NoEndpoint } from './refusal.ts';
import { type Constraint, isFree, laterSteps } from './rules.ts';

/** Patterns of models in the plugin `auto-router`, as at the public service. */
export const MODEL_PATTERNS_MAX = 1_024;
export const MODEL_PATTERN_CHARS_MAX = 1_024;
const MODEL_PATTERNS_CHARS_MAX = 65_536;

/** The router models: by the operator's order, and among free models. */
export const AUTO = 'gateway/auto';
export const FREE = 'gateway/free';

/** The models that the router models select from; undefined disables the router. */
export interface RouterRules {
  /** Best first. Undefined for the default of `builtInModels`. */
  auto_models: readonly string[] | undefined;
  /** Replaces the enabled models if the sandbox is the only provider. */
  sandbox_models?: readonly string[] | undefined;
  free_models: readonly string[] | 'all' | undefined;
}

/** Whether a router may use an endpoint of its models. */
type Usable = (endpoint: Endpoint) => boolean;

/** Whether a usable endpoint of a model can serve such a request unchanged. */
function suits(model: Model, needs: Needs, promptTokens: number, isUsable: Usable): boolean {
  if (!needs.output.every((kind) => model.output_modalities.includes(kind))) return false;
  return model.endpoints.some(
    (endpoint) =>
      isUsable(endpoint) &&
      needs.input.every((kind) => endpoint.input_modalities.includes(kind)) &&
      (!needs.tools || supports(endpoint, 'tools')) &&
      needs.forms.every((name) => name === 'verbosity' || supports(endpoint, name)) &&
      promptTokens + needs.output_tokens <= promptTokensMax(endpoint),
  );
}

/** The models that suit a request: by its probable prompt length, else by its minimum. */
function suitable(models: readonly Model[], needs: Needs, isUsable: Usable): Model[] {
  const likely = models.filter((model) => suits(model, needs, needs.prompt_tokens, isUsable));
  return likely.length > 0 ? likely : models.filter((model) => suits(model, needs, needs.prompt_tokens_min, isUsable));
}

/** The options of a request's plugin `auto-router`. */
interface AutoOptions {
  allowed: readonly string[] | undefined;
  /** Models not to be selected, even if `allowed` has them. */
  excluded: readonly string[] | undefined;
  /** From 0, the best at any price, to 10, the cheapest. Undefined for the operator's order. */
  tradeoff: number | undefined;
  /** Whether the model of the conversation's last answer is first. */
  is_pinned: boolean;
}

/** Cost tiers as values of the tradeoff. */
const COST_TIERS: Readonly<Record<string, number>> = lookupTable({ low: 10, medium: 7.5, high: 5, xhigh: 2.5, max: 0 });

function invalidOption(field: string, requirement: string): GatewayError {
  return new GatewayError(400, `plugins: ${field} of auto-router must be ${requirement}`);
}

function patterns(field: string, value: JsonValue | undefined): string[] | undefined {
  if (value == null) return undefined;
  const isList = Array.isArray(value) && value.every((one) => typeof one === 'string');
  if (!isList) throw invalidOption(field, 'a list of patterns');
  const list = value as string[];
  const chars = list.reduce((sum, { length }) => sum + length, 0);
  const isBounded =
    list.length <= MODEL_PATTERNS_MAX &&
    chars <= MODEL_PATTERNS_CHARS_MAX &&
    list.every(({ length }) => length <= MODEL_PATTERN_CHARS_MAX);
  if (!isBounded) {
    throw invalidOption(
      field,
      `at most ${MODEL_PATTERNS_MAX} patterns of ${MODEL_PATTERN_CHARS_MAX} characters, ${MODEL_PATTERNS_CHARS_MAX} in all`,
    );
  }
  return list.length === 0 ? undefined : list;
}

function autoOptions({ plugins }: ChatRequest): AutoOptions {
  const plugin = plugins?.find(({ id, enabled }) => id === 'auto-router' && enabled !== false);
  if (plugin === undefined) return NO_OPTIONS;
  const {
    allowed_models: allowedModels,
    excluded_models: excludedModels,
    cost_tier: costTier,
    cost_quality_tradeoff: tradeoff,
    pin_model: pinModel,
  } = plugin;
  if (tradeoff != null && !(typeof tradeoff === 'number' && tradeoff >= 0 && tradeoff <= 10)) {
    throw invalidOption('cost_quality_tradeoff', 'a number from 0 to 10');
  }
  if (costTier != null && !(typeof costTier === 'string' && Object.hasOwn(COST_TIERS, costTier))) {
    throw invalidOption('cost_tier', `one of ${Object.keys(COST_TIERS).join(', ')}`);
  }
  if (pinModel != null && typeof pinModel !== 'boolean') throw invalidOption('pin_model', 'true or false');
  return {
    allowed: patterns('allowed_models', allowedModels),
    excluded: patterns('excluded_models', excludedModels),
    tradeoff: typeof costTier === 'string' ? COST_TIERS[costTier] : (tradeoff ?? undefined),
    is_pinned: pinModel === true,
  };
}

const NO_OPTIONS: AutoOptions = { allowed: undefined, excluded: undefined, tradeoff: undefined, is_pinned: false };

/** The model of the conversation's last answer, as the request states it. */
function answeredBy({ messages }: ChatRequest): string | undefined {
  const last = messages.findLast(({ role }) => role === 'assistant') as { model?: unknown } | undefined;
  return typeof last?.model === 'string' ? last.model : undefined;
}

function cheapest({ endpoints }: Model): number {
  return Math.min(...endpoints.map(({ pricing }) => typicalPrice(pricing)));
}

/** Ordered by position in the operator's order and by price, weighted by the client's tradeoff. */
function orderByTradeoff(models: readonly Model[], tradeoff: number): Model[] {
  const byPrice = [...models].sort((a, b) => {
    const [priceA, priceB] = [cheapest(a), cheapest(b)];
    return priceA === priceB ? 0 : priceA < priceB ? -1 : 1;
  });
  const score = (model: Model) => models.indexOf(model) * (10 - tradeoff) + byPrice.indexOf(model) * tradeoff;
  const scores = new Map(models.map((model) => [model, score(model)]));
  return [...models].sort((a, b) => (scores.get(a) ?? 0) - (scores.get(b) ?? 0));
}

const ALLOWED = {
  step: 'Filter by Allowed Models',
  constraint: { field: 'plugins', detail: 'allow more models in allowed_models and excluded_models of auto-router' },
};
const FREE_OF_CHARGE = {
  step: 'Filter by Free Endpoints',
  constraint: { field: 'model', detail: 'name a model: no model of this router is free of charge' },
};
const SUITABLE = {
  step: 'Filter by Request',
  constraint: {
    field: 'model',
    detail: 'name a model, or change the request so that a model of the router supports it',
  },
};

/** The 404 of a router without suitable models; the funnel counts endpoints, as in a plan. */
function noModel(strategy: Plan['strategy'], steps: readonly { step: string; models: readonly Model[] }[]): NoEndpoint {
  const funnel = steps.map(({ step, models }) => ({
    step,
    endpoint_count: models.reduce((sum, { endpoints }) => sum + endpoints.length, 0),
  }));
  const failed = funnel.find(({ endpoint_count: endpointCount }) => endpointCount === 0)?.step;
  const known: readonly { step: string; constraint: Constraint }[] = [
    ALLOWED,
    FREE_OF_CHARGE,
    SUITABLE,
    laterSteps.initial,
  ];
  const constraint = known.find(({ step }) => step === failed)?.constraint;
  return new NoEndpoint(
    { requested: strategy === 'free' ? FREE : AUTO, strategy, candidates: [], attempts: [], funnel },
    'No models match your request and model restrictions',
    { routing_funnel: funnel, failed_routing_step: failed, constraint },
  );
}

/** The models with the conversation's former model first, if it suits. */
function withAffinityFirst(models: readonly Model[], affinity: string | undefined): Model[] {
  const known = affinity === undefined ? undefined : models.find(({ id }) => id === affinity);
  return known === undefined ? [...models] : [known, ...models.filter((model) => model !== known)];
}

/** The inputs of a router's selection. */
export interface Choice {
  request: ChatRequest;
  needs: Needs;
  /** From 0 to 1, drawn by the caller. */
  draw: number;
  /** The conversation's former model. */
  home: string | undefined;
}

/** The models that `gateway/auto` tries for a request, best first. Throws a 404 if none suits. */
export function autoModels(candidates: readonly Model[], { request, needs, home: affinity }: Choice): Model[] {
  const { allowed, excluded, tradeoff, is_pinned: isPinned } = autoOptions(request);
  const isOneOf = (id: string, list: readonly string[]) => list.some((pattern) => matchesPattern(id, pattern));
  const isNarrowed = allowed !== undefined || excluded !== undefined;
  const open = isNarrowed
    ? candidates.filter(({ id }) => isOneOf(id, allowed ?? ['*']) && !isOneOf(id, excluded ?? []))
    : candidates;
  const able = suitable(open, needs, () => true);
  if (able.length === 0) {
    throw noModel('auto', [
      { step: laterSteps.initial.step, models: candidates },
      ...(isNarrowed ? [{ step: ALLOWED.step, models: open }] : []),
      { step: SUITABLE.step, models: able },
    ]);
  }
  const pinned = isPinned ? answeredBy(request) : undefined;
  return withAffinityFirst(tradeoff === undefined ? able : orderByTradeoff(able, tradeoff), pinned ?? affinity);
}

const costsNothing: Usable = ({ pricing }) => isFree(pricing);

const knownFree = new WeakMap<readonly Model[], readonly Model[]>();

/** The models of a catalog with a free endpoint. */
export function freeModels(models: readonly Model[]): readonly Model[] {
  const known = knownFree.get(models);
  if (known !== undefined) return known;
  const free = models.filter(
    ({ endpoints, output_modalities: outputModalities }) =>
      outputModalities.includes('text') && endpoints.some(costsNothing),
  );
  knownFree.set(models, free);
  return free;
}

/** The models that `gateway/free` tries for a request: one drawn among those whose free endpoints suit it, then the others. Throws a 404 if none does. */
export function freeChoice(candidates: readonly Model[], { needs, draw, home: affinity }: Choice): Model[] {
  const able = suitable(candidates, needs, costsNothing);
  if (able.length === 0) {
    throw noModel('free', [
      { step: laterSteps.initial.step, models: candidates },
      { step: FREE_OF_CHARGE.step, models: candidates.filter(({ endpoints }) => endpoints.some(costsNothing)) },
      { step: SUITABLE.step, models: able },
    ]);
  }
  const first = Math.min(Math.floor(draw * able.length), able.length - 1);
  return withAffinityFirst([...able.slice(first), ...able.slice(0, first)], affinity);
}
