/**
 * The bounds that an operator or a security reviewer must see together: what clients and providers may send, connections, memory,
 * counts for each key and workspace, timeouts, what is stored; and the constants that several files share. The unit is last in the name.
 * A constant of one file alone is in that file. Values that an operator may change are defaults here and settings in `config/settings`.
 */
export const limits = {
  // Bodies, JSON and headers of requests

  /** A request body; setting `GATEWAY_BODY_BYTES_MAX`. */
  body_bytes_max: 64 * 1024 * 1024,
  body_bytes_setting_max: 1024 * 1024 * 1024,
  /** What a body may hold apart from its bytes, and each text in it that is read as JSON: values, levels, and keys of one object. */
  json_values_max: 500_000,
  json_levels_max: 256,
  json_keys_max: 10_000,
  /** Longer JSON is written piece by piece, with others served in between; and how long a piece is. */
  json_long_chars_min: 1024 * 1024,
  json_piece_chars: 128 * 1024,
  /** What of a large body is copied or sent before others are served. */
  joined_slice_bytes: 1024 * 1024,
  /** Arguments of all tool calls of one request together: some wires want them as objects, and read them for that. */
  arguments_chars_max: 16 * 1024 * 1024,
  arguments_values_max: 100_000,
  /** Definitions of all tools of one request, with the schema of its answer: more text than any model reads, and values that each wire rewrites. */
  definitions_chars_max: 8 * 1024 * 1024,
  definitions_values_max: 100_000,
  /** What a Response object repeats of its request: each event that shows the whole object is written with it. */
  repeated_chars_max: 8 * 1024 * 1024,
  /** Characters of a prompt, and of one text, that are counted for an estimate; the rest counts as they do. */
  estimated_chars_max: 1_000_000,
  /** The headers of a request or an answer. */
  header_bytes_max: 32 * 1024,
  /** The form of a page, and the body of the exchange of a code. */
  form_bytes_max: 16 * 1024,
  /** Parts of a form with files, what stands before each, and a field that is no file. */
  form_parts_max: 100,
  form_head_bytes_max: 4 * 1024,
  form_field_bytes_max: 64 * 1024,

  // Memory that requests hold

  /** What requests may hold of a process's memory together, as a share of V8's heap; setting `limits.memory_bytes`. */
  memory_heap_share_max: 0.5,
  memory_bytes_setting_min: 16 * 1024 * 1024,
  memory_bytes_setting_max: 1024 * 1024 * 1024 * 1024,
  /** What those of one key may hold of that, and what one request may take. */
  memory_owner_share_max: 0.75,
  /** A body takes so many times its length: received, read, written for an upstream, and sent. */
  body_copies: 4,
  /** Answers up to it are not counted; more of them, and bodies of unknown length, in such steps. */
  counted_bytes_min: 16 * 1024,
  counted_bytes_step: 64 * 1024,
  /** How long a request waits for memory, and one that an upstream has begun to answer, whose answer is paid for. */
  memory_wait_ms_max: 2_000,
  memory_answer_wait_ms_max: 10_000,
  memory_waiting_max: 1_000,

  // Connections and clients

  /** Connections of clients that a process keeps open at a time; setting `http.connections_max`. Fewer where the limit of open files is low. */
  connections_max: 4_096,
  connections_setting_max: 1_000_000,
  /** Beyond the bounds so many are open for so long, for health probes alone. */
  connections_reserved_max: 32,
  connection_reserved_ms_max: 2_000,
  /** One warning of connections that are closed, of each cause, in so long. */
  connections_warn_ms: 60_000,
  /** Requests of one connection that wait for the end of the one before them; with one more it is closed. */
  pipelined_requests_max: 32,
  /** An idle connection is kept for so long: longer than balancers keep theirs. */
  client_idle_ms_max: 72_000,
  /** Of one address this part of them; setting `http.connections_per_address_max`. */
  connections_address_divisor: 4,
  /** Files and sockets that are kept for the store, the journal and the catalog when connections are counted. */
  open_files_kept: 256,
  trusted_proxies_max: 100,
  /** A client that takes longer to send its request is cut off. */
  client_request_ms_max: 120_000,
  messages_max: 10_000,
  /** A client that does not read for this long is gone. */
  client_stall_ms_max: 120_000,
  heartbeat_first_ms: 3_000,
  heartbeat_ms: 5_000,
  /** After a client left, how long and how much of an upstream that bills anyway is still read. */
  drain_ms_max: 60_000,
  drain_bytes_max: 4 * 1024 * 1024,
  /** The same of an answer that was cut. */
  drain_tokens_max: 1_000_000,
  /** Answers from changing state (metrics, health) that are made in a row before they are limited. */
  answers_made_burst: 30,
  /** Afterwards one answer is made in this time at least. */
  answer_made_ms_max: 1_000,
  readiness_ms_max: 1_000,
  health_endpoints_max: 10_000,

  // Fields of requests

  /** Parts of one item of the Responses API, and of all items or messages of a request. */
  item_parts_max: 10_000,
  input_parts_max: 50_000,
  models_max: 32,
  /** Prompts of one legacy completion; each is a call of its own. */
  completion_prompts_max: 64,
  completion_prompts_at_once: 8,
  /** Levels of a schema that it is asked of whether it is strict. */
  schema_levels_max: 100,
  /** Answers to one request (`n`), as OpenAI's API has it. */
  choices_max: 128,
  stop_sequences_max: 100,
  tools_max: 1_024,
  /** A date of `x_search_filter`. */
  date_chars_max: 40,
  /** The name of a field in an error. Clients can send longer names. */
  error_field_chars_max: 100,
  /** Changes to one request that are reported. */
  reports_max: 100,
  session_id_chars_max: 256,
  attribution_chars_max: 512,
  key_name_chars_max: 200,
  model_name_chars_max: 256,
  /** Records of one page, at most and by default. */
  page_records_max: 100,
  /** One address in a request, whoever fetches it. */
  address_chars_max: 65_536,
  /** Addresses in one request. */
  addresses_max: 10_000,
  /** Breakpoints of the prompt cache in one request (Anthropic, documentation page "Prompt caching"). */
  cache_breakpoints_max: 4,
  /** The name of a tool on wires that bound it. */
  tool_name_chars_max: 64,
  tool_call_id_chars_max: 64,
  /** The range of a manual thinking budget (Anthropic, documentation page "Extended thinking"; the public API's own upper end). */
  thinking_budget_tokens_min: 1_024,
  thinking_budget_tokens_max: 128_000,
  /** Inputs of one request for embeddings, and the dimensions asked for. */
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
  /** An authorization code waits so long for its exchange, and survives so many wrong verifiers. */
  authorization_code_ms_max: 600_000,
  authorization_code_failures_max: 5,
  /** Codes of one user that wait, and applications of one organization. */
  authorization_codes_waiting_max: 1_000,
  apps_max: 10_000,
  /** How many keys can be above a key that was made with an API key. */
  key_ancestors_max: 3,
  /** How many keys can be below one ordinary key. */
  key_descendants_max: 1_000,
  callback_url_chars_max: 2_048,
  key_label_chars_max: 100,
  /** Expired codes or sessions that one new one clears away. */
  sweep_rows_max: 100,
  session_ms_max: 12 * 3_600_000,
  /** A session gets a new secret so often; requests that still carry the old one are served for a little while. */
  session_rotation_ms: 900_000,
  session_overlap_ms: 30_000,
  sessions_per_user_max: 50,
  /** Of one remote address: exchanges of codes, and attempts to sign in. */
  exchanges_per_minute: 300,
  sign_ins_per_minute: 30,
  /** The value of a cookie. Browsers take 4096 bytes with its name and attributes (RFC 6265, section 6.1). */
  cookie_bytes_max: 3_800,
  /** A sign-in at an OpenID Connect issuer: how long a person may take, and how long each question to the issuer. */
  issuer_sign_in_ms_max: 600_000,
  issuer_ms_max: 10_000,
  /** An answer of an issuer. */
  issuer_body_bytes_max: 1024 * 1024,
  user_name_chars_max: 200,
  email_chars_max: 320,
  key_cache_entries_max: 10_000,
  key_cache_ms_max: 10_000,
  /** Why credits were given, or a charge was corrected. */
  reason_chars_max: 500,
  /** A price of one token, image, request or search; above it, pico-USD no longer fit an exact JavaScript integer. */
  unit_price_usd_max: 9_007,
  management_key_chars_min: 32,

  // Rates

  /** Free models, of one organization: the public service's limits (its documentation, "Limits"); settings of `rate_limits.free_models`. */
  free_requests_per_minute: 20,
  free_requests_per_day: 50,
  free_requests_per_day_funded: 1_000,
  free_funded_usd: 10,
  /** Counters of one node; patterns and keys that the settings name. */
  rate_counters_max: 20_000,
  rate_settings_max: 1_000,
  /** A node takes at most this part of the rest of a window at a time. */
  rate_block_divisor: 8,
  /** Requests that wait for the store to count them. */
  rate_waiting_max: 10_000,

  // Guardrails

  /** Models, providers or filters of one guardrail, each list. */
  guardrail_entries_max: 1_000,
  guardrail_filters_max: 100,
  /** The patterns of one guardrail in all. */
  guardrail_pattern_chars_max: 200_000,
  /** Instructions that one pattern may compile to: what matching costs for each character. */
  filter_program_size_max: 1_200,
  /** Levels of a value whose texts are filtered, one by one; what is deeper is not taken apart. */
  filtered_levels_max: 256,
  /** What compiling one pattern may take, by an upper bound found beforehand (`compileSteps`). */
  filter_compile_steps_max: 12_000,
  /** The same for all patterns of one guardrail: they are compiled together, before the first request is answered. */
  guardrail_compile_steps_max: 60_000,
  /** Countries whose telephone numbers are looked for without a calling code: each is tried at each number. */
  phone_regions_max: 32,
  /** So many single letters in a row may be a word that is spelled out. */
  injection_singles_min: 4,
  /** The characters between two letters of a word that is spelled out. */
  injection_single_gap_chars_max: 4,
  /** Characters of one request that are analyzed for names. */
  analyzed_chars_max: 4_000_000,
  /** Requests that wait for the thread that finds names. */
  analyses_waiting_max: 64,
  /** The part of a text that an answer holds back at most. */
  filter_held_chars_max: 4_096,
  /** What stands before a text that was held back, and what a filter may look at to tell whether something is a match. */
  filter_context_chars: 128,
  /** For finding the names and addresses of one request: the setting where none is given, and its most. Below the first heartbeat of a stream, so that a refusal keeps its status. */
  analysis_ms: 2_000,
  analysis_ms_max: 60_000,
  /** What of a request's texts is held against filters before others are served. */
  scan_slice_chars: 32_768,
  /** Findings that are replaced before other requests are served. */
  scan_findings_max: 5_000,
  /** What pieces of a long text have in common: a match that reaches further over their border may be missed. */
  scan_overlap_chars: 4_096,
  /** A text that a guardrail is tried with. */
  tested_chars_max: 1_000_000,
  /** Findings of one request that are reported one by one. */
  findings_told_max: 200,
  /** Requests that a draft of a guardrail is tried on, at most and by default. */
  replay_requests_max: 1_000,
  /** Requests that a draft of a guardrail is tried on if the caller does not say. */
  replay_requests_default: 100,

  // Media, sound, files and pages

  /** A PDF that is read here: its bytes, what it may claim and hold, how long it may take, and what a reader may hold of memory meanwhile. */
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
  /** Files of one request that are read. */
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
  /** What one request may have fetched for it: how many addresses, how long each, how much of each and in all. */
  media_urls_max: 64,
  media_url_chars_max: 8_192,
  /** One fetch. */
  media_ms_max: 20_000,
  /** One fetched file. */
  media_bytes_max: 32 * 1024 * 1024,
  /** All files that are fetched for one request. */
  media_request_bytes_max: 64 * 1024 * 1024,
  media_redirects_max: 5,
  /** Fetches at once: of one request, and of all. */
  media_fetches_per_request_max: 4,
  media_fetches_max: 16,
  media_fetches_per_owner_max: 8,
  /** Fetches that wait for their turn: all, and those of one key. */
  media_fetches_waiting_max: 256,
  media_fetches_waiting_per_owner_max: 128,
  /** The sound of one transcription, and how long it may last. */
  sound_bytes_max: 25 * 1024 * 1024,
  sound_ms_max: 24 * 3_600_000,
  /** Bytes that look like the start of a frame and are none: sound has few of them. */
  sound_false_starts_max: 200_000,
  /** Bytes of FLAC that any start of a frame begins with: one in 256 has that value by chance. */
  sound_looks_max: 1_000_000,
  /** A header of Ogg; Vorbis' third, its largest, has some kilobytes. */
  sound_header_bytes_max: 256 * 1024,
  /** Tracks or streams of one file, its boxes or chunks, and its elements, of which each block of WebM is one. */
  sound_streams_max: 1_000,
  sound_boxes_max: 500_000,
  sound_elements_max: 2_000_000,
  /** Packets of Ogg, of which sound has 50 a second, and entries of a table of MP4, which has one for many frames. */
  sound_packets_max: 3_000_000,
  sound_table_entries_max: 1_000_000,
  /** Bytes between frames or pages that are none of the sound, pictures and tags among them. */
  sound_junk_bytes_max: 4 * 1024 * 1024,
  /** What describes the coding of a track of MP4. */
  sound_entry_bytes_max: 64 * 1024,
  /** Tags in front of a sound, and blocks in front of the frames of FLAC. */
  sound_tags_max: 1_000,
  /** Tokens of fast speech, in a script in which each character is a token. */
  transcript_tokens_per_second: 20,
  /** Tokens that a second of sound counts at most: 32 at Google (https://ai.google.dev/gemini-api/docs/audio), 10 at OpenAI. */
  sound_tokens_per_second: 40,
  /** The longest wait between two such questions. */
  transcription_poll_ms_max: 5_000,

  // Tools, search and plugins

  /** One web search in all. */
  web_search_ms_max: 15_000,
  /** Results of a search that does not say how many. */
  web_results_default: 5,
  /** Uses of one tool in a call: as many as a call can have steps. */
  web_uses_max: 50,
  /** The content of one result if the request does not say. */
  web_result_chars_default: 3_000,
  web_title_chars_max: 300,
  web_url_chars_max: 2_048,
  /** A query as it is sent. */
  web_query_chars_max: 400,
  /** Provider-run searches that a request may cause where it does not bound them. */
  web_searches_assumed: 10,
  /** Calls of the gateway's own tools in one answer. */
  server_tool_calls_max: 30,
  /** One run of one of the gateway's own tools. */
  server_tool_ms_max: 60_000,

  // Answers of providers

  /** An upstream's whole answer, not streamed. */
  upstream_body_bytes_max: 128 * 1024 * 1024,
  /** An upstream's error body is read up to here, the rest is dropped. */
  upstream_error_bytes_max: 64 * 1024,
  /** Answers with a status of 100 to 199 before the one that counts: one a second while a provider works is usual at the most. */
  upstream_interim_answers_max: 1_000,
  /** From there on others are served between reading a whole answer, parsing it, and what follows. */
  answer_turn_bytes_min: 1024 * 1024,
  /** Levels of an answer's JSON, and its values, whole or in one event; where probabilities of tokens were asked for they are far more. */
  answer_levels_max: 500,
  answer_values_max: 100_000,
  answer_logprob_values_max: 6_000_000,
  /** Parts of one answer. Beyond one of these it ends as a failure, which is charged for what came. */
  answer_calls_max: 2_000,
  answer_annotations_max: 10_000,
  answer_details_max: 10_000,
  answer_images_max: 1_000,
  answer_blocks_max: 5_000,
  /** Chunks that are passed on before other requests are served. */
  stream_slice_chunks: 512,
  /** Characters of them; and of one chunk, which is divided where it is longer. */
  stream_slice_chars: 512 * 1024,
  stream_chunk_chars_max: 128 * 1024,
  /** One frame of an upstream's stream. */
  stream_frame_bytes_max: 16 * 1024 * 1024,
  /** Lines of data in one event: as many as an answer may have values, each on a line of its own. */
  stream_frame_lines_max: 100_000,
  /** The whole text of one streamed answer. */
  stream_bytes_max: 256 * 1024 * 1024,
  /** A count of tokens or searches above it is no count: what an upstream tells then is not believed. */
  usage_count_max: 1_000_000_000,
  /** What of an upstream's error text is shown to a client. */
  upstream_raw_chars_max: 2_000,
  /** An id, a finish reason or a tier of an upstream's, as records keep it. */
  upstream_word_chars_max: 256,
  /** Connections to one origin of a provider. */
  upstream_connections_per_origin_max: 1_024,
  /** A connection to an upstream or a service that nothing is asked on is closed. */
  unused_connection_ms_max: 10_000,
  /** Bytes of an answer held for a reader that is slower than the upstream; above, the connection is paused. */
  upstream_unread_bytes_max: 64 * 1024,
  /** HTTP chunks of one answer that are read before others are served: a read holds 10,000 chunks of one byte each. */
  upstream_turn_pieces_max: 512,
  upstream_connect_ms_max: 10_000,
  upstream_headers_ms_max: 300_000,
  upstream_first_token_ms_max: 300_000,
  upstream_idle_ms_max: 120_000,
  /** What is read of a stream after the end of its answer: for so long, and so many bytes. */
  upstream_tail_ms_max: 1_000,
  upstream_tail_bytes_max: 64 * 1024,
  upstream_total_ms_max: 3_600_000,
  /** Tokens of an answer, where only what it is expected to cost is told. */
  expected_completion_tokens: 500,
  /** Requests of one such attempt in all. */
  embedding_requests_max: 2_048,
  /** How long a start asks providers about attempts that were under way, how many at once, and how often where one still runs. */
  lookups_ms_max: 5_000,

  // Attempts, tokens and money

  /** Above it, nano-USD no longer fit an exact JavaScript integer. */
  usd_max: 9_007_199,
  /** What one attempt is charged at most: a price or a count that leads above it is a mistake, and sums stay exact. */
  charge_usd_max: 1_000_000,
  /** The output bound sent where the wire needs one and neither the request nor the catalog names one. */
  output_tokens_default: 8_192,
  /** The smallest output bound that is sent for want of money; setting `ledger.min_output_tokens`. */
  output_tokens_min: 16,
  /** Tokens that a provider's template can add to a prompt. */
  template_tokens_max: 256,
  /** Tokens that it can add for tools. */
  template_tools_tokens_max: 1_024,
  /** The context length that the listing shows of an endpoint of which nobody says it: the specification wants a number there. */
  context_tokens_assumed: 32_768,
  /** Continuations of one call. */
  continuations_max: 2,
  /** The largest share of calls that are hedged; setting `routing.hedge_share`. */
  hedge_share_max: 0.1,
  /** Of what is left of a spend limit, what the answer to a request that names no output bound may cost at most. */
  default_hold_share: 0.25,
  /** What the tokenizer is given of one request; what is longer is bounded by its bytes. */
  tokenized_chars_max: 256 * 1024,
  /** Counts that wait for the tokenizer; further ones are bounded by their bytes. */
  tokenizer_waiting_max: 64,
  /** Attempts of one call. */
  attempts_max: 16,
  /** The longest `Retry-After` that is believed. */
  retry_after_ms_max: 3_600_000,

  // Reasoning state and stored responses

  /** What is remembered of one turn, and of all: by a process, and in the store. */
  turn_state_chars_max: 512 * 1024,
  turn_states_chars_max: 64 * 1024 * 1024,
  turn_states_max: 200_000,
  turn_states_stored_chars_max: 1024 * 1024 * 1024,
  turn_states_remembered_max: 50_000,
  /** How long reasoning state is kept; setting `reasoning_state.hours`. */
  turn_state_hours: 24,
  /** Of a stored response with its conversation, as JSON; a longer one is not stored. */
  stored_response_chars_max: 8 * 1024 * 1024,
  /** Of all stored responses, as they are stored; beyond it the oldest go. */
  stored_responses_chars_max: 8 * 1024 * 1024 * 1024,
  stored_response_days: 30,

  // Kept contents and broadcast

  /** The kept request of a call. Longer content is cut, and marked as cut. */
  logged_input_chars_max: 768 * 1024,
  /** What waits to be written: beyond it the oldest is lost, and counted. */
  logged_queue_entries_max: 2_000,
  logged_queue_chars_max: 32 * 1024 * 1024,
  /** Stubs that wait to be written, of calls whose content was dropped: beyond it the oldest is lost, and counted. */
  logged_stubs_max: 20_000,
  /** How long kept contents are collected before they are written. */
  logged_gather_ms: 100,
  /** All kept contents of one workspace, as stored. The oldest go first. */
  logged_workspace_chars_max: 1024 * 1024 * 1024,
  /** All kept contents, as stored. The oldest go first. */
  logged_contents_chars_max: 8 * 1024 * 1024 * 1024,
  /** Default and maximum of the setting `logging.retention_days`. */
  logged_content_days: 30,
  logged_content_days_max: 3_650,
  /** Destinations of the broadcast; what waits for each: beyond it the oldest is lost, and counted. */
  broadcast_destinations_max: 10,
  broadcast_queue_entries_max: 5_000,
  broadcast_queue_chars_max: 16 * 1024 * 1024,
  /** How long calls are collected before they are sent. */
  broadcast_gather_ms: 1_000,
  /** The wait before the second try of a batch. It is doubled for each further try. */
  broadcast_retry_ms: 500,
  broadcast_stop_ms_max: 3_000,
  /** One field of `trace` or `metadata` in a span. */
  broadcast_field_chars_max: 1_024,
  /** What is lost of one kind is told in the log so often. */
  loss_notice_ms: 60_000,

  // Routing, health and statistics

  /** Models that a router chooses among. */
  router_models_max: 100,
  /** What routing knows of an endpoint is worked out anew so often, where it is asked for. */
  performance_fresh_ms: 1_000,
  /** Rows of statistics that a process keeps of others, or has to write; and the characters of the sketches in those of others. */
  statistics_rows_max: 100_000,
  statistics_chars_max: 32 * 1024 * 1024,
  /** The time between two exchanges of statistics with the store. */
  statistics_exchange_ms: 5_000,
  /** Rows of minutes and of quarter hours are kept in the store so long, and so many in all. */
  statistics_minutes_keep_ms: 45 * 60_000,
  statistics_quarters_keep_ms: 26 * 3_600_000,
  statistics_minute_rows_max: 100_000,
  statistics_quarter_rows_max: 1_000_000,
  /** The time between two looks for endpoints without calls. */
  probes_look_ms: 5_000,
  /** The wait of a round for one probe before the next. */
  probe_wait_ms: 2_000,
  /** The default of the setting `probes.every_minutes`. */
  probes_every_minutes: 15,

  // Ledger and journal

  /** One segment of the journal. */
  journal_segment_bytes_max: 16 * 1024 * 1024,
  /** How often segments are put away, refused outcomes tried again, and the journal's file looked after. */
  journal_sweep_ms: 60_000,
  /** An entry that is open for this time is written again to the newest segment, so that the old one can go. */
  journal_carry_ms: 3_600_000,
  /** Above so many, windows that this node has nothing of are forgotten. */
  leases_remembered: 1_000,
  /** How long settled entries are kept; setting `ledger.journal_keep_hours`. */
  journal_keep_ms: 3_600_000,
  /** Above it, settled segments are deleted before `journal_keep_ms` is over. Settings `ledger.journal_keep_bytes`, `…_hours`. */
  journal_keep_bytes_max: 1024 * 1024 * 1024,
  journal_keep_hours_max: 24 * 31,
  /** So much of its disk a journal keeps free, or this part of a small disk: settled segments go before their time for it. */
  journal_free_bytes_min: 32 * 1024 * 1024,
  journal_free_part: 4,
  /** After a failed write, when the next is tried. */
  journal_retry_ms: 1_000,
  /** One record of the journal. */
  journal_record_bytes_max: 4 * 1024 * 1024,
  /** Outcomes that the store does not have yet. */
  journal_unflushed_records_max: 50_000,
  /** Outcomes in one batch. */
  flush_batch_records_max: 500,
  /** How long a stopping node tries to hand its last outcomes to the store; what is left stays in the journal. */
  flush_stop_ms_max: 10_000,
  /** How long a request waits for money that lies idle at other nodes, and how often its node asks meanwhile. */
  recall_wait_ms: 700,
  recall_ask_ms: 25,
  /**
   * A call counts in the windows of the moment at which it came, unless that is so far from the store's time; which is asked
   * for where the clocks of this machine moved against each other by as much.
   */
  admission_clock_ms_max: 10_000,
  /** After a refusal, requests that need as much are refused without asking for so long. */
  refusal_ms: 100,
  /** Requests of one node that wait for money. */
  admissions_waiting_max: 10_000,
  /** A node that was heard of within this time counts as live. */
  node_live_ms: 10_000,
  /** Only what a node has set aside that was not heard of for so long can be released. */
  node_lost_ms: 60_000,
  /** `ledger verify` names so many differences. */
  verify_differences_max: 1_000,
  /** Gateway processes on one data directory. */
  slots_max: 128,
  database_busy_ms_max: 5_000,
  /** For how long a node may serve without the store, at most; setting `ledger.on_store_outage.serve_for`. */
  serve_without_store_seconds_max: 300,

  // Store

  /** A node that has heard nothing for so long no longer trusts what it remembers. */
  feed_silence_ms_max: 500,
  /** Wall time and monotonic time that moved against each other by more: the machine may have been suspended. */
  feed_clocks_ms_max: 250,
  /** Connections of a process to PostgreSQL, beside the one for notifications; setting `database.connections`. */
  database_connections: 4,
  database_connections_min: 2,
  database_connections_max: 100,
  /** How long a request waits for the store, all its reads together and anew once something was sent for it, before it is refused or goes on without. */
  store_read_ms_max: 1_000,
  /** How often the list of keys that are revoked on this node is looked at. */
  local_revocations_look_ms: 250,
  local_revocations_max: 10_000,
  local_revocations_bytes_max: 1024 * 1024,
  /** A clock of a machine that is further from the store's causes a warning. */
  store_skew_ms: 2_000,
  database_connect_ms_max: 5_000,
  /** What an item of the feed tells of its model. */
  feed_description_chars_max: 190,

  // Process, configuration and catalog

  /** After SIGTERM, how long running requests may finish; a setting. */
  shutdown_ms_max: 30_000,
  /** Before that, under an orchestrator, a gateway that is not ready any more serves on for so long; setting `timeouts.shutdown_grace_ms`. */
  shutdown_grace_ms: 2_000,
  shutdown_grace_setting_ms_max: 600_000,
  /** How long requests that are ended then may take to tell their clients, and once more to record their end. */
  shutdown_settle_ms_max: 2_000,
  /** Processes of one gateway. */
  workers_max: 64,
  config_bytes_max: 8 * 1024 * 1024,
  /** A file that holds one secret; the longest are credentials of cloud accounts, some KiB. */
  secret_file_bytes_max: 64 * 1024,
  /** YAML's aliases, which may stand for more than is written. */
  config_aliases_max: 100,
  /** How often the configuration file is looked at; it is read once it has stayed as it is from one look to the next. */
  config_watch_ms: 500,
} as const;
