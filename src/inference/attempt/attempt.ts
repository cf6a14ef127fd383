import { offersTier } from '../../catalog/price-list.ts';
import { GatewayError } from '../../errors.ts';
import { inTurns } from '../../http/in-turns.ts';
import { writeInTurns } from '../../http/written-json.ts';
import type { ChatDialect, EncodedRequest, Media, Report } from '../../providers/dialect.ts';
import type { CacheMarks } from '../../providers/shared/worst-case.ts';
import { needsTemplate, templated } from '../../providers/tool-template/dialect.ts';
import { type Candidate, supports } from '../../routing/plan.ts';
import { append } from '../../schemas/append.ts';
import type { ChatRequest } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { isLongJson } from '../../schemas/json-pieces.ts';
import { isDeeperThan } from '../../schemas/json-structure.ts';
import { cacheMarks } from '../money/payload-search.ts';
import { fitRequest, type SpendBound, UNPRICED_TIER } from '../prepare/fit-request.ts';
import { NO_MEDIA } from '../prepare/media.ts';

/** The most nesting levels of a client's provider options. */
const OPTION_LEVELS_MAX = 100;

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
