import { invalidField } from '../errors.ts';
import { dialectOf } from '../providers/dialects.ts';
import { dataPolicyOf } from '../providers/provider.ts';
import { needsTemplate } from '../providers/tool-template/template.ts';
import type { ChatRequest, ProviderPreferences } from '../schemas/inner.ts';
import { isPriced, type Prices } from '../schemas/prices.ts';
import { type Candidate, keepsNothing, pricesOf, tagOf } from './candidate.ts';
import type { ModelVariant } from './model-variant.ts';
import { isNamed, type NameList, nameList } from './names.ts';
import { acceptsInput, isShortenedFor, type Needs, promptTokensMax, supports, unsupportedParameters } from './needs.ts';

/** The inputs of the routing rules. */
export interface RuleInput {
  request: ChatRequest;
  preferences: ProviderPreferences;
  /** The same if the request states any. */
  stated: ProviderPreferences | undefined;
  needs: Needs;
  /** The options in the name of each model. */
  variants: ReadonlyMap<Candidate['model'], ModelVariant> | undefined;
  refuses: ((candidate: Candidate) => string | undefined) | undefined;
  /** Why the caller's guardrails exclude a candidate. */
  restricts: ((candidate: Candidate) => string | undefined) | undefined;
  /** Set if endpoints without a known price are refused. */
  requires_price: true | undefined;
  /** Set if the length of the prompt, or the context that a variant wants, can exclude endpoints. */
  is_sized: true | undefined;
  /** The number of requested answers if there are several. */
  answers: number | undefined;
  /** Lists of providers, each of which must have an endpoint. */
  allowed: readonly NameList[];
  /** Lists of providers, none of which may have it. */
  ignored: readonly NameList[];
  order: NameList | undefined;
  /** The longest prompt that any endpoint of the request's models reads, in tokens. */
  longestPrompt(): number;
  /** Whether the request selects service tiers other than by naming their endpoints. */
  selectsTiers: boolean;
}

type NameLists = Pick<RuleInput, 'allowed' | 'ignored' | 'order'>;

/** What a caller can change so that a rule excludes less. */
export interface Constraint {
  field: string;
  detail: string;
}

/** One rule that excludes endpoints. */
export interface Rule {
  /** Its name in the routing funnel; the public service's if it has the same step. */
  step: string;
  /** The message to the caller if no endpoint is left. Default: the reasons of the endpoints. */
  message?: string;
  /** The status of that error. Default: 404. */
  status?: 400;
  constraint: Constraint;
  /** The input that it reads and that few requests have: without it, it does not apply. */
  of?: 'refuses' | 'variants' | 'restricts' | 'stated' | 'requires_price' | 'is_sized' | 'answers';
  /** Not set: it always applies, if `of` is there. */
  applies?(input: RuleInput): boolean;
  /** Why it excludes the candidate; undefined if it does not. */
  reason(candidate: Candidate, input: RuleInput): string | undefined;
}

/** USD per million tokens, or per unit, as pico-USD per token or unit. */
function picoLimit(value: number | string, perMillion: boolean): number {
  const usd = typeof value === 'number' ? value : Number(value);
  if (!Number.isFinite(usd) || usd < 0) throw invalidField('provider.max_price', 'must contain amounts in USD');
  return usd * (perMillion ? 1e6 : 1e12);
}

const CAPPED: readonly ['prompt' | 'completion' | 'request' | 'image' | 'audio', boolean][] = [
  ['prompt', true],
  ['completion', true],
  ['request', false],
  ['image', false],
  ['audio', false],
];

/** Tolerance for inexact decimal fractions: prices above a limit by less than this are at the limit. */
const ROUNDING = 1e-12;

function overPrice(preferences: ProviderPreferences, prices: Prices): string | undefined {
  for (const [name, perMillion] of CAPPED) {
    const cap = preferences.max_price?.[name];
    if (cap === undefined || cap === null) continue;
    if ((prices[name] ?? 0) * (1 - (prices.discount ?? 0)) > picoLimit(cap, perMillion) * (1 + ROUNDING))
      return `its ${name} price is above provider.max_price.${name}`;
  }
  return undefined;
}

/** Whether a value has an effect: empty lists and the plain text format have none. */
function hasEffect(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return true;
  return Object.keys(value).length > 0 && !('type' in value && value.type === 'text');
}

/** The parameters of the request that an endpoint lacks; a schema for the answer counts as one. */
function missingParameters(request: ChatRequest, { endpoint }: Candidate): string[] {
  const missing = unsupportedParameters(request, endpoint).filter((name) => hasEffect(request[name]));
  const known = endpoint.supported_parameters;
  const wantsSchema = request.response_format?.type === 'json_schema';
  if (wantsSchema && known !== undefined && !known.includes('structured_outputs')) missing.push('structured_outputs');
  return missing;
}

function longestContext({ model }: Candidate): number {
  return Math.max(...model.endpoints.map(({ context_length: contextLength }) => contextLength ?? 0));
}

/** Whether these prices are known and zero. */
export function isFree(prices: Prices): boolean {
  return isPriced(prices) && Object.entries(prices).every(([name, price]) => name === 'discount' || price === 0);
}

/** The step that excludes by the caller's guardrails. */
export const GUARDRAILS = 'Filter by Guardrails';

/** The rules, in order. Each is independent: another source of a list is another list. */
export const rules: readonly Rule[] = [
  {
    step: 'Filter by Operation',
    constraint: { field: 'model', detail: 'name a model that serves this operation' },
    of: 'refuses',
    reason: (candidate, { refuses }) => refuses?.(candidate),
  },
  {
    step: 'Filter by Input Modalities',
    constraint: { field: 'messages', detail: 'name a model that accepts this kind of content, or send text only' },
    reason({ model, endpoint }, { needs }) {
      const missing = needs.input.find((kind) => !acceptsInput(endpoint, kind));
      if (missing === undefined) return undefined;
      return `${model.input_modalities.includes(missing) ? 'it' : 'the model'} does not accept ${missing} input`;
    },
  },
  {
    step: 'Filter by Model Output Modalities',
    constraint: { field: 'modalities', detail: 'request an output that the model supports' },
    reason({ model }, { needs }) {
      const missing = needs.output.find((kind) => !model.output_modalities.includes(kind));
      return missing === undefined ? undefined : `the model does not produce ${missing} output`;
    },
  },
  {
    step: 'Filter by Context Length',
    message:
      'The prompt is longer than the context of every endpoint of the selected model: shorten it, name a model with a longer context, or use the plugin context-compression',
    status: 400,
    constraint: {
      field: 'messages',
      detail: 'send less, name a model with a longer context, or use the plugin context-compression',
    },
    of: 'is_sized',
    reason(candidate, { needs, variants, longestPrompt }) {
      const promptMax = promptTokensMax(candidate.endpoint);
      const isShortOf = isShortenedFor(candidate.endpoint, needs.compression)
        ? // At least half of the prompt must remain, if any endpoint reads that much.
          needs.prompt_tokens > 2 * promptMax && promptMax < longestPrompt()
        : needs.prompt_tokens_min > promptMax;
      if (isShortOf) return `it reads at most ${promptMax} tokens`;
      const isShort =
        variants?.get(candidate.model)?.extended === true &&
        (candidate.endpoint.context_length ?? 0) < longestContext(candidate);
      return isShort ? 'its context is not the longest' : undefined;
    },
  },
  {
    step: 'Filter by Known Price',
    message: 'The price of the selected model is not known; the operator can set it or allow unpriced models',
    constraint: {
      field: 'model',
      detail: 'name a model with a known price, or ask the operator to set the price of this one',
    },
    of: 'requires_price',
    reason: (candidate) => (isPriced(pricesOf(candidate)) ? undefined : 'its price is not known'),
  },
  {
    step: 'Filter by Free Endpoints',
    message: 'No endpoint of the selected model is free of charge',
    constraint: { field: 'model', detail: 'name the model without :free' },
    of: 'variants',
    reason(candidate, { variants, needs }) {
      if (variants?.get(candidate.model)?.free !== true) return undefined;
      return isFree(pricesOf(candidate, needs.prompt_tokens)) ? undefined : 'it is not free of charge';
    },
  },
  {
    step: 'Filter by Distillable Models',
    message: 'The selected model is not known to allow training on its output',
    constraint: { field: 'provider.enforce_distillable_text', detail: 'leave it out, or name a model that allows it' },
    of: 'stated',
    applies: ({ preferences }) => preferences.enforce_distillable_text === true,
    reason: ({ model }) =>
      model.is_distillable === true ? undefined : 'its author is not known to allow training on its output',
  },
  {
    step: 'Filter by Allowed Providers',
    message: 'No allowed providers are available for the selected model',
    constraint: { field: 'provider.only', detail: 'name more of the providers that serve the model' },
    of: 'stated',
    applies: ({ allowed }) => allowed.length > 0,
    reason(candidate, { allowed, selectsTiers }) {
      const isAllowed = allowed.every((list) => isNamed(list, candidate, selectsTiers));
      return isAllowed ? undefined : 'it is not in provider.only';
    },
  },
  {
    step: 'Filter by Ignored Providers',
    message: 'All providers of the selected model are ignored by this request',
    constraint: { field: 'provider.ignore', detail: 'ignore fewer of the providers that serve the model' },
    of: 'stated',
    applies: ({ ignored }) => ignored.length > 0,
    reason(candidate, { ignored, selectsTiers }) {
      const isIgnored = ignored.some((list) => isNamed(list, candidate, selectsTiers));
      return isIgnored ? 'it is in provider.ignore' : undefined;
    },
  },
  {
    step: 'Filter by Data Policy',
    message: 'No endpoints found matching your data policy',
    constraint: {
      field: 'provider.data_collection',
      detail: 'allow it, or name a model of a provider that does not train on data',
    },
    of: 'stated',
    applies: ({ preferences }) => preferences.data_collection === 'deny',
    reason: ({ provider, model, endpoint }) =>
      dataPolicyOf(provider, model, endpoint).training === false ? undefined : 'its provider may train on data',
  },
  {
    step: 'Filter by Zero Data Retention',
    message: 'No endpoints found with zero data retention',
    constraint: { field: 'provider.zdr', detail: 'leave it out, or name a model of a provider that keeps no data' },
    of: 'stated',
    applies: ({ preferences }) => preferences.zdr === true,
    reason: (candidate) => (keepsNothing(candidate) ? undefined : 'its provider is not known to keep no data'),
  },
  {
    step: 'Filter by Parameters',
    message: 'No endpoints found that can handle the requested parameters',
    constraint: { field: 'provider.require_parameters', detail: 'leave it out, or leave out what is not supported' },
    of: 'stated',
    applies: ({ preferences }) => preferences.require_parameters === true,
    reason(candidate, { request }) {
      const missing = missingParameters(request, candidate);
      return missing.length === 0 ? undefined : `it does not support ${missing.join(', ')}`;
    },
  },
  {
    step: 'Filter by Quantization',
    message: 'No endpoints found with the requested quantizations',
    constraint: { field: 'provider.quantizations', detail: 'name more of them, or leave it out' },
    of: 'stated',
    applies: ({ preferences }) => (preferences.quantizations?.length ?? 0) > 0,
    reason: ({ endpoint: { quantization } }, { preferences }) =>
      preferences.quantizations?.includes(quantization) ? undefined : `its quantization is ${quantization}`,
  },
  {
    step: 'Filter by Max Price',
    message: 'No endpoints found that satisfy the max price for this request',
    constraint: { field: 'provider.max_price', detail: 'raise it, or name a cheaper model' },
    of: 'stated',
    applies: ({ preferences }) => preferences.max_price != null,
    reason: (candidate, { preferences, needs }) => overPrice(preferences, pricesOf(candidate, needs.prompt_tokens)),
  },
  {
    step: 'Filter by Number of Answers',
    message:
      'n must be 1 for the selected model: none of its endpoints returns several answers to one request; send one request per answer',
    status: 400,
    constraint: {
      field: 'n',
      detail: 'send one request per answer, or name a model of a provider that supports n',
    },
    of: 'answers',
    reason({ endpoint, provider }, { request }) {
      if (!supports(endpoint, 'tools') && needsTemplate(request))
        return 'it reads tools as text, which allows one answer only';
      const acceptsN = dialectOf(endpoint.dialect ?? provider.dialect).facts.takesSeveralChoices;
      return acceptsN && endpoint.quirks.refused_parameters?.includes('n') !== true
        ? undefined
        : 'it returns one answer per request';
    },
  },
  {
    // Last, so that its exclusions have no other reason: `refuse` depends on that.
    step: GUARDRAILS,
    message: 'No endpoints available matching your guardrail restrictions and data policy',
    constraint: {
      field: 'model',
      detail: 'name a model that the guardrails of this key allow (GET /models/user lists them)',
    },
    of: 'restricts',
    reason: (candidate, { restricts }) => restricts?.(candidate),
  },
];

/** Steps that do not apply to a single endpoint, with their messages. */
export const laterSteps = {
  own_credentials: {
    step: 'Filter by Own Credentials',
    message: 'No credential of the workspace can be used for the selected model',
    constraint: { field: 'model', detail: 'correct the credential, or allow the gateway’s own accounts after it' },
  },
  order: {
    step: 'Filter by Provider Order',
    message: 'No provider of provider.order serves the selected model, and fallbacks are not allowed',
    constraint: { field: 'provider.order', detail: 'name a provider that serves the model, or allow fallbacks' },
  },
  initial: {
    step: 'Initial Endpoints',
    constraint: { field: 'model', detail: 'name a model that a configured provider serves' },
  },
} as const;

const NO_LISTS: readonly NameList[] = [];
/** Those of a request without preferences. */
export const NO_NAMES: NameLists = { allowed: NO_LISTS, ignored: NO_LISTS, order: undefined };

/** The lists of names in a request's preferences. */
export function listsOf(preferences: ProviderPreferences): NameLists {
  const only = nameList(preferences.only);
  const ignore = nameList(preferences.ignore);
  return {
    allowed: only === undefined ? NO_LISTS : [only],
    ignored: ignore === undefined ? NO_LISTS : [ignore],
    order: nameList(preferences.order),
  };
}

/** A step that excludes endpoints if others of the same model are better: it never excludes the last one. */
export interface Preference {
  step: string;
  applies(input: RuleInput): boolean;
  /** What the candidate lacks; undefined if nothing. */
  lacks(candidate: Candidate, input: RuleInput): string | undefined;
}

/** Endpoints that serve a request unchanged precede those that change it (public service's documentation, "Provider selection"). */
export const soft: readonly Preference[] = [
  {
    step: 'Filter by Service Tier',
    applies: ({ request }) => request.service_tier === 'flex',
    lacks: (candidate) => (candidate.tier === undefined ? `${tagOf(candidate)} has no tier flex` : undefined),
  },
  {
    step: 'Filter by Tool Compatibility',
    applies: ({ needs }) => needs.tools,
    lacks: ({ endpoint }) => (supports(endpoint, 'tools') ? undefined : 'it does not support tools, but others do'),
  },
  {
    step: 'Filter by Answer Format',
    applies: ({ needs }) => needs.forms.length > 0,
    lacks({ endpoint }, { needs }) {
      const missing = needs.forms.find((name) => !supports(endpoint, name));
      return missing === undefined ? undefined : `it does not support ${missing}, but others do`;
    },
  },
  {
    step: 'Filter by Output Tokens',
    applies: ({ needs }) => needs.output_tokens > 0,
    lacks({ endpoint: { max_completion_tokens: outputMax } }, { needs }) {
      if (outputMax === undefined || outputMax >= needs.output_tokens) return undefined;
      return `it produces at most ${outputMax} output tokens, but others produce more`;
    },
  },
];
