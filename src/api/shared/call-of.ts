import { randomFillSync } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { GatewayError, invalidField } from '../../errors.ts';
import { headerOf, usesPublicMetadataHeader } from '../../http/aliases.ts';
import type { HttpRequest } from '../../http/request.ts';
import { type Attribution, type Call, CallCancellation, type Clock } from '../../inference/call.ts';
import { limits } from '../../limits.ts';
import { contentsOf, noteContents } from '../../schemas/contents.ts';
import type { ChatRequest } from '../../schemas/inner.ts';
import { toUsd } from '../../schemas/money.ts';
import { inputTokens, outputTokens } from '../../schemas/usage.ts';
import './sampler-off-values.ts';
import { tagsOf } from './tags.ts';
import { checkArguments, checkDefinitions } from './tool-arguments.ts';

/**
 * From this length on a request is serialized in pieces, and passes over it take turns of the event loop of their own, without
 * another check of its length.
 */
const LONG_REQUEST_BYTES_MIN = 256 * 1024;
/** Categories that an application states for itself. */
const APP_CATEGORIES_MAX = 10;
const APP_CATEGORY_CHARS_MAX = 30;

const ALPHABET = Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789');
/** W3C Trace Context, 3.2. All-zero ids and version ff are invalid. */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

const ID_CHARS = 20;
/** Random characters are generated in blocks, to save system calls. */
const stock = Buffer.alloc(ID_CHARS * 256);
let drawn = stock.length;

/** `gen-<unix seconds>-<20 alphanumerics>`, the form that clients of the public service expect. */
export function generationId(nowMs: number): string {
  if (drawn + ID_CHARS > stock.length) {
    randomFillSync(stock);
    for (let at = 0; at < stock.length; at += 1) stock[at] = ALPHABET[stock[at]! % ALPHABET.length]!;
    drawn = 0;
  }
  drawn += ID_CHARS;
  return `gen-${Math.floor(nowMs / 1000)}-${stock.toString('latin1', drawn - ID_CHARS, drawn)}`;
}

function categoriesOf(header: string): string[] {
  return header
    .split(',')
    .map((category) => category.trim())
    .filter((category) => category !== '' && category.length <= APP_CATEGORY_CHARS_MAX)
    .slice(0, APP_CATEGORIES_MAX);
}

function attributionOf(headers: IncomingHttpHeaders, body: unknown): Attribution {
  const charsMax = limits.attribution_chars_max;
  const referer = headerOf(headers, 'http-referer') ?? headerOf(headers, 'referer');
  const categories = headerOf(headers, 'x-gateway-categories');
  const traceparent = headerOf(headers, 'traceparent');
  const traced = traceparent !== undefined && TRACEPARENT.test(traceparent);
  return {
    http_referer: referer?.slice(0, charsMax) ?? null,
    title: headerOf(headers, 'x-gateway-title')?.slice(0, charsMax) ?? null,
    categories: categories === undefined ? [] : categoriesOf(categories),
    user_agent: headerOf(headers, 'user-agent')?.slice(0, charsMax) ?? null,
    tags: tagsOf(headers, body),
    traceparent: traced ? traceparent : undefined,
    tracestate: traced ? headerOf(headers, 'tracestate')?.slice(0, charsMax) : undefined,
  };
}

/** The facts about its calls in the log line of a request: their model, and endpoint, usage and cost of what was recorded; of several calls the sums. */
export function logFacts(calls: readonly Call[]): Record<string, unknown> {
  const [{ generation_id, request }] = calls as [Call];
  let servedModel: string | undefined;
  let provider: string | undefined;
  let costNano: number | undefined;
  let promptTokens: number | undefined;
  let completionTokens: number | undefined;
  for (const {
    outcome: { record },
  } of calls) {
    if (record === undefined) continue;
    if (record.model !== request.model) servedModel = record.model;
    if (record.provider_name !== null) provider = record.provider_name;
    if (record.usage !== null) {
      promptTokens = (promptTokens ?? 0) + inputTokens(record.usage);
      completionTokens = (completionTokens ?? 0) + outputTokens(record.usage);
    }
    costNano = (costNano ?? 0) + record.cost_nano;
  }
  // What is undefined is not written.
  return {
    generation_id,
    model: request.model,
    streamed: request.stream === true,
    served_model: servedModel,
    provider,
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    cost: costNano === undefined ? undefined : toUsd(costNano),
  };
}

/** Makes the `Call` of an inference request whose body is in the inner language. */
export function callOf(
  request: HttpRequest,
  body: ChatRequest,
  clock: Clock,
  kind: Pick<Call, 'api_type' | 'estimate' | 'fieldName'> = { api_type: 'completions' },
): Call {
  const { principal } = request;
  if (principal === undefined) throw new GatewayError(401, 'Missing Authentication header');
  const { preset } = (request.body ?? {}) as { preset?: unknown };
  if (preset != null) {
    // It stands for settings that this gateway does not have.
    throw invalidField(
      'preset',
      'is not supported: this gateway has no presets; send the fields of the preset with the request',
    );
  }
  const { headers } = request.raw;
  const session = headerOf(headers, 'x-session-id');
  if (session !== undefined && body.session_id === undefined) {
    body.session_id = session.slice(0, limits.session_id_chars_max);
  }
  if (request.long_body_bytes > LONG_REQUEST_BYTES_MIN) {
    const toolsChars = checkDefinitions(body);
    if (body.ext !== undefined) Object.assign(body.ext, { is_long: true, tools_chars: toolsChars });
  }
  noteContents(body);
  if (contentsOf(body).has_calls) checkArguments(body.messages, kind.fieldName);
  const acceptedMs = clock.nowMs();
  const wantsMetadata = headerOf(headers, 'x-gateway-experimental-metadata')?.trim().toLowerCase() === 'enabled';
  // Field by field: a spread makes an object that grows with each further field.
  return {
    api_type: kind.api_type,
    estimate: kind.estimate,
    fieldName: kind.fieldName,
    request: body,
    generation_id: generationId(acceptedMs),
    request_id: request.id,
    principal,
    attribution: attributionOf(headers, request.body),
    accepted_ms: acceptedMs,
    accepted_monotonic_ms: clock.monotonicMs(),
    cancellation: new CallCancellation(),
    store_wait: request.store_wait,
    room: request.claim,
    wants_metadata: wantsMetadata,
    wants_public_metadata: wantsMetadata && usesPublicMetadataHeader(headers),
    stages: [],
    outcome: { isSettled: false, record: undefined },
    changes: request.body_changes,
  };
}
