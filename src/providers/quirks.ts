import type { SoundFormat } from '../audio/sound.ts';
import type { JsonObject } from '../schemas/json.ts';

/**
 * Named options of a dialect: how a provider's variant of the wire differs from the plain one. Every option is off if not set.
 * Code branches on quirks, never on a provider's name.
 */
export interface Quirks {
  /**
   * Sends no addresses to the provider: the gateway fetches and checks the media of a request and sends them as data. On by default for
   * local and declared servers, which could otherwise be made to fetch addresses of their own network.
   */
  inline_media?: boolean;
  /** Continues a trailing assistant message, and answers with the continuation only. */
  prefill?: boolean;
  /**
   * How to request the provider's own web search: by a tool of its wire (`openai`, `xai`, `anthropic`, `google`), by
   * `web_search_options` (`search_model`), or always on (`perplexity`). No effect on wires that do not have it. Default: no search.
   */
  native_search?: 'openai' | 'xai' | 'anthropic' | 'google' | 'search_model' | 'perplexity';
  /**
   * Has no native tools, whatever its model could do: a server without a parser of tool calls. Tools are described in the prompt, and
   * calls are parsed from the text of the answer.
   */
  no_native_tools?: boolean;

  // openai-chat
  /** The field that carries the output bound. Default: as the client sent it. */
  output_bound_field?: 'max_tokens' | 'max_completion_tokens';
  /** The role of system and developer messages. Default: as sent. */
  system_role?: 'system' | 'developer' | 'user';
  /** Accepts the text of system messages and of tool results as a string only, not as a list of parts (Groq). */
  plain_text?: boolean;
  /** Refuses a tool's schema without `properties`: empty ones are added. */
  tool_properties?: boolean;
  /** The highest temperature that is accepted, if below OpenAI's 2. */
  temperature_max?: number;
  /** The most stop sequences, if other than OpenAI's 4. */
  stop_sequences_max?: number;
  /** Does not know `stream_options.include_usage`. */
  no_stream_usage?: boolean;
  /** Parameters that the upstream refuses: dropped with a report. */
  refused_parameters?: readonly string[];
  /** Accepts `cache_control` on parts and tools. */
  cache_control?: boolean;
  /** The field that sends reasoning of former turns back. Default: it is not sent. */
  replay_reasoning?: 'reasoning_content' | 'reasoning' | 'reasoning_details' | 'thinking_part';
  /** `<think>…</think>` at the start of content is reasoning. */
  think_tags?: boolean;
  /** Literal think tags inside the reasoning field are stripped. */
  think_in_reasoning?: boolean;
  /**
   * How the reasoning settings of a request are sent. Default: `reasoning_effort`. `reasoning`: the whole object (another gateway);
   * `thinking`: `{type: enabled | disabled}` (Z.AI, Moonshot); `thinking_effort`: the same with `reasoning_effort` beside it
   * (DeepSeek); `enable_thinking` with `thinking_budget` (Alibaba).
   */
  reasoning_field?: 'reasoning_effort' | 'reasoning' | 'thinking' | 'thinking_effort' | 'enable_thinking' | 'none';
  /**
   * While it thinks, the upstream refuses former turns that called tools without `reasoning_content`. If a client lost it: `off` turns
   * the thinking off, `placeholder` sends a placeholder text.
   */
  lost_reasoning?: 'off' | 'placeholder';
  /**
   * While it thinks, the upstream refuses a `tool_choice` that forces a call. Thinking is turned off unless the client requested it; if
   * the client did, or the model always thinks, the choice is left to the model.
   */
  thinking_or_forced_tool?: boolean;
  /** Requires user and assistant messages to alternate, after system messages at the beginning only: neighbours of one role are merged (Perplexity). */
  alternating_roles?: boolean;
  /** Ignores `name` except on tools: it is written in front of the text. Default: on, except for OpenAI's models. */
  names_in_text?: boolean;
  /** Accepts a JSON format only without a stream, and a JSON schema only without tools (Groq): answers are requested whole, the schema is dropped. */
  format_alone?: boolean;
  /** `logprobs` is a number of alternatives (Together). */
  logprobs_count?: boolean;
  /** Continues a trailing assistant message only if `continue_final_message` is set (vLLM, SGLang). */
  continue_final_message?: boolean;
  /** Mistral and DeepSeek: a trailing assistant message needs `prefix: true`. */
  prefill_prefix?: boolean;
  /** Mistral: `tool_choice: "any"` means `required`. */
  tool_choice_any?: boolean;
  /** OpenAI only: understands `tool_choice: {type: "allowed_tools"}`; other servers are sent those tools only. */
  allowed_tools?: boolean;
  /** Tool call ids must match this: `mistral9` is nine of [A-Za-z0-9]. */
  tool_call_id?: 'mistral9';
  /** Mistral: `random_seed` in place of `seed`. */
  random_seed?: boolean;
  /** Mistral: an assistant message is required between tool and user messages. */
  assistant_between?: boolean;
  /** Mistral: files by URL are sent as `document_url`. */
  document_url?: boolean;
  /** Header that carries the credential in place of `authorization: Bearer`. */
  api_key_header?: string;
  /** Query string appended to the path, such as `api-version=2024-10-21`. */
  query?: string;
  /** Header in which the upstream reports its cached prompt tokens (Fireworks). */
  cached_tokens_header?: string;
  /** Replaces `/chat/completions`; `{model}` is replaced by the upstream model: Azure's `/deployments/{model}/chat/completions`. */
  path?: string;
  /** The values of `reasoning_effort` that the model accepts, weakest first. Default: all. */
  reasoning_efforts?: readonly string[];
  /** Does not fetch images by URL: the gateway fetches them and sends data URLs. */
  inline_images?: boolean;
  /** Google's compatible endpoint: thought signatures are sent back as `extra_content` of the tool call. */
  google_signatures?: boolean;
  /** Fields added to every request (Groq's `reasoning_format`, vLLM's `chat_template_kwargs`). Fields of the encoder take precedence. */
  extra_body?: JsonObject;

  // openai-responses
  /** The vendor of the reasoning items, which are sent back to the same vendor only. Default: `openai-responses-v1`. */
  reasoning_format?: 'openai-responses-v1' | 'azure-openai-responses-v1' | 'xai-responses-v1';
  /** The model has no encrypted reasoning and refuses requests for it. */
  no_encrypted_reasoning?: boolean;
  /** Accepts reasoning items back that have no encrypted content (DeepSeek). */
  plain_reasoning_items?: boolean;
  /** The reasoning summary to request if the client names none. Default: none, since OpenAI refuses it to unverified organizations. */
  reasoning_summary?: 'auto' | 'concise' | 'detailed';
  /** Allows no message between the calls of a turn and their results (DeepSeek): the turn's texts are sent before its calls. */
  text_before_calls?: boolean;
  /** Runs tools for clients that are billed by units without a price here: images, sandboxes, searches of stored files. */
  unpriced_tools?: boolean;
  /** Searches X, and accepts a filter of what is searched there (xAI). */
  x_search?: boolean;

  // openai-embeddings
  /** The most that one embeddings request may hold, if other than OpenAI's. */
  embedding_batch?: { inputs_max?: number; tokens_max?: number };
  /** Embeds texts only and always answers with floats: no inputs of tokens, no `encoding_format`. */
  embedding_texts_only?: boolean;
  /** Mistral: `output_dimension` in place of `dimensions`. */
  dimensions_field?: 'dimensions' | 'output_dimension';
  /** NVIDIA: needs `input_type`, `query` or `passage`. */
  embedding_purpose?: boolean;

  // gemini-generate-content, anthropic-messages
  /**
   * Vertex AI: the base URL ends in `/projects/…/locations/…/publishers/…`. The credential is a Google account as JSON text, which is
   * exchanged for a token, or an API key.
   */
  google_cloud?: boolean;
  /** The address that issues its tokens, in place of Google's own. */
  token_url?: string;

  // openai-transcription
  /** The audio formats that it accepts. Default: OpenAI's. */
  transcription_formats?: readonly SoundFormat[];
  /** Mistral: has neither `prompt` nor `response_format`; times are in the answer if they are requested. */
  transcription_plain?: boolean;
  /** Bills shorter audio as if it lasted this long. */
  transcription_seconds_min?: number;

  // anthropic-messages
  /** The model has no sampling parameters (temperature, top_p, top_k are refused). */
  no_sampling?: boolean;
  /** Accepts temperature or top_p, not both. */
  one_sampling?: boolean;
  /** How thinking is requested. Default: `manual` (budget_tokens). */
  thinking?: 'manual' | 'adaptive' | 'none';
  /** The highest `output_config.effort` that the model accepts. */
  effort_max?: 'high' | 'xhigh' | 'max';
  /** The model refuses a trailing assistant message. */
  no_prefill?: boolean;
  /** Accepts `role: system` in the middle of a conversation. */
  mid_system?: boolean;
  /** Beta features that clients may request in `anthropic-beta` beside the known ones: names with or without their date. */
  betas?: readonly string[];
  /** Has neither `output_config.format` nor `strict`: a JSON schema is sent as a forced tool. */
  json_schema_shim?: boolean;
  /** Accepts `max` effort but not `xhigh`. */
  no_xhigh?: boolean;
  /** Thinks by default; `always`: thinking cannot be turned off. */
  thinking_default?: 'on' | 'always';
  /** Omits the text of its thinking unless the request has `display: "summarized"`. */
  thinking_hidden?: boolean;
  /** Refuses `tool_choice` of `any` and `tool`. */
  no_forced_tool?: boolean;
}
