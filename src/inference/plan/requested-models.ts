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
import { resolveVariant, wishOf } from '../../routing/variants.ts';
import type { ChatRequest } from '../../schemas/inner.ts';
import { BOUNDS } from '../prepare/fit-request.ts';
import { type KnownModels, unknownModel } from './unknown-model.ts';

/** The part of the catalog that inference looks at. */
export interface ModelSource extends KnownModels {
  find(id: string): Model | undefined;
  provider(slug_or_name: string): Provider | undefined;
}

/** A name, and the models that it stands for. */
export interface ResolvedName {
  name: string;
  models: readonly Model[];
}

/** The models of a request, and how they came to be. */
export interface Requested {
  models: Model[];
  /** As the client named the first. */
  requested: string;
  /** What each of the client's names stands for. */
  names?: readonly ResolvedName[] | undefined;
  /** What the names ask for beside the models. */
  wishes?: ReadonlyMap<Model, ModelVariant> | undefined;
  /** Absent: by their own names. */
  strategy?: Strategy | undefined;
  /** The request with what the names add to it; absent: nothing. */
  request?: ChatRequest | undefined;
}

/** What a name is looked up with. */
export interface Lookup {
  catalog: ModelSource;
  /** The default of the caller or of the configuration. */
  default_model: string | undefined;
  routers: RouterRules;
  draw(): number;
  /** Whether the caller may use a model at all; undefined if every model is allowed. */
  allows?: ((model: Model) => boolean) | undefined;
  /** The model that the conversation was given before by a router. */
  home(router: string): string | undefined;
}

interface Named {
  field: string;
  name: string;
}

/** The models that one name stands for. */
interface Resolved {
  models: readonly Model[];
  strategy: Strategy;
  wish?: ModelVariant | undefined;
  is_online?: boolean;
}

/** The service's own word for its routers, so that its clients work as they are. */
const ROUTER_NAMES: Readonly<Record<string, string>> = {
  [AUTO]: AUTO,
  [FREE]: FREE,
  'openrouter/auto': AUTO,
  'openrouter/free': FREE,
};

function namesOf(request: ChatRequest, default_model = AUTO): Named[] {
  const named: Named[] = [];
  if (request.model) named.push({ field: 'model', name: request.model });
  if (request.models) {
    for (const [index, name] of request.models.entries()) named.push({ field: `models[${index}]`, name });
  }
  if (named.length > 0) return named;
  return [{ field: 'model', name: default_model }];
}

function invalid({ field }: Named, why: string): GatewayError {
  return new GatewayError(400, why, { metadata: { field } });
}

/** The models of a list in the configuration that the catalog has. */
function known(ids: readonly string[], catalog: ModelSource): Model[] {
  return ids.flatMap((id) => catalog.find(id) ?? []);
}

/** What `gateway/auto` chooses among: as the operator says, else the caller's default and what is on. */
function autoAmong(named: Named, request: ChatRequest, { catalog, routers, default_model }: Lookup): readonly Model[] {
  if (routers.auto_models !== undefined) return known(routers.auto_models, catalog);
  const on =
    routers.sandbox_models === undefined
      ? builtInModels(catalog.models(), (slug) => catalog.provider(slug))
      : known(routers.sandbox_models, catalog);
  const first = default_model === undefined ? undefined : catalog.find(default_model);
  const among = first === undefined ? on : [first, ...on.filter(({ id }) => id !== first.id)];
  if (among.length > 0) return among;
  if (request.model == null && !request.models?.length) {
    throw invalidField('model', 'is required: no model of the active providers can be chosen automatically');
  }
  throw new GatewayError(
    404,
    `${named.name} has no model to choose from: name a model, or ask the operator to set routing.auto_models`,
    { metadata: { field: named.field } },
  );
}

function routed(router: string, named: Named, request: ChatRequest, lookup: Lookup): Resolved {
  const { catalog, routers, draw, home } = lookup;
  const choice = { request, needs: needsOf(request), draw: draw(), home: home(router) };
  if (router === AUTO) {
    return { models: autoModels(autoAmong(named, request, lookup), choice), strategy: 'auto' };
  }
  if (routers.free_models === undefined) throw invalid(named, `${named.name} is not configured (routing.free_models)`);
  const among = routers.free_models === 'all' ? catalog.models() : known(routers.free_models, catalog);
  const free = routers.free_models === 'all' ? freeModels(among) : among;
  return { models: freeChoice(free, choice), strategy: 'free', wish: { free: true } };
}

function resolved(named: Named, request: ChatRequest, lookup: Lookup): Resolved {
  const { name } = named;
  const { catalog } = lookup;
  // A model that an operator calls so goes first.
  const plain = catalog.find(name);
  if (plain !== undefined) return { models: [plain], strategy: plain.id === name ? 'direct' : 'alias' };
  if (name.includes('@preset/'))
    throw invalid(named, `${name} is a preset, and this gateway has no presets; name a model`);
  const latest = latestModels(catalog.models());
  const variant = resolveVariant<Model | string>(name, (id) => catalog.find(id) ?? routerOf(id) ?? latest.get(id));
  if (variant === undefined) {
    throw unknownModel(name, catalog, {
      status: 400,
      field: named.field,
      ...(lookup.allows && { allows: lookup.allows }),
    });
  }
  const { model, suffixes } = variant;
  if (suffixes.includes('batch')) {
    throw new GatewayError(404, `${name} is offered for batches only, which this gateway does not support`, {
      metadata: { field: named.field },
    });
  }
  const wish = wishOf(suffixes);
  const is_online = suffixes.includes('online');
  if (typeof model === 'string') {
    const found = routed(model, named, request, lookup);
    return { ...found, wish: found.wish && wish ? { ...wish, ...found.wish } : (found.wish ?? wish), is_online };
  }
  return { models: [model], strategy: name.startsWith('~') ? 'latest' : 'direct', wish, is_online };
}

/** What `:online` puts among the plugins of a request: this very object, so that errors can name what the client said. */
export const ONLINE = Object.freeze({ id: 'web' });

/** The router model that a name means; undefined: none. */
export function routerOf(name: string): string | undefined {
  return Object.hasOwn(ROUTER_NAMES, name) ? ROUTER_NAMES[name] : undefined;
}

/** What a name stands for; a router that has no model for the request is passed over where another name may have one. */
function resolvedAmong(named: Named, others: number, request: ChatRequest, lookup: Lookup): Resolved | NoEndpoint {
  try {
    return resolved(named, request, lookup);
  } catch (error) {
    if (error instanceof NoEndpoint && others > 0) return error;
    throw error;
  }
}

/** A model without the endpoints that cost nothing; undefined: it has no others. */
function withoutFree(model: Model): Model | undefined {
  const endpoints = model.endpoints.filter(({ pricing }) => !isFree(pricing));
  return endpoints.length === 0 ? undefined : { ...model, endpoints };
}

/** A suffix turns reasoning on where the request itself says nothing of it. */
function fitting(wish: ModelVariant, request: ChatRequest): ModelVariant {
  const is_said = request.reasoning != null || request.reasoning_effort != null || request.include_reasoning != null;
  if (wish.sends?.reasoning === undefined || !is_said) return wish;
  const { sends: _, ...rest } = wish;
  return rest;
}

/**
 * The models that a request names, in order: `model`, then `models`, each once, but that one named for its free endpoints and
 * later by itself stands there again with the others; the default when it names none. Names may be ids, dated slugs, ids with
 * suffixes, `~author/family-latest` and router models. Throws a 400, or a 404 of a router.
 */
export function requestedModels(request: ChatRequest, lookup: Lookup): Requested {
  const named = namesOf(request, lookup.default_model);
  const list: Model[] = [];
  /** Their ids; made when there is more than one. */
  let ids: Set<string> | undefined;
  /** Those that stand in the list for their free endpoints alone. */
  let free_alone: Set<string> | undefined;
  let wishes: Map<Model, ModelVariant> | undefined;
  const names: ResolvedName[] = [];
  let strategy: Strategy | undefined;
  let is_online = false;
  let nothing: NoEndpoint | undefined;
  for (const one of named) {
    const found = resolvedAmong(one, named.length - 1, request, lookup);
    if (found instanceof NoEndpoint) {
      nothing ??= found;
      names.push({ name: one.name, models: [] });
      continue;
    }
    names.push({ name: one.name, models: found.models });
    strategy ??= found.strategy;
    is_online ||= found.is_online === true;
    for (const one_found of found.models) {
      let model = one_found;
      if (!model.output_modalities.some((kind) => kind === 'text' || kind === 'image' || kind === 'audio')) {
        throw invalid(one, `${one.name} does not answer chat completions`);
      }
      if (list.length > 0) {
        ids ??= new Set(list.map(({ id }) => id));
        if (ids.has(model.id)) {
          if (found.wish?.free === true || free_alone?.delete(model.id) !== true) continue;
          const rest = withoutFree(model);
          if (rest === undefined) continue;
          model = rest;
        }
        ids.add(model.id);
      }
      if (found.wish?.free === true) {
        free_alone ??= new Set();
        free_alone.add(model.id);
      }
      list.push(model);
      if (found.wish === undefined) continue;
      wishes ??= new Map();
      wishes.set(model, fitting(found.wish, request));
    }
  }
  if (list.length === 0 && nothing !== undefined) throw nothing;
  checkBound(request, list);
  return {
    models: list,
    requested: named[0]?.name ?? '',
    names,
    wishes,
    strategy: named.length > 1 && list.length > 1 ? 'fallback' : strategy,
    request: is_online ? online(request) : undefined,
  };
}

/** The request with the plugin that `:online` means; undefined: it has it. */
function online(request: ChatRequest): ChatRequest | undefined {
  const plugins = request.plugins ?? [];
  return plugins.some(({ id }) => id === 'web') ? undefined : { ...request, plugins: [...plugins, ONLINE] };
}

/** An output bound must be below the context length of a model that is to answer (specification, section Limits). */
function checkBound(request: ChatRequest, models: Model[]): void {
  for (const field of BOUNDS) {
    const bound = request[field];
    if (typeof bound !== 'number') continue;
    let largest = Number.NEGATIVE_INFINITY;
    for (const { context_length = Number.POSITIVE_INFINITY } of models) largest = Math.max(largest, context_length);
    if (bound >= largest) {
      throw new GatewayError(400, `${field} must be less than ${largest}, the model's context length`);
    }
  }
}
