/** Every bound of the service, in one place; the unit stands last in the name. Values that an operator may change are defaults here and settings in `config.ts`. */
export const limits = {
  /** A request body; setting `GATEWAY_BODY_BYTES_MAX`. */
  body_bytes_max: 64 * 1024 * 1024,
  body_bytes_setting_max: 1024 * 1024 * 1024,
  /** What a body may hold apart from its bytes, and each text in it that is read as JSON: values, levels, and keys of one object. */
  json_values_max: 500_000,
  json_levels_max: 256,
  json_keys_max: 10_000,
  /** From there on a request is written piece by piece, and walks over it have turns of their own, without a look at how long it is. */
  long_request_bytes_min: 256 * 1024,
  /** Longer JSON is written piece by piece, with others served in between; and how long a piece is. */
  json_long_chars_min: 1024 * 1024,
  json_piece_chars: 128 * 1024,
  /** What of a large body is copied or sent before others are served. */
  joined_slice_bytes: 1024 * 1024,
  /** Characters of a large body that are searched or hashed before others are served. */
  turn_work_chars: 4 * 1024 * 1024,
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
  /** Characters of an answer that wait to be counted; and of arguments of its calls, of which it is told whether they are JSON. */
  uncounted_chars_max: 256 * 1024,
  judged_arguments_chars_max: 1024 * 1024,
  /** Definitions of tools of a long request are estimated by their beginning. */
  tools_sample_chars: 256 * 1024,
  /** Longer data of a request are hashed once where they are asked for several times. */
  hashed_once_chars_min: 256 * 1024,
  /** Of longer arguments, and of a longer message, the ends tell a turn from others. */
  turn_identity_chars_max: 256 * 1024,
  header_bytes_max: 32 * 1024,
  /** What requests may hold of a process's memory together, as a share of V8's heap; setting `limits.memory_bytes`. */
  memory_heap_share_max: 0.5,
  memory_bytes_setting_min: 16 * 1024 * 1024,
  memory_bytes_setting_max: 1024 * 1024 * 1024 * 1024,
  /** What those of one key may hold of that, and what one request may take. */
  memory_owner_share_max: 0.75,
  /** A claim up to this part of all is small, and that part of all is kept for such. */
  memory_small_divisor: 256,
  memory_kept_divisor: 8,
  /** What a request takes from its beginning to its end, however small: measured, half again as much as it is. */
  request_bytes: 32 * 1024,
  /** A body takes so many times its length: received, read, written for an upstream, and sent. */
  body_copies: 4,
  /** What a Response object repeats of its request: written once, in its first two events and in its last, and sent. */
  repeated_copies: 6,
  /** An answer of an upstream: received, read, written for the client, and sent. */
  answer_copies: 4,
  /** Of a stream of small events so little is kept: what is around the text goes, and most of the text. */
  stream_kept_divisor: 16,
  /** What is fetched for a request: received, as base64, in what is written for an upstream, and sent. */
  media_copies: 5,
  /** Answers up to it are not counted; more of them, and bodies of unknown length, in such steps. */
  counted_bytes_min: 16 * 1024,
  counted_bytes_step: 64 * 1024,
  /** How long a request waits for memory, and one that an upstream has begun to answer, whose answer is paid for. */
  memory_wait_ms_max: 2_000,
  memory_answer_wait_ms_max: 10_000,
  memory_waiting_max: 1_000,
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
  /** A packed body is unpacked in pieces of so much. */
  inflated_chunk_bytes: 16 * 1024,
  /** Of one address this part of them; setting `http.connections_per_address_max`. */
  connections_address_divisor: 4,
  /** Files and sockets that are kept for the store, the journal and the catalog when connections are counted. */
  open_files_kept: 256,
  trusted_proxies_max: 100,
  /** A client that takes longer to send its request is cut off. */
  client_request_ms_max: 120_000,
  messages_max: 10_000,
  /** Parts of one item of the Responses API, and of all items or messages of a request. */
  item_parts_max: 10_000,
  input_parts_max: 50_000,
  models_max: 32,
  /** How often local servers are asked for their models, and what of an answer is read. */
  local_models_every_ms: 60_000,
  local_models_ms_max: 2_000,
  local_models_bytes_max: 1024 * 1024,
  local_models_max: 500,
  local_model_name_chars_max: 200,
  /** What `gateway/auto` spends at most where nobody has said what it chooses among: 3 and 15 USD per million tokens. */
  built_in_prompt_pico_max: 3_000_000,
  built_in_completion_pico_max: 15_000_000,
  /** A name that is no model's is compared with so many ids, if it is not longer than that, and up to so many letters apart. */
  near_models_max: 5_000,
  near_name_chars_max: 100,
  near_distance_max: 3,
  /** Of the providers that would serve a model so many are named. */
  unserved_providers_shown: 3,
  /** Prompts of one legacy completion; each is a call of its own. */
  completion_prompts_max: 64,
  completion_prompts_at_once: 8,
  /** Levels of what a client passes on to a provider. */
  option_levels_max: 100,
  /** Levels of a schema that it is asked of whether it is strict. */
  schema_levels_max: 100,
  /** What is put into one schema in place of its references. */
  schema_expanded_chars_max: 256 * 1024,
  /** Answers to one request (`n`), as OpenAI's API has it. */
  choices_max: 128,
  stop_sequences_max: 100,
  tools_max: 1_024,
  /** Of a function in the chat API; others take longer ones. */
  function_name_chars_max: 64,
  /** Handles of `x_search_filter`, each list (specification, "Limits"), and the characters of its dates. */
  x_handles_max: 10,
  date_chars_max: 40,
  /** The sentence of an error, and a field's name in it: clients may send longer ones. */
  error_message_chars_max: 1_000,
  error_field_chars_max: 100,
  /** Of the rules that one body breaks so many are told. */
  violations_max: 20,
  /** Values that are looked at to say in words what is wrong with a body; what is wrong in later ones is not told. */
  explained_values_max: 50_000,
  /** How many changes to one request are told: who breaks more of it than that sees why in these. */
  reports_max: 100,
  metadata_pairs_max: 16,
  metadata_key_chars_max: 64,
  metadata_value_chars_max: 512,
  session_id_chars_max: 256,
  attribution_chars_max: 512,
  /** What an application says it is of. */
  app_categories_max: 10,
  app_category_chars_max: 30,
  key_name_chars_max: 200,
  model_name_chars_max: 256,
  io_logging_keys_max: 1_000,
  workspace_name_chars_max: 100,
  workspace_slug_chars_max: 50,
  description_chars_max: 500,
  guardrail_name_chars_max: 200,
  guardrail_description_chars_max: 1_000,
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
  /** So many steps are compiled before others are served. */
  filter_compile_slice_steps: 4_000,
  /** Instructions of patterns that are looked for together, and the memory for the states that they are in. */
  filter_group_size_max: 3_000,
  filter_states_bytes_max: 1024 * 1024,
  /** Sets of filters that are kept compiled. */
  filter_sets_max: 64,
  filter_label_chars_max: 100,
  /** Countries whose telephone numbers are looked for without a calling code: each is tried at each number. */
  phone_regions_max: 32,
  /** How far apart words are looked for that make a phrase against a model's instructions, and what is read around them. */
  injection_apart_chars_max: 100,
  injection_reach_chars_before: 120,
  injection_reach_chars_after: 160,
  /** So many letters or groups in a row may be a word that is spelled out, with no more than so much between two. */
  injection_singles_min: 4,
  injection_groups_min: 6,
  injection_single_gap_chars_max: 4,
  /** Shorter ones than this hold no phrase in base64; so much of a text is decoded, and so often what was decoded. */
  injection_packed_chars_min: 16,
  injection_decoded_chars_max: 256 * 1024,
  injection_decoded_depth_max: 2,
  /** About so many words of one text that nothing is known of a library is asked whether they name a person, and with so much around them. */
  names_asked_max: 40,
  /** Characters that one request has analyzed, requests that wait for the thread, and questions to an analyzer at a time. */
  analyzed_chars_max: 4_000_000,
  analyses_waiting_max: 64,
  analyzer_requests_at_once: 4,
  /** What an analyzer answers about one text. */
  analyzer_answer_bytes_max: 8 * 1024 * 1024,
  name_context_chars: 60,
  filter_pattern_chars_max: 100_000,
  /** What a filter of a stream holds back for one match at most; a longer one is found where it stands whole. */
  filter_match_chars_max: 320,
  /** What an answer holds back of a text at most: what might be a longer match is taken for one, and followed so far. */
  filter_held_chars_max: 4_096,
  filter_growing_chars_max: 65_536,
  /** How far back what stands before a held match is held as well, since it would be read otherwise beside what stands for it. */
  filter_beside_chars_max: 640,
  filter_beside_looks_max: 24,
  /** What stands before a text that was held back, and what a filter may look at to tell whether something is a match. */
  filter_context_chars: 128,
  /** For finding the names and addresses of one request: the setting where none is given, and its most. Below the first heartbeat of a stream, so that a refusal keeps its status. */
  analysis_ms: 2_000,
  analysis_ms_max: 60_000,
  /** What of a request's texts is held against filters before others are served. */
  scan_slice_chars: 32_768,
  /** What looking at one text costs beside its characters, in characters; findings that are replaced before others are served. */
  scan_text_chars: 64,
  scan_findings_max: 5_000,
  /** What pieces of a long text have in common: a match that reaches further over their border may be missed. */
  scan_overlap_chars: 4_096,
  /** Texts of one request whose findings are remembered, and how long they may be: keys and words that repeat. */
  scan_remembered_max: 10_000,
  scan_remembered_chars_max: 200,
  /** A text that a guardrail is tried with. */
  tested_chars_max: 1_000_000,
  /** Findings of one request that are told one by one. */
  findings_told_max: 200,
  byok_name_chars_max: 255,
  byok_credential_chars_max: 16_384,
  byok_scope_entries_max: 100,
  /** Credentials of one workspace. */
  byok_credentials_max: 200,
  /** Workspaces and credentials, together, that a process remembers. */
  byok_remembered_max: 10_000,
  /** Users or keys that one request adds, removes or assigns. */
  bulk_entries_max: 100,
  /** The days that activity tells of. */
  activity_days_max: 30,
  page_records_max: 100,
  page_records_default: 50,
  /** How long a revocation waits for nodes that do not say that they heard of it. */
  announce_ms_max: 1_000,
  /** A node that has heard nothing for so long no longer trusts what it remembers. */
  feed_silence_ms_max: 500,
  /** Wall time and monotonic time that moved against each other by more: the machine may have been suspended. */
  feed_clocks_ms_max: 250,
  /** A node that serves sends itself a message so often through PostgreSQL, and stops when it served nobody for so long. */
  feed_beat_ms: 150,
  feed_rest_ms: 10_000,
  /** A message that did not come back for so long is worth a warning. */
  feed_warn_ms: 5_000,
  /** After a connection for notifications broke: doubled from the first to the last. */
  feed_retry_ms_min: 100,
  feed_retry_ms_max: 5_000,
  /** Processes on an embedded store look for changes of others so often, when they serve; a change waits longer than that. */
  feed_look_ms: 20,
  feed_settle_ms: 30,
  /** Management requests of one credential; setting `limits.management_requests_per_minute`. */
  management_requests_per_minute: 6_000,
  rate_limit_callers_max: 10_000,
  /** Free models, of one organization: the public service's limits (its documentation, "Limits"); settings of `rate_limits.free_models`. */
  free_requests_per_minute: 20,
  free_requests_per_day: 50,
  free_requests_per_day_funded: 1_000,
  free_funded_usd: 10,
  /** Counters of one node; patterns and keys that the settings name. */
  rate_counters_max: 20_000,
  rate_settings_max: 1_000,
  /** What a node takes at a time of what is left in a window: no more than this part of it, and no more than it uses in about so long. */
  rate_block_divisor: 8,
  rate_block_ms: 1_000,
  /** What a node took, and has too much of after so long, goes back. */
  rate_idle_ms: 1_000,
  rate_sweep_ms: 500,
  /** After a refusal, as much is refused without asking for so long. */
  rate_refusal_ms: 250,
  /** How long a request waits for the store to count it; after that none waits for so long. */
  rate_ask_ms_max: 1_000,
  rate_waiting_max: 10_000,
  /** How often one request asks: more than that, and others are always faster, or the store's clock makes no sense. */
  rate_asks_per_request_max: 50,
  /** Counters that the store is asked for at once; rows that one sweep deletes, and how often. */
  rate_asks_max: 128,
  rate_sweep_rows_max: 10_000,
  rate_store_sweep_ms: 600_000,
  /** An authorization code waits so long for its exchange, and survives so many wrong verifiers. */
  authorization_code_ms_max: 600_000,
  authorization_code_failures_max: 5,
  /** After its end a code is remembered so long, so that its late exchange is told why. */
  authorization_code_keep_ms: 3_600_000,
  /** Codes of one user that wait, and applications of one organization. */
  authorization_codes_waiting_max: 1_000,
  apps_max: 10_000,
  /** A key that was made with an API key, that with another, and so on: so many of them one above the other; and so many keys below one ordinary key. */
  key_ancestors_max: 3,
  key_descendants_max: 1_000,
  authorization_code_chars_max: 256,
  code_verifier_chars_max: 512,
  callback_url_chars_max: 2_048,
  key_label_chars_max: 100,
  /** So many rows of parameters go into one statement. */
  statement_rows_max: 500,
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
  /** The form of a page, and the exchange of a code: what anybody may send. */
  form_bytes_max: 16 * 1024,
  return_path_chars_max: 8_192,
  /** The value of a cookie; browsers take 4096 bytes with its name and attributes (RFC 6265, section 6.1). */
  cookie_bytes_max: 3_800,
  state_chars_max: 1_024,
  /** A sign-in at an OpenID Connect issuer: how long a person may take, and how long each question to the issuer. */
  issuer_sign_in_ms_max: 600_000,
  issuer_ms_max: 10_000,
  /** What an issuer tells about itself is asked again after so long. */
  issuer_metadata_ms_max: 3_600_000,
  issuer_body_bytes_max: 1024 * 1024,
  user_name_chars_max: 200,
  email_chars_max: 320,
  /** Above it, nano-USD no longer fit an exact JavaScript integer. */
  usd_max: 9_007_199,

  /** What one attempt is charged at most: a price or a count that leads above it is a mistake, and sums stay exact. */
  charge_usd_max: 1_000_000,

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
  /** More values than that in an answer for each input that is made a vector; and in a transcript, which has some for each word. */
  embedding_answer_values_max: 16_384,
  transcript_values_max: 2_000_000,
  /** Parts of one answer. Beyond one of these it ends as a failure, which is charged for what came. */
  answer_calls_max: 2_000,
  answer_annotations_max: 10_000,
  answer_details_max: 10_000,
  answer_images_max: 1_000,
  answer_blocks_max: 5_000,
  /** Places of our code that are logged because a decoder failed there, and the calls that each is logged with. */
  decoder_faults_logged_max: 100,
  decoder_fault_frames_max: 8,
  /** Steps of other models that the usage of one answer counts. */
  usage_iterations_max: 200,
  /** Events of a stream, and what they are read as, that are handed on before others are served. */
  stream_slice_frames: 128,
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
  /** What rebuilds a turn in the last reasoning detail of an answer, packed; above, less of it. */
  seal_chars_max: 16 * 1024,
  /** The same unpacked: a request may hold thousands of seals. */
  seal_unpacked_bytes_max: 128 * 1024,
  /** What the seals of one request unpack to together: they pack so well that a small request of them could be very large. */
  seals_unpacked_bytes_max: 32 * 1024 * 1024,
  /** Blocks of a stream that wait for the one before them, as JSON; an upstream that interleaves more breaks off. */
  waiting_blocks_chars_max: 8 * 1024 * 1024,
  /** Reasoning of one wire on its way through a client of another, packed; above, it is left out. */
  envelope_chars_max: 1024 * 1024,
  /** What is remembered of one turn, and of all: by a process, and in the store. */
  turn_state_chars_max: 512 * 1024,
  turn_states_chars_max: 64 * 1024 * 1024,
  turn_states_max: 200_000,
  turn_states_stored_chars_max: 1024 * 1024 * 1024,
  turn_states_remembered_max: 50_000,
  /** Of the turns of one request, so many of the last are looked up. */
  turn_lookups_max: 128,
  /** Remembered turns are written so many at once; so many more may wait for a store that fails. */
  turn_batch_max: 100,
  turns_unwritten_max: 5_000,
  turns_unwritten_chars_max: 64 * 1024 * 1024,
  turn_write_retry_ms: 1_000,
  /** That the store has nothing of a turn is believed so long: another process may just be writing it. */
  turn_absence_ms: 10_000,
  /** How long a request waits for the store to say what it has of former turns. */
  turn_read_ms_max: 500,
  turn_sweep_ms: 60_000,
  turn_sweep_rows_max: 10_000,
  turn_state_hours: 24,
  /** Of a stored response with its conversation, as JSON; a longer one is not stored. */
  stored_response_chars_max: 8 * 1024 * 1024,
  /** Of all stored responses, as they are stored; beyond it the oldest go. */
  stored_responses_chars_max: 8 * 1024 * 1024 * 1024,
  stored_response_days: 30,
  /** How long an answer waits to be stored; it is then told that it is not. */
  stored_response_write_ms_max: 5_000,
  stored_response_sweep_ms: 600_000,
  stored_response_sweep_rows_max: 1_000,
  /** Of what is kept of a call (I/O logging): its request, its answer, its error. What is longer is cut, and says so. */
  logged_input_chars_max: 768 * 1024,
  logged_output_chars_max: 256 * 1024,
  logged_error_chars_max: 32 * 1024,
  logged_depth_max: 64,
  /** Of longer media no hash is kept. */
  logged_media_hashed_chars_max: 4 * 1024 * 1024,
  /** Of longer addresses of media the length alone is kept. */
  logged_address_chars_max: 64 * 1024,
  /** A tool call that is numbered so far beyond those before it is not kept. */
  logged_call_gap_max: 128,
  /** What waits to be written: beyond it the oldest is lost, and counted. */
  logged_queue_entries_max: 2_000,
  logged_queue_chars_max: 32 * 1024 * 1024,
  /** Stubs that wait to be written, of calls whose content was dropped: beyond it the oldest is lost, and counted. */
  logged_stubs_max: 20_000,
  /** Written so many, or so much, at a time, and so long after they came. */
  logged_batch_entries_max: 200,
  logged_batch_chars_max: 4 * 1024 * 1024,
  logged_gather_ms: 100,
  logged_retry_ms: 1_000,
  logged_stop_ms_max: 5_000,
  /** Of one workspace, and of all, as it is stored; beyond it the oldest goes. */
  logged_workspace_chars_max: 1024 * 1024 * 1024,
  logged_contents_chars_max: 8 * 1024 * 1024 * 1024,
  logged_content_days: 30,
  logged_content_days_max: 3_650,
  logged_sweep_ms: 600_000,
  logged_sweep_rows_max: 1_000,
  /** Whose lengths are added up in one question. */
  logged_sum_rows: 20_000,
  /** Once so much was written, what is beyond the bounds is looked for before its time. */
  logged_unswept_chars_max: 128 * 1024 * 1024,
  /** Requests that a draft of a guardrail is tried on, and those read from the store at a time. */
  replay_requests_max: 1_000,
  replay_requests_default: 100,
  replay_page_rows: 20,
  replay_examples_max: 100,
  replay_ms_max: 20_000,
  /** Destinations of the broadcast; what waits for each: beyond it the oldest is lost, and counted. */
  broadcast_destinations_max: 10,
  broadcast_queue_entries_max: 5_000,
  broadcast_queue_chars_max: 16 * 1024 * 1024,
  /** Sent so many, or so much, at a time, and so long after they came. A collector takes 20 MiB (OTLP specification, OTLP/HTTP Request). */
  broadcast_batch_entries_max: 200,
  broadcast_batch_chars_max: 4 * 1024 * 1024,
  broadcast_gather_ms: 1_000,
  broadcast_timeout_ms: 10_000,
  broadcast_answer_bytes_max: 64 * 1024,
  /** A batch is given up after so many tries; between them it waits longer each time. */
  broadcast_tries_max: 8,
  broadcast_retry_ms: 500,
  broadcast_retry_ms_max: 30_000,
  broadcast_stop_ms_max: 3_000,
  /** Of one call's messages, and of its answer, in a broadcast. */
  broadcast_content_chars_max: 64 * 1024,
  /** Fields of `trace` and `metadata`, and the characters of each. */
  broadcast_fields_max: 32,
  broadcast_field_chars_max: 1_024,
  /** What is lost of one kind is told in the log so often. */
  loss_notice_ms: 60_000,
  /** A count of tokens or searches above it is no count: what an upstream tells then is not believed. */
  usage_count_max: 1_000_000_000,
  /** What of an upstream's error text is shown to a client. */
  upstream_raw_chars_max: 2_000,
  /** An id, a finish reason or a tier of an upstream's, as records keep it. */
  upstream_word_chars_max: 256,
  /** Places that are filled in before those that the arguments of a call name out of order. */
  argument_padding_max: 100_000,
  upstream_connections_per_origin_max: 1_024,
  /** A connection to an upstream or a service that nothing is asked on is closed. */
  unused_connection_ms_max: 10_000,
  /** A PDF that is read here: its bytes, what it may claim and hold, how long it may take, and what a reader may hold of memory meanwhile. */
  pdf_bytes_max: 32 * 1024 * 1024,
  pdf_pages_max: 1_000,
  pdf_chars_max: 4_000_000,
  pdf_ms_max: 15_000,
  pdf_heap_mb_max: 192,
  /** One buffer of a reader, and all: an unpacked stream is one. */
  pdf_buffer_bytes_max: 64 * 1024 * 1024,
  pdf_buffers_bytes_max: 256 * 1024 * 1024,
  pdf_page_items_max: 500_000,
  /** Readers at once, and files that wait for one: all, and of one key. A reader that has nothing to do ends. */
  pdf_readers_max: 2,
  pdf_waiting_max: 64,
  pdf_waiting_per_owner_max: 16,
  pdf_wait_ms_max: 30_000,
  worker_idle_ms_max: 30_000,
  worker_look_ms: 20,
  worker_start_ms_max: 15_000,
  /** What a process of such work takes before it works, and its garbage. */
  worker_own_bytes_max: 160 * 1024 * 1024,
  /** An engine that reads pictures of pages: its time, and its answer. */
  ocr_ms_max: 120_000,
  ocr_answer_bytes_max: 32 * 1024 * 1024,
  /** Files of one request that are read, and the text of them all; a file's name in the text. */
  parsed_files_max: 32,
  parsed_chars_max: 8_000_000,
  file_name_chars_max: 200,
  /** What earlier answers say that their files hold: so many are looked at. */
  file_annotations_max: 256,
  /** Repair of an answer: its text, its schema, how long it may take, what it may hold, and how many wait. */
  healed_chars_max: 1_000_000,
  healing_schema_chars_max: 256 * 1024,
  healing_ms_max: 2_000,
  healing_heap_mb_max: 128,
  healing_waiting_max: 64,
  healing_waiting_per_owner_max: 16,
  /** Endpoints that read no more have their prompts shortened where nobody says otherwise (public service's documentation, "Message transforms"). */
  compressed_context_tokens_max: 8_192,
  /** Messages of a prompt that is shortened, at upstreams of the Messages API (the same page). */
  compressed_messages_max: 1_000,
  /** Output that a shortened prompt leaves room for where the request names no bound, at most this part of the context. */
  compressed_output_tokens: 1_024,
  compressed_output_divisor: 4,
  /** To search engines, analyzers, collectors: each. */
  service_connections_per_origin_max: 64,
  service_connect_ms_max: 5_000,
  /** One web search: how long in all, how often it is tried, and how much an engine may answer. */
  web_search_ms_max: 15_000,
  web_search_tries_max: 2,
  web_search_bytes_max: 8 * 1024 * 1024,
  /** Results that a search may be asked for (specification, "Limits"), and where nothing is said. */
  web_results_max: 25,
  web_results_default: 5,
  /** Of all searches of one call (public service's schema, `max_total_results`). */
  web_results_total_default: 50,
  web_results_total_max: 1_000,
  /** Uses of one tool in a call: as many as calls may have steps. */
  web_uses_max: 50,
  web_place_chars_max: 100,
  /** The words around the results of the plugin `web`, where a request brings its own. */
  web_prompt_chars_max: 10_000,
  web_page_tokens_max: 100_000,
  /** A page that a model asks for: what is read of it, what of its text the model sees, and how that is gone through. */
  page_bytes_max: 4 * 1024 * 1024,
  page_tokens_default: 25_000,
  page_bytes_per_token: 4,
  page_slice_chars: 16 * 1024,
  page_head_bytes: 2_048,
  page_depth_max: 1_000,
  page_parse_ms_max: 1_000,
  /** Characters of one result's content, by `search_context_size` as the public service has it for Exa, and where nothing is said. */
  web_result_chars_max: 100_000,
  web_result_chars_default: 3_000,
  web_result_chars_by_size: { low: 5_000, medium: 15_000, high: 30_000 },
  web_title_chars_max: 300,
  web_url_chars_max: 2_048,
  /** A query as it is sent, and what single engines take of it; SearXNG's is part of an address. */
  web_query_chars_max: 400,
  firecrawl_query_chars_max: 500,
  parallel_query_chars_max: 200,
  searxng_query_chars_max: 1_000,
  /** Entries of one list of domains, and how many of them are told an engine. */
  web_domains_max: 200,
  web_domains_sent_max: 100,
  web_operators_max: 10,
  /** Entries of a provider's own filter (their documentation: see `src/plugins/web/native.ts`). */
  native_domains_max: { openai: 100, xai: 5, perplexity: 20 },
  /** What one request may have fetched for it: how many addresses, how long each, how much of each and in all. */
  media_urls_max: 64,
  media_url_chars_max: 8_192,
  /** Of what a request points at, whoever fetches it. */
  address_chars_max: 65_536,
  addresses_max: 10_000,
  media_ms_max: 20_000,
  media_connect_ms_max: 5_000,
  media_bytes_max: 32 * 1024 * 1024,
  media_request_bytes_max: 64 * 1024 * 1024,
  media_redirects_max: 5,
  /** Fetches at once: of one request, and of all. */
  media_fetches_per_request_max: 4,
  media_fetches_max: 16,
  media_fetches_per_owner_max: 8,
  /** Fetches that wait for their turn: all, and those of one key. */
  media_fetches_waiting_max: 256,
  media_fetches_waiting_per_owner_max: 128,
  /** Bytes of an answer held for a reader that is slower than the upstream; above, the connection is paused. */
  upstream_unread_bytes_max: 64 * 1024,
  /** HTTP chunks of one answer that are read before others are served: a read holds 10,000 chunks of one byte each. */
  upstream_turn_pieces_max: 512,
  /** The output bound sent where the wire needs one and neither the request nor the catalog names one. */
  output_tokens_default: 8_192,
  /** The same of a request under a spend limit, which has a bound on every wire, where the model's own is not known. */
  output_tokens_unknown: 16_384,
  /** The smallest output bound that is sent for want of money; setting `ledger.min_output_tokens`. */
  output_tokens_min: 16,
  /** What an upstream's template may add to a prompt: its own system text and marks; with tools, their instructions; with a schema, its. */
  template_tokens_max: 256,
  template_tools_tokens_max: 1_024,
  template_schema_tokens_max: 512,
  /** No token of a known vocabulary is longer, so that a prompt has at least so many; and about how long tokens are. */
  chars_per_token_max: 128,
  chars_per_token: 4,
  /** Of so much of a prompt the tokens are counted where a rough count will do. */
  prompt_sample_chars: 128,
  /** The context length that the listing shows of an endpoint of which nobody says it: the specification wants a number there. */
  context_tokens_assumed: 32_768,
  /** The prompt bound of a model whose context length is not known, where its parts do not tell it. */
  prompt_tokens_unknown: 1_048_576,
  /** Provider-run searches that a request may cause where it does not bound them. */
  web_searches_assumed: 10,
  /** Calls of the gateway's own tools in one answer, and how many of them run at a time, for how long, and with how much to tell. */
  server_tool_calls_max: 30,
  server_tools_at_once_max: 8,
  stop_conditions_max: 16,
  server_tool_ms_max: 60_000,
  server_tool_result_chars_max: 400_000,
  /** Citations that are placed in one answer, the label of one's link, and what is told of its source. */
  citations_max: 200,
  citation_label_chars_max: 500,
  citation_content_chars_max: 1_000,
  /** Text of an answer that broke off, up to which another endpoint may go on with it; and how often in one call. */
  continued_chars_max: 64 * 1024,
  continuations_max: 2,
  /** Text at the beginning of a continuation that repeats what was shown counts as such from so many characters on; and where it is all that was shown. */
  overlap_chars_min: 16,
  overlap_whole_chars_min: 4,
  /** An answer that shares so many first characters with what was shown, and then differs, was begun anew. */
  restart_chars_min: 32,
  /**
   * Of the calls that may be sent to a second endpoint, the share that is (setting `routing.hedge_share`), and how many in a row.
   * No endpoint is late before so many milliseconds; an attempt that is given up is waited for so long.
   */
  hedge_share_max: 0.1,
  hedge_burst_max: 10,
  hedge_ms_min: 20,
  hedge_abort_ms_max: 250,
  /** How often the money for a second attempt is looked for. */
  hedge_tries_max: 8,
  /** Of what is left of a spend limit, what the answer to a request that names no output bound may cost at most. */
  default_hold_share: 0.25,
  /** A sliced hold pays for so many output tokens at a time; where the money runs short, for less, down to the second. */
  hold_slice_tokens: 1_024,
  hold_slice_tokens_min: 32,
  /** By our count, an answer may pass its bound by so many tokens and this factor before it is cut: our count is no tokenizer. */
  overrun_tokens_max: 256,
  overrun_factor_max: 2,
  /** What the tokenizer is given of one request; what is longer is bounded by its bytes. */
  tokenized_chars_max: 256 * 1024,
  /** A count that takes longer, the loading of the vocabulary included, is not waited for. */
  tokenizer_ms_max: 2_000,
  /** Counts that wait for the tokenizer; further ones are bounded by their bytes. */
  tokenizer_waiting_max: 64,
  /** Breakpoints of the prompt cache in one request (Anthropic, documentation page "Prompt caching"). */
  cache_breakpoints_max: 4,
  /** A part of a credential of several parts that is cut out of what an upstream says; shorter ones are names, as of a region. */
  credential_part_chars_min: 16,
  /** So much of a credential is looked for in what a provider says, in every way of writing it. */
  credential_echo_chars_max: 4_096,
  /** The name of a document (Amazon Bedrock, `DocumentBlock`). */
  document_name_chars_max: 200,
  /** Pairs of request metadata, and the characters of each side (Amazon Bedrock, `Converse`). */
  request_metadata_max: 16,
  request_metadata_chars_max: 256,
  tool_name_chars_max: 64,
  /** Tools that are described in a prompt (endpoints without native tools): all descriptions, one call, and the white space next to one. */
  tool_template_chars_max: 400_000,
  tool_template_call_chars_max: 262_144,
  tool_template_gap_chars_max: 64,
  /** Pieces of a streamed answer that are held back until the call comes that its request forces. */
  chunks_before_call_max: 32_768,
  tool_call_id_chars_max: 64,
  /** The range of a manual thinking budget (Anthropic, documentation page "Extended thinking"; the public API's own upper end). */
  thinking_budget_tokens_min: 1_024,
  thinking_budget_tokens_max: 128_000,
  /** What a thinking budget leaves for the answer (Cohere, documentation page "Reasoning"), where the output bound is five times that. */
  answer_tokens_min: 1_000,

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
  /** Fast speech, in a script of which each character is a token; and what a model may think before it writes any. */
  transcript_tokens_per_second: 20,
  transcript_tokens_min: 8_192,
  /** Tokens that a second of sound counts at most: 32 at Google (https://ai.google.dev/gemini-api/docs/audio), 10 at OpenAI. */
  sound_tokens_per_second: 40,
  /** How often a provider that works in the background is asked whether it is done: first, and at last. */
  transcription_poll_ms_min: 500,
  transcription_poll_ms_max: 5_000,
  /** Words to expect, of one request. */
  transcription_prompt_chars_max: 16_384,
  /** Parts of a form with files, what stands before each, and a field that is no file. */
  form_parts_max: 100,
  form_head_bytes_max: 4 * 1024,
  form_field_bytes_max: 64 * 1024,
  /** So many questions in a row may fail before it is given up. */
  transcription_poll_failures_max: 5,

  /** Accounts of Google whose tokens are remembered; how long before its end a token is no longer used, and how long one is waited for. */
  google_accounts_max: 1_000,
  google_token_margin_ms: 300_000,
  google_token_ms_max: 10_000,
  /** An account that Google refused is not shown again for so long, and one that it could not be asked about for so long. */
  google_refusal_ms: 30_000,
  google_failure_ms: 1_000,
  /** How long the statement is good that a token is got for: the most that Google takes. */
  google_assertion_s: 3_600,
  /** Google makes keys of 2048 bits, and takes longer ones that were uploaded (https://cloud.google.com/iam/docs/keys-upload). */
  google_key_bits_max: 4_096,

  upstream_connect_ms_max: 10_000,
  upstream_headers_ms_max: 300_000,
  upstream_first_token_ms_max: 300_000,
  upstream_idle_ms_max: 120_000,
  /** What is read of a stream after the end of its answer: for so long, and so many bytes. */
  upstream_tail_ms_max: 1_000,
  upstream_tail_bytes_max: 64 * 1024,
  upstream_total_ms_max: 3_600_000,
  /** How long a provider is waited for that counts the tokens of a prompt. */
  token_count_ms_max: 5_000,
  attempts_max: 16,
  /** Of a plan, and of what was left out of it, so many endpoints are kept in a generation's record. */
  routing_recorded_max: 8,
  /** A request is not encoded for more endpoints of its plan once so much was, where it is only explained. */
  explained_chars_max: 8_000_000,
  /** Tokens of an answer, where only what it is expected to cost is told. */
  expected_completion_tokens: 500,
  /** Over so many answers the usual length is found, and of so many endpoints it is known. */
  usual_output_answers: 64,
  usual_output_endpoints_max: 10_000,
  /** Inputs of one request for embeddings, and the dimensions asked for. */
  embedding_inputs_max: 10_000,
  embedding_dimensions_max: 100_000,
  /** What a provider may add to each input of its own: a prompt for queries or documents, marks of the vocabulary. */
  embedding_template_tokens_max: 64,
  /** Requests that one attempt at embeddings has under way at a time, where its inputs are too many for one. */
  embedding_requests_at_once_max: 8,
  /** Requests of one such attempt in all. */
  embedding_requests_max: 2_048,
  /** A client that does not read for this long is gone. */
  client_stall_ms_max: 120_000,

  heartbeat_first_ms: 3_000,
  heartbeat_ms: 5_000,
  /** After a client left, how long and how much of an upstream that bills anyway is still read. */
  drain_ms_max: 60_000,
  drain_bytes_max: 4 * 1024 * 1024,
  /** The same of an answer that was cut. */
  drain_tokens_max: 1_000_000,
  /** After SIGTERM, how long running requests may finish; a setting. */
  shutdown_ms_max: 30_000,
  /** Before that, under an orchestrator, a gateway that is not ready any more serves on for so long; setting `timeouts.shutdown_grace_ms`. */
  shutdown_grace_ms: 2_000,
  shutdown_grace_setting_ms_max: 600_000,
  /** How long requests that are ended then may take to tell their clients, and once more to record their end. */
  shutdown_settle_ms_max: 2_000,
  /** A second signal within this time is the first one's echo: a terminal, a supervisor and a parent may all send it. */
  signal_echo_ms: 1_000,
  shutdown_poll_ms: 50,
  /** Answers from changing state (metrics, listings with the health of endpoints) are made so often in a row, then only for a tenth of the time, or once in so long. */
  answers_made_burst: 30,
  answer_made_ms_max: 1_000,
  readiness_ms_max: 1_000,
  metrics_ms_max: 5_000,
  /** How long the parent of workers waits for one of them when it adds up their metrics. */
  metrics_worker_ms_max: 2_000,
  workers_max: 64,
  /** A worker that lived this long did not die of its start. */
  worker_stable_ms: 5_000,
  worker_restart_ms_min: 100,
  worker_restart_ms_max: 10_000,

  /** Log lines are written when so much has gathered, or after this time. */
  log_gather_chars: 64 * 1024,
  log_gather_ms_max: 100,
  /** Of the path of a request that no operation has. */
  logged_path_chars_max: 200,
  /** Lines that wait while standard output takes none, more are lost; and how long a process that ends tries to write its last to a slow reader. */
  log_waiting_chars_max: 8 * 1024 * 1024,
  log_stop_ms_max: 2_000,

  /** A conversation that was silent for so long may go elsewhere; so many are remembered by a process; so much of a message tells them apart. */
  sticky_ms: 600_000,
  sticky_conversations_max: 50_000,
  conversation_chars_max: 4_096,
  /** Patterns of models in the plugin `auto-router`, as at the public service. */
  model_patterns_max: 1_024,
  model_pattern_chars_max: 1_024,
  model_patterns_chars_max: 65_536,
  /** Models that a router chooses among. */
  router_models_max: 100,

  health_endpoints_max: 10_000,
  /** Values of one label of a metric; further ones are counted as `other`. */
  metric_label_values_max: 2_000,
  cool_down_ms_default: 10_000,
  /** Longer ones cost more than the failures that they avoid (`npm run bench -- --only routing`). */
  cool_down_ms_max: 120_000,
  retry_after_ms_max: 3_600_000,
  /** After a cool-down, how long the outcome of the one attempt that was let through is waited for. */
  cool_down_trial_ms_max: 30_000,
  /** A stream that has not begun after so many times its endpoint's 99th percentile, and after so long, speaks against the endpoint. */
  silence_factor: 4,
  silence_ms_min: 10_000,
  /** An outage is recent for so long, and one where at least this share of the attempts failed meanwhile. */
  outage_recent_ms: 30_000,
  outage_share_min: 0.05,
  /** Percentiles are right to this share of their value. */
  sketch_accuracy: 0.01,
  sketch_chars_max: 12_000,
  /** Of fewer calls no share is told, and fewer of the last five minutes are filled up with those of the last thirty. */
  uptime_calls_min: 10,
  percentile_calls_min: 10,
  /** Below it an endpoint is shown as degraded, and as down (public service, guide "For providers"). */
  uptime_degraded_percent: 95,
  uptime_down_percent: 80,
  /** An answer that came in less time after its first token came in one piece. */
  throughput_ms_min: 20,
  /** What routing knows of an endpoint is worked out anew so often, where it is asked for. */
  performance_fresh_ms: 1_000,
  /** Rows of statistics that a process keeps of others, or has to write; and the characters of the sketches in those of others. */
  statistics_rows_max: 100_000,
  statistics_chars_max: 32 * 1024 * 1024,
  /** Statistics are written, and those of others read, so often; so many rows at a time, and so many batches in one go. */
  statistics_exchange_ms: 5_000,
  statistics_batch_rows: 200,
  statistics_batches_max: 20,
  statistics_page_rows: 2_000,
  /** Read again what was written up to so long before the last reading: a slow transaction shows late. */
  statistics_overlap_ms: 15_000,
  statistics_sweep_ms: 60_000,
  statistics_sweep_rows_max: 10_000,
  /** Rows of minutes and of quarter hours are kept in the store so long, and so many in all. */
  statistics_minutes_keep_ms: 45 * 60_000,
  statistics_quarters_keep_ms: 26 * 3_600_000,
  statistics_minute_rows_max: 100_000,
  statistics_quarter_rows_max: 1_000_000,
  /** Endpoints without calls are looked for so often, and so many are probed at a time; setting `probes`. */
  probes_look_ms: 5_000,
  probes_per_round_max: 20,
  /** The next one waits so long for a probe, and none is sent while so many have no answer yet. */
  probe_wait_ms: 2_000,
  probes_under_way_max: 20,
  probes_every_minutes: 15,
  /** How long a stopping process tries to write its last. */
  statistics_stop_ms_max: 2_000,

  key_cache_entries_max: 10_000,
  key_cache_ms_max: 10_000,

  journal_progress_ms: 2_000,
  journal_segment_bytes_max: 16 * 1024 * 1024,
  /** How often slots are looked for that a gateway died in. */
  slots_look_ms: 5_000,
  journal_keep_ms: 3_600_000,
  /** Above it, settled segments are deleted before `journal_keep_ms` is over. Settings `ledger.journal_keep_bytes`, `…_hours`. */
  journal_keep_bytes_max: 1024 * 1024 * 1024,
  journal_keep_hours_max: 24 * 31,
  /** So much of its disk a journal keeps free, or this part of a small disk: settled segments go before their time for it. */
  journal_free_bytes_min: 32 * 1024 * 1024,
  journal_free_part: 4,
  /** How often the free space is looked at. */
  journal_space_ms: 1_000,
  /** On a full disk the segment being written is left for a new one, so that it can go, where it is as large as this. */
  journal_leave_bytes_min: 64 * 1024,
  /** A small disk has room for so many segments. */
  journal_segments_per_disk: 16,
  /** How often segments are put away, refused outcomes tried again, and the journal's file looked after. */
  journal_sweep_ms: 60_000,
  /** After a failed write, when the next is tried. */
  journal_retry_ms: 1_000,
  /** What is still open after so long is written again into the newest segment, so that the old one can go. */
  journal_carry_ms: 3_600_000,
  journal_record_bytes_max: 4 * 1024 * 1024,
  journal_unflushed_records_max: 50_000,
  flush_interval_ms: 100,
  flush_batch_records_max: 500,
  /** So many outcomes are flushed without waiting for `flush_interval_ms`. */
  flush_eager_records: 500,
  /** After a failed flush: doubled from the first to the last. */
  flush_retry_ms: 100,
  flush_retry_ms_max: 5_000,
  /** A batch that failed so often, while the store takes other writes, is divided. */
  flush_refusals_max: 3,
  /** How long a reader of usage waits for this node's last outcomes to be in it. */
  flush_read_ms_max: 500,
  /** How long a stopping node tries to hand its last outcomes to the store; what is left stays in the journal. */
  flush_stop_ms_max: 10_000,
  /** How long a start asks providers about attempts that were under way, how many at once, and how often where one still runs. */
  lookups_ms_max: 5_000,
  /** What a provider answers to the question of one lost attempt. */
  lookup_answer_bytes_max: 64 * 1024,
  lookups_at_once_max: 16,
  lookup_again_ms: 100,
  /** How long a request waits for money that lies idle at other nodes, and how often its node asks meanwhile. */
  recall_wait_ms: 700,
  recall_ask_ms: 25,
  /**
   * A call counts in the windows of the moment at which it came, unless that is so far from the store's time; which is asked
   * for where the clocks of this machine moved against each other by as much.
   */
  admission_clock_ms_max: 10_000,
  /** A node's wish for what is idle elsewhere stands so long before another's may take its place. */
  claim_ms: 120,
  /** A node that gave back what another wished for asks for none of it for so long. */
  claim_yield_ms: 40,
  /** A node with leases looks so often whether they are wanted. */
  lease_watch_ms: 250,
  /** A lease that nobody used for so long goes back. */
  lease_idle_ms: 5_000,
  /** A lease holds what its node spends in about so long, where the limit is far. */
  lease_span_ms: 2_000,
  /** After a refusal, requests that need as much are refused without asking for so long. */
  refusal_ms: 100,
  /** A reservation that is only looked at looks so often at most, so long apart, for a moment at which no batch is on its way. */
  preview_tries_max: 10,
  preview_again_ms: 2,
  /** Above so many, windows that this node has nothing of are forgotten. */
  leases_remembered: 1_000,
  /** Requests of one node that wait for money. */
  admissions_waiting_max: 10_000,
  /** A node that was heard of within this time counts as live. */
  node_live_ms: 10_000,
  /** Only what a node has set aside that was not heard of for so long can be released. */
  node_lost_ms: 60_000,
  /** How often lost nodes are looked for, where what they have set aside is booked as spent; setting `ledger.lost_node_release_after`. */
  lost_nodes_look_ms: 15_000,
  /** How often the store is asked what lost nodes have set aside. */
  doubt_read_ms: 15_000,
  /** `ledger verify` names so many differences. */
  verify_differences_max: 1_000,
  /** Why credits were given, or a charge was corrected. */
  reason_chars_max: 500,
  /** Gateway processes on one data directory. */
  slots_max: 128,
  database_busy_ms_max: 5_000,
  /** How long a statement waits for the process's one SQLite writer. */
  database_turn_ms_max: 30_000,
  /** Prepared statements kept per SQLite connection. */
  database_statements_max: 100,
  /** Connections of a process to PostgreSQL, beside the one for notifications; setting `database.connections`. */
  database_connections: 4,
  database_connections_min: 2,
  database_connections_max: 100,
  /** After a server refused a connection, when the next is tried: doubled from the first to the last. */
  pool_retry_ms_min: 50,
  pool_retry_ms_max: 1_000,
  /** A connection that nobody used for so long is closed, unless it is the last. */
  pool_idle_ms: 10_000,
  /** How long a request waits for the store, all its reads together and anew once something was sent for it, before it is refused or goes on without. */
  store_read_ms_max: 1_000,
  /** For how long a node may serve without the store, at most; setting `ledger.on_store_outage.serve_for`. */
  serve_without_store_seconds_max: 300,
  /** How often the list of keys that are revoked on this node is looked at. */
  local_revocations_look_ms: 250,
  local_revocations_max: 10_000,
  local_revocations_bytes_max: 1024 * 1024,
  /** How often a store that does not answer is asked whether it does again. */
  store_probe_ms: 250,
  /** An answer of the store that was on its way for longer does not tell its time, where that is known. */
  store_clock_way_ms_max: 500,
  /** A machine's clock that is further from the store's is warned of. */
  store_skew_ms: 2_000,
  database_connect_ms_max: 5_000,
  database_statement_ms_max: 30_000,

  config_bytes_max: 8 * 1024 * 1024,
  /** A file that holds one secret; the longest are credentials of cloud accounts, some KiB. */
  secret_file_bytes_max: 64 * 1024,
  /** YAML's aliases, which may stand for more than is written. */
  config_aliases_max: 100,
  /** A larger one is read by a thread of its own while the gateway serves: it takes 0.6 s for each MB. */
  config_inline_chars_max: 32 * 1024,
  /** How often the configuration file is looked at; it is read once it has stayed as it is from one look to the next. */
  config_watch_ms: 500,
  /** Before its last day, how long the log warns of a model; how often, and of how many by name. */
  expiry_notice_days: 30,
  expiry_notice_ms: 86_400_000,
  expiry_notices_max: 20,
  /** Lines of what a reload changed; what is beyond them is counted. */
  reload_lines_max: 100,
  /** A price of one token, image, request or search; above it, pico-USD no longer fit an exact JavaScript integer. */
  unit_price_usd_max: 9_007,
  management_key_chars_min: 32,
  /** What `catalog refresh` reads. */
  catalog_bytes_max: 64 * 1024 * 1024,
  catalog_download_ms_max: 60_000,
  catalog_redirects_max: 5,
  /** The command `health`: below the time that a container waits for it. */
  health_ms_max: 4_000,
  health_chars_max: 10_000,
  /** Answers about the catalog that are kept ready, one for each choice of filters. */
  /** The end user that a key is for. */
  key_external_user_chars_max: 256,
  /** Of a list of names in a query of models. */
  model_filter_chars_max: 1_000,
  model_age_days_max: 36_500,
  models_page_max: 1_000,
  catalog_answers_max: 256,
  catalog_answers_bytes_max: 48 * 1024 * 1024,
  /** Models whose use by a key is worked out in one turn of the loop. */
  usable_models_at_once: 100,
  /** What an item of the feed tells of its model. */
  feed_description_chars_max: 190,
} as const;
