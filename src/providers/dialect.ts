import type { EndpointParameter } from '../schemas/endpoint.ts';
import type { ChatChunk, ChatRequest, InnerTool, TokenClasses, Wire } from '../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../schemas/json.ts';
import type { Quirks } from './quirks.ts';

/** The facts of an endpoint that a dialect encodes for. No prices, no credential. */
export interface DialectEndpoint {
  /** Public id, `author/slug`. */
  model: string;
  provider: string;
  /** The provider's name for the model. */
  upstream_model: string;
  /** Undefined if not known. */
  max_completion_tokens: number | undefined;
  context_length: number | undefined;
  input_modalities: readonly string[];
  quirks: Quirks;
}

/** A request parameter that could not be sent as the client wrote it. Shown in the routing metadata. */
export interface Report {
  kind: 'dropped' | 'clamped' | 'changed';
  /** The public field, such as `top_k` or `messages[3].content[1]`. */
  field: string;
  reason: string;
}

/** An http(s) URL of the request that the gateway must fetch before the dialect can encode. */
export interface MediaNeed {
  url: string;
  kind: 'image' | 'file' | 'audio' | 'video';
}
export type Media = ReadonlyMap<string, { mime_type: string; base64: string }>;

export interface EncodeOptions {
  media: Media;
  /** Leaves all opaque reasoning state out. Set for the one retry after an upstream refused it. */
  strip_state: boolean;
}

/**
 * What the decoders of an attempt must know of its request, such as renamed tools or the tool call ids that the conversation already uses.
 * Plain data.
 */
export type AttemptState = Record<string, unknown> & {
  /** The seed of minted tool call ids: the generation id. Set by the caller before decoding. */
  generation_id: string;
  /** The answer's headers, names in lower case. Set by the caller before decoding: some upstreams report usage there. */
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

/** The finished request as it will be sent: the input of a signature. */
export interface SignableRequest {
  method: string;
  url: string;
  headers: Record<string, string>;
  payload: string | Buffer;
  /** SHA-256 of the payload in hexadecimal digits, if known. */
  payload_sha256?: string | undefined;
}

/**
 * One event of an upstream's stream, framed but not decoded. For `sse`: the joined `data` lines and the `event` name. For
 * `aws-event-stream`: the payload's text and the type of the event.
 */
export interface Frame {
  event: string | undefined;
  data: string;
  /** Set for an exception of an `aws-event-stream`; `event` is then its type. */
  failure?: true;
}

/**
 * Why an upstream attempt failed. The class decides what happens next (see `fallsOver`). The message is the upstream's own, shown to
 * clients after secrets are cut out.
 */
export type FailureClass =
  | 'rate_limited' // 429
  | 'overloaded' // 529, 503 with that meaning
  | 'unavailable' // 5xx, refused or broken connection
  | 'timeout' // 408, or one of our own limits
  | 'credential' // 401, 403: the operator's credential is at fault
  | 'payment' // 402, and 400s that say the account has no credit
  | 'not_found' // 404: the provider does not have the model
  | 'conflict' // 409, 425
  | 'invalid_request' // 400, 413, 422: an error of the caller, final for the model
  | 'content_filter' // the provider refuses the content, final for the model
  | 'state_rejected' // opaque reasoning state was refused: retried once on the same endpoint without it
  | 'invalid_response' // the body is not an answer of this wire
  | 'no_tool_call'; // the request forces a call of a tool, and the answer has none

/** Thrown by decoders in mid-stream and returned by `decodeError`. */
export class UpstreamError extends Error {
  override readonly name = 'UpstreamError';
  readonly failure: FailureClass;
  /** The HTTP status, or the status that an error inside a 200 corresponds to; null if there is none (no connection). */
  readonly status: number | null;
  /** The upstream's own error code or type, such as `overloaded_error`. */
  readonly native_code: string | null;
  /** For a failed connection: the error code of the network or of the client library. For the log, not for clients. */
  readonly transport_code: string | undefined;
  /** True if no byte of the request can have reached the upstream, because no connection was established. */
  readonly never_sent: boolean;
  /** True if the upstream had already ended its answer when the failure was detected, so that it produces nothing more. */
  readonly has_ended: boolean;
  readonly retry_after_ms: number | undefined;
  /** The upstream's body, truncated; goes to `error.metadata.raw`. */
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

/** Decodes one stream, with state of its own. Synchronous. */
export interface StreamDecoder {
  /** Throws `UpstreamError` for an error event or a frame that is not of this wire. */
  push(frame: Frame): ChatChunk[];
  /** True once the wire's own end of an answer, or of a failed one, was received: a connection that closes now loses nothing. */
  isWhole(): boolean;
  /**
   * Call at the end of the bytes: closes open slots, infers a missing finish reason if the wire shows a complete answer, emits usage.
   * Throws `UpstreamError` (`unavailable`) if the stream was cut short.
   */
  end(): ChatChunk[];
}

/** Counts the tokens of a prompt without answering it, free of charge. */
export interface TokenCounter {
  /** The counting request for a request that was encoded for the endpoint. */
  request(encoded: EncodedRequest, endpoint: Pick<DialectEndpoint, 'quirks' | 'upstream_model'>): EncodedRequest;
  /** The count and the other fields of the answer. Throws `UpstreamError` (`invalid_response`). */
  read(body: JsonValue): JsonObject & { input_tokens: number };
}

/** Patterns of payloads whose prompt may be as long as the model's context. At most 1,024 characters match. */
export interface UnseenMedia {
  pattern: RegExp;
  /** Matches if all of it may be billed as audio; otherwise a part. */
  sound: RegExp;
}

/** The endpoint's name and quirks, which describe the model behind it. */
export type ModelName = Pick<DialectEndpoint, 'upstream_model' | 'quirks'>;

/**
 * The most that a request can cost beyond what its text shows. Money is held by these facts. All members are required, so that a new
 * wire must state each of them; `provider-tools.ts` and `worst-case.ts` have what wires share.
 */
export interface WorstCase {
  /** Matches a payload that makes the provider read content it only points at; undefined if the wire has no such field. */
  unseenMedia: UnseenMedia | undefined;
  /** The number of images that a native object of this wire points at. */
  picturesIn(block: JsonObject): number;
  /** The most uses of each tool that the provider runs by itself; empty if it runs none. */
  toolUses(request: ToolRequest): number[];
  /** Whether an answer is billed for at most one search. */
  billsOneSearch(model: ModelName): boolean;
  /** Whether a prompt without a cache mark may be billed at the price for cache writes. */
  unmarkedCacheWrites: boolean;
  /** How often the prompt is read and an answer of the output bound is generated. */
  passes(body: JsonObject): number;
  /** The most output tokens that are billed in addition to the output bound. */
  tokensBesideBound(body: JsonObject, endpoint: ModelName & Pick<DialectEndpoint, 'max_completion_tokens'>): number;
  /** Fields that multiply the price of every token by factors that no price list has; `provider.options` cannot set them. */
  unpricedFields: ReadonlySet<string>;
  /** The restrictions on tools that the provider runs, for callers with a spend limit. */
  spendBounds: SpendBounds;
}

/** The part of an encoded request that makes the provider run tools. */
export interface ToolRequest {
  /** The tools of the request in the inner language. */
  tools: readonly InnerTool[];
  body: JsonObject;
  upstream_model: string;
}

/** Rewrites what the provider runs so that its cost has a bound. Each method returns the same object if nothing changes. */
export interface SpendBounds {
  /** A tool's declaration; undefined if it is dropped. */
  declaration(declared: JsonObject, field: string, report: Report[]): JsonObject | undefined;
  /** A native block of the conversation; undefined if it is dropped. */
  block(block: JsonObject, field: string, report: Report[]): JsonObject | undefined;
  /** The encoded body, which `provider.options` may have changed. */
  body(body: JsonObject, report: Report[]): JsonObject;
}

/** What a wire accepts. Endpoints are chosen and requests are fitted to them by these facts. All members are required, as above. */
export interface WireFacts {
  /** Quirks of an endpoint of a public model (`author/slug`), unless the provider's row or the operator sets them. */
  defaultQuirks(model: string): Quirks;
  /** Quirks that the upstream's name of a model implies. They override those of the provider's row. */
  modelQuirks(upstreamModel: string): Quirks;
  /** Parameters that the wire, or this model on it, has no field for. */
  lackingParameters(model: ModelName): readonly EndpointParameter[];
  /** Whether endpoints have their own names for reasoning fields and efforts (`replay_reasoning`, `reasoning_efforts`). */
  variesReasoningFields: boolean;
  /** Whether servers refuse parameters that a model does not support. */
  refusesUnsupported: boolean;
  /** Whether the provider caches prompts without a hint in the request. */
  cachesUnasked: boolean;
  /** Whether one request may produce several choices (`n`). */
  takesSeveralChoices: boolean;
  /** Whether an output bound of 0 is accepted: the prompt is read and nothing is generated. */
  takesZeroOutput: boolean;
  /** Whether any http(s) address may be sent in place of media. Otherwise media are bytes, or addresses on the provider's platform. */
  takesAddresses: boolean;
  /** Whether the provider lists its models below the address of calls: a test of a credential that costs nothing. */
  listsModels: boolean;
  /** Whether the wire has the field `web_search_options`. */
  takesSearchOptions: boolean;
  /** The most messages of a request; undefined if no bound is known. */
  messagesMax: number | undefined;
  /** Whether a native tool is the provider's own web search. */
  isSearchTool(block: JsonObject): boolean;
  /** Whether turns may carry opaque reasoning state that the provider accepts back. */
  carriesState(quirks: Quirks): boolean;
  /** The least output bound of an encoded request; 0 if any is accepted. Lower bounds are not sent. */
  leastOutput(body: JsonObject, request: ChatRequest): number;
}

/** One chat wire. Pure: it does no I/O and reads no clock and no environment, so a transcript is a complete test of it. */
export interface ChatDialect {
  wire: Wire;
  facts: WireFacts;
  worstCase: WorstCase;
  frames: 'sse' | 'aws-event-stream';
  /**
   * Fields of a body that neither an operator's `extra_body` nor a client's `provider.options` may set. `a.b` means the
   * field `b` of the object `a`, whose other fields are merged one by one.
   */
  reserved: ReadonlySet<string>;
  /** The media that must be fetched first. Empty if the wire accepts URLs as they are. */
  requiredMedia(request: ChatRequest, endpoint: DialectEndpoint): MediaNeed[];
  /**
   * Builds the upstream request. `request.stream` says whether a stream is wanted. Throws `GatewayError` 400 for content that no
   * endpoint of this wire can carry and that must not be dropped. Never changes `request`.
   */
  encodeRequest(request: ChatRequest, endpoint: DialectEndpoint, options: EncodeOptions): EncodedRequest;
  /** The output bound in a body, under this wire's name for it; undefined if the body has none. */
  outputBound(body: JsonObject): number | undefined;
  /** The service tier that a body requests; undefined if none. */
  serviceTier(body: JsonObject): string | undefined;
  /** Not set if the wire does not count tokens. */
  tokenCounter?: TokenCounter;
  /** Set if a credential has several parts, as JSON text. */
  json_credentials?: true;
  /** The base URL for a credential that names one of the provider's hosts. Not set if it is always the provider's. */
  addressFor?(baseUrl: string, credential: string | undefined): string;
  /** Whether the credential's headers sign the payload. Not set if they never do. */
  signsPayload?(credential: string | undefined): boolean;
  /** The headers that carry the credential. Throws `UpstreamError` (`credential`) if the credential does not fit this wire. */
  authorize(
    credential: string | undefined,
    request: SignableRequest,
    nowMs: number,
    quirks: Quirks,
  ): Record<string, string>;
  /**
   * All chunks of a whole answer; accumulated, they are that answer. They are added to `chunks`, which has those before the fault if it
   * throws `UpstreamError` (`invalid_response`, or the class of an error inside a 200).
   */
  decodeResponse(body: JsonValue, state: AttemptState, chunks?: ChatChunk[]): ChatChunk[];
  /**
   * The usage that a whole answer reports, whatever else it has; undefined if none. May throw, like `decodeResponse`, for a usage that
   * cannot be read.
   */
  reportedUsage(body: JsonValue, state: AttemptState): TokenClasses | undefined;
  createStreamDecoder(state: AttemptState): StreamDecoder;
  /** The failure that an error answer describes. `body` is the text as received: JSON, an HTML page, or empty. Never throws. */
  decodeError(status: number, headers: Record<string, string | string[] | undefined>, body: string): UpstreamError;
}
