/**
 * The inner language: the public chat-completion schema with one typed extension point per level. All client APIs and dialects
 * translate from and to it.
 *
 * Text is in the flat fields only. An extension (`ext`) holds what the chat schema cannot express: the order of blocks, blocks of
 * unknown kinds, and the remainder of a wire's objects. Extensions and `native` objects never reach a client and are never accepted
 * from one.
 */
import type { JsonObject, JsonValue } from './json.ts';

/** The wires that providers speak. Each has a dialect (`providers/dialects.ts`). */
export const wires = [
  'openai-chat',
  'openai-responses',
  'anthropic-messages',
  'gemini-generate-content',
  'bedrock-converse',
  'cohere-chat',
] as const;
export type Wire = (typeof wires)[number];

/** The wire whose terms the inner language uses, and the default origin of an extension. */
export const CHAT_WIRE = 'openai-chat' satisfies Wire;

/** The remainder of one wire object: its fields by their wire names, values unchanged. Only code of the same wire reads `rest`. */
export interface Ext {
  wire: Wire;
  rest: JsonObject;
}

/** A complete object of a kind that the chat schema does not know, as received: a content part, tool or slot. */
export interface Native {
  type: 'native';
  wire: Wire;
  block: JsonObject;
}

export interface CacheControl {
  type: 'ephemeral';
  ttl?: '5m' | '1h';
}

export interface TextPart {
  type: 'text';
  text: string;
  cache_control?: CacheControl;
  ext?: Ext;
}
export interface ImagePart {
  type: 'image_url';
  image_url: { url: string; detail?: string };
  cache_control?: CacheControl;
  ext?: Ext;
}
export interface FilePart {
  type: 'file';
  /** `file_data` is a data URL or an http(s) URL. */
  file: { file_data?: string; file_id?: string; filename?: string };
  cache_control?: CacheControl;
  ext?: Ext;
}
export interface AudioPart {
  type: 'input_audio';
  input_audio: { data: string; format: string };
  cache_control?: CacheControl;
  ext?: Ext;
}
export interface VideoPart {
  type: 'video_url';
  video_url: { url: string };
  cache_control?: CacheControl;
  ext?: Ext;
}
export type InnerPart = TextPart | ImagePart | FilePart | AudioPart | VideoPart | Native;

export type ReasoningDetail = (
  | { type: 'reasoning.text'; text?: string | null; signature?: string | null }
  | { type: 'reasoning.summary'; summary: string }
  | { type: 'reasoning.encrypted'; data: string }
) & {
  /** The format of the vendor; `unknown` if it is not stated. Never null in answers. */
  format?: string | null;
  id?: string | null;
  /** Ordinal of the detail in the message, from 0. All deltas of a detail repeat it. */
  index?: number;
};

export interface ToolCall {
  id: string;
  type: 'function';
  /** `arguments` is a JSON string. */
  function: { name: string; arguments: string };
  ext?: Ext;
}

export interface UrlCitation {
  type: 'url_citation';
  /** Offsets in Unicode code points of the joined text; 0 and 0 if unknown. */
  url_citation: { url: string; title?: string; content?: string; start_index: number; end_index: number };
}
export type Annotation = UrlCitation | ({ type: 'file' } & JsonObject);

export interface OutputImage {
  type: 'image_url';
  image_url: { url: string };
  index?: number;
}
export interface OutputAudio {
  id?: string;
  data?: string;
  transcript?: string;
  expires_at?: number;
}

/** One block of an assistant turn, in the order in which the model made them. The default order is reasoning, text, images, audio, calls. */
export interface Slot {
  kind: 'reasoning' | 'text' | 'refusal' | 'image' | 'audio' | 'call' | 'native';
  /** Index in `reasoning_details`, content parts, `images`, `tool_calls` or `ext.natives`; 0 for refusal and audio. */
  at: number;
  /** Number of entries, 1 by default. */
  span?: number;
  /** The remainder of the block. */
  ext?: Ext;
}
export interface MessageExt extends Ext {
  /** The provider account that made the turn, if known. Its opaque reasoning state may be invalid for any other account. */
  issuer?: string;
  order?: Slot[];
  natives?: Native[];
}

export type Role = 'system' | 'developer' | 'user' | 'assistant' | 'tool';

export interface Message {
  role: Role;
  content?: string | InnerPart[] | null;
  name?: string;
  tool_call_id?: string;
  tool_calls?: ToolCall[];
  refusal?: string | null;
  reasoning?: string | null;
  reasoning_details?: ReasoningDetail[];
  images?: OutputImage[];
  audio?: OutputAudio | null;
  annotations?: Annotation[];
  /** Clients of the public service may also set it on a whole message; it then applies to the last block. */
  cache_control?: CacheControl | null;
  ext?: MessageExt;
}

export interface FunctionTool {
  type: 'function';
  function: { name: string; description?: string; parameters?: JsonObject; strict?: boolean | null };
  cache_control?: CacheControl;
  ext?: Ext;
}
/** A tool that the gateway or the provider runs, such as `gateway:web_search`. */
export interface ServerTool {
  type: string;
  parameters?: JsonObject;
}
export type InnerTool = FunctionTool | Native | ServerTool;

export type ToolChoice =
  | 'none'
  | 'auto'
  | 'required'
  | { type: 'function'; function: { name: string } }
  | ({ type: string } & JsonObject);

export type ResponseFormat =
  | { type: 'text' }
  | { type: 'json_object' }
  | {
      type: 'json_schema';
      json_schema: { name: string; description?: string; strict?: boolean | null; schema?: JsonObject };
    }
  | ({ type: string } & JsonObject);

export type ReasoningEffort = 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max';

export interface ReasoningOptions {
  effort?: ReasoningEffort | null;
  max_tokens?: number | null;
  exclude?: boolean | null;
  enabled?: boolean | null;
  summary?: string | null;
}

export interface ProviderPreferences {
  order?: string[] | null;
  only?: string[] | null;
  ignore?: string[] | null;
  allow_fallbacks?: boolean | null;
  require_parameters?: boolean | null;
  data_collection?: 'allow' | 'deny' | null;
  zdr?: boolean | null;
  enforce_distillable_text?: boolean | null;
  quantizations?: string[] | null;
  sort?: string | { by?: string | null; partition?: string | null } | null;
  /** `prompt` and `completion` in USD per million tokens, the others in USD per unit. */
  max_price?: Partial<Record<'prompt' | 'completion' | 'request' | 'image' | 'audio', number | string>> | null;
  preferred_min_throughput?: JsonValue;
  preferred_max_latency?: JsonValue;
  /** Lets the next capable endpoint continue an answer that broke off. */
  continuation?: boolean | null;
  /** Sends the request to a second endpoint as well if the first one is late. */
  hedge?: boolean | null;
  /** Per provider slug: an object spread into the upstream's body. */
  options?: Record<string, JsonObject> | null;
}

/** A run of one of the gateway's tools, as it is shown to clients. */
export interface ShownRun {
  name: string;
  query: string;
}

/** The result of a run. */
export interface RunResult {
  sources: readonly { url: string; title: string; content: string }[];
  has_failed?: true;
}

/** Writes the runs of the gateway's tools into an answer, in the form of the client's API. */
export interface RunWriter {
  /** Called when runs begin, in this order. A run that is undefined is not shown. */
  begin(runs: readonly (ShownRun | undefined)[]): ChatChunk[];
  /** Called when the same runs have ended. */
  end(results: readonly RunResult[]): ChatChunk[];
}

/** The differences between client APIs that matter outside their folders, as data, so that no other code branches on a client API. */
export interface ClientProfile {
  name: string;
  /** The wire whose turns pass through this API unchanged in both directions, and so need no seal; undefined if none. */
  ownWire: Wire | undefined;
  /** Clients send former turns back, including the seals in them. */
  returnsTurns: boolean;
  /** Answers have one block open at a time: the opaque state of a block cannot follow a later block. */
  isSequential: boolean;
  /** The request is one text (`prompt`) instead of messages. */
  hasPrompt: boolean;
  /** Answers can contain the texts of files. */
  showsFiles: boolean;
  /** A forced choice of a tool that the endpoint's wire does not know is refused instead of dropped. */
  refusesUnknownChoice: boolean;
  /** The last event of a stream repeats the probabilities of tokens, which are kept until then. */
  repeatsProbabilities: boolean;
  /** `takeSlot` returns the ordinal of a new block; `stem` makes ids unique. Undefined if runs of the gateway's tools are not shown. */
  createRunWriter: ((takeSlot: () => number, stem: string) => RunWriter) | undefined;
}

/** Facts about the messages of a request, which `contentsOf` (`contents.ts`) collects in one walk. */
export interface RequestContents {
  /** The list that the facts are about. */
  readonly messages: readonly Message[];
  /** Characters of all texts in the contents. */
  readonly chars: number;
  /** Number of parts other than text and native parts, and how many of them are images and sounds. */
  readonly media: number;
  readonly images: number;
  readonly sounds: number;
  readonly has_files: boolean;
  /** Modalities of the parts other than text and files, each once, in order. */
  readonly kinds: readonly string[];
  /** Whether there are native objects of one wire, as parts or beside them. */
  readonly has_natives: boolean;
  /** Whether there is anything but text: parts, images that a model made, native objects. */
  readonly has_more: boolean;
  /** Whether there are tool calls or results of tools. */
  readonly has_calls: boolean;
  /** Whether there is reasoning or a tool call of a former turn of a model. */
  readonly is_stateful: boolean;
  /** Whether the account that issued the opaque state of a turn is known. */
  readonly is_issued: boolean;
}

/** The client API of a request, and what the request contained that the chat schema cannot express. */
export interface RequestExt extends Ext {
  client: ClientProfile;
  seals?: 'emit' | 'off';
  /** Names of features in the wire's beta header, as the client requested them. The dialect decides which are sent upstream. */
  betas?: readonly string[];
  /** The facts about the messages when they were last collected. Read them with `contentsOf`. */
  contents?: RequestContents;
  /** Set if walking over the request takes long: each walk then takes its own turn of the event loop. */
  is_long?: true;
  /** Approximate length of the tool definitions as JSON; set if it is long. */
  tools_chars?: number;
}

/**
 * A request in the inner language: `messages` is always set, and legacy forms are rewritten (`prompt`, `functions`).
 * Fields that the schema does not know stay flat, as sent (`[field: string]`), and are sent only to `openai-chat` upstreams.
 */
export interface ChatRequest {
  messages: Message[];
  model?: string;
  models?: string[];
  route?: string | null;
  provider?: ProviderPreferences | null;
  stream?: boolean | null;
  max_tokens?: number | null;
  max_completion_tokens?: number | null;
  temperature?: number | null;
  top_p?: number | null;
  top_k?: number | null;
  min_p?: number | null;
  top_a?: number | null;
  frequency_penalty?: number | null;
  presence_penalty?: number | null;
  repetition_penalty?: number | null;
  seed?: number | null;
  /** The number of choices. Default: one. */
  n?: number;
  stop?: string | string[] | null;
  logit_bias?: Record<string, number> | null;
  logprobs?: boolean | null;
  top_logprobs?: number | null;
  response_format?: ResponseFormat | null;
  tools?: InnerTool[] | null;
  tool_choice?: ToolChoice | null;
  parallel_tool_calls?: boolean | null;
  reasoning?: ReasoningOptions | null;
  reasoning_effort?: ReasoningEffort | null;
  include_reasoning?: boolean | null;
  verbosity?: string | null;
  prediction?: { type: 'content'; content: string | TextPart[] } | null;
  modalities?: string[] | null;
  audio?: JsonObject | null;
  image_config?: JsonObject | null;
  web_search_options?: JsonObject | null;
  service_tier?: string | null;
  user?: string | null;
  metadata?: Record<string, string> | null;
  cache_control?: CacheControl | null;
  prompt_cache_key?: string | null;
  session_id?: string | null;
  plugins?: ({ id: string; enabled?: boolean } & JsonObject)[] | null;
  debug?: { echo_upstream_body?: boolean } | null;
  ext?: RequestExt;
  [field: string]: unknown;
}

/** Token counts of disjoint classes. `undefined`: not reported by the upstream; 0: reported as zero. */
export interface TokenClasses {
  in_uncached?: number;
  in_cache_read?: number;
  in_cache_write_5m?: number;
  in_cache_write_1h?: number;
  in_audio?: number;
  in_image?: number;
  out_text?: number;
  out_reasoning?: number;
  out_audio?: number;
  out_image?: number;
  /** Duration of transcribed audio in milliseconds, for prices by duration. */
  audio_ms?: number;
  counts?: { web_search?: number; web_fetch?: number; code?: number };
  /** Usage of other models in the same call, which has prices of its own. */
  extra?: { model: string; classes: TokenClasses }[];
  /** Set if the gateway counted instead of the upstream. */
  estimated?: true;
}

export type FinishReason = 'tool_calls' | 'stop' | 'length' | 'content_filter' | 'error';

export interface ResponseExt extends Ext {
  stopSequence?: string;
  /** Not set until the upstream reports it. */
  usage?: TokenClasses;
  /** The upstream's id of this answer. Stored only in the generation record. */
  requestId?: string;
}

export interface ChoiceError {
  code: number;
  message: string;
  metadata?: JsonObject;
}

/** One of the alternative answers to a request. */
export interface Choice {
  index: number;
  message: Message & { role: 'assistant' };
  finish_reason: FinishReason | null;
  native_finish_reason: string | null;
  logprobs?: JsonValue;
  error?: ChoiceError;
}

/** A whole answer: one choice, or several if `n` requests them. The encoder of the client API adds the envelope (id, model, provider). */
export interface ChatCompletion {
  choices: [Choice, ...Choice[]];
  created: number;
  system_fingerprint?: string | null;
  service_tier?: string | null;
  ext: ResponseExt;
}

export interface ToolCallDelta {
  /** Ordinal of the call in the turn, from 0. */
  index: number;
  /** Only on the first delta of the call. */
  id?: string;
  type?: 'function';
  function: { name?: string; arguments?: string };
}

export interface Delta {
  role?: 'assistant';
  content?: string | null;
  refusal?: string | null;
  reasoning?: string | null;
  reasoning_details?: ReasoningDetail[];
  tool_calls?: ToolCallDelta[];
  images?: OutputImage[];
  audio?: OutputAudio;
  annotations?: Annotation[];
}

/** The block that the delta of a chunk belongs to. A chunk carries at most one slot; decoders split deltas. */
export interface SlotEvent {
  /** Ordinal of the block in the turn, from 0, in order of opening. Never reused. */
  n: number;
  /** On the first chunk of the slot. */
  open?: { kind: Slot['kind']; ext?: Ext; native?: Native };
  /** For native slots and citation deltas: the delta object of the wire. */
  raw?: JsonObject;
  /** On the last chunk of the slot: its final remainder. */
  close?: { ext?: Ext; native?: Native };
}
export interface ChunkExt {
  slot?: SlotEvent;
  /** On the first chunk (ids, input usage) and the last (final usage). Later values replace earlier ones, field by field. */
  response?: Partial<ResponseExt>;
}

/** One step of a streamed answer. Usage is in `ext.response.usage` of one last chunk; the encoder of the client API publishes it. */
export interface ChatChunk {
  delta: Delta;
  /** Index of the choice. Default: the first. */
  choice?: number;
  finish_reason?: FinishReason | null;
  native_finish_reason?: string | null;
  logprobs?: JsonValue;
  /** The reason of `finish_reason: 'error'`, if the upstream states it inside a whole answer. */
  error?: ChoiceError;
  system_fingerprint?: string | null;
  service_tier?: string | null;
  ext?: ChunkExt;
}
