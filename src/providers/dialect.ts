import type { EndpointParameter } from '../schemas/endpoint.ts';
import type { ChatChunk, ChatRequest, InnerTool, Wire } from '../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../schemas/json.ts';
import type { Quirks } from './provider.ts';

/** What a dialect may know of the endpoint it encodes for: facts, no prices, no credential. */
export interface DialectEndpoint {
  /** Public id, `author/slug`. */
  model: string;
  provider: string;
  /** What the provider calls the model. */
  upstream_model: string;
  /** Undefined when not known. */
  max_completion_tokens: number | undefined;
  context_length: number | undefined;
  input_modalities: readonly string[];
  quirks: Quirks;
}

/** A request parameter that could not be carried as sent, shown in the routing metadata. */
export interface Report {
  kind: 'dropped' | 'clamped' | 'changed';
  /** The public field, such as `top_k` or `messages[3].content[1]`. */
  field: string;
  reason: string;
}

/** Media that the gateway must fetch before the dialect can encode: an http(s) URL of the request. */
export interface MediaNeed {
  url: string;
  kind: 'image' | 'file' | 'audio' | 'video';
}
export type Media = ReadonlyMap<string, { mime_type: string; base64: string }>;

export interface EncodeOptions {
  media: Media;
  /** Leave all opaque reasoning state out: set for the one retry after an upstream refused it. */
  strip_state: boolean;
}

/**
 * What the decoders of the same attempt must know of its request, such as renamed tools, or the tool call ids already
 * used in the conversation. Plain data.
 */
export type AttemptState = Record<string, unknown> & {
  /** The seed of minted tool call ids: the generation id. Set by the flow before decoding. */
  generation_id: string;
  /** The answer's headers, names in lower case. Set by the flow before decoding: some upstreams tell usage there. */
  headers?: Record<string, string | string[] | undefined>;
};

export interface EncodedRequest {
  method: 'POST';
  /** Appended to the provider's base URL; starts with `/`. */
  path: string;
  headers: Record<string, string>;
  body: JsonObject;
  report: Report[];
  state: Omit<AttemptState, 'generation_id'>;
}

/** The finished request, as it will be sent: what a signature covers. */
export interface SignableRequest {
  method: string;
  url: string;
  headers: Record<string, string>;
  payload: string | Buffer;
  /** SHA-256 of the payload in hexadecimal digits, where it is known. */
  payload_sha256?: string | undefined;
}

/**
 * One event of an upstream's stream, framed but not decoded. For `sse`: the joined `data` lines and the `event` name; for
 * `aws-event-stream`: the payload's text and the type of the event.
 */
export interface Frame {
  event: string | undefined;
  data: string;
  /** `aws-event-stream`: not an event but an exception, whose type `event` is. */
  failure?: true;
}

/**
 * Why an upstream did not answer as hoped. The class decides what happens next (see `fallsOver`); the message is the
 * upstream's own, shown to clients after secrets are cut out.
 */
export type FailureClass =
  | 'rate_limited' // 429
  | 'overloaded' // 529, 503 with that meaning
  | 'unavailable' // 5xx, refused or broken connection
  | 'timeout' // 408, or one of our own limits
  | 'credential' // 401, 403: the operator's credential is at fault
  | 'payment' // 402, and 400s that say the account has no credit
  | 'not_found' // 404: the model is not there
  | 'conflict' // 409, 425
  | 'invalid_request' // 400, 413, 422: the caller's fault, final for the model
  | 'content_filter' // the provider refuses the content, final for the model
  | 'state_rejected' // opaque reasoning state refused: strip it and try the same endpoint once more
  | 'invalid_response' // what came is not an answer of this wire
  | 'no_tool_call'; // the request forces a call of a tool, and the answer has none

/** Thrown by decoders in mid-stream and returned by `decodeError`. */
export class UpstreamError extends Error {
  override readonly name = 'UpstreamError';
  readonly failure: FailureClass;
  /** The HTTP status, or what the error inside a 200 stands for; null when there was none (no connection). */
  readonly status: number | null;
  /** The upstream's own code or type, such as `overloaded_error`. */
  readonly native_code: string | null;
  /** Of a failure of the connection: the network's or the client library's word for it. For the log, not for clients. */
  readonly transport_code: string | undefined;
  /** Nothing of the request can have reached the upstream: there was no connection that it could be written to. */
  readonly never_sent: boolean;
  /** The upstream had ended its answer itself when this was found: it does not go on. */
  readonly has_ended: boolean;
  readonly retry_after_ms: number | undefined;
  /** The upstream's body, cut; goes to `error.metadata.raw`. */
  readonly raw: string | undefined;

  constructor(
    failure: FailureClass,
    message: string,
    details: {
      status?: number | null;
      native_code?: string | null;
      transport_code?: string | undefined;
      never_sent?: boolean;
      has_ended?: boolean;
      retry_after_ms?: number | undefined;
      raw?: string | undefined;
      cause?: unknown;
    } = {},
  ) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.failure = failure;
    this.status = details.status ?? null;
    this.native_code = details.native_code ?? null;
    this.transport_code = details.transport_code;
    this.never_sent = details.never_sent ?? false;
    this.has_ended = details.has_ended ?? false;
    this.retry_after_ms = details.retry_after_ms;
    this.raw = details.raw;
  }
}

/** Reads one stream. One decoder a stream: what it must remember between frames dies with it. Synchronous. */
export interface StreamDecoder {
  /** Throws `UpstreamError` for an error event or a frame that is not of this wire. */
  push(frame: Frame): ChatChunk[];
  /** The wire's own end of an answer, or of a failed one, has come: whatever happens to the connection now, nothing of it is missing. */
  isWhole(): boolean;
  /**
   * At the end of the bytes: closes open slots, infers a missing finish reason where the wire shows a complete answer,
   * emits usage. Throws `UpstreamError` (`unavailable`) when the stream was cut short.
   */
  end(): ChatChunk[];
}

/** How a wire counts the tokens of a prompt without answering it, for nothing. */
export interface TokenCounter {
  /** The question about a request that was encoded for the endpoint. */
  request(encoded: EncodedRequest, endpoint: Pick<DialectEndpoint, 'quirks' | 'upstream_model'>): EncodedRequest;
  /** The count, and what is told beside it. Throws `UpstreamError` (`invalid_response`). */
  read(body: JsonValue): JsonObject & { input_tokens: number };
}

/** Patterns of a payload whose prompt may be as long as the model takes. At most 1,024 characters match. */
export interface UnseenMedia {
  pattern: RegExp;
  /** Matches if all of it may be billed as sound; otherwise a part. */
  sound: RegExp;
}

/** What the endpoint's name and quirks say about the model behind it. */
export type ModelName = Pick<DialectEndpoint, 'upstream_model' | 'quirks'>;

/**
 * What a request may cost at most, beyond what its text shows. Money is held by these facts. All members are required, so that a new
 * wire states each of them: `provider-tools.ts` and `worst-case.ts` have what wires share.
 */
export interface WorstCase {
  /** How a payload shows that the provider reads something it only points at; undefined: it cannot. */
  unseenMedia: UnseenMedia | undefined;
  /** The number of pictures that a native object of this wire points at. */
  picturesIn(block: JsonObject): number;
  /** The most uses of each tool that the provider runs by itself; empty: it runs none. */
  toolUses(request: ToolRequest): number[];
  /** Whether an answer is billed for one search at most. */
  billsOneSearch(model: ModelName): boolean;
  /** Whether a prompt without a mark for the cache may be billed at the price for cache writes. */
  unmarkedCacheWrites: boolean;
  /** How often the prompt is read and an answer of the output bound is made. */
  passes(body: JsonObject): number;
  /** The most output tokens that are billed beside the output bound. */
  tokensBesideBound(body: JsonObject, endpoint: ModelName & Pick<DialectEndpoint, 'max_completion_tokens'>): number;
  /** Fields that multiply the price of every token by factors without a price list; `provider.options` cannot set them. */
  unpricedFields: ReadonlySet<string>;
  /** What a caller with a spend limit may use of the tools that the provider runs. */
  spendBounds: SpendBounds;
}

/** An encoded request as far as it has the provider run tools. */
export interface ToolRequest {
  /** Tools of the request in the inner language. */
  tools: readonly InnerTool[];
  body: JsonObject;
  upstream_model: string;
}

/** Rewrites what the provider runs so that its cost has a bound. Each answers with the same object if nothing changes. */
export interface SpendBounds {
  /** A tool's declaration; undefined: it is dropped. */
  declaration(declared: JsonObject, field: string, report: Report[]): JsonObject | undefined;
  /** A native block of the conversation; undefined: it is dropped. */
  block(block: JsonObject, field: string, report: Report[]): JsonObject | undefined;
  /** The encoded body, which `provider.options` may have changed. */
  body(body: JsonObject, report: Report[]): JsonObject;
}

/** What a wire takes: by it, endpoints are chosen and requests are fitted to them. All members are required, as above. */
export interface WireFacts {
  /** Quirks of an endpoint of a public model (`author/slug`), unless the provider's row or the operator sets them. */
  defaultQuirks(model: string): Quirks;
  /** Quirks that the upstream's name of a model implies; they override those of the provider's row. */
  modelQuirks(upstreamModel: string): Quirks;
  /** Parameters that the wire, or this model on it, has no field for. */
  lackingParameters(model: ModelName): readonly EndpointParameter[];
  /** Whether endpoints have their own names for reasoning fields and efforts (`replay_reasoning`, `reasoning_efforts`). */
  variesReasoningFields: boolean;
  /** Whether servers refuse parameters that a model does not support. */
  refusesUnsupported: boolean;
  /** Whether prompts are cached without a hint in the request. */
  cachesUnasked: boolean;
  /** Whether one request may ask for several choices (`n`). */
  takesSeveralChoices: boolean;
  /** Whether an output bound of 0 is accepted: the prompt is read, and nothing is answered. */
  takesZeroOutput: boolean;
  /** Whether any http(s) address may be sent in place of media. Otherwise media are bytes, or addresses of the provider's platform. */
  takesAddresses: boolean;
  /** Whether the wire has the field `web_search_options`. */
  takesSearchOptions: boolean;
  /** The most messages of a request; undefined: no bound is known. */
  messagesMax: number | undefined;
  /** Whether a native tool is the provider's own web search. */
  isSearchTool(block: JsonObject): boolean;
  /** Whether turns may have opaque reasoning state that the provider takes back. */
  carriesState(quirks: Quirks): boolean;
  /** The least output bound of an encoded request; 0: any. Lower bounds are not sent. */
  leastOutput(body: JsonObject, request: ChatRequest): number;
}

/** Pure: a dialect does no I/O, reads no clock and no environment, so a transcript is a complete test of it. */
export interface ChatDialect {
  wire: Wire;
  facts: WireFacts;
  worstCase: WorstCase;
  frames: 'sse' | 'aws-event-stream';
  /**
   * Fields of a body that neither an operator's `extra_body` nor a client's `provider.options` may set. `a.b` stands for the
   * field `b` of the object `a`, whose other fields are merged one by one.
   */
  reserved: ReadonlySet<string>;
  /** Empty when the wire takes URLs as they are. */
  requiredMedia(request: ChatRequest, endpoint: DialectEndpoint): MediaNeed[];
  /**
   * Builds the upstream request. `request.stream` says whether a stream is wanted. Throws `GatewayError` 400 for what no
   * endpoint of this wire can carry and must not be dropped. Never changes `request`.
   */
  encodeRequest(request: ChatRequest, endpoint: DialectEndpoint, options: EncodeOptions): EncodedRequest;
  /** The output bound in a body, by this wire's name for it; undefined: the body has none. */
  outputBound(body: JsonObject): number | undefined;
  /** The service tier that a body asks for; undefined: none. */
  serviceTier(body: JsonObject): string | undefined;
  /** Absent: the wire does not count. */
  tokenCounter?: TokenCounter;
  /** Takes a credential of several parts, as JSON text. */
  json_credentials?: true;
  /** The base URL for a credential that says which of the provider's hosts it is meant for. Absent: always the provider's. */
  addressFor?(baseUrl: string, credential: string | undefined): string;
  /** Whether the headers that carry a credential sign the payload. Absent: they never do. */
  signsPayload?(credential: string | undefined): boolean;
  /** The headers that carry the credential. Throws `UpstreamError` (`credential`) for one that is not of this wire. */
  authorize(
    credential: string | undefined,
    request: SignableRequest,
    nowMs: number,
    quirks: Quirks,
  ): Record<string, string>;
  /**
   * The chunks of a whole answer, all at once: accumulated, they are that answer. Throws `UpstreamError` (`invalid_response`, or an
   * error inside a 200).
   */
  decodeResponse(body: JsonValue, state: AttemptState): ChatChunk[];
  createStreamDecoder(state: AttemptState): StreamDecoder;
  /** `body` is the text as received, perhaps an HTML page, perhaps empty. Never throws. */
  decodeError(status: number, headers: Record<string, string | string[] | undefined>, body: string): UpstreamError;
}
