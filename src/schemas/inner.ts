/**
 * The only inner language: the public chat-completion schema with one typed extension point a level.
 *
 * Flat fields are the only place of text; an extension (`ext`) holds what the chat schema has no place for: the order
 * of blocks, blocks of unknown kinds, and the remainder of a wire's objects. Extensions and `native` objects never
 * reach a client and are never taken from one.
 */
import type { JsonObject, JsonValue } from './json.ts';

/** The wires that providers speak: each has a dialect (`providers/dialects.ts`). */
export const wires = [
  'openai-chat',
  'openai-responses',
  'anthropic-messages',
  'gemini-generate-content',
  'bedrock-converse',
  'cohere-chat',
] as const;
export type Wire = (typeof wires)[number];

/** The wire whose words the inner language uses: that of an extension whose origin is not known. */
export const CHAT_WIRE = 'openai-chat' satisfies Wire;

/** The remainder of one wire object, by its wire names, values untouched. Only code of the same wire reads `rest`. */
export interface Ext {
  wire: Wire;
  rest: JsonObject;
}

/** A whole object of a kind the chat schema does not know, as received. Allowed as content part, tool and slot. */
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
  /** Which vendor's form this is; `unknown` when not told. Never null in answers. */
  format?: string | null;
  id?: string | null;
  /** Ordinal of the detail in the message, from 0; all deltas of one detail repeat it. */
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
  /** Offsets in Unicode code points of the joined text; 0 and 0 when not known. */
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

/** One block of an assistant turn, in the order the model made them. Absent order means: reasoning, text, images, audio, calls. */
export interface Slot {
  kind: 'reasoning' | 'text' | 'refusal' | 'image' | 'audio' | 'call' | 'native';
  /** Index in `reasoning_details`, content parts, `images`, `tool_calls` or `ext.natives`; 0 for refusal and audio. */
  at: number;
  /** Entries taken, default 1. */
  span?: number;
  /** The block's remainder. */
  ext?: Ext;
}
export interface MessageExt extends Ext {
  /** Whose account made the turn, where that is known: its opaque reasoning state may be of use nowhere else. */
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
  /** Clients of the public service also put the hint on a whole message: it is then one on its last block. */
  cache_control?: CacheControl | null;
  ext?: MessageExt;
}

export interface FunctionTool {
  type: 'function';
  function: { name: string; description?: string; parameters?: JsonObject; strict?: boolean | null };
  cache_control?: CacheControl;
  ext?: Ext;
}
/** A tool that the gateway or the provider runs itself, such as `gateway:web_search`. */
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
  /** Go on with an answer that broke off at the next endpoint that can. */
  continuation?: boolean | null;
  /** Ask a second endpoint as well where the first is late. */
  hedge?: boolean | null;
  /** Per provider slug: an object spread into the upstream's body. */
  options?: Record<string, JsonObject> | null;
}

/** A run of one of the gateway's tools, as clients may see it. */
export interface ShownRun {
  name: string;
  query: string;
}

/** What a run returned. */
export interface RunResult {
  sources: readonly { url: string; title: string; content: string }[];
  has_failed?: true;
}

/** Writes the runs of the gateway's tools in one answer, in the form of its client's API. */
export interface RunWriter {
  /** Runs begin, in this order; undefined: that run is not shown. */
  begin(runs: readonly (ShownRun | undefined)[]): ChatChunk[];
  /** The same runs are over. */
  end(results: readonly RunResult[]): ChatChunk[];
}

/** What differs by client API behind its own folder: data, so that nothing else branches on a client API. */
export interface ClientProfile {
  name: string;
  /** The wire whose turns pass through this API whole, there and back, so that they need no seal; undefined: none. */
  ownWire: Wire | undefined;
  /** Clients send former turns back, with the seals in them. */
  returnsTurns: boolean;
  /** Answers have one block open at a time: what is opaque of a block cannot come after it. */
  isSequential: boolean;
  /** The request is one text (`prompt`), not messages. */
  hasPrompt: boolean;
  /** Answers have a place for the texts of files. */
  showsFiles: boolean;
  /** A forced choice of a tool that the endpoint's wire does not know is refused, not dropped. */
  refusesUnknownChoice: boolean;
  /** Undefined: runs of the gateway's tools are not shown. `takeSlot` gives the ordinal of a new block; `stem` makes ids unique. */
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

/** Which client API a request came through, and what it carried that the chat schema has no place for. */
export interface RequestExt extends Ext {
  client: ClientProfile;
  seals?: 'emit' | 'off';
  /** Features by the names of the wire's beta header, as the client asked for them. Which go upstream, the dialect decides. */
  betas?: readonly string[];
  /** The facts about the messages when they were last collected. Read them with `contentsOf`. */
  contents?: RequestContents;
  /** Walking over the request takes long: each walk has a turn of the loop of its own. */
  is_long?: true;
  /** How long its definitions of tools are as JSON, about, where it is long. */
  tools_chars?: number;
}

/**
 * A request after the door: `messages` is always there, legacy forms are rewritten (`prompt`, `functions`).
 * Fields that the schema does not know stay flat, as sent (`[field: string]`), and reach only `openai-chat` upstreams.
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
  /** How many choices are wanted. Absent: one. */
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

/** Counts of disjoint classes. `undefined` means not told by the upstream; 0 means told to be zero. */
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
  /** Sound that was transcribed, in milliseconds: for prices by its length. */
  audio_ms?: number;
  counts?: { web_search?: number; web_fetch?: number; code?: number };
  /** Work of other models inside the same call, billed at their own price. */
  extra?: { model: string; classes: TokenClasses }[];
  /** True when the gateway counted, not the upstream. */
  estimated?: true;
}

export type FinishReason = 'tool_calls' | 'stop' | 'length' | 'content_filter' | 'error';

export interface ResponseExt extends Ext {
  stopSequence?: string;
  /** Absent until the upstream told it. */
  usage?: TokenClasses;
  /** The upstream's own id of this answer; kept in the generation record only. */
  requestId?: string;
}

export interface ChoiceError {
  code: number;
  message: string;
  metadata?: JsonObject;
}

/** One answer to a request. */
export interface Choice {
  index: number;
  message: Message & { role: 'assistant' };
  finish_reason: FinishReason | null;
  native_finish_reason: string | null;
  logprobs?: JsonValue;
  error?: ChoiceError;
}

/** A whole answer: one choice, or several where `n` asked for them. Envelope fields (id, model, provider) are the client encoder's. */
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
  /** On the call's first delta only. */
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

/** Which block this chunk's delta belongs to. One chunk carries at most one slot; the decoder splits. */
export interface SlotEvent {
  /** Ordinal of the block in the turn, from 0, in order of opening, never reused. */
  n: number;
  /** On the slot's first chunk. */
  open?: { kind: Slot['kind']; ext?: Ext; native?: Native };
  /** Native slots and citation deltas: the wire's own delta object. */
  raw?: JsonObject;
  /** On the slot's last chunk: the final remainder. */
  close?: { ext?: Ext; native?: Native };
}
export interface ChunkExt {
  slot?: SlotEvent;
  /** On the first chunk (ids, input usage) and on the last (final usage). The later one wins, field by field. */
  response?: Partial<ResponseExt>;
}

/** One step of a streamed answer. Usage travels in `ext.response.usage`, in one last chunk; the client encoder makes it public. */
export interface ChatChunk {
  delta: Delta;
  /** Which choice it is of. Absent: the first. */
  choice?: number;
  finish_reason?: FinishReason | null;
  native_finish_reason?: string | null;
  logprobs?: JsonValue;
  /** Why the answer ended with `finish_reason: 'error'`, where the upstream said so inside a whole answer. */
  error?: ChoiceError;
  system_fingerprint?: string | null;
  service_tier?: string | null;
  ext?: ChunkExt;
}
