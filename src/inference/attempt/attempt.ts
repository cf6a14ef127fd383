import type { Endpoint } from '../../catalog/model.ts';
import { offersTier } from '../../catalog/price-list.ts';
import { GatewayError } from '../../errors.ts';
import { inTurns } from '../../http/in-turns.ts';
import { writeInTurns } from '../../http/written-json.ts';
import { limits } from '../../limits.ts';
import type { ChatDialect, EncodedRequest, Media, Report } from '../../providers/dialect.ts';
import type { CacheMarks } from '../../providers/shared/worst-case.ts';
import { needsTemplate, templated } from '../../providers/tool-template/dialect.ts';
import { type Candidate, supports, unsupportedParameters } from '../../routing/plan.ts';
import { append } from '../../schemas/append.ts';
import { contentsOf } from '../../schemas/contents.ts';
import type { ChatRequest, InnerTool } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { isLongJson } from '../../schemas/json-pieces.ts';
import { isDeeperThan } from '../../schemas/json-structure.ts';
import { cacheMarks } from '../money/payload-search.ts';
import { defaultBound } from '../plan/default-bound.ts';
import { boundConversation, boundTools } from '../prepare/bound-tools.ts';
import { NO_MEDIA } from '../prepare/media.ts';

/** The most nesting levels of a client's provider options. */
const OPTION_LEVELS_MAX = 100;

/** The output bound of a caller with a spend limit. */
export interface SpendBound {
  /** The bound if the request sets none. Undefined for the model's maximum. */
  default_tokens: number | undefined;
  /** The output that the budgets pay for, if that is less than the bound. */
  paid_tokens?: number | undefined;
}

/** Why a service tier is dropped. */
const UNPRICED_TIER = 'the endpoint has no price for this tier';

/** Parameters by which hosts of open models make and bill several answers, and return one. */
const SEVERAL_ANSWERS = ['best_of', 'num_generations', 'num_return_sequences'] as const;

/** The fields about tools. */
const TOOL_FIELDS: ReadonlySet<string> = new Set(['tools', 'tool_choice', 'parallel_tool_calls']);

/** Why a default output bound is lowered. */
const SHARE = `the tokens that ${limits.default_hold_share * 100} % of the rest of the spend limit pays for`;

/** The fields of an output bound. */
export const BOUNDS = ['max_completion_tokens', 'max_tokens'] as const;

/** A request fitted to one endpoint. */
export interface FittedRequest {
  request: ChatRequest;
  report: Report[];
  /** Neither the client nor the operator set the output bound: a share of the remaining limit must pay for it. */
  is_default_bound?: true;
}

/** Removes parameters that the endpoint does not support, and reports that: the contract has them ignored silently. */
export function fitRequest(request: ChatRequest, endpoint: Endpoint, spend?: SpendBound): FittedRequest {
  const report: Report[] = [];
  let fitted = request;
  const own = () => {
    if (fitted === request) fitted = { ...request };
    return fitted;
  };
  for (const name of unsupportedParameters(request, endpoint)) {
    // Without native support, tools are described in the prompt.
    if (TOOL_FIELDS.has(name)) continue;
    delete own()[name];
    report.push({ kind: 'dropped', field: name, reason: 'the endpoint does not support it' });
  }
  for (const name of SEVERAL_ANSWERS) {
    if (request[name] === undefined || request[name] === null) continue;
    delete own()[name];
    report.push({ kind: 'dropped', field: name, reason: 'the endpoint returns one answer per request' });
  }
  const max = endpoint.max_completion_tokens;
  for (const field of BOUNDS) {
    const requested = request[field];
    if (max !== undefined && typeof requested === 'number' && requested > max) {
      own()[field] = max;
      report.push({ kind: 'clamped', field, reason: `the endpoint produces at most ${max} tokens` });
    }
  }
  // As in the public service, an endpoint without the tier serves the request in its default tier.
  if (typeof request.service_tier === 'string' && !offersTier(endpoint, request.service_tier)) {
    delete own().service_tier;
    report.push({ kind: 'dropped', field: 'service_tier', reason: UNPRICED_TIER });
  }
  let isDefaultBound = false;
  if (spend !== undefined) {
    isDefaultBound = boundOutput(fitted, own, report, { endpoint, ...spend });
    const tools = fitted.tools && boundTools(fitted.tools, report);
    if (tools !== fitted.tools) own().tools = tools;
    const messages = contentsOf(fitted).has_natives ? boundConversation(fitted.messages, report) : fitted.messages;
    if (messages !== fitted.messages) own().messages = messages;
  }
  if (fitted.tools != null && !fitted.tools.every(isForUpstream)) dropServerTools(fitted.tools, own(), report);
  return isDefaultBound ? { request: fitted, report, is_default_bound: isDefaultBound } : { request: fitted, report };
}

/** Sets the output bound, which a request under a budget always has: money is held for it. Returns whether it is a default bound. */
function boundOutput(
  request: ChatRequest,
  own: () => ChatRequest,
  report: Report[],
  { endpoint, default_tokens, paid_tokens }: SpendBound & { endpoint: Endpoint },
): boolean {
  const { max_completion_tokens: newer, max_tokens: older } = request;
  const requested = newer ?? older ?? undefined;
  const configured = default_tokens && Math.min(default_tokens, endpoint.max_completion_tokens ?? default_tokens);
  const usual = requested === undefined && configured === undefined ? defaultBound(request, endpoint) : undefined;
  const bound = requested ?? configured ?? usual?.tokens ?? 0;
  const sent = Math.min(bound, paid_tokens ?? bound);
  if (sent === requested) return false;
  const fitted = own();
  if (newer != null) fitted.max_completion_tokens = sent;
  if (older != null || newer == null) fitted.max_tokens = sent;
  const field = newer == null ? 'max_tokens' : 'max_completion_tokens';
  if (requested !== undefined || (usual === undefined && sent < bound)) {
    report.push({ kind: 'clamped', field, reason: `the spend limit pays for ${sent} output tokens` });
  } else {
    const source = sent < bound ? SHARE : (usual?.source ?? 'ledger.default_output_tokens');
    const why = 'a request under a spend limit has an output bound, and this one has no max_tokens';
    report.push({ kind: 'changed', field, reason: `${sent}, ${source}: ${why}` });
  }
  return usual !== undefined;
}

/** Whether a tool is a function or native: for native tools, the dialect knows which ones its upstream runs. */
function isForUpstream(tool: InnerTool): boolean {
  return tool.type === 'function' || tool.type === 'native';
}

/** Drops tools that the gateway itself would have to run. */
function dropServerTools(tools: readonly InnerTool[], fitted: ChatRequest, report: Report[]): void {
  const remaining = tools.filter(isForUpstream);
  const dropped = new Set<string>();
  for (const [index, tool] of tools.entries()) {
    if (isForUpstream(tool)) continue;
    dropped.add(tool.type);
    report.push({
      kind: 'dropped',
      field: `tools[${index}]`,
      reason: `server tools such as ${tool.type} are not run here`,
    });
  }
  fitted.tools = remaining.length > 0 ? remaining : null;
  const { tool_choice: choice } = fitted;
  if (remaining.length > 0 && !(typeof choice === 'object' && choice !== null && dropped.has(choice.type))) return;
  delete fitted.tool_choice;
  if (choice != null && choice !== 'auto' && choice !== 'none') {
    report.push({
      kind: 'dropped',
      field: 'tool_choice',
      reason: 'the tools that it forces a call of are not run here',
    });
  }
}

/** A request as it is sent to one endpoint, with the changes that were made for it. */
export interface PreparedAttempt {
  candidate: Candidate;
  dialect: ChatDialect;
  /** The request without what the endpoint does not support. */
  request: ChatRequest;
  encoded: EncodedRequest;
  /** The body as it will be sent. */
  payload: string | Buffer;
  /** The output bound in the body. */
  output_tokens: number | undefined;
  /** The requested service tier; undefined if there is none. */
  service_tier: string | undefined;
  report: Report[];
  /** See `FittedRequest`. */
  is_default_bound?: true;
  /** Media that were fetched for it. */
  media: Media;
  /** Its prompt forces a call of a tool that is described in it: the answer is held back until the call. */
  holds_back?: boolean;
  /** The cache marks of a long payload, for the price of the prompt. Not set if they were not searched. */
  marks?: CacheMarks;
}

/** The rules of a wire for merging a client's options into its body. */
export interface OptionRules extends Pick<ChatDialect, 'reserved' | 'serviceTier'> {
  worstCase: Pick<ChatDialect['worstCase'], 'unpricedFields'>;
}

/** Merges a client's options into a body, except for fields that the dialect reserves or whose price is not known. */
function merge(
  body: JsonObject,
  options: JsonObject,
  { endpoint }: Candidate,
  { reserved, serviceTier, worstCase: { unpricedFields } }: OptionRules,
  drop: (name: string, reason: string) => void,
): JsonObject {
  const merged = { ...body };
  for (const [name, value] of Object.entries(options)) {
    const inner = [...reserved].filter((field) => field.startsWith(`${name}.`));
    const tier = serviceTier({ [name]: value });
    if (reserved.has(name)) drop(name, 'the gateway sets it');
    else if (unpricedFields.has(name)) drop(name, 'its price is not known');
    else if (tier !== undefined && !offersTier(endpoint, tier)) drop(name, UNPRICED_TIER);
    else if (inner.length === 0) merged[name] = value;
    else if (!isObject(value)) drop(name, 'it is not an object');
    else {
      const object: JsonObject = isObject(merged[name]) ? { ...merged[name] } : {};
      for (const [field, inside] of Object.entries(value)) {
        if (inner.includes(`${name}.${field}`)) drop(`${name}.${field}`, 'the gateway sets it');
        else object[field] = inside;
      }
      merged[name] = object;
    }
  }
  return merged;
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The body with the client's `provider.options` of this provider, found by its slug or display name. */
export function withOptions(
  body: JsonObject,
  request: Pick<ChatRequest, 'provider'>,
  candidate: Candidate,
  dialect: OptionRules,
  report: Report[],
): JsonObject {
  const preferences = request.provider?.options;
  if (!preferences) return body;
  if (isDeeperThan(preferences, OPTION_LEVELS_MAX)) {
    throw new GatewayError(400, `provider.options is nested deeper than ${OPTION_LEVELS_MAX} levels`);
  }
  const { slug, name } = candidate.provider;
  const names = [slug, name.toLowerCase()];
  const options = Object.entries(preferences).find(([key]) => names.includes(key.toLowerCase()))?.[1];
  if (!options) return body;
  return merge(body, options as JsonObject, candidate, dialect, (field, reason) => {
    report.push({ kind: 'dropped', field: `provider.options.${slug}.${field}`, reason });
  });
}

/** Whether the tools of a request, or earlier calls in it, are written as text because the endpoint has no native tools. */
export function statesTools(request: ChatRequest, { endpoint }: Candidate): boolean {
  return !supports(endpoint, 'tools') && needsTemplate(request);
}

/** Encodes a request for one endpoint. A long one is written in slices between which other requests are served. */
export function prepareAttempt(
  request: ChatRequest,
  candidate: Candidate,
  dialect: ChatDialect,
  stripState: boolean,
  spend?: SpendBound,
  media = NO_MEDIA,
): PreparedAttempt | Promise<PreparedAttempt> {
  const { endpoint } = candidate;
  const { report, request: fitted, is_default_bound } = fitRequest(request, endpoint, spend);
  const stated = !supports(endpoint, 'tools') && needsTemplate(fitted) ? templated(fitted) : undefined;
  const sent = stated?.request ?? fitted;
  const encoded = dialect.encodeRequest(sent, endpoint, { media, strip_state: stripState });
  if (stated !== undefined) append(report, stated.report);
  const template = stated?.template;
  if (template !== undefined) encoded.state = { ...encoded.state, tool_template: template };
  append(report, encoded.report);
  if (request.provider?.options) encoded.body = withOptions(encoded.body, request, candidate, dialect, report);
  if (spend !== undefined) encoded.body = dialect.worstCase.spendBounds.body(encoded.body, report);
  const payload = writeBody(encoded.body, request.ext?.is_long);
  const prepared: PreparedAttempt = {
    candidate,
    dialect,
    request: sent,
    encoded,
    payload: '',
    output_tokens: dialect.outputBound(encoded.body),
    service_tier: dialect.serviceTier(encoded.body),
    report,
    media,
    holds_back: template?.is_forced === true,
  };
  if (is_default_bound !== undefined) prepared.is_default_bound = is_default_bound;
  if (payload instanceof Promise) return payload.then((bytes) => withLongPayload(prepared, bytes, spend));
  prepared.payload = payload;
  return prepared;
}

async function withLongPayload(prepared: PreparedAttempt, payload: Buffer, spend: SpendBound | undefined) {
  // Without `isCancelled`, the result is always set.
  if (spend !== undefined) prepared.marks = (await inTurns(cacheMarks(payload)))!;
  prepared.payload = payload;
  return prepared;
}

/** The text of a body. Throws `GatewayError` 400 for one that is nested too deeply. */
export function serialize(body: JsonObject): string {
  return writeBody(body, false) as string;
}

/** The body as it is sent: a text, or for a long body its bytes, written in slices. Throws `GatewayError` 400 for one that is nested too deeply. */
export function writeBody(body: JsonObject, isLong = isLongJson(body)): string | Promise<Buffer> {
  try {
    return isLong ? writeInTurns(body) : JSON.stringify(body);
  } catch (error) {
    if (error instanceof RangeError) throw new GatewayError(400, 'The request is nested too deeply');
    throw error;
  }
}
