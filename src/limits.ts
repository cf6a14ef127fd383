/**
 * The bounds that an operator or a security reviewer must see together: input of clients and providers, connections, memory,
 * counts for each key and workspace, timeouts and stored data; and the constants that several files share. Each name ends with the unit.
 * A constant of one file is in that file. Values that an operator may change are defaults here and settings in `config/settings`.
 */
export const limits = {
  // Bodies, JSON and headers of requests

  /** A request body; setting `GATEWAY_BODY_BYTES_MAX`. */
  body_bytes_max: 64 * 1024 * 1024,
  body_bytes_setting_max: 1024 * 1024 * 1024,
  /** The parsed JSON of a body, and of each of its texts that is parsed as JSON: values, levels, and keys of one object. */
  json_values_max: 500_000,
  json_levels_max: 256,
  json_keys_max: 10_000,
  /** The length above which JSON is serialized in pieces so that other requests are served in between, and the length of a piece. */
  json_long_chars_min: 1024 * 1024,
  json_piece_chars: 128 * 1024,
  /** The memory of one string in a body, if bodies may not be longer. A character above U+00FF makes each character of its string take two bytes. */
  body_string_bytes_max: 64 * 1024 * 1024,
  /** Short HTTP chunks of a body that are read before other requests are served. One read can hold 10,000 chunks of one byte each. */
  body_turn_chunks_max: 512,
  /** The slice of a large body that is copied or sent before other requests are served. */
  joined_slice_bytes: 1024 * 1024,
  /** Arguments of all tool calls of one request: some wires send them as parsed objects. */
  arguments_chars_max: 16 * 1024 * 1024,
  arguments_values_max: 100_000,
  /** Definitions of all tools of one request and the schema of its answer: characters, and values that each wire rewrites. */
  definitions_chars_max: 8 * 1024 * 1024,
  definitions_values_max: 100_000,
  /** The fields of a request that its Response object repeats: each event with the whole object contains them. */
  repeated_chars_max: 8 * 1024 * 1024,
  /** Characters of a prompt, and of one text, that are counted for an estimate. The rest is extrapolated from them. */
  estimated_chars_max: 1_000_000,
  /** The headers of a request or an answer. */
  header_bytes_max: 32 * 1024,
  /** The form of a page, and the body of a code exchange. */
  form_bytes_max: 16 * 1024,
  /** A multipart form: its parts, the head of each part, and a field that is not a file. */
  form_parts_max: 100,
  form_head_bytes_max: 4 * 1024,
  form_field_bytes_max: 64 * 1024,

  // Memory that requests hold

  /** The memory of all requests of a process, as a share of V8's heap; setting `limits.memory_bytes`. */
  memory_heap_share_max: 0.5,
  memory_bytes_setting_min: 16 * 1024 * 1024,
  memory_bytes_setting_max: 1024 * 1024 * 1024 * 1024,
  /** The share of that memory that the requests of one key may hold together, and one request alone. */
  memory_owner_share_max: 0.75,
  /** Copies of a body in memory: received, parsed, written for an upstream, and sent. */
  body_copies: 4,
  /** The size from which answers are counted, and the step in which longer ones and bodies of unknown length are counted. */
  counted_bytes_min: 16 * 1024,
  counted_bytes_step: 64 * 1024,
  /** The wait of a request for memory, and of an answer that an upstream has begun and bills. */
  memory_wait_ms_max: 2_000,
  memory_answer_wait_ms_max: 10_000,
  memory_waiting_max: 1_000,

  // Connections and clients

  /** Open connections of clients to one process; setting `http.connections_max`. Lower if the limit of open files is low. */
  connections_max: 4_096,
  connections_setting_max: 1_000_000,
  /** Connections for health probes beyond the other bounds, and how long each stays open. */
  connections_reserved_max: 32,
  connection_reserved_ms_max: 2_000,
  /** The minimum time between two warnings of closed connections with the same cause. */
  connections_warn_ms: 60_000,
  /** Requests that wait on one connection for the request before them. One more closes the connection. */
  pipelined_requests_max: 32,
  /** Operations of one caller that run at a time, apart from calls of models; the others wait. Fewer than the default `database.connections`. */
  caller_operations_max: 3,
  /** An idle connection of a client. Longer than load balancers keep theirs. */
  client_idle_ms_max: 72_000,
  /** The divisor of `connections_max` that gives the bound of one address; setting `http.connections_per_address_max`. */
  connections_address_divisor: 4,
  /** File descriptors reserved for the store, the journal and the catalog when connections are counted. */
  open_files_kept: 256,
  trusted_proxies_max: 100,
  /** The time in which a client must send its request. */
  client_request_ms_max: 120_000,
  messages_max: 10_000,
  /** The time after which a client that does not read is disconnected. */
  client_stall_ms_max: 120_000,
  heartbeat_first_ms: 3_000,
  heartbeat_ms: 5_000,
  /** How long, and how much of, an upstream's answer is read after the client left, if the upstream bills it anyway. */
  drain_ms_max: 60_000,
  drain_bytes_max: 4 * 1024 * 1024,
  /** Tokens that are read of an upstream's answer after it was cut. */
  drain_tokens_max: 1_000_000,
  /** Answers made from changing state (metrics, health) in a row before their rate is limited. */
  answers_made_burst: 30,
  /** The time between two such answers after that burst. */
  answer_made_ms_max: 1_000,
  readiness_ms_max: 1_000,
  health_endpoints_max: 10_000,

  // Fields of requests

  /** Parts of one item of the Responses API, and of all items or messages of a request. */
  item_parts_max: 10_000,
  input_parts_max: 50_000,
  /** Blocks of thinking, or reasoning items, of all messages of a request: each is decoded as a part of a turn. */
  input_reasoning_max: 5_000,
  models_max: 32,
  /** Prompts of one legacy completion, each a call of its own, and those that run at once. */
  completion_prompts_max: 64,
  completion_prompts_at_once: 8,
  /** Levels of a schema that are checked for strictness. */
  schema_levels_max: 100,
  /** Answers to one request (`n`); the bound of OpenAI's API. */
  choices_max: 128,
  stop_sequences_max: 100,
  tools_max: 1_024,
  /** A date of `x_search_filter`. */
  date_chars_max: 40,
  /** The name of a field in an error. Clients can send longer names. */
  error_field_chars_max: 100,
  /** Reported changes to one request. */
  reports_max: 100,
  session_id_chars_max: 256,
  attribution_chars_max: 512,
  key_name_chars_max: 200,
  /** For how long a rotation may leave the older secret of a key valid, and for how long it does so by default. */
  key_grace_seconds_max: 2_592_000,
  key_grace_default_seconds: 86_400,
  model_name_chars_max: 256,
  /** Records of one page: maximum and default. */
  page_records_max: 100,
  /** One address in a request, fetched by the gateway or by a provider. */
  address_chars_max: 65_536,
  /** Addresses in one request. */
  addresses_max: 10_000,
  /** Breakpoints of the prompt cache in one request (Anthropic, documentation page "Prompt caching"). */
  cache_breakpoints_max: 4,
  /** The name of a tool on wires that limit it. */
  tool_name_chars_max: 64,
  tool_call_id_chars_max: 64,
  /** The range of a manual thinking budget (Anthropic, documentation page "Extended thinking"; the public API's own upper end). */
  thinking_budget_tokens_min: 1_024,
  thinking_budget_tokens_max: 128_000,
  /** Inputs and requested dimensions of one request for embeddings. */
  embedding_inputs_max: 10_000,
  embedding_dimensions_max: 100_000,

  // Keys, members, workspaces, credentials and sign-in

  /** Keys in `io_logging_api_key_ids` of a workspace. */
  io_logging_keys_max: 1_000,
  byok_credential_chars_max: 16_384,
  /** Credentials of one workspace. */
  byok_credentials_max: 200,
  /** Users or keys that one request adds, removes or assigns. */
  bulk_entries_max: 100,
  /** Management requests of one credential; setting `limits.management_requests_per_minute`. */
  management_requests_per_minute: 6_000,
  rate_limit_callers_max: 10_000,
  /** The time in which an authorization code must be exchanged, and the wrong verifiers that it survives. */
  authorization_code_ms_max: 600_000,
  authorization_code_failures_max: 5,
  /** Unexchanged codes of one user, and applications of one organization. */
  authorization_codes_waiting_max: 1_000,
  apps_max: 10_000,
  /** Ancestors of a key that was created with an API key. */
  key_ancestors_max: 3,
  /** Descendants of one ordinary key. */
  key_descendants_max: 1_000,
  /** Keys that one member made in its sessions in one workspace, by itself or by approving applications. */
  member_keys_max: 1_000,
  callback_url_chars_max: 2_048,
  key_label_chars_max: 100,
  /** Expired codes or sessions that are deleted when one is created. */
  sweep_rows_max: 100,
  session_ms_max: 12 * 3_600_000,
  /** How long a one-time sign-in link is valid. */
  sign_in_code_ms_max: 600_000,
  /** How often a session gets a new secret, and how long the old secret is still accepted. */
  session_rotation_ms: 900_000,
  session_overlap_ms: 30_000,
  sessions_per_user_max: 50,
  /** Code exchanges and sign-in attempts of one remote address. */
  exchanges_per_minute: 300,
  sign_ins_per_minute: 30,
  /** The value of a cookie. Browsers take 4096 bytes with its name and attributes (RFC 6265, section 6.1). */
  cookie_bytes_max: 3_800,
  /** A sign-in at an OpenID Connect issuer: the time of the person, and the time of each request to the issuer. */
  issuer_sign_in_ms_max: 600_000,
  issuer_ms_max: 10_000,
  /** An answer of an issuer. */
  issuer_body_bytes_max: 1024 * 1024,
  user_name_chars_max: 200,
  email_chars_max: 320,
  /** Keys with their budgets and guardrails, about 1 kB each. */
  key_cache_entries_max: 65_536,
  /** The change feed says earlier which cached records are stale; this bounds how long a change made in the database by hand stays unnoticed. */
  key_cache_ms_max: 3_600_000,
  /** The reason for added credits or a corrected charge. */
  reason_chars_max: 500,
  /** The price of one token, image, request or search. Above it, pico-USD exceed an exact JavaScript integer. */
  unit_price_usd_max: 9_007,
  management_key_chars_min: 32,

  // Rates

  /** Requests of one organization to free models: the public service's limits (its documentation, "Limits"); settings of `rate_limits.free_models`. */
  free_requests_per_minute: 20,
  free_requests_per_day: 50,
  free_requests_per_day_funded: 1_000,
  free_funded_usd: 10,
  /** Counters of one node, and patterns and keys in the settings. */
  rate_counters_max: 20_000,
  rate_settings_max: 1_000,
  /** The divisor of the rest of a window that gives the largest block that a node takes at a time. */
  rate_block_divisor: 8,
  /** Requests that wait for the store to count them. */
  rate_waiting_max: 10_000,

  // Guardrails

  /** Models, providers or filters of one guardrail, each list. */
  guardrail_entries_max: 1_000,
  guardrail_filters_max: 100,
  /** All patterns of one guardrail. */
  guardrail_pattern_chars_max: 200_000,
  /** Instructions of one compiled pattern: the cost of matching one character. */
  filter_program_size_max: 1_200,
  /** Levels of a value whose texts are filtered one by one. Deeper values are passed on unchanged. */
  filtered_levels_max: 256,
  /** Steps to compile one pattern: an upper bound that is computed before compilation (`compileSteps`). */
  filter_compile_steps_max: 12_000,
  /** Steps to compile all patterns of one guardrail. They are compiled together before the first request is answered. */
  guardrail_compile_steps_max: 60_000,
  /** Countries whose telephone numbers are detected without a calling code. Each is tried at each number. */
  phone_regions_max: 32,
  /** The fewest single letters in a row that may be a spelled-out word. */
  injection_singles_min: 4,
  /** Characters between two letters of a spelled-out word. */
  injection_single_gap_chars_max: 4,
  /** Characters of one request that are analyzed for names. */
  analyzed_chars_max: 4_000_000,
  /** Requests that wait for the thread that detects names. */
  analyses_waiting_max: 64,
  /** Characters of a streamed text that are held back at most. */
  filter_held_chars_max: 4_096,
  /** Characters before a held-back text that a filter may read to decide on a match. */
  filter_context_chars: 128,
  /** The time to detect names and addresses in one request: default and maximum. The default is below `heartbeat_first_ms` so that a refusal keeps its status. */
  analysis_ms: 2_000,
  analysis_ms_max: 60_000,
  /** Characters of a request that are filtered before other requests are served. */
  scan_slice_chars: 32_768,
  /** Findings that are replaced before other requests are served. */
  scan_findings_max: 5_000,
  /** The overlap of the pieces of a long text. A match that extends further across a border may be missed. */
  scan_overlap_chars: 4_096,
  /** A text in a test of a guardrail. */
  tested_chars_max: 1_000_000,
  /** Findings of one request that are reported individually. */
  findings_reported_max: 200,
  /** Requests that a draft of a guardrail is replayed on. */
  replay_requests_max: 1_000,
  /** Requests that a draft of a guardrail is replayed on if the caller names no number. */
  replay_requests_default: 100,

  // Media, sound, files and pages

  /** A PDF that the gateway parses: its bytes, pages, text, parsing time and the memory of its reader. */
  pdf_bytes_max: 32 * 1024 * 1024,
  pdf_pages_max: 1_000,
  pdf_chars_max: 4_000_000,
  pdf_ms_max: 15_000,
  pdf_heap_mb_max: 192,
  /** Processes that read PDFs at the same time. */
  pdf_readers_max: 2,
  /** Files that wait for a reader: all, and those of one key. */
  pdf_waiting_max: 64,
  pdf_waiting_per_owner_max: 16,
  /** Parsed files of one request. */
  parsed_files_max: 32,
  /** The text of all files of one request. */
  parsed_chars_max: 8_000_000,
  /** The text of an answer that is repaired. */
  healed_chars_max: 1_000_000,
  /** Repairs that wait for a process: all, and those of one key. */
  healing_waiting_max: 64,
  healing_waiting_per_owner_max: 16,
  /** The part of a page that is read. */
  page_bytes_max: 4 * 1024 * 1024,
  /** Characters that are processed before other requests are served. */
  page_slice_chars: 16 * 1024,
  /** Fetched media of one request: the number of addresses, and the length of each. */
  media_urls_max: 64,
  media_url_chars_max: 8_192,
  /** One fetch. */
  media_ms_max: 20_000,
  /** One fetched file. */
  media_bytes_max: 32 * 1024 * 1024,
  /** All files that are fetched for one request. */
  media_request_bytes_max: 64 * 1024 * 1024,
  media_redirects_max: 5,
  /** Concurrent fetches: of one request, of all requests, and of one key. */
  media_fetches_per_request_max: 4,
  media_fetches_max: 16,
  media_fetches_per_owner_max: 8,
  /** Fetches in the queue: all, and those of one key. */
  media_fetches_waiting_max: 256,
  media_fetches_waiting_per_owner_max: 128,
  /** The sound of one transcription: its bytes and its duration. */
  sound_bytes_max: 25 * 1024 * 1024,
  sound_ms_max: 24 * 3_600_000,
  /** False starts of a frame in the bytes of a sound. Valid sound has few of them. */
  sound_false_starts_max: 200_000,
  /** Bytes of FLAC with the value of the first byte of a frame. One byte in 256 has it by chance. */
  sound_looks_max: 1_000_000,
  /** A header of Ogg. The third header of Vorbis, the largest, has some kilobytes. */
  sound_header_bytes_max: 256 * 1024,
  /** Tracks or streams of one file, its boxes or chunks, and its elements. Each block of WebM is an element. */
  sound_streams_max: 1_000,
  sound_boxes_max: 500_000,
  sound_elements_max: 2_000_000,
  /** Packets of Ogg (about 50 per second of sound), and entries of a table of MP4 (one for many frames). */
  sound_packets_max: 3_000_000,
  sound_table_entries_max: 1_000_000,
  /** Bytes between frames or pages that are not sound, such as pictures and tags. */
  sound_junk_bytes_max: 4 * 1024 * 1024,
  /** The description of a track's codec in MP4. */
  sound_entry_bytes_max: 64 * 1024,
  /** Tags before the sound, and blocks before the frames of FLAC. */
  sound_tags_max: 1_000,
  /** Tokens per second of fast speech in a script in which each character is a token. */
  transcript_tokens_per_second: 20,
  /** The most tokens that a second of sound is counted as: 32 at Google (https://ai.google.dev/gemini-api/docs/audio), 10 at OpenAI. */
  sound_tokens_per_second: 40,
  /** The longest wait between two polls of a transcription. */
  transcription_poll_ms_max: 5_000,

  // Tools, search and plugins

  /** One web search, from its start to its end. */
  web_search_ms_max: 15_000,
  /** Results of a search if the request names no number. */
  web_results_default: 5,
  /** Uses of one tool in a call: as many as the steps of a call. */
  web_uses_max: 50,
  /** The content of one result if the request names no length. */
  web_result_chars_default: 3_000,
  web_title_chars_max: 300,
  web_url_chars_max: 2_048,
  /** A query as it is sent. */
  web_query_chars_max: 400,
  /** Searches by the provider that are assumed for a request without a bound. */
  web_searches_assumed: 10,
  /** Calls of the gateway's own tools in one answer. */
  server_tool_calls_max: 30,
  /** One run of one of the gateway's own tools. */
  server_tool_ms_max: 60_000,

  // Answers of providers

  /** An upstream's whole answer that is not streamed. */
  upstream_body_bytes_max: 128 * 1024 * 1024,
  /** The part of an upstream's error body that is read. The rest is dropped. */
  upstream_error_bytes_max: 64 * 1024,
  /** Answers with a status of 100 to 199 before the final one. Usual is at most one a second while a provider works. */
  upstream_interim_answers_max: 1_000,
  /** The size from which other requests are served between reading an answer, parsing it and processing it. */
  answer_turn_bytes_min: 1024 * 1024,
  /** The JSON of an answer or of one event: levels, values, and values if the request asks for probabilities of tokens. */
  answer_levels_max: 500,
  answer_values_max: 100_000,
  answer_logprob_values_max: 6_000_000,
  /** The values of one event if the request asks for probabilities: a stream has those of a few tokens in each. */
  event_logprob_values_max: 500_000,
  /** Probabilities of one streamed answer: those of its tokens and of their alternatives. */
  answer_logprobs_max: 1_000_000,
  /** The characters of these probabilities as JSON, without their numbers: texts and bytes of tokens, and other fields. */
  answer_logprobs_chars_max: 64 * 1024 * 1024,
  /** Parts of one answer. An answer with more ends as a failure and is charged for the part that was received. */
  answer_calls_max: 2_000,
  answer_annotations_max: 10_000,
  answer_details_max: 10_000,
  answer_images_max: 1_000,
  answer_blocks_max: 5_000,
  /** Characters of one answer: its texts, reasoning and arguments of calls. The longest answers of models have some 5 million. */
  answer_chars_max: 16 * 1024 * 1024,
  /** Characters of one answer's citations (addresses, titles, quotes), and of the files in its annotations, which may have pictures of pages. */
  answer_citations_chars_max: 4 * 1024 * 1024,
  answer_files_chars_max: 12 * 1024 * 1024,
  /** The memory of one string in an answer, such as an image in base64: making it takes one turn of the event loop. */
  answer_string_bytes_max: 64 * 1024 * 1024,
  /** Chunks that are passed on before other requests are served. */
  stream_slice_chunks: 512,
  /** Characters of these chunks, and of one chunk. A longer chunk is divided. */
  stream_slice_chars: 256 * 1024,
  stream_chunk_chars_max: 128 * 1024,
  /** One frame of an upstream's stream. */
  stream_frame_bytes_max: 16 * 1024 * 1024,
  /** Lines of data in one event: as many as an answer may have values, with each value on its own line. */
  stream_frame_lines_max: 100_000,
  /** The whole text of one streamed answer. */
  stream_bytes_max: 256 * 1024 * 1024,
  /** A reported count of tokens or searches. A larger count is ignored. */
  usage_count_max: 1_000_000_000,
  /** The part of an upstream's error text that a client sees. */
  upstream_raw_chars_max: 2_000,
  /** An upstream's id, finish reason or service tier in a record. */
  upstream_word_chars_max: 256,
  /** Connections to one origin of a provider. */
  upstream_connections_per_origin_max: 1_024,
  /** The time after which an unused connection to an upstream or a service is closed. */
  unused_connection_ms_max: 10_000,
  /** Buffered bytes of an answer if its reader is slower than the upstream. Above it, the connection is paused. */
  upstream_unread_bytes_max: 64 * 1024,
  /** HTTP chunks of one answer that are read before other requests are served. One read can hold 10,000 chunks of one byte each. */
  upstream_turn_pieces_max: 512,
  upstream_connect_ms_max: 10_000,
  upstream_headers_ms_max: 300_000,
  upstream_first_token_ms_max: 300_000,
  upstream_idle_ms_max: 120_000,
  /** How long, and how many bytes of, a stream is read after the end of its answer. */
  upstream_tail_ms_max: 1_000,
  upstream_tail_bytes_max: 64 * 1024,
  upstream_total_ms_max: 3_600_000,
  /** Tokens of an answer that an estimate of its cost assumes. */
  expected_completion_tokens: 500,
  /** At the start of a process the usual length of answers is that of these days, from at most this many sums of usage. */
  usual_output_days: 7,
  usual_output_rows_max: 20_000,
  /** Requests of one attempt for embeddings. */
  embedding_requests_max: 2_048,
  /** The time in which a starting node asks providers about unfinished attempts. */
  lookups_ms_max: 5_000,

  // Attempts, tokens and money

  /** Above it, nano-USD exceed an exact JavaScript integer. */
  usd_max: 9_007_199,
  /** The charge of one attempt. A larger amount comes from a wrong price or count; the bound keeps sums exact. */
  charge_usd_max: 1_000_000,
  /** The output bound that is sent if the wire requires one and neither the request nor the catalog names one. */
  output_tokens_default: 8_192,
  /** The smallest output bound that is sent if money is short; setting `ledger.min_output_tokens`. */
  output_tokens_min: 16,
  /** Tokens that a provider's template can add to a prompt. */
  template_tokens_max: 256,
  /** Tokens that the template can add for tools. */
  template_tools_tokens_max: 1_024,
  /** The context length in the listing if an endpoint's is unknown: the specification requires a number. */
  context_tokens_assumed: 32_768,
  /** Continuations of one call. */
  continuations_max: 2,
  /** The largest share of calls that are hedged; setting `routing.hedge_share`. */
  hedge_share_max: 0.1,
  /** The share of the remaining spend limit that a request without an output bound may reserve for its answer. */
  default_hold_share: 0.25,
  /** Characters of one request that are tokenized. A longer text is bounded by its bytes. */
  tokenized_chars_max: 256 * 1024,
  /** Counts that wait for the tokenizer. Further texts are bounded by their bytes. */
  tokenizer_waiting_max: 64,
  /** Attempts of one call. */
  attempts_max: 16,
  /** The longest `Retry-After` that is accepted. */
  retry_after_ms_max: 3_600_000,

  // Reasoning state and stored responses

  /** Reasoning state: of one turn, of all turns in a process, and of all turns in the store. */
  turn_state_chars_max: 512 * 1024,
  turn_states_chars_max: 64 * 1024 * 1024,
  turn_states_max: 200_000,
  turn_states_stored_chars_max: 1024 * 1024 * 1024,
  turn_states_remembered_max: 50_000,
  /** How long reasoning state is kept; setting `reasoning_state.hours`. */
  turn_state_hours: 24,
  /** A stored response with its conversation, as JSON. A longer one is not stored. */
  stored_response_chars_max: 8 * 1024 * 1024,
  /** All stored responses, as stored. The oldest are deleted first. */
  stored_responses_chars_max: 8 * 1024 * 1024 * 1024,
  stored_response_days: 30,

  // Kept contents and broadcast

  /** The logged request of a call. Longer content is cut, and marked as cut. */
  logged_input_chars_max: 768 * 1024,
  /** Logged contents in the queue. Beyond it the oldest is lost, and counted. */
  logged_queue_entries_max: 2_000,
  logged_queue_chars_max: 32 * 1024 * 1024,
  /** Stubs, in the queue, of calls whose content was dropped. Beyond it the oldest is lost, and counted. */
  logged_stubs_max: 20_000,
  /** How long logged contents are collected before they are written. */
  logged_gather_ms: 100,
  /** All logged contents of one workspace, as stored. The oldest are deleted first. */
  logged_workspace_chars_max: 1024 * 1024 * 1024,
  /** All logged contents, as stored. The oldest are deleted first. */
  logged_contents_chars_max: 8 * 1024 * 1024 * 1024,
  /** Default and maximum of the setting `logging.retention_days`. */
  logged_content_days: 30,
  logged_content_days_max: 3_650,
  /** The least values and the greatest of the settings of `retention`. */
  generations_days_min: 7,
  audit_days_min: 30,
  retention_days_max: 36_500,
  /** Destinations of the broadcast, and the queue of each. Beyond it the oldest is lost, and counted. */
  broadcast_destinations_max: 10,
  broadcast_queue_entries_max: 5_000,
  broadcast_queue_chars_max: 16 * 1024 * 1024,
  /** How long calls are collected before they are sent. */
  broadcast_gather_ms: 1_000,
  /** The wait before the second attempt to send a batch. It doubles with each further attempt. */
  broadcast_retry_ms: 500,
  broadcast_stop_ms_max: 3_000,
  /** One field of `trace` or `metadata` in a span. */
  broadcast_field_chars_max: 1_024,
  /** The minimum time between two log messages about losses of the same kind. */
  loss_notice_ms: 60_000,

  // Routing, health and statistics

  /** Models that a router chooses among. */
  router_models_max: 100,
  /** How long computed statistics of an endpoint are used before they are computed again. */
  performance_fresh_ms: 1_000,
  /** Rows of statistics: of other processes, or to be written; and the characters of the sketches of other processes. */
  statistics_rows_max: 100_000,
  statistics_chars_max: 32 * 1024 * 1024,
  /** The time between two exchanges of statistics with the store. */
  statistics_exchange_ms: 5_000,
  /** Rows of minutes and of quarter hours in the store: how long they are kept, and how many. */
  statistics_minutes_keep_ms: 45 * 60_000,
  statistics_quarters_keep_ms: 26 * 3_600_000,
  statistics_minute_rows_max: 100_000,
  statistics_quarter_rows_max: 1_000_000,
  /** The time between two searches for endpoints without calls. */
  probes_look_ms: 5_000,
  /** The longest wait for one probe before the next one in a round. */
  probe_wait_ms: 2_000,
  /** The default of the setting `probes.every_minutes`. */
  probes_every_minutes: 15,

  // Ledger and journal

  /** One segment of the journal. */
  journal_segment_bytes_max: 16 * 1024 * 1024,
  /** How often settled segments are closed, rejected outcomes retried, and the journal's file checked. */
  journal_sweep_ms: 60_000,
  /** The age at which an open entry is copied to the newest segment so that the old segment can be deleted. */
  journal_carry_ms: 3_600_000,
  /** A lease that is not used for so long is returned, also if money of its window is not scarce. */
  lease_kept_ms: 300_000,
  /** Leases of a node above which those that are not used are returned soon, whether or not their money is scarce. */
  leases_kept: 65_536,
  /** Leases of a node above which empty idle leases are dropped. */
  leases_remembered: 1_000,
  /** How long settled entries are kept; setting `ledger.journal_keep_hours`. */
  journal_keep_ms: 3_600_000,
  /** Settled segments. Above it they are deleted before `journal_keep_ms` is over. Settings `ledger.journal_keep_bytes`, `…_hours`. */
  journal_keep_bytes_max: 1024 * 1024 * 1024,
  journal_keep_hours_max: 24 * 31,
  /** Free disk space that a journal preserves, in bytes or as a part of a small disk: settled segments are deleted early for it. */
  journal_free_bytes_min: 32 * 1024 * 1024,
  journal_free_part: 4,
  /** The wait before a failed write is retried. */
  journal_retry_ms: 1_000,
  /** One record of the journal. */
  journal_record_bytes_max: 4 * 1024 * 1024,
  /** Outcomes that the store does not have yet. */
  journal_unflushed_records_max: 50_000,
  /** Outcomes in one batch. */
  flush_batch_records_max: 500,
  /** How long a stopping node tries to write its last outcomes to the store. The rest stays in the journal. */
  flush_stop_ms_max: 10_000,
  /** How long a request waits for unused money of other nodes, and how often its node checks for it. */
  recall_wait_ms: 700,
  recall_ask_ms: 25,
  /** The difference to the store's time up to which a call counts in the windows of its arrival; also the drift of the machine's clocks that causes a check. */
  admission_clock_ms_max: 10_000,
  /** The time after a refusal in which requests that need as much are refused without asking the store. */
  refusal_ms: 100,
  /** Requests of one node that wait for money. */
  admissions_waiting_max: 10_000,
  /** The time since the last sign of a node within which it counts as live. */
  node_live_ms: 10_000,
  /** The time since the last sign of a node after which its leases can be released. */
  node_lost_ms: 60_000,
  /** Differences that `ledger verify` lists. */
  verify_differences_max: 1_000,
  /** Gateway processes on one data directory. */
  slots_max: 128,
  database_busy_ms_max: 5_000,
  /** How long a node may serve without the store; setting `ledger.on_store_outage.serve_for`. */
  serve_without_store_seconds_max: 300,

  // Store

  /** The silence of the feed after which a node no longer trusts its caches. */
  feed_silence_ms_max: 500,
  /** The difference between wall time and monotonic time above which the machine may have been suspended. */
  feed_clocks_ms_max: 250,
  /** Connections of a process to PostgreSQL without the one for notifications; setting `database.connections`: default, minimum and maximum. */
  database_connections: 4,
  database_connections_min: 2,
  database_connections_max: 100,
  /** The wait of a request for all its reads of the store, and again after it was sent. Then it is refused, or continues without them. */
  store_read_ms_max: 1_000,
  /** How often the list of keys that are revoked on this node is checked. */
  local_revocations_look_ms: 250,
  local_revocations_max: 10_000,
  local_revocations_bytes_max: 1024 * 1024,
  /** The difference between a machine's clock and the store's that causes a warning. */
  store_skew_ms: 2_000,
  database_connect_ms_max: 5_000,
  /** The description of a model in an item of the feed. */
  feed_description_chars_max: 190,

  // Process, configuration and catalog

  /** How long running requests may continue after SIGTERM; a setting. */
  shutdown_ms_max: 30_000,
  /** How long a gateway under an orchestrator serves before that, while it is not ready; setting `timeouts.shutdown_grace_ms`: default and maximum. */
  shutdown_grace_ms: 2_000,
  shutdown_grace_setting_ms_max: 600_000,
  /** How long requests that are ended by a shutdown may take to notify their clients, and again to record their end. */
  shutdown_settle_ms_max: 2_000,
  /** Processes of one gateway. */
  workers_max: 64,
  config_bytes_max: 8 * 1024 * 1024,
  /** A file with one secret. The longest are credentials of cloud accounts, some KiB. */
  secret_file_bytes_max: 64 * 1024,
  /** Aliases in a YAML file. Their expansion is longer than the file. */
  config_aliases_max: 100,
  /** How often the configuration file is checked. It is read after two checks without a change. */
  config_watch_ms: 500,
} as const;
