import type { SoundFormat } from '../audio/sound.ts';
import type { Wire } from '../schemas/inner.ts';
import type { JsonObject } from '../schemas/json.ts';
import type { EmbeddingWire } from './embeddings/dialect.ts';
import type { TranscriptionWire } from './transcription/dialect.ts';

/**
 * Named options of a dialect: how one provider's wire differs from the plain one. Every option is off when absent.
 * A quirk is never an `if (provider === …)` in code.
 */
export interface Quirks {
  /**
   * Is given no addresses: whatever a request points at is fetched and checked here, and sent as data. On by default for local and
   * declared servers, whose network the addresses of strangers must not reach.
   */
  inline_media?: boolean;
  /** Goes on with a trailing assistant message as it stands, and answers with what comes after it. */
  prefill?: boolean;
  /**
   * How it searches the web itself, by whose way of being asked for it: a tool of its wire (`openai`, `xai`, `anthropic`, `google`),
   * `web_search_options` (`search_model`), or always (`perplexity`). Of no effect on other wires than that way's. Default: not at all.
   */
  native_search?: 'openai' | 'xai' | 'anthropic' | 'google' | 'search_model' | 'perplexity';
  /**
   * Has no native tools, whatever its model could do: a server without a parser of tool calls. Tools are described in the prompt, and
   * calls are read from the text of the answer.
   */
  no_native_tools?: boolean;

  // openai-chat
  /** Field that carries the output bound. Default: as the client sent it. */
  output_bound_field?: 'max_tokens' | 'max_completion_tokens';
  /** How system and developer messages are named. Default: as sent. */
  system_role?: 'system' | 'developer' | 'user';
  /** Takes the text of system messages and of tools' results as a string, not as a list of parts (Groq). */
  plain_text?: boolean;
  /** Refuses a tool's schema without `properties`: empty ones are added. */
  tool_properties?: boolean;
  /** The highest temperature that is taken, where it is below the 2 of OpenAI. */
  temperature_max?: number;
  /** How many stop sequences it takes, where that is not the 4 of OpenAI. */
  stop_sequences_max?: number;
  /** Does not know `stream_options.include_usage`. */
  no_stream_usage?: boolean;
  /** Parameters the upstream refuses: dropped with a report. */
  refused_parameters?: readonly string[];
  /** Takes `cache_control` on parts and tools. */
  cache_control?: boolean;
  /** How reasoning of former turns goes back. Default: not at all. */
  replay_reasoning?: 'reasoning_content' | 'reasoning' | 'reasoning_details' | 'thinking_part';
  /** `<think>…</think>` at the start of content is reasoning. */
  think_tags?: boolean;
  /** Literal think tags inside the reasoning field are stripped. */
  think_in_reasoning?: boolean;
  /**
   * How a reasoning wish is told. Default: `reasoning_effort`. `reasoning`: the whole object (another gateway);
   * `thinking`: `{type: enabled | disabled}` (Z.AI, Moonshot), `thinking_effort`: the same with `reasoning_effort` beside it
   * (DeepSeek); `enable_thinking` with `thinking_budget` (Alibaba).
   */
  reasoning_field?: 'reasoning_effort' | 'reasoning' | 'thinking' | 'thinking_effort' | 'enable_thinking' | 'none';
  /**
   * While it thinks, the upstream refuses former turns that called tools without `reasoning_content`. Where a client lost
   * it: `off` turns the thinking off, `placeholder` puts a mark in its place.
   */
  lost_reasoning?: 'off' | 'placeholder';
  /**
   * While it thinks, the upstream refuses `tool_choice` of `required` and of a tool. Thinking that nobody asked for gives way;
   * where it was asked for, or the model always thinks, the choice is left to the model.
   */
  thinking_or_forced_tool?: boolean;
  /** Wants user and assistant by turns, after system messages at the beginning alone: neighbours of one role are merged (Perplexity). */
  alternating_roles?: boolean;
  /** Reads no `name` of messages but of tools: it is written in front of the text. Default: on, but for OpenAI's models. */
  names_in_text?: boolean;
  /** A JSON format goes without a stream, a JSON schema without tools as well (Groq): answers come whole, the schema gives way. */
  format_alone?: boolean;
  /** `logprobs` is a number of alternatives (Together). */
  logprobs_count?: boolean;
  /** Goes on with a trailing assistant message only when told to: `continue_final_message` (vLLM, SGLang). */
  continue_final_message?: boolean;
  /** Mistral and DeepSeek: a trailing assistant message needs `prefix: true`. */
  prefill_prefix?: boolean;
  /** Mistral: `tool_choice: "any"` stands for `required`. */
  tool_choice_any?: boolean;
  /** OpenAI's own: `tool_choice: {type: "allowed_tools"}` is understood; other servers are sent those tools alone. */
  allowed_tools?: boolean;
  /** Tool call ids must match this: `mistral9` is nine of [A-Za-z0-9]. */
  tool_call_id?: 'mistral9';
  /** Mistral: `random_seed` in place of `seed`. */
  random_seed?: boolean;
  /** Mistral: an assistant message must stand between tool and user messages. */
  assistant_between?: boolean;
  /** Mistral: files by URL go as `document_url`. */
  document_url?: boolean;
  /** Header that carries the credential in place of `authorization: Bearer`. */
  api_key_header?: string;
  /** Query string appended to the path, such as `api-version=2024-10-21`. */
  query?: string;
  /** Header in which the upstream tells its cached prompt tokens (Fireworks). */
  cached_tokens_header?: string;
  /** In place of `/chat/completions`; `{model}` stands for the upstream model: Azure's `/deployments/{model}/chat/completions`. */
  path?: string;
  /** The values of `reasoning_effort` that the model takes, weakest first. Default: all. */
  reasoning_efforts?: readonly string[];
  /** Does not fetch images by URL: they are fetched here and sent as data URLs. */
  inline_images?: boolean;
  /** Google's compatible endpoint: thought signatures go back as `extra_content` of the tool call. */
  google_signatures?: boolean;
  /** Fields added to every request (Groq's `reasoning_format`, vLLM's `chat_template_kwargs`); the encoder's own win. */
  extra_body?: JsonObject;

  // openai-responses
  /** Whose reasoning items these are: they go back to the same vendor only. Default: `openai-responses-v1`. */
  reasoning_format?: 'openai-responses-v1' | 'azure-openai-responses-v1' | 'xai-responses-v1';
  /** The model has no encrypted reasoning: asking for it is refused. */
  no_encrypted_reasoning?: boolean;
  /** Takes reasoning items back that have no encrypted content (DeepSeek). */
  plain_reasoning_items?: boolean;
  /** The summary asked for where a client names none. Default: none, since OpenAI refuses it to organizations that it has not verified. */
  reasoning_summary?: 'auto' | 'concise' | 'detailed';
  /** No message may stand between the calls of a turn and their results (DeepSeek): the turn's texts go before its calls. */
  text_before_calls?: boolean;
  /** Runs tools for clients that are billed by what has no price here: pictures, sandboxes, searches of stored files. */
  unpriced_tools?: boolean;
  /** Searches X, and takes a filter of what is searched there (xAI). */
  x_search?: boolean;

  // openai-embeddings
  /** What one request for embeddings may hold, where that differs from OpenAI's. */
  embedding_batch?: { inputs_max?: number; tokens_max?: number };
  /** Embeds texts alone, and always answers with floats: no inputs of tokens, no `encoding_format`. */
  embedding_texts_only?: boolean;
  /** Mistral: `output_dimension` in place of `dimensions`. */
  dimensions_field?: 'dimensions' | 'output_dimension';
  /** NVIDIA: needs `input_type`, `query` or `passage`. */
  embedding_purpose?: boolean;

  // gemini-generate-content, anthropic-messages
  /**
   * Vertex AI: the base URL ends in `/projects/…/locations/…/publishers/…`, and the credential is a Google account as JSON
   * text, which is exchanged for a token, or an API key.
   */
  google_cloud?: boolean;
  /** Where its tokens are got, in place of Google's own address. */
  token_url?: string;

  // openai-transcription
  /** The formats of sound that it takes. Default: OpenAI's. */
  transcription_formats?: readonly SoundFormat[];
  /** Mistral: knows neither `prompt` nor `response_format`; times come where they are asked for. */
  transcription_plain?: boolean;
  /** Bills a shorter sound as if it lasted so long. */
  transcription_seconds_min?: number;

  // anthropic-messages
  /** The model has no sampling parameters (temperature, top_p, top_k are refused). */
  no_sampling?: boolean;
  /** Takes one of temperature and top_p, not both. */
  one_sampling?: boolean;
  /** How thinking is asked for. Default: `manual` (budget_tokens). */
  thinking?: 'manual' | 'adaptive' | 'none';
  /** The highest `output_config.effort` the model takes. */
  effort_max?: 'high' | 'xhigh' | 'max';
  /** The model refuses a trailing assistant message. */
  no_prefill?: boolean;
  /** Takes `role: system` in the middle of a conversation. */
  mid_system?: boolean;
  /** Features beside the known ones that clients may ask for in `anthropic-beta`: names with or without their date. */
  betas?: readonly string[];
  /** Lacks `output_config.format` and `strict`: a JSON schema goes through a forced tool. */
  json_schema_shim?: boolean;
  /** Takes `max` effort but no `xhigh`. */
  no_xhigh?: boolean;
  /** Thinks also when nothing is said of it; `always`: it cannot be turned off. */
  thinking_default?: 'on' | 'always';
  /** Leaves the text of its thinking out unless `display: "summarized"` is asked for. */
  thinking_hidden?: boolean;
  /** Refuses `tool_choice` of `any` and `tool`. */
  no_forced_tool?: boolean;
}

/** What a provider does with data, by the operator's word or what it publishes; `unknown` counts as the worst. */
export interface DataPolicy {
  training: boolean | 'unknown';
  /** Days kept; 0 is zero retention. */
  retention_days: number | 'unknown';
}

/** A company or deployment that serves models: a row of data. */
export interface Provider {
  slug: string;
  /** Display name, as in `provider_name`. */
  name: string;
  dialect: Wire;
  base_url: string;
  /** What we show the upstream; undefined when it needs none. Never logged, never sent to a client. */
  credential: string | undefined;
  quirks: Quirks;
  /** How it is asked for embeddings, where its chat wire does not tell. */
  embeddings_dialect?: EmbeddingWire | undefined;
  /** The same for the text of sounds. */
  transcription_dialect?: TranscriptionWire | undefined;
  data_policy: DataPolicy;
  /** Models that what it publishes is not of, and what holds for them; see `dataPolicyOf`. */
  data_policy_apart?: { models: RegExp; policy: DataPolicy };
  /** Whether closing the connection ends the provider's work and its bill. */
  abort_stops_billing: boolean;
  /** Where the provider can be asked what came of an attempt, as the sandbox can; undefined: nowhere. */
  attempts_url?: string | undefined;
  /**
   * Of the bundled endpoints with a variant (`eu`, `turbo`) only these are the provider's; undefined: all. Those without a
   * variant always are.
   */
  variants?: readonly string[];
  /** Headers sent with every request. */
  headers: Record<string, string>;
  /** Makes answers up: nobody is sent to it unasked. */
  is_sandbox?: true;
  /** The gateway has no credential for it: it serves those alone who bring their own. */
  is_own_only?: true;
}

/** What a provider does with the data of calls to one of its endpoints. */
export function dataPolicyOf(
  { data_policy: dataPolicy, data_policy_apart: apart }: Pick<Provider, 'data_policy' | 'data_policy_apart'>,
  model: { canonical_slug: string },
  endpoint: { upstream_model: string },
): DataPolicy {
  if (apart === undefined) return dataPolicy;
  return apart.models.test(`${model.canonical_slug} ${endpoint.upstream_model}`) ? apart.policy : dataPolicy;
}
