import type { Endpoint } from '../../catalog/model.ts';
import { offersTier } from '../../catalog/price-list.ts';
import { GatewayError, invalidField } from '../../errors.ts';
import { inTurns } from '../../http/in-turns.ts';
import { writeInTurns } from '../../http/written-json.ts';
import { limits } from '../../limits.ts';
import type { ChatDialect, EncodedRequest, Media, Report } from '../../providers/dialect.ts';
import { dialectOf } from '../../providers/dialects.ts';
import {
  inlinesMedia,
  type LeftAddress,
  leftAddress,
  leftAddressSteps,
  withInlineMedia,
} from '../../providers/shared/media-addresses.ts';
import type { CacheMarks } from '../../providers/shared/worst-case.ts';
import { needsTemplate, templated } from '../../providers/tool-template/dialect.ts';
import { type Candidate, supports, unsupportedParameters } from '../../routing/plan.ts';
import { append } from '../../schemas/append.ts';
import { contentsOf } from '../../schemas/contents.ts';
import type { ChatRequest, InnerTool } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { isLongJson } from '../../schemas/json-pieces.ts';
import { cacheMarks } from '../money/payload-search.ts';
import { defaultBound } from '../plan/default-bound.ts';
import { boundConversation, boundTools } from '../prepare/bound-tools.ts';
import { leftOut } from '../prepare/left-out.ts';
import { NO_MEDIA } from '../prepare/media.ts';
import { UNPRICED_TIER, withOptions } from '../prepare/provider-options.ts';
import { withOwnState } from '../reasoning/states.ts';

const NO_REPORT: readonly Report[] = [];

/** The output bound of a caller with a spend limit. */
export interface SpendBound {
  /** The bound if the request sets none. Undefined for the model's maximum. */
  default_tokens: number | undefined;
  /** The output that the budgets pay for, if that is less than the bound. */
  paid_tokens?: number | undefined;
}

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
  const unsupported = unsupportedParameters(request, endpoint);
  // By index: there is an object for each turn of these loops otherwise.
  for (let at = 0; at < unsupported.length; at += 1) {
    const name = unsupported[at]!;
    // Without native support, tools are described in the prompt.
    if (TOOL_FIELDS.has(name)) continue;
    delete own()[name];
    report.push({ kind: 'dropped', field: name, reason: 'the endpoint does not support it' });
  }
  for (let at = 0; at < SEVERAL_ANSWERS.length; at += 1) {
    const name = SEVERAL_ANSWERS[at]!;
    if (request[name] === undefined || request[name] === null) continue;
    delete own()[name];
    report.push({ kind: 'dropped', field: name, reason: 'the endpoint returns one answer per request' });
  }
  const max = endpoint.max_completion_tokens;
  for (let at = 0; at < BOUNDS.length; at += 1) {
    const field = BOUNDS[at]!;
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

/** Whether the tools of a request, or earlier calls in it, are written as text because the endpoint has no native tools. */
export function statesTools(request: ChatRequest, { endpoint }: Candidate): boolean {
  return !supports(endpoint, 'tools') && needsTemplate(request);
}

/** How an attempt is encoded, besides its request. */
export interface Encoding {
  /** Leaves the reasoning state out that the endpoint rejected. */
  strip_state?: boolean;
  /** Not set if no budget counts the attempt. */
  spend?: SpendBound | undefined;
  /** Not set: none. */
  media?: Media;
  /** Changes that were made to the request for this endpoint before. Not set: none. */
  report?: readonly Report[] | undefined;
}

/**
 * Encodes a request for one endpoint. A long one is written in slices between which other requests are served. Throws `GatewayError` 400
 * if the endpoint's wire cannot carry the request.
 */
export function prepareAttempt(
  original: ChatRequest,
  candidate: Candidate,
  { strip_state = false, spend, media = NO_MEDIA, report: before = NO_REPORT }: Encoding = {},
): PreparedAttempt | Promise<PreparedAttempt> {
  const { sends, endpoint, provider } = candidate;
  const dialect = dialectOf(endpoint.dialect ?? provider.dialect);
  if (original.max_tokens === 0 && !dialect.facts.takesZeroOutput) refuseZeroOutput();
  let request = sends === undefined ? original : { ...original, ...sends };
  let changes = before;
  if (contentsOf(request).is_issued) {
    const own = withOwnState(request, candidate);
    request = own.request;
    changes = [...changes, ...own.report];
  }
  const isInline = endpoint.quirks.inline_media === true && inlinesMedia(dialect, endpoint);
  if (isInline && media.size > 0) request = withInlineMedia(request, media);
  const { report, request: fitted, is_default_bound } = fitRequest(request, endpoint, spend);
  const stated = !supports(endpoint, 'tools') && needsTemplate(fitted) ? templated(fitted) : undefined;
  const sent = stated?.request ?? fitted;
  const encoded = dialect.encodeRequest(sent, endpoint, { media, strip_state });
  if (stated !== undefined) append(report, stated.report);
  const template = stated?.template;
  if (template !== undefined) encoded.state = { ...encoded.state, tool_template: template };
  append(report, encoded.report);
  if (request.provider?.options) encoded.body = withOptions(encoded.body, request, candidate, dialect, report);
  if (spend !== undefined) encoded.body = dialect.worstCase.spendBounds.body(encoded.body, report);
  const payload = writeBody(encoded.body, request.ext?.is_long);
  const { ext } = original;
  if (ext !== undefined && ext.wire !== dialect.wire) changes = [...changes, ...leftOut(original, dialect.wire)];
  const prepared: PreparedAttempt = {
    candidate,
    dialect,
    request: sent,
    encoded,
    payload: '',
    output_tokens: dialect.outputBound(encoded.body),
    service_tier: dialect.serviceTier(encoded.body),
    report: changes.length === 0 ? report : [...changes, ...report],
    media,
    holds_back: template?.is_forced === true,
  };
  if (is_default_bound !== undefined) prepared.is_default_bound = is_default_bound;
  const isShort = typeof payload === 'string' && !(isInline && payload.length >= limits.json_long_chars_min);
  if (!isShort) return withLongPayload(prepared, payload, spend, isInline);
  prepared.payload = payload;
  const left = isInline ? leftAddress(encoded.body) : undefined;
  if (left !== undefined) throw addressRefusal(left, provider);
  return prepared;
}

async function withLongPayload(
  prepared: PreparedAttempt,
  written: string | Promise<Buffer>,
  spend: SpendBound | undefined,
  isInline: boolean,
): Promise<PreparedAttempt> {
  const payload = await written;
  // Without `isCancelled`, the results are always set.
  if (spend !== undefined && typeof payload !== 'string') prepared.marks = (await inTurns(cacheMarks(payload)))!;
  prepared.payload = payload;
  const left = isInline ? await inTurns(leftAddressSteps(prepared.encoded.body)) : undefined;
  if (left !== undefined) throw addressRefusal(left, prepared.candidate.provider);
  return prepared;
}

/** The refusal of an address that could not be replaced, such as a file inside a block of one wire. */
function addressRefusal({ field }: LeftAddress, { name }: Candidate['provider']): GatewayError {
  return invalidField(field, `must be sent as data: ${name} receives no addresses`);
}

/** Refuses an output bound of 0, which the endpoint's wire does not accept. */
function refuseZeroOutput(): never {
  throw new GatewayError(400, 'max_tokens must be at least 1: this provider does not accept 0', {
    metadata: { violations: [{ path: 'max_tokens', rule: 'must be at least 1' }] },
  });
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
