import { digestInTurns } from '../../http/digest.ts';
import { inTurns } from '../../http/in-turns.ts';
import { joined } from '../../http/joined.ts';
import { hasWideCharacter, wideBytes } from '../../http/memory.ts';
import { readSlices, UnreadableJson } from '../../http/sliced-json.ts';
import { limits } from '../../limits.ts';
import { nextTurn } from '../../next-turn.ts';
import { type ChatDialect, UpstreamError } from '../../providers/dialect.ts';
import {
  type Exchange,
  readParts,
  readText,
  type Upstream,
  type UpstreamResponse,
} from '../../providers/transport/upstream.ts';
import type { Candidate } from '../../routing/plan.ts';
import { type JsonValue, parseJson } from '../../schemas/json.ts';
import { answerLevels, JsonStructure, type StructureBounds, structureBreach } from '../../schemas/json-structure.ts';
import type { Call } from '../call.ts';
import { requireBounded, tooComplex } from './answer-bounds.ts';
import { DeferredExchange } from './deferred-exchange.ts';

/** The context of one attempt. */
export interface AttemptContext {
  upstream: Upstream;
  call: Call;
  /** Counted from 1 in each call. */
  attempt: number;
  /** The turn of the model in its answer, from 1. Default: 1. */
  step?: number;
  first_token_ms_max: number;
  total_ms_max: number;
}

/** How a wire authorizes requests and reports errors, for every operation. */
export type AuthAndErrors = Pick<ChatDialect, 'addressFor' | 'signsPayload' | 'authorize' | 'decodeError'>;

/** One request to a provider, ready to be sent. */
export interface Outgoing {
  candidate: Candidate;
  dialect: AuthAndErrors;
  method: 'GET' | 'POST';
  /** Appended to the provider's base URL; starts with `/`. */
  path: string;
  /** Headers of the wire. They override the headers that every request has. */
  headers: Record<string, string>;
  payload: string | Buffer;
  /** Its SHA-256 in hexadecimal digits. Not set if it has not been computed. */
  payload_sha256?: string;
  accept: string;
}

/** The id of an attempt at the provider, for later lookups. */
export function clientRequestId(generationId: string, attempt: number): string {
  return `${generationId}.${attempt}`;
}

/** Thrown if a call is cancelled: its client has left, or the gateway stops (`Cancellation.stopped`). */
export class CallCancelled extends Error {
  override readonly name = 'ClientGone';
  /** The upstream may continue without the gateway, and bill it. */
  readonly may_be_billed: boolean;

  constructor({ may_be_billed }: { may_be_billed: boolean }) {
    super();
    this.may_be_billed = may_be_billed;
  }
}

/** The outcome of a call that ends with this error: cancelled if its client has left. */
export function outcomeOf(error: unknown, { cancellation }: Pick<Call, 'cancellation'>): 'cancelled' | 'failed' {
  return error instanceof CallCancelled && !cancellation.stopped ? 'cancelled' : 'failed';
}

/** The outcome of a call that was answered: cancelled if its client has left meanwhile. */
export function outcomeOfWhole({ cancellation }: Pick<Call, 'cancellation'>): 'cancelled' | 'completed' {
  return cancellation.cancelled && !cancellation.stopped ? 'cancelled' : 'completed';
}

/** The failure of an attempt whose call was cancelled. */
export function cancellationFailure({ cancellation }: Pick<Call, 'cancellation'>): 'client_gone' | 'gateway_stopped' {
  return cancellation.stopped ? 'gateway_stopped' : 'client_gone';
}

/**
 * Whether closing the connection ends the bill of this attempt. Answers that are not streamed are billed in full even if the
 * connection is closed (the public service's documentation, "Stream cancellation").
 */
export function abortStopsBilling({ provider }: Candidate, { request }: Call): boolean {
  return provider.abort_stops_billing && request.stream === true;
}

function endLate(exchange: Exchange): void {
  exchange.abort(new UpstreamError('timeout', 'The answer took longer than the gateway allows'));
}

function endSilent(exchange: Exchange): void {
  exchange.abort(new UpstreamError('timeout', 'The provider did not start to answer in time'));
}

function endDrained(exchange: Exchange): void {
  exchange.abort(new CallCancelled({ may_be_billed: true }));
}

/**
 * One running request to a provider, with its time limits. It is sent at once, unless a token must be fetched first, or a long payload
 * is hashed in slices for its signature. If the client leaves, it is aborted at once if that stops the provider's bill. Otherwise, the
 * answer is read for a bounded time to learn the billed usage.
 */
export class UpstreamCall {
  readonly exchange: Exchange;
  readonly #totalMsMax: number;
  readonly #beganMs = performance.now();
  readonly #isFirstTimed: boolean;
  readonly #off: () => void;
  /** The current limit: the shorter one until the first meaningful chunk, then the total time. */
  #timer: NodeJS.Timeout;
  #drain: NodeJS.Timeout | undefined = undefined;

  constructor(outgoing: Outgoing, context: AttemptContext) {
    const { candidate, dialect, payload } = outgoing;
    const { own, provider, endpoint } = candidate;
    const { call, upstream, first_token_ms_max, total_ms_max } = context;
    const credential = own === undefined ? provider.credential : own.secret();
    const url = (dialect.addressFor?.(provider.base_url, credential) ?? provider.base_url) + outgoing.path;
    const { google_cloud, token_url } = endpoint.quirks;
    // The credential of a Google account is sent as a token.
    const shown =
      google_cloud === true && credential !== undefined
        ? upstream.google.show(credential, token_url, call.accepted_ms)
        : credential;
    if (shown instanceof Promise)
      this.exchange = new DeferredExchange(shown, (token) => send(outgoing, url, token, context));
    else if (
      typeof payload === 'string' ||
      payload.length <= limits.joined_slice_bytes ||
      !dialect.signsPayload?.(shown)
    ) {
      this.exchange = send(outgoing, url, shown, context);
    } else {
      const hashing = digestInTurns(payload);
      this.exchange = new DeferredExchange(hashing, (sha256) =>
        send({ ...outgoing, payload_sha256: sha256 }, url, shown, context),
      );
    }
    const { exchange } = this;
    this.#totalMsMax = total_ms_max;
    this.#isFirstTimed = first_token_ms_max < total_ms_max;
    this.#timer = this.#isFirstTimed
      ? setTimeout(endSilent, first_token_ms_max, exchange)
      : setTimeout(endLate, total_ms_max, exchange);
    this.#off = call.cancellation.onCancel(() => {
      if (abortStopsBilling(candidate, call)) exchange.abort(new CallCancelled({ may_be_billed: false }));
      else if (call.cancellation.stopped) endDrained(exchange);
      else {
        this.#drain = setTimeout(endDrained, limits.drain_ms_max, exchange);
        call.cancellation.onStop(() => endDrained(exchange));
      }
    });
  }

  /** The first meaningful chunk has arrived: from now on only the total time is limited. */
  started(): void {
    if (!this.#isFirstTimed) return;
    clearTimeout(this.#timer);
    const leftMs = this.#totalMsMax - (performance.now() - this.#beganMs);
    this.#timer = setTimeout(endLate, Math.max(0, leftMs), this.exchange);
  }

  /** Ends the call: clears its timers, and aborts its exchange if it is still running. May be called more than once. */
  release(): void {
    clearTimeout(this.#timer);
    if (this.#drain !== undefined) clearTimeout(this.#drain);
    this.#off();
    if (!this.exchange.ended) this.exchange.abort(new CallCancelled({ may_be_billed: false }));
  }
}

/** Headers that identify the gateway's own account, of all supported wires and providers. */
const ACCOUNT_HEADERS: ReadonlySet<string> = new Set([
  'authorization',
  'x-api-key',
  'api-key',
  'x-goog-api-key',
  'x-goog-user-project',
  'xi-api-key',
  'openai-organization',
  'openai-project',
]);

/** The only header whose values of the operator and of the client are joined. */
const BETA = 'anthropic-beta';

/** The headers to send with an organization's own credential: none that makes the gateway's account pay. */
function withoutAccount(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !ACCOUNT_HEADERS.has(name)));
}

function send(outgoing: Outgoing, url: string, credential: string | undefined, context: AttemptContext): Exchange {
  const { candidate, dialect, method, payload, payload_sha256, accept, headers: ownHeaders } = outgoing;
  const { call, attempt, upstream } = context;
  if (call.cancellation.cancelled) throw new CallCancelled({ may_be_billed: false });
  const { provider, own, endpoint } = candidate;
  const configured = own === undefined ? provider.headers : withoutAccount(provider.headers);
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    accept,
    'accept-encoding': 'identity',
    'user-agent': 'model-gateway',
    'x-client-request-id': clientRequestId(call.generation_id, attempt),
    ...configured,
    ...ownHeaders,
  };
  const betas = configured[BETA];
  if (betas !== undefined && ownHeaders[BETA] !== undefined) headers[BETA] = `${betas},${ownHeaders[BETA]}`;
  if (call.attribution.traceparent !== undefined) headers['traceparent'] = call.attribution.traceparent;
  if (call.attribution.tracestate !== undefined) headers['tracestate'] = call.attribution.tracestate;
  const request = { method, url, headers, payload, payload_sha256 };
  Object.assign(headers, dialect.authorize(credential, request, call.accepted_ms, endpoint.quirks));
  const exchange = upstream.send(request);
  if (endpoint.quirks.google_cloud === true) {
    const forgetRefused = ({ status }: UpstreamResponse) => status === 401 && upstream.google.forget(credential);
    // A failure is handled by the reader of the answer.
    exchange.response.then(forgetRefused, () => undefined);
  }
  return exchange;
}

/** Reads the body of a response with a status from 300 on, and throws it as an `UpstreamError`. */
export async function refuse(dialect: AuthAndErrors, response: UpstreamResponse): Promise<never> {
  const text = await readText(response, { bytes_max: limits.upstream_error_bytes_max, cut: true });
  if (response.status < 400) {
    throw new UpstreamError('invalid_response', 'The provider answered with a redirect, which is not followed', {
      status: response.status,
    });
  }
  // If the body is nested too deeply to be parsed, only the status is used.
  const shown = structureBreach(text, answerLevels) === undefined ? text : '';
  throw dialect.decodeError(response.status, response.headers, shown);
}

/** The bounds of the JSON of an answer. Ordinary answers have far fewer values. */
export const ANSWER_BOUNDS: StructureBounds = { ...answerLevels, values_max: limits.answer_values_max };

/** Reads a whole JSON answer; at once if it has arrived and is short. Its bounds are checked before it is parsed. */
export function readJson(
  dialect: AuthAndErrors,
  response: UpstreamResponse,
  { room }: Pick<Call, 'room'>,
  bounds = ANSWER_BOUNDS,
): JsonValue | Promise<JsonValue> {
  const parts = readParts(response, { bytes_max: limits.upstream_body_bytes_max, cut: false, room });
  return parts instanceof Promise
    ? parts.then((received) => readReceived(dialect, response, room, bounds, received))
    : readReceived(dialect, response, room, bounds, parts);
}

function readReceived(
  dialect: AuthAndErrors,
  response: UpstreamResponse,
  room: Call['room'],
  bounds: StructureBounds,
  parts: Buffer[],
): JsonValue | Promise<JsonValue> {
  let length = 0;
  for (let at = 0; at < parts.length; at += 1) length += parts[at]!.length;
  if (length > limits.answer_turn_bytes_min) return readLongJson(dialect, response, { parts, length, room, bounds });
  const text = (parts.length === 1 ? parts[0]! : Buffer.concat(parts)).toString('utf8');
  if (room === undefined || text.length <= limits.counted_bytes_min) requireBounded(text, bounds);
  else {
    const structure = new JsonStructure(bounds);
    structure.write(text);
    if (structure.breach !== undefined) throw tooComplex(structure.breach);
    const waiting = room.take(structure.memory_bytes + wideBytes(text), limits.memory_answer_wait_ms_max);
    if (waiting !== undefined) return waiting.then(() => parsed(dialect, response, text));
  }
  return parsed(dialect, response, text);
}

function parsed(dialect: AuthAndErrors, response: UpstreamResponse, text: string): JsonValue {
  try {
    return parseJson(text);
  } catch {
    throw notJson(dialect, response, text.slice(0, limits.upstream_error_bytes_max));
  }
}

interface LongBody {
  parts: Buffer[];
  length: number;
  room: Call['room'];
  bounds: StructureBounds;
}

/** The same for a long answer, in slices between which other requests are served. It is never decoded as one text. */
async function readLongJson(
  dialect: AuthAndErrors,
  response: UpstreamResponse,
  { parts, length, room, bounds }: LongBody,
): Promise<JsonValue> {
  const structure = new JsonStructure(bounds);
  let isWide = false;
  let counted = 0;
  await nextTurn();
  for (const part of parts) {
    structure.write(part.toString('latin1'));
    if (structure.breach !== undefined) throw tooComplex(structure.breach);
    isWide ||= hasWideCharacter(part);
    counted += part.length;
    if (counted < limits.joined_slice_bytes) continue;
    counted = 0;
    await nextTurn();
  }
  await room?.take(
    structure.memory_bytes + (isWide ? length * limits.body_copies : 0),
    limits.memory_answer_wait_ms_max,
  );
  // Without `isCancelled`, the result is always set.
  const bytes = (await inTurns(joined(parts)))!;
  try {
    return (await inTurns(readSlices(bytes, parseJson, limits.answer_string_bytes_max)))!;
  } catch (error) {
    if (!(error instanceof UnreadableJson || error instanceof SyntaxError)) throw error;
    if (!error.message.includes('not valid')) throw tooComplex(error.message);
    throw notJson(dialect, response, bytes.toString('utf8', 0, limits.upstream_error_bytes_max));
  }
}

function notJson(dialect: AuthAndErrors, response: UpstreamResponse, text: string): UpstreamError {
  const type = String(response.headers['content-type'] ?? 'no content type');
  const { raw } = dialect.decodeError(502, response.headers, text);
  const message = `The provider's answer is not JSON (${type.slice(0, 100)})`;
  return new UpstreamError('invalid_response', message, { status: response.status, raw });
}
