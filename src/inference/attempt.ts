import { offersTier } from '../catalog/price-list.ts';
import { GatewayError } from '../errors.ts';
import { limits } from '../limits.ts';
import {
  type AttemptState,
  type ChatDialect,
  type EncodedRequest,
  type Media,
  type Report,
  UpstreamError,
} from '../providers/dialect.ts';
import { createFramer } from '../providers/frames.ts';
import { countAnswer, readText, type UpstreamResponse } from '../providers/upstream.ts';
import type { Candidate } from '../routing/plan.ts';
import { append } from '../schemas/append.ts';
import { chunksOf } from '../schemas/chunks.ts';
import type { ChatChunk, ChatCompletion, ChatRequest } from '../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../schemas/json.ts';
import { boundBody } from './bound-tools.ts';
import type { Call } from './call.ts';
import { type AttemptContext, ClientGone, headersOf, type Outgoing, readJson, start } from './exchange.ts';
import { fitRequest, type SpendBound, UNPRICED_TIER } from './fit-request.ts';
import { NO_MEDIA } from './media.ts';
import { isMeaningful } from './meter.ts';

/** A request as one endpoint will get it, and what had to be changed for that. */
export interface PreparedAttempt {
  candidate: Candidate;
  dialect: ChatDialect;
  /** The request after what the endpoint does not support was taken out. */
  request: ChatRequest;
  encoded: EncodedRequest;
  /** The body as it will be sent. */
  payload: string;
  /** The output bound in it. */
  output_tokens: number | undefined;
  /** The service tier it asks for; undefined: none. */
  service_tier: string | undefined;
  report: Report[];
  /** What was fetched for it. */
  media: Media;
}

/** Fields that multiply the price of every token, by factors that no price list has (https://platform.claude.com/docs/en/about-claude/pricing). */
const MULTIPLIES: ReadonlySet<string> = new Set(['speed', 'inference_geo']);

/** Merges a client's options into a body, but for what the dialect reserves and what has no known price. */
function merge(
  body: JsonObject,
  options: JsonObject,
  { endpoint }: Candidate,
  { reserved, serviceTier }: Pick<ChatDialect, 'reserved' | 'serviceTier'>,
  drop: (name: string, reason: string) => void,
): JsonObject {
  const merged = { ...body };
  for (const [name, value] of Object.entries(options)) {
    const inner = [...reserved].filter((field) => field.startsWith(`${name}.`));
    const tier = serviceTier({ [name]: value });
    if (reserved.has(name)) drop(name, 'the gateway sets it');
    else if (MULTIPLIES.has(name)) drop(name, 'its price is not known');
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

/** Whether a value has so many levels. Asked without recursion, since any number of them may come. */
function isDeep(value: unknown, levels_max: number): boolean {
  let level: unknown[] = [value];
  for (let levels = 0; level.length > 0; levels += 1) {
    if (levels > levels_max) return true;
    level = level.flatMap((one) => (typeof one === 'object' && one !== null ? Object.values(one) : []));
  }
  return false;
}

/** The body with what the client's `provider.options` have for this provider, by its slug or display name. */
export function withOptions(
  body: JsonObject,
  request: Pick<ChatRequest, 'provider'>,
  candidate: Candidate,
  dialect: Pick<ChatDialect, 'reserved' | 'serviceTier'>,
  report: Report[],
): JsonObject {
  const given = request.provider?.options;
  if (!given) return body;
  if (isDeep(given, limits.option_levels_max)) {
    throw new GatewayError(400, `provider.options is nested deeper than ${limits.option_levels_max} levels`);
  }
  const { slug, name } = candidate.provider;
  const names = [slug, name.toLowerCase()];
  const options = Object.entries(given).find(([key]) => names.includes(key.toLowerCase()))?.[1];
  if (!options) return body;
  return merge(body, options as JsonObject, candidate, dialect, (field, reason) => {
    report.push({ kind: 'dropped', field: `provider.options.${slug}.${field}`, reason });
  });
}

/** Encodes a request for one endpoint. Pure but for the request it is given. */
export function prepareAttempt(
  request: ChatRequest,
  candidate: Candidate,
  dialect: ChatDialect,
  strip_state: boolean,
  spend?: SpendBound,
  media = NO_MEDIA,
): PreparedAttempt {
  const fitted = fitRequest(request, candidate.endpoint, spend);
  const encoded = dialect.encodeRequest(fitted.request, candidate.endpoint, { media, strip_state });
  const { report } = fitted;
  append(report, encoded.report);
  encoded.body = withOptions(encoded.body, request, candidate, dialect, report);
  if (spend !== undefined && dialect.wire === 'anthropic-messages') encoded.body = boundBody(encoded.body, report);
  const payload = serialize(encoded.body);
  const output_tokens = dialect.outputBound(encoded.body);
  const service_tier = dialect.serviceTier(encoded.body);
  return { candidate, dialect, request: fitted.request, encoded, payload, output_tokens, service_tier, report, media };
}

/** The text of a body. Throws `GatewayError` 400 for one that is nested too deeply. */
export function serialize(body: JsonObject): string {
  try {
    return JSON.stringify(body);
  } catch (error) {
    if (error instanceof RangeError) throw new GatewayError(400, 'The request is nested too deeply');
    throw error;
  }
}

function outgoingOf({ candidate, dialect, encoded, payload }: PreparedAttempt, { request }: Call): Outgoing {
  const { method, path, headers } = encoded;
  const accept = request.stream ? 'text/event-stream' : 'application/json';
  return { candidate, dialect, method, path, headers, payload, accept };
}

/** What the decoders know of the attempt: what the encoder left for them, and the answer's headers. */
function stateOf(
  { encoded }: PreparedAttempt,
  response: UpstreamResponse,
  { call, step = 1 }: AttemptContext,
): AttemptState {
  // Ids of calls are made of it, and must not come twice in one answer.
  const generation_id = step === 1 ? call.generation_id : `${call.generation_id}/${step}`;
  return { ...encoded.state, generation_id, headers: response.headers };
}

function decodeWhole(
  prepared: PreparedAttempt,
  response: UpstreamResponse,
  body: JsonValue,
  context: AttemptContext,
): ChatCompletion {
  const created = Math.floor(context.call.accepted_ms / 1000);
  return prepared.dialect.decodeResponse(body, stateOf(prepared, response, context), created);
}

/** Asks one endpoint for a whole answer, and gives what is made of it. Throws `UpstreamError`, or `ClientGone` when the client left first. */
export async function attemptWhole<T>(
  prepared: PreparedAttempt,
  context: AttemptContext,
  made: (completion: ChatCompletion) => T,
): Promise<T> {
  const held = start(outgoingOf(prepared, context.call), context);
  try {
    const response = await headersOf(prepared.dialect, held);
    const body = await readJson(prepared.dialect, response, context.call);
    return made(decodeWhole(prepared, response, body, context));
  } finally {
    held.release();
  }
}

/** A stream from which something meaningful has come, or that has ended without. */
export interface OpenStream {
  /** Everything up to and including the first read with something meaningful. */
  first: ChatChunk[];
  /** The chunks of the next read; undefined at the end. Throws `UpstreamError`, or `ClientGone`. */
  next(): Promise<ChatChunk[] | undefined>;
  /** Ends the upstream's work. Safe to call at any time, more than once. */
  close(): void;
}

function isJsonAnswer(response: UpstreamResponse): boolean {
  return /^application\/json\b/i.test(String(response.headers['content-type'] ?? ''));
}

/** What an HTML page or another stranger says when a stream was asked for. */
async function refuseForeign(response: UpstreamResponse, dialect: ChatDialect): Promise<void> {
  const type = String(response.headers['content-type'] ?? '');
  if (!/^text\/html\b/i.test(type)) return;
  const text = await readText(response, { bytes_max: limits.upstream_error_bytes_max, cut: true });
  throw new UpstreamError('invalid_response', 'The provider answered with an HTML page in place of a stream', {
    status: response.status,
    raw: dialect.decodeError(502, response.headers, text).raw,
  });
}

/**
 * What comes after a whole answer, usually the end. A connection that is cut or stays open only then has lost nothing, so
 * its failure is none and it is not waited for long.
 */
async function readTail(response: UpstreamResponse): Promise<Buffer | undefined> {
  const coming = response.coming();
  if (coming !== undefined) {
    let timer: NodeJS.Timeout | undefined;
    const over = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, limits.upstream_tail_ms_max);
    });
    await Promise.race([coming, over]);
    clearTimeout(timer);
  }
  try {
    return response.take();
  } catch (error) {
    if (error instanceof UpstreamError) return undefined;
    throw error;
  }
}

/** What one attempt's body says. */
interface AnswerReader {
  /** The chunks of the next read; undefined at the end. */
  next(): Promise<ChatChunk[] | undefined>;
  /** Something meaningful has come: where a reason to stop comes as well, a failure after it is none. */
  begun(): void;
}

/**
 * Pulls reads from the body and decodes them; the same bytes in any chunking give the same chunks. What one read brought
 * before the failure that it also brought is given out first.
 */
function createAnswerReader(
  prepared: PreparedAttempt,
  response: UpstreamResponse,
  context: AttemptContext,
): AnswerReader {
  const { call } = context;
  const { dialect } = prepared;
  const framer = createFramer(dialect.frames);
  const decoder = dialect.createStreamDecoder(
    stateOf(prepared, response, context),
    Math.floor(call.accepted_ms / 1000),
  );
  let has_begun = false;
  let ended = false;
  let failure: unknown;
  let bytes = 0;
  let drained_bytes = 0;
  const count = countAnswer(call.room);
  const decode = (value: Buffer | undefined): ChatChunk[] => {
    const chunks: ChatChunk[] = [];
    try {
      for (const frame of value === undefined ? framer.end() : framer.push(value)) {
        for (const chunk of decoder.push(frame)) chunks.push(chunk);
      }
      if (value === undefined) for (const chunk of decoder.end()) chunks.push(chunk);
    } catch (error) {
      if (chunks.length === 0) throw error;
      failure = error;
    }
    return chunks;
  };
  /** After a failure in the middle of a body: what is left to say where the reason to stop had come before it. */
  const endOf = (error: unknown): ChatChunk[] => {
    if (!has_begun || !(error instanceof UpstreamError)) throw error;
    try {
      return decoder.end();
    } catch {
      throw error;
    }
  };
  const next = async (): Promise<ChatChunk[] | undefined> => {
    if (failure !== undefined) throw failure;
    if (ended) return undefined;
    let value: Buffer | undefined;
    try {
      if (decoder.isWhole()) value = await readTail(response);
      else {
        const coming = response.coming();
        if (coming !== undefined) await coming;
        value = response.take();
      }
    } catch (error) {
      const rest = endOf(error);
      ended = true;
      return rest;
    }
    const chunks = decode(value);
    if (value === undefined) {
      ended = true;
      return chunks;
    }
    bytes += value.length;
    // Part of an event that is larger than a read is kept whole.
    const waiting = count(chunks.length === 0 ? value.length : Math.ceil(value.length / limits.stream_kept_divisor));
    if (waiting !== undefined) await waiting;
    if (call.cancellation.cancelled) {
      drained_bytes += value.length;
      if (drained_bytes > limits.drain_bytes_max) throw new ClientGone({ may_be_billed: true });
    }
    if (bytes > limits.stream_bytes_max) {
      throw new UpstreamError(
        'invalid_response',
        `The provider's stream is longer than ${limits.stream_bytes_max} bytes`,
      );
    }
    return chunks;
  };
  return {
    next,
    begun() {
      has_begun = true;
    },
  };
}

/**
 * Opens a stream and waits for something meaningful: until then any failure may still go to another endpoint. Throws
 * `UpstreamError`, or `ClientGone` when the client left first.
 */
export async function attemptStream(prepared: PreparedAttempt, context: AttemptContext): Promise<OpenStream> {
  const held = start(outgoingOf(prepared, context.call), context);
  try {
    const response = await headersOf(prepared.dialect, held);
    await refuseForeign(response, prepared.dialect);
    if (isJsonAnswer(response)) {
      const body = await readJson(prepared.dialect, response, context.call);
      const chunks = chunksOf(decodeWhole(prepared, response, body, context));
      held.started();
      return { first: chunks, next: async () => undefined, close: () => held.release() };
    }
    const { next, begun } = createAnswerReader(prepared, response, context);
    const first: ChatChunk[] = [];
    for (;;) {
      const chunks = await next();
      if (chunks === undefined) break;
      append(first, chunks);
      if (chunks.some(({ delta }) => isMeaningful(delta))) break;
    }
    begun();
    held.started();
    return { first, next, close: () => held.release() };
  } catch (error) {
    held.release();
    throw error;
  }
}
