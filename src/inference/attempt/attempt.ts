import { offersTier } from '../../catalog/price-list.ts';
import { GatewayError } from '../../errors.ts';
import { inTurns } from '../../http/in-turns.ts';
import type { Source } from '../../http/sources.ts';
import { writeInTurns } from '../../http/written-json.ts';
import { limits } from '../../limits.ts';
import {
  type AttemptState,
  type ChatDialect,
  type EncodedRequest,
  type Frame,
  type Media,
  type Report,
  type StreamDecoder,
  UpstreamError,
} from '../../providers/dialect.ts';
import type { Framer } from '../../providers/framer.ts';
import type { CacheMarks } from '../../providers/shared/worst-case.ts';
import { needsTemplate, requiresCall, templated } from '../../providers/tool-template/dialect.ts';
import { createFramer } from '../../providers/transport/frames.ts';
import { countAnswer, readText, type UpstreamResponse } from '../../providers/transport/upstream.ts';
import { type Candidate, supports } from '../../routing/plan.ts';
import { accumulate } from '../../schemas/accumulate.ts';
import { append } from '../../schemas/append.ts';
import { chunksOf } from '../../schemas/chunks.ts';
import type { ChatChunk, ChatCompletion, ChatRequest } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { isLongJson } from '../../schemas/json-pieces.ts';
import { isDeeperThan, type StructureBounds, structureBreach } from '../../schemas/json-structure.ts';
import type { Call } from '../call.ts';
import { isMeaningful, type Meter } from '../money/meter.ts';
import { cacheMarks } from '../money/payload-search.ts';
import { fitRequest, type SpendBound, UNPRICED_TIER } from '../prepare/fit-request.ts';
import { NO_MEDIA } from '../prepare/media.ts';
import {
  AnswerBounds,
  asUpstreamFailure,
  jsonBoundsOf,
  partsBeyond,
  readable,
  requireBounded,
  requireUnbroken,
} from './answer-bounds.ts';
import { AnswerTail } from './answer-tail.ts';
import { dividedChunks, sliceEnd } from './chunk-slices.ts';
import { type AttemptContext, CallCancelled, headersOf, type Outgoing, readJson, start } from './exchange.ts';

/** A request as one endpoint will get it, and what had to be changed for that. */
export interface PreparedAttempt {
  candidate: Candidate;
  dialect: ChatDialect;
  /** The request after what the endpoint does not support was taken out. */
  request: ChatRequest;
  encoded: EncodedRequest;
  /** The body as it will be sent. */
  payload: string | Buffer;
  /** The output bound in it. */
  output_tokens: number | undefined;
  /** The service tier it asks for; undefined: none. */
  service_tier: string | undefined;
  report: Report[];
  /** See `FittedRequest`. */
  is_default_bound?: true;
  /** What was fetched for it. */
  media: Media;
  /** Of a long payload: what of it matters for the price of a prompt. Absent: not looked for. */
  marks?: CacheMarks;
}

/** What the fields of a wire's body are, for merging a client's options into it. */
export interface OptionRules extends Pick<ChatDialect, 'reserved' | 'serviceTier'> {
  worstCase: Pick<ChatDialect['worstCase'], 'unpricedFields'>;
}

/** Merges a client's options into a body, but for what the dialect reserves and what has no known price. */
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

/** The body with what the client's `provider.options` have for this provider, by its slug or display name. */
export function withOptions(
  body: JsonObject,
  request: Pick<ChatRequest, 'provider'>,
  candidate: Candidate,
  dialect: OptionRules,
  report: Report[],
): JsonObject {
  const given = request.provider?.options;
  if (!given) return body;
  if (isDeeperThan(given, limits.option_levels_max)) {
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

/** Whether a request's tools, or what was called before, are text for this endpoint, which has no native tools. */
export function statesTools(request: ChatRequest, { endpoint }: Candidate): boolean {
  return !supports(endpoint, 'tools') && needsTemplate(request);
}

/** Encodes a request for one endpoint; a long one with others served in between. Pure but for the request it is given. */
export function prepareAttempt(
  request: ChatRequest,
  candidate: Candidate,
  dialect: ChatDialect,
  strip_state: boolean,
  spend?: SpendBound,
  media = NO_MEDIA,
): PreparedAttempt | Promise<PreparedAttempt> {
  const { report, request: fitted, is_default_bound } = fitRequest(request, candidate.endpoint, spend);
  const stated = statesTools(fitted, candidate) ? templated(fitted) : undefined;
  const asked = stated?.request ?? fitted;
  const encoded = dialect.encodeRequest(asked, candidate.endpoint, { media, strip_state });
  if (stated !== undefined) {
    append(report, stated.report);
    if (stated.template !== undefined) encoded.state = { ...encoded.state, tool_template: stated.template };
  }
  append(report, encoded.report);
  encoded.body = withOptions(encoded.body, request, candidate, dialect, report);
  if (spend !== undefined) encoded.body = dialect.worstCase.spendBounds.body(encoded.body, report);
  const written = writeBody(encoded.body, request.ext?.is_long);
  const output_tokens = dialect.outputBound(encoded.body);
  const service_tier = dialect.serviceTier(encoded.body);
  const made = (payload: string | Buffer): PreparedAttempt => {
    const attempt = {
      candidate,
      dialect,
      request: asked,
      encoded,
      payload,
      output_tokens,
      service_tier,
      report,
      media,
    };
    return is_default_bound === undefined ? attempt : { ...attempt, is_default_bound };
  };
  if (!(written instanceof Promise)) return made(written);
  if (spend === undefined) return written.then(made);
  // They are always wanted.
  return written.then(async (payload) => ({ ...made(payload), marks: (await inTurns(cacheMarks(payload)))! }));
}

/** The text of a body. Throws `GatewayError` 400 for one that is nested too deeply. */
export function serialize(body: JsonObject): string {
  return unlessTooDeep(() => JSON.stringify(body));
}

/** The text of a body as it is sent; of a long one its bytes, written with others served in between. Throws as `serialize` does. */
export function writeBody(body: JsonObject, is_long = isLongJson(body)): string | Promise<Buffer> {
  return unlessTooDeep(() => (is_long ? writeInTurns(body) : JSON.stringify(body)));
}

function unlessTooDeep<T>(work: () => T): T {
  try {
    return work();
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

/** The answer of a whole body, collected from its chunks. */
function decodeWhole(
  prepared: PreparedAttempt,
  response: UpstreamResponse,
  body: JsonValue,
  context: AttemptContext,
): ChatCompletion {
  const created = Math.floor(context.call.accepted_ms / 1000);
  const state = stateOf(prepared, response, context);
  return readable(() => accumulate(prepared.dialect.decodeResponse(body, state), created));
}

/** Asks one endpoint for a whole answer, and gives what is made of it. Throws `UpstreamError`, or `CallCancelled` when the client left first. */
export async function attemptWhole<T>(
  prepared: PreparedAttempt,
  context: AttemptContext,
  made: (completion: ChatCompletion) => T,
): Promise<T> {
  const held = start(outgoingOf(prepared, context.call), context);
  try {
    const response = await headersOf(prepared.dialect, held);
    const body = await readJson(prepared.dialect, response, context.call, jsonBoundsOf(context.call.request));
    return made(decodeWhole(prepared, response, body, context));
  } finally {
    held.release();
  }
}

/** A stream from which something meaningful has come, or that has ended without. */
export interface OpenStream {
  /** Everything up to and including the first read with something meaningful. */
  first: ChatChunk[];
  /** What comes after it, each time the chunks of one read. Throws `UpstreamError`, or `CallCancelled`. */
  later: Source<ChatChunk[]>;
  /** Ends the upstream's work. Safe to call at any time, more than once. */
  close(): void;
}

/** What is here as a whole, handed on as much as one turn of the loop takes. */
class Slices implements Source<ChatChunk[]> {
  readonly #chunks: readonly ChatChunk[];
  #next: number;

  constructor(chunks: readonly ChatChunk[], next: number) {
    this.#chunks = chunks;
    this.#next = next;
  }

  get ended(): boolean {
    return this.#next >= this.#chunks.length;
  }

  coming(): Promise<void> | undefined {
    return this.ended ? undefined : nextTurn();
  }

  take(): ChatChunk[] | undefined {
    if (this.ended) return undefined;
    const from = this.#next;
    this.#next = sliceEnd(this.#chunks, from);
    return this.#chunks.slice(from, this.#next);
  }
}

const NO_FRAMES: readonly Frame[] = [];

/** Others are served first. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

function isJsonAnswer(response: UpstreamResponse): boolean {
  return /^application\/json\b/i.test(String(response.headers['content-type'] ?? ''));
}

/** What an HTML page or another stranger says when a stream was asked for. */
async function refuseForeign(response: UpstreamResponse, dialect: ChatDialect): Promise<void> {
  const type = String(response.headers['content-type'] ?? '');
  if (!/^text\/html\b/i.test(type)) return;
  const text = await readText(response, { bytes_max: limits.upstream_error_bytes_max, cut: true });
  throw new UpstreamError('invalid_response', 'The provider answered with an HTML page instead of a stream', {
    status: response.status,
    raw: dialect.decodeError(502, response.headers, text).raw,
  });
}

/** A failure that the end of a body is, where the upstream itself ended it. */
function endedBy(error: unknown): unknown {
  if (!(error instanceof UpstreamError)) return error;
  const { failure, message, status, native_code, retry_after_ms, raw } = error;
  const told = { status, native_code, retry_after_ms, raw };
  return new UpstreamError(failure, message, { ...told, has_ended: true, cause: error });
}

/**
 * What one attempt's body says: it is read and decoded piece by piece, and the same bytes in any pieces give the same chunks. What
 * one read brought before the failure that it also brought is given out first. A class and not closures: there is one for every attempt.
 */
class AnswerReader implements Source<ChatChunk[]> {
  ended = false;
  readonly #response: UpstreamResponse;
  readonly #call: Call;
  readonly #framer: Framer;
  readonly #decoder: StreamDecoder;
  readonly #count: ReturnType<typeof countAnswer>;
  /** Something meaningful has come. */
  #has_begun = false;
  #failure: { error: unknown } | undefined = undefined;
  /** What waits for room in memory. */
  #held: ChatChunk[] | undefined = undefined;
  #waiting: Promise<void> | undefined = undefined;
  #bytes = 0;
  #drained_bytes = 0;
  /** What the last read held, and which of it is next. */
  #frames: readonly Frame[] = NO_FRAMES;
  #next = 0;
  #read_bytes = 0;
  /** Nothing is left to read; and the decoder was told so. */
  #is_last = false;
  #is_told = false;
  /** What is decoded, and waits for the next turn. */
  #rest: ChatChunk[] | undefined = undefined;
  /** What follows a whole answer; undefined: it is not whole. */
  #tail: AnswerTail | undefined = undefined;
  /** An event of the last read was so long that its chunks are divided. */
  #is_long = false;
  #looked: { frame: Frame; breach: string | undefined } | undefined = undefined;
  readonly #bounds = new AnswerBounds();
  readonly #json_bounds: StructureBounds;

  constructor(prepared: PreparedAttempt, response: UpstreamResponse, context: AttemptContext) {
    const { dialect } = prepared;
    const { call } = context;
    this.#response = response;
    this.#call = call;
    this.#framer = createFramer(dialect.frames);
    this.#decoder = dialect.createStreamDecoder(stateOf(prepared, response, context));
    this.#count = countAnswer(call.room);
    this.#json_bounds = jsonBoundsOf(call.request);
  }

  /** Something meaningful has come: where a reason to stop comes as well, a failure after it is none. */
  begun(): void {
    this.#has_begun = true;
  }

  coming(): Promise<void> | undefined {
    if (this.#waiting !== undefined) return this.#waiting;
    if (this.#is_waiting) return nextTurn();
    if (this.ended || this.#failure !== undefined) return undefined;
    const coming = this.#response.coming();
    return coming !== undefined && this.#tail !== undefined ? this.#tail.wait(coming) : coming;
  }

  take(): ChatChunk[] | undefined {
    const held = this.#held;
    this.#held = undefined;
    if (held !== undefined && held.length > 0) return held;
    if (this.#failure !== undefined && this.#rest === undefined) throw this.#failure.error;
    if (this.ended || held !== undefined) return undefined;
    if (!this.#is_waiting) {
      let value: Buffer | undefined;
      try {
        value = this.#response.take();
      } catch (error) {
        // A connection that is cut or stays open only after a whole answer has lost nothing.
        if (!(error instanceof UpstreamError && this.#decoder.isWhole())) return this.#endOf(error);
      }
      if (value !== undefined && this.#tail?.isOver === true) this.#leaveRest();
      else {
        this.#read(value);
        if (this.#looksAhead()) return undefined;
      }
    }
    const chunks = this.#decode();
    this.#followTail(chunks);
    if (this.#is_told && !this.#is_waiting) this.ended = true;
    else if (!this.#is_last && this.#isToBeCounted(chunks) && this.#waits(this.#read_bytes, chunks)) return undefined;
    return chunks.length === 0 ? undefined : chunks;
  }

  /** The answer is whole, and what follows it is more than anybody needs. */
  #leaveRest(): void {
    this.#is_last = true;
    this.#read_bytes = 0;
    this.#next = 0;
    this.#frames = NO_FRAMES;
  }

  /** Some wires state an end and go on with their answer: its tail begins anew with each part of the model's own. */
  #followTail(chunks: readonly ChatChunk[]): void {
    if (!this.#decoder.isWhole()) return;
    if (this.#tail === undefined || chunks.some(({ delta }) => isMeaningful(delta))) this.#tail = new AnswerTail();
  }

  /** A read is counted once all of it was handed on; one with a long event before any of that is, and once. */
  #isToBeCounted(chunks: readonly ChatChunk[]): boolean {
    if (this.#rest !== undefined && chunks.length === 0) return true;
    return !this.#is_waiting && !this.#is_long;
  }

  #read(value: Buffer | undefined): void {
    this.#is_long = false;
    this.#is_last = value === undefined;
    this.#read_bytes = value?.length ?? 0;
    this.#tail?.add(this.#read_bytes);
    this.#next = 0;
    try {
      this.#frames = value === undefined ? this.#framer.end() : this.#framer.push(value);
    } catch (error) {
      throw this.#endedBy(error);
    }
  }

  /** Counts the structure of an event that takes long to read; true: it is decoded in the next turn. */
  #looksAhead(): boolean {
    for (const frame of this.#frames) {
      if (frame.data.length <= limits.answer_turn_bytes_min) continue;
      this.#looked = { frame, breach: structureBreach(frame.data, this.#json_bounds) };
      return true;
    }
    return false;
  }

  /** The chunks of the next events of a read, within what one turn of the loop takes; a failure among them is for after them. */
  #decode(): ChatChunk[] {
    if (this.#rest !== undefined) return this.#slice(this.#rest);
    let chunks: ChatChunk[] = [];
    const add = (more: ChatChunk[]) => {
      const from = chunks.length;
      // Most reads hold one event, whose list is taken as it is.
      if (from === 0) chunks = more;
      else append(chunks, more);
      for (let at = from; at < chunks.length; at += 1) {
        const error = this.#bounds.add(chunks[at]!);
        if (error === undefined) continue;
        chunks.length = at;
        throw error;
      }
    };
    const frames = this.#frames;
    const until = Math.min(frames.length, this.#next + limits.stream_slice_frames);
    let chars = 0;
    try {
      while (this.#next < until && chunks.length < limits.stream_slice_chunks && chars < limits.stream_slice_chars) {
        const frame = frames[this.#next]!;
        this.#next += 1;
        chars += frame.data.length;
        if (this.#looked?.frame === frame) requireUnbroken(this.#looked.breach);
        else requireBounded(frame.data, this.#json_bounds);
        add(this.#decoder.push(frame));
      }
      if (this.#is_last && this.#next === frames.length) {
        this.#is_told = true;
        add(this.#decoder.end());
      }
    } catch (caught) {
      this.#frames = NO_FRAMES;
      this.#next = 0;
      const error = this.#endedBy(asUpstreamFailure(caught));
      if (chunks.length === 0) throw error;
      this.#failure = { error };
    }
    if (chars <= limits.stream_chunk_chars_max) return this.#slice(chunks);
    this.#is_long = true;
    this.#rest = dividedChunks(chunks);
    return [];
  }

  /** As many as are handed on in one turn; the others wait. */
  #slice(chunks: ChatChunk[]): ChatChunk[] {
    const end = this.#is_long ? sliceEnd(chunks, 0) : limits.stream_slice_chunks;
    this.#rest = chunks.length > end ? chunks.slice(end) : undefined;
    return this.#rest === undefined ? chunks : chunks.slice(0, end);
  }

  /** Whether more of what was read is to be handed on. */
  get #is_waiting(): boolean {
    return this.#rest !== undefined || this.#next < this.#frames.length;
  }

  #endedBy(error: unknown): unknown {
    return this.#is_last && this.#response.complete ? endedBy(error) : error;
  }

  /** After a failure in the middle of a body: what is left to say where the reason to stop had come before it. */
  #endOf(error: unknown): ChatChunk[] | undefined {
    if (!this.#has_begun || !(error instanceof UpstreamError)) throw error;
    let rest: ChatChunk[];
    try {
      rest = this.#decoder.end();
    } catch {
      throw error;
    }
    this.ended = true;
    return rest.length === 0 ? undefined : rest;
  }

  /** Counts a read; true: there is no room in memory for it yet. */
  #waits(bytes: number, chunks: ChatChunk[]): boolean {
    this.#bytes += bytes;
    this.#read_bytes = 0;
    // Part of an event that is larger than a read is kept whole.
    const waiting = this.#count(chunks.length === 0 ? bytes : Math.ceil(bytes / limits.stream_kept_divisor));
    if (waiting === undefined) {
      this.#checkLength(bytes);
      return false;
    }
    this.#held = chunks;
    this.#waiting = this.#wait(waiting, bytes);
    return true;
  }

  async #wait(waiting: Promise<void>, bytes: number): Promise<void> {
    try {
      await waiting;
      this.#checkLength(bytes);
    } catch (error) {
      this.#held = undefined;
      this.#rest = undefined;
      this.#failure = { error };
    }
    this.#waiting = undefined;
  }

  #checkLength(bytes: number): void {
    if (this.#call.cancellation.cancelled) {
      this.#drained_bytes += bytes;
      if (this.#drained_bytes > limits.drain_bytes_max) throw new CallCancelled({ may_be_billed: true });
    }
    if (this.#bytes > limits.stream_bytes_max) {
      throw new UpstreamError(
        'invalid_response',
        `The provider's stream is longer than ${limits.stream_bytes_max} bytes`,
      );
    }
  }
}

/** The failure of an answer without the call that its request forces. Nothing but its prompt can force one. */
export function noCall({ has_ended }: { has_ended: boolean }): UpstreamError {
  return new UpstreamError(
    'no_tool_call',
    'The model answered without the tool call that tool_choice forces. Its endpoint has no native tools, so that a call is only asked for in the prompt: name a model with native tools, or send tool_choice "auto"',
    { status: has_ended ? 200 : null, has_ended },
  );
}

function hasCall({ delta }: ChatChunk): boolean {
  return delta.tool_calls !== undefined && delta.tool_calls.length > 0;
}

/**
 * Opens a stream and waits for something meaningful, or for the call of a tool where it can only be asked for: until then any failure
 * may still go to another endpoint. `meter` follows what comes until then. Throws `UpstreamError`, or `CallCancelled` when the client left first.
 */
export async function attemptStream(
  prepared: PreparedAttempt,
  context: AttemptContext,
  meter: Pick<Meter, 'chunk'>,
): Promise<OpenStream> {
  const held = start(outgoingOf(prepared, context.call), context);
  const waits_for_call = requiresCall(prepared.encoded.state);
  try {
    const response = await headersOf(prepared.dialect, held);
    await refuseForeign(response, prepared.dialect);
    if (isJsonAnswer(response)) {
      const body = await readJson(prepared.dialect, response, context.call, jsonBoundsOf(context.call.request));
      const completion = decodeWhole(prepared, response, body, context);
      const chunks = dividedChunks(chunksOf(completion));
      const failure = partsBeyond(completion);
      const begun = chunks.findIndex(({ delta }) => isMeaningful(delta)) + 1;
      const is_read_whole = failure !== undefined || waits_for_call;
      const first = is_read_whole ? chunks : chunks.slice(0, Math.max(begun, sliceEnd(chunks, 0)));
      for (const chunk of first) meter.chunk(chunk);
      if (failure !== undefined) throw failure;
      held.started();
      return { first, later: new Slices(chunks, first.length), close: () => held.release() };
    }
    const reader = new AnswerReader(prepared, response, context);
    const first: ChatChunk[] = [];
    let has_begun = false;
    for (;;) {
      const coming = reader.coming();
      if (coming !== undefined) await coming;
      const chunks = reader.take();
      if (chunks === undefined) {
        if (reader.ended) break;
        continue;
      }
      append(first, chunks);
      for (const chunk of chunks) meter.chunk(chunk);
      if (!chunks.some(({ delta }) => isMeaningful(delta))) continue;
      if (!waits_for_call || chunks.some(hasCall)) break;
      // The answer has begun: only the total time counts while its call is waited for.
      if (!has_begun) held.started();
      has_begun = true;
      if (first.length > limits.chunks_before_call_max) throw noCall({ has_ended: false });
    }
    reader.begun();
    held.started();
    return { first, later: reader, close: () => held.release() };
  } catch (error) {
    held.release();
    throw error;
  }
}
