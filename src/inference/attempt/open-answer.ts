/** Sends a prepared request and reads the answer until it has begun: until then a failure may still go to another endpoint. */
import { limits } from '../../limits.ts';
import { nextTurn } from '../../next-turn.ts';
import { type AttemptState, type ChatDialect, UpstreamError } from '../../providers/dialect.ts';
import { createTemplatedDecoder, decodeTemplated, requiresCall } from '../../providers/tool-template/dialect.ts';
import { readText, type UpstreamResponse } from '../../providers/transport/upstream.ts';
import { accumulate } from '../../schemas/accumulate.ts';
import { append } from '../../schemas/append.ts';
import { chunksOf } from '../../schemas/chunks.ts';
import type { ChatChunk, ChatCompletion } from '../../schemas/inner.ts';
import type { JsonValue } from '../../schemas/json.ts';
import { answerLevels, type StructureBounds } from '../../schemas/json-structure.ts';
import type { Call } from '../call.ts';
import { isMeaningful, type Meter } from '../money/meter.ts';
import type { Attempt } from '../state.ts';
import { asUpstreamFailure, breachOf, cutParts, readable } from './answer-bounds.ts';
import { type AnswerChunks, AnswerReader } from './answer-reader.ts';
import { dividedChunks, sliceEnd } from './chunk-slices.ts';
import type { PreparedAttempt } from './prepare-attempt.ts';
import { ANSWER_BOUNDS, type AttemptContext, readJson, refuse, UpstreamCall } from './upstream-call.ts';

/** The bounds of the JSON of an answer, or of one event, with the probabilities of its tokens, which are many values. */
const LOGPROBS_BOUNDS: StructureBounds = { ...answerLevels, values_max: limits.answer_logprob_values_max };
export const EVENT_LOGPROBS_BOUNDS: StructureBounds = { ...answerLevels, values_max: limits.event_logprob_values_max };

/** Chunks that are held back until the forced call comes. */
const CHUNKS_BEFORE_CALL_MAX = 32_768;

/** An answer that has begun, or has ended with nothing in it. */
export interface OpenAnswer {
  /** Its chunks up to and including the first read with meaningful content. They are metered. */
  first: ChatChunk[];
  /** The later chunks, one read at a time. Throws `UpstreamError` or `CallCancelled`. */
  later: AnswerChunks;
  /** The whole answer has arrived: it is billed as it is, and never cut. */
  isWhole: boolean;
  /** The whole answer if the request asks for one; nothing comes later then. Undefined for a stream. */
  completion: ChatCompletion | undefined;
  /** Ends the upstream's work. May be called at any time, more than once. */
  close(): void;
}

/** The chunks of an answer that is in memory, as many at a time as fit one turn of the event loop. */
class Slices implements AnswerChunks {
  readonly #chunks: readonly ChatChunk[];
  #next: number;

  constructor(chunks: readonly ChatChunk[], next: number) {
    this.#chunks = chunks;
    this.#next = next;
  }

  get ended(): boolean {
    return this.#next >= this.#chunks.length;
  }

  get isBuffered(): boolean {
    return !this.ended;
  }

  ready(): Promise<void> | undefined {
    return this.ended ? undefined : nextTurn();
  }

  read(): ChatChunk[] | undefined {
    if (this.ended) return undefined;
    const from = this.#next;
    this.#next = sliceEnd(this.#chunks, from);
    return this.#chunks.slice(from, this.#next);
  }
}

/** An answer whose headers have arrived. */
interface Opening {
  response: UpstreamResponse;
  /** The input of decoders: the encoder's state and the answer's headers. */
  state: AttemptState;
  call: Call;
  meter: Meter;
  upstreamCall: UpstreamCall;
  /** The bounds of its JSON. */
  bounds: StructureBounds;
}

const NOTHING_LATER: AnswerChunks = new Slices([], 0);
function closeNothing(): void {}

/** Throws for an HTML page in place of a stream. */
async function refuseHtml(response: UpstreamResponse, dialect: ChatDialect): Promise<never> {
  const text = await readText(response, { bytes_max: limits.upstream_error_bytes_max, cut: true });
  throw new UpstreamError('invalid_response', 'The provider answered with an HTML page instead of a stream', {
    status: response.status,
    raw: dialect.decodeError(502, response.headers, text).raw,
  });
}

/** The failure of an answer without the tool call that its request forces. On endpoints without native tools only the prompt can force one. */
function missingCall({ has_ended }: { has_ended: boolean }): UpstreamError {
  return new UpstreamError(
    'no_tool_call',
    'The model answered without the tool call that tool_choice forces. Its endpoint has no native tools, so that a call is only asked for in the prompt: name a model with native tools, or send tool_choice "auto"',
    { status: has_ended ? 200 : null, has_ended },
  );
}

/** The failure of an answer without any output: it ended in an error, or is empty without a finish reason. */
function voidAnswer(first: readonly ChatChunk[], { finish_reason, native_finish_reason: nativeCode }: Meter) {
  const error = first.findLast((chunk) => chunk.error !== undefined)?.error;
  const message =
    finish_reason === 'error' && nativeCode !== null
      ? (error?.message ?? 'The provider ended its answer with an error')
      : 'The provider ended its answer without saying anything';
  return new UpstreamError('unavailable', message, { status: 200, native_code: nativeCode });
}

/**
 * Sends the request and waits until the answer has begun: for its first meaningful chunk, for the whole body of an answer that is not
 * streamed, and for the tool call if the prompt forces one. The meter of `account` counts the first chunks; what a failed attempt is billed
 * for is set in it. Throws `UpstreamError`, or `CallCancelled` if the client left first.
 */
export async function openAnswer(
  prepared: PreparedAttempt,
  context: AttemptContext,
  account: Pick<Attempt<PreparedAttempt, Meter>, 'meter' | 'used'>,
): Promise<OpenAnswer> {
  let upstreamCall: UpstreamCall | undefined;
  try {
    upstreamCall = startCall(prepared, context);
    const response = await upstreamCall.exchange.response;
    if (response.status >= 300) await refuse(prepared.dialect, response);
    const reading = readAnswer(prepared, context, { response, meter: account.meter, upstreamCall });
    const answer = reading instanceof Promise ? await reading : reading;
    requireAnswer(prepared, account.meter, answer);
    return answer;
  } catch (error) {
    upstreamCall?.release();
    // A failed attempt is billed for what it used, unless the provider itself calls it an error.
    const isRefused = error instanceof UpstreamError && error.status !== null && error.status >= 400;
    if (!isRefused) account.used = account.meter.usage(prepared.request);
    throw error;
  }
}

function startCall({ candidate, dialect, encoded, payload }: PreparedAttempt, context: AttemptContext): UpstreamCall {
  const { method, path, headers } = encoded;
  const accept = context.call.request.stream === true ? 'text/event-stream' : 'application/json';
  return new UpstreamCall({ candidate, dialect, method, path, headers, payload, accept }, context);
}

/** Reads an answer whose headers have arrived until it has begun. */
function readAnswer(
  prepared: PreparedAttempt,
  { call, step = 1 }: AttemptContext,
  { response, meter, upstreamCall }: Pick<Opening, 'response' | 'meter' | 'upstreamCall'>,
): OpenAnswer | Promise<OpenAnswer> {
  const { stream, logprobs, top_logprobs } = call.request;
  const isStreamed = stream === true;
  const type = String(response.headers['content-type'] ?? '');
  if (isStreamed && /^text\/html\b/i.test(type)) return refuseHtml(response, prepared.dialect);
  const isJson = !isStreamed || /^application\/json\b/i.test(type);
  const state: AttemptState = {
    ...prepared.encoded.state,
    // Ids of tool calls are made of it and must be unique in an answer of several steps.
    generation_id: step === 1 ? call.generation_id : `${call.generation_id}/${step}`,
    headers: response.headers,
  };
  const probabilities = isJson ? LOGPROBS_BOUNDS : EVENT_LOGPROBS_BOUNDS;
  const bounds = logprobs === true || top_logprobs != null ? probabilities : ANSWER_BOUNDS;
  const opening = { response, state, call, meter, upstreamCall, bounds };
  return isJson ? readBody(prepared, opening) : readBeginning(prepared, opening);
}

/** Throws for an answer with nothing in it, or without the tool call that its request forces. */
function requireAnswer({ holds_back }: PreparedAttempt, meter: Meter, { first }: OpenAnswer): void {
  if (!meter.produced && meter.is_void) throw voidAnswer(first, meter);
  // An answer that was cut or filtered is accepted: it has another finish reason.
  if (holds_back && meter.finish_reason === 'stop') throw missingCall({ has_ended: true });
}

/**
 * Reads a whole body and decodes it. Its chunks are counted, and are handed on to a client that wants a stream, in slices. An answer with
 * too many parts is counted up to its bound before anything else is made of it. A short answer that has arrived is read at once.
 */
function readBody(prepared: PreparedAttempt, opening: Opening): OpenAnswer | Promise<OpenAnswer> {
  const body = readJson(prepared.dialect, opening.response, opening.call, opening.bounds);
  return body instanceof Promise
    ? body.then((received) => decodeBody(prepared, opening, received))
    : decodeBody(prepared, opening, body);
}

function decodeBody(prepared: PreparedAttempt, opening: Opening, body: JsonValue): OpenAnswer | Promise<OpenAnswer> {
  const { dialect } = prepared;
  const { response, state, meter } = opening;
  const cut = isShort(response) ? undefined : cutParts(body);
  const received: ChatChunk[] = [];
  let decoded: ChatChunk[];
  try {
    const isTemplated = state['tool_template'] !== undefined;
    decoded = isTemplated
      ? decodeTemplated(dialect, body, state, received)
      : dialect.decodeResponse(body, state, received);
  } catch (error) {
    // As for a broken stream, the chunks decoded before the fault and the reported usage are metered.
    received.push(...usageIn(dialect, body, state));
    return failCounted(meter, dividedChunks(received), asUpstreamFailure(error));
  }
  const breach = breachOf(decoded);
  return breach instanceof Promise
    ? breach.then((counted) => answered(prepared, opening, decoded, counted ?? cut))
    : answered(prepared, opening, decoded, breach ?? cut);
}

/** The answer that was decoded, unless it is a failure. */
function answered(
  prepared: PreparedAttempt,
  opening: Opening,
  decoded: ChatChunk[],
  failure: UpstreamError | undefined,
): OpenAnswer | Promise<OpenAnswer> {
  const { call, meter } = opening;
  const isStreamed = call.request.stream === true;
  if (failure !== undefined) return failCounted(meter, isStreamed ? dividedChunks(decoded) : decoded, failure);
  const completion = accumulate(decoded, Math.floor(call.accepted_ms / 1000));
  return isStreamed ? inSlices(completion, prepared, opening) : whole(completion, decoded, opening);
}

/** Counts the chunks of an answer that is a failure, and throws it. */
async function failCounted(meter: Meter, chunks: readonly ChatChunk[], failure: unknown): Promise<never> {
  const counting = meterAll(meter, chunks);
  if (counting !== undefined) await counting;
  throw failure;
}

/** An answer that has arrived, for a client that wants it whole. */
function whole(
  completion: ChatCompletion,
  decoded: ChatChunk[],
  { meter, upstreamCall }: Opening,
): OpenAnswer | Promise<OpenAnswer> {
  const answer = { first: decoded, later: NOTHING_LATER, isWhole: true, completion, close: closeNothing };
  const counting = meterAll(meter, decoded);
  if (counting === undefined) {
    upstreamCall.release();
    return answer;
  }
  return counting.then(() => {
    upstreamCall.release();
    return answer;
  });
}

/** An answer that has arrived, for a client that wants a stream. */
async function inSlices(
  completion: ChatCompletion,
  { encoded }: PreparedAttempt,
  { meter, upstreamCall }: Opening,
): Promise<OpenAnswer> {
  const chunks = dividedChunks(chunksOf(completion));
  let first = chunks;
  if (!requiresCall(encoded.state)) {
    const begun = chunks.findIndex(({ delta }) => isMeaningful(delta)) + 1;
    first = chunks.slice(0, Math.max(begun, sliceEnd(chunks, 0)));
  }
  const counting = meterAll(meter, first);
  if (counting !== undefined) await counting;
  upstreamCall.started();
  const later = new Slices(chunks, first.length);
  return { first, later, isWhole: true, completion: undefined, close: () => upstreamCall.release() };
}

/** The usage of an answer that could not be decoded, as a chunk; none if it cannot be read either. */
function usageIn(dialect: ChatDialect, body: JsonValue, state: AttemptState): ChatChunk[] {
  try {
    const usage = readable(() => dialect.reportedUsage(body, state));
    return usage === undefined ? [] : [{ delta: {}, ext: { response: { wire: dialect.wire, rest: {}, usage } } }];
  } catch (error) {
    if (error instanceof UpstreamError) return [];
    throw error;
  }
}

/** Answers below it, by their announced length, cannot have more parts than are decoded at once. */
const SHORT_ANSWER_BYTES = 16 * 1024;

function isShort({ headers }: UpstreamResponse): boolean {
  return Number(headers['content-length']) < SHORT_ANSWER_BYTES;
}

/** Counts chunks: at once, or in several turns of the event loop if they are more than fit one. */
function meterAll(meter: Meter, chunks: readonly ChatChunk[], from = 0): Promise<void> | undefined {
  const end = sliceEnd(chunks, from);
  for (let at = from; at < end; at += 1) meter.chunk(chunks[at]!);
  return end === chunks.length ? undefined : nextTurn().then(() => meterAll(meter, chunks, end));
}

/** Reads the events of a stream until the answer has begun. */
async function readBeginning(
  { dialect, holds_back }: PreparedAttempt,
  { response, state, call, meter, upstreamCall, bounds }: Opening,
): Promise<OpenAnswer> {
  const isTemplated = state['tool_template'] !== undefined;
  const decoder = isTemplated ? createTemplatedDecoder(dialect, state) : dialect.createStreamDecoder(state);
  const reader = new AnswerReader(response, dialect, { decoder, call, bounds });
  const first: ChatChunk[] = [];
  let hasBegun = false;
  for (;;) {
    const coming = reader.ready();
    if (coming !== undefined) await coming;
    const chunks = reader.read();
    if (chunks === undefined) {
      if (reader.ended) break;
      continue;
    }
    append(first, chunks);
    let hasCall = false;
    for (const chunk of chunks) {
      meter.chunk(chunk);
      hasCall ||= (chunk.delta.tool_calls?.length ?? 0) > 0;
    }
    if (!meter.produced) continue;
    if (!holds_back || hasCall) break;
    // The answer has begun: while its call is waited for, only the total time is limited.
    if (!hasBegun) upstreamCall.started();
    hasBegun = true;
    if (first.length > CHUNKS_BEFORE_CALL_MAX) throw missingCall({ has_ended: false });
  }
  reader.hasBegun = true;
  upstreamCall.started();
  return { first, later: reader, isWhole: false, completion: undefined, close: () => upstreamCall.release() };
}
