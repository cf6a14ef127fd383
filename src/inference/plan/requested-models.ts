import type { Model } from '../../catalog/model.ts';
import { GatewayError, invalidField } from '../../errors.ts';
import type { Provider } from '../../providers/provider.ts';
import { builtInModels } from '../../routing/built-in-router.ts';
import type { Strategy } from '../../routing/candidate.ts';
import { latestModels } from '../../routing/families.ts';
import type { ModelVariant } from '../../routing/model-variant.ts';
import { needsOf } from '../../routing/needs.ts';
import { NoEndpoint } from '../../routing/refusal.ts';
import { AUTO, autoModels, FREE, freeChoice, freeModels, type RouterRules } from '../../routing/router-models.ts';
import { isFree } from '../../routing/rules.ts';
import { resolveVariant, variantOf } from '../../routing/variants.ts';
import type { ChatRequest } from '../../schemas/inner.ts';
import { lookupTable } from '../../schemas/lookup-table.ts';
import { BOUNDS } from '../attempt/prepare-attempt.ts';
import { type KnownModels, unknownModel } from './unknown-model.ts';

/** The part of the catalog that inference reads. */
export interface ModelSource extends KnownModels {
  find(id: string): Model | undefined;
  provider(slugOrName: string): Provider | undefined;
}

/** A name of a request, and its models. */
export interface ResolvedName {
  name: string;
  models: readonly Model[];
}

/** The models of a request, and how its names were resolved. */
export interface Requested {
  models: Model[];
  /** The client's first name. */
  requested: string;
  /** The models of each name. */
  names?: readonly ResolvedName[] | undefined;
  /** What the names request besides the models. */
  variants?: ReadonlyMap<Model, ModelVariant> | undefined;
  /** Undefined if the models are named directly. */
  strategy?: Strategy | undefined;
  /** The request with the plugin that a name adds; undefined if none does. */
  request?: ChatRequest | undefined;
}

/** The data by which names are resolved. */
export interface Lookup {
  catalog: ModelSource;
  /** The default of the caller or of the configuration; called if a request names no model, or `gateway/auto`. */
  defaultModel(): string | undefined;
  routers: RouterRules;
  draw(): number;
  /** Whether the caller may use a model at all, for suggestions. Not set: every model is allowed. */
  allows?(model: Model): boolean;
  /** The model that a router chose for the conversation before. */
  home(router: string): string | undefined;
}

interface Named {
  field: string;
  name: string;
}

/** The models of one name. */
interface Resolved {
  models: readonly Model[];
  strategy: Strategy;
  variant?: ModelVariant | undefined;
  is_online?: boolean;
}

/** Names of the router models; those of the public service too, so that its clients work unchanged. */
const ROUTER_NAMES: Readonly<Record<string, string>> = lookupTable({
  [AUTO]: AUTO,
  [FREE]: FREE,
  'openrouter/auto': AUTO,
  'openrouter/free': FREE,
});

function invalid({ field }: Named, message: string): GatewayError {
  return new GatewayError(400, message, { metadata: { field } });
}

/** The models of a list in the configuration that the catalog has. */
function modelsOf(ids: readonly string[], catalog: ModelSource): Model[] {
  return ids.flatMap((id) => catalog.find(id) ?? []);
}

/** The choice of `gateway/auto`: the operator's list, otherwise the caller's default and the models that are on. */
function autoChoice(named: Named, request: ChatRequest, lookup: Lookup): readonly Model[] {
  const { catalog, routers } = lookup;
  if (routers.auto_models !== undefined) return modelsOf(routers.auto_models, catalog);
  const on =
    routers.sandbox_models === undefined
      ? builtInModels(catalog.models(), (slug) => catalog.provider(slug))
      : modelsOf(routers.sandbox_models, catalog);
  const defaultModel = lookup.defaultModel();
  const first = defaultModel === undefined ? undefined : catalog.find(defaultModel);
  const choice = first === undefined ? on : [first, ...on.filter(({ id }) => id !== first.id)];
  if (choice.length > 0) return choice;
  if (request.model == null && !request.models?.length) {
    throw invalidField('model', 'is required: no model of the active providers can be chosen automatically');
  }
  throw new GatewayError(
    404,
    `${named.name} has no model to choose from: name a model, or ask the operator to set routing.auto_models`,
    { metadata: { field: named.field } },
  );
}

/** Resolves the name of a router model. */
function routed(router: string, named: Named, request: ChatRequest, lookup: Lookup): Resolved {
  const { catalog, routers, draw, home } = lookup;
  const choice = { request, needs: needsOf(request), draw: draw(), home: home(router) };
  if (router === AUTO) {
    return { models: autoModels(autoChoice(named, request, lookup), choice), strategy: 'auto' };
  }
  const { free_models } = routers;
  if (free_models === undefined) throw invalid(named, `${named.name} is not configured (routing.free_models)`);
  const free = free_models === 'all' ? freeModels(catalog.models()) : modelsOf(free_models, catalog);
  return { models: freeChoice(free, choice), strategy: 'free', variant: { free: true } };
}

/** Resolves a name that is no id of the catalog: with suffixes, `~author/family-latest`, or of a router. */
function resolved(named: Named, request: ChatRequest, lookup: Lookup): Resolved {
  const { name, field } = named;
  const { catalog, allows } = lookup;
  if (name.includes('@preset/'))
    throw invalid(named, `${name} is a preset, and this gateway has no presets; name a model`);
  const latest = latestModels(catalog.models());
  const parsedName = resolveVariant<Model | string>(name, (id) => catalog.find(id) ?? routerOf(id) ?? latest.get(id));
  if (parsedName === undefined) throw unknownModel(name, catalog, { status: 400, field, ...(allows && { allows }) });
  const { model, suffixes } = parsedName;
  if (suffixes.includes('batch')) {
    throw new GatewayError(404, `${name} is offered for batches only, which this gateway does not support`, {
      metadata: { field },
    });
  }
  const variant = variantOf(suffixes);
  const isOnline = suffixes.includes('online');
  if (typeof model === 'string') {
    const router = routed(model, named, request, lookup);
    return {
      ...router,
      variant: router.variant && variant ? { ...variant, ...router.variant } : (router.variant ?? variant),
      is_online: isOnline,
    };
  }
  return { models: [model], strategy: name.startsWith('~') ? 'latest' : 'direct', variant, is_online: isOnline };
}

/** The plugin that `:online` adds to a request: this very object, so that errors can name the suffix. */
export const ONLINE = Object.freeze({ id: 'web' });

/** The router model with this name; undefined if there is none. */
export function routerOf(name: string): string | undefined {
  return Object.hasOwn(ROUTER_NAMES, name) ? ROUTER_NAMES[name] : undefined;
}

/** A model without its free endpoints; undefined if it has no others. */
function withoutFree(model: Model): Model | undefined {
  const endpoints = model.endpoints.filter(({ pricing }) => !isFree(pricing));
  return endpoints.length === 0 ? undefined : { ...model, endpoints };
}

/** The variant; a suffix enables reasoning only if the request itself does not mention it. */
function fitting(variant: ModelVariant, request: ChatRequest): ModelVariant {
  const isStated = request.reasoning != null || request.reasoning_effort != null || request.include_reasoning != null;
  if (variant.sends?.reasoning === undefined || !isStated) return variant;
  const { sends: _, ...rest } = variant;
  return rest;
}

/**
 * The models that a request names, in order: `model`, then `models`, each once; a model named for its free endpoints and later
 * without the suffix appears again with its priced endpoints. The default if the request names none. Names may be ids, dated slugs,
 * ids with suffixes, `~author/family-latest` and router models. Throws a 400, or a 404 of a router.
 */
export function requestedModels(request: ChatRequest, lookup: Lookup): Requested {
  return onlyModel(request, lookup.catalog) ?? severalModels(request, lookup);
}

/** The model of a request that names one, by an id of the catalog: the usual request. Undefined for any other. Throws as `requestedModels`. */
export function onlyModel(request: ChatRequest, catalog: Pick<ModelSource, 'find'>): Requested | undefined {
  const { model: name } = request;
  const model = name && !request.models?.length ? catalog.find(name) : undefined;
  if (!name || model === undefined) return undefined;
  const models = [model];
  requireAnswers({ field: 'model', name }, model);
  requireBounds(request, models);
  const strategy = model.id === name ? 'direct' : 'alias';
  return { models, requested: name, names: [{ name, models }], variants: undefined, strategy, request: undefined };
}

/** Refuses a model that answers nothing that chat completions can hold. */
function requireAnswers(named: Named, { output_modalities: output }: Model): void {
  if (output.includes('text') || output.includes('image') || output.includes('audio')) return;
  throw invalid(named, `${named.name} does not answer chat completions`);
}

/** An output bound must be below the longest context (specification, section Limits). */
function requireBounds(request: ChatRequest, models: readonly Model[]): void {
  for (let at = 0; at < BOUNDS.length; at += 1) {
    const field = BOUNDS[at]!;
    const bound = request[field];
    if (typeof bound !== 'number') continue;
    let longest = Number.NEGATIVE_INFINITY;
    for (const { context_length = Number.POSITIVE_INFINITY } of models) longest = Math.max(longest, context_length);
    if (bound >= longest)
      throw new GatewayError(400, `${field} must be less than ${longest}, the model's context length`);
  }
}

/** The models of several names, or of a name that is no id of the catalog. */
function severalModels(request: ChatRequest, lookup: Lookup): Requested {
  const named: Named[] = [];
  if (request.model) named.push({ field: 'model', name: request.model });
  if (request.models) {
    for (const [index, name] of request.models.entries()) named.push({ field: `models[${index}]`, name });
  }
  if (named.length === 0) named.push({ field: 'model', name: lookup.defaultModel() ?? AUTO });
  const list: Model[] = [];
  /** The ids of `list`; made for the second model. */
  let ids: Set<string> | undefined;
  /** The ids that are in `list` for their free endpoints only. */
  let freeOnly: Set<string> | undefined;
  let variants: Map<Model, ModelVariant> | undefined;
  const names: ResolvedName[] = [];
  let strategy: Strategy | undefined;
  let isOnline = false;
  let noEndpoint: NoEndpoint | undefined;
  for (const one of named) {
    const { name } = one;
    let match: Resolved;
    // An operator's model with this very id goes first.
    const plain = lookup.catalog.find(name);
    if (plain !== undefined) match = { models: [plain], strategy: plain.id === name ? 'direct' : 'alias' };
    else {
      try {
        match = resolved(one, request, lookup);
      } catch (error) {
        // A router without a model for the request is skipped if there are other names.
        if (!(error instanceof NoEndpoint) || named.length === 1) throw error;
        noEndpoint ??= error;
        names.push({ name, models: [] });
        continue;
      }
    }
    const { models, variant } = match;
    names.push({ name, models });
    strategy ??= match.strategy;
    isOnline ||= match.is_online === true;
    for (const candidate of models) {
      let model = candidate;
      requireAnswers(one, model);
      if (list.length > 0) {
        ids ??= new Set(list.map(({ id }) => id));
        if (ids.has(model.id)) {
          if (variant?.free === true || freeOnly?.delete(model.id) !== true) continue;
          const priced = withoutFree(model);
          if (priced === undefined) continue;
          model = priced;
        }
        ids.add(model.id);
      }
      if (variant?.free === true) {
        freeOnly ??= new Set();
        freeOnly.add(model.id);
      }
      list.push(model);
      if (variant === undefined) continue;
      variants ??= new Map();
      variants.set(model, fitting(variant, request));
    }
  }
  if (list.length === 0 && noEndpoint !== undefined) throw noEndpoint;
  requireBounds(request, list);
  return {
    models: list,
    requested: named[0]?.name ?? '',
    names,
    variants,
    strategy: named.length > 1 && list.length > 1 ? 'fallback' : strategy,
    request: isOnline ? online(request) : undefined,
  };
}

/** The request with the plugin of `:online`; undefined if the request has it. */
function online(request: ChatRequest): ChatRequest | undefined {
  const plugins = request.plugins ?? [];
  return plugins.some(({ id }) => id === 'web') ? undefined : { ...request, plugins: [...plugins, ONLINE] };
}
