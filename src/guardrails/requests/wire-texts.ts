import { limits } from '../../limits.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import type { Place, Visit } from '../text-places.ts';
import { fileTexts } from './file-texts.ts';

/** Fields whose values are words of a wire. */
const WORD_FIELDS = new Set(
  (
    'type role object status detail format mode media_type mime_type mimeType phase effort ttl syntax service_tier execution ' +
    'size quality background output_format moderation voice finish_reason stop_reason engine sort truncation verbosity ' +
    'search_context_size generate_summary prompt_cache_retention reasoning_effort model error_code modalities include ' +
    'require_approval allowed_callers summary'
  ).split(' '),
);

/** Words of the wires that appear in all requests. They are never filtered. */
const KNOWN_WORDS = new Set(
  // Roles and kinds of content, of every wire.
  (
    'system developer user assistant tool function model text input_text output_text summary_text reasoning_text refusal image ' +
    'image_url input_image input_file input_audio input_video video_url file audio document search_result thinking ' +
    'redacted_thinking tool_use tool_result tool_reference server_tool_use message reasoning function_call ' +
    'function_call_output custom_tool_call custom_tool_call_output item_reference web_search_call web_search_tool_result ' +
    'web_search_result web_fetch_tool_result web_fetch_result code_interpreter_call computer_call computer_call_output ' +
    'file_search_call image_generation_call local_shell_call local_shell_call_output shell_call shell_call_output ' +
    'apply_patch_call apply_patch_call_output mcp_call mcp_list_tools mcp_approval_request mcp_approval_response mcp_tool_use ' +
    'mcp_tool_result mcp_toolset tool_search_call tool_search_output compaction code_execution_tool_result container_upload ' +
    'base64 url content direct ephemeral auto none required any custom namespace web_search web_search_preview file_search ' +
    'code_interpreter computer mcp local_shell shell apply_patch image_generation grammar lark regex json_schema json_object ' +
    'reasoning.text reasoning.summary reasoning.encrypted url_citation file_citation container_file_citation file_path ' +
    'char_location page_location content_block_location web_search_result_location search_result_location chat.completion ' +
    'search open_page find_in_page click type scroll approximate enabled disabled adaptive explicit output_config ' +
    // States, degrees and forms.
    'completed incomplete in_progress failed searching commentary final_answer minimal low medium high xhigh max concise ' +
    'detailed omitted summarized original default flex priority standard_only scale 5m 1h 24h in_memory always never client ' +
    'server exec wav mp3 flac opus aac pcm16 ogg m4a png jpeg jpg webp gif image/png image/jpeg image/webp image/gif ' +
    'application/pdf text/plain alloy ash coral echo sage shimmer verse stop length tool_calls content_filter end_turn ' +
    'max_tokens stop_sequence message.output_text.logprobs reasoning.encrypted_content web_search_call.action.sources ' +
    // Of JSON Schemas.
    'string number integer boolean object array null date date-time time duration email hostname ipv4 ipv6 uri uuid'
  ).split(' '),
);

const WORD = /^[A-Za-z][\w.:/+-]{0,99}$/;

/** Fields of ids by which blocks of one conversation refer to each other. */
const LINKS = new Set(['id', 'call_id', 'tool_call_id', 'tool_use_id', 'tool_id', 'caller_id', 'approval_request_id']);

/** Fields that name or point at something outside the request, although their names do not show it. */
const PINNED = new Set(
  (
    'name tool_name server_name server_label mcp_server_name toolset_name namespace container image_url file_url audio_url video_url ' +
    'server_url connector_id authorization authorization_token file_data'
  ).split(' '),
);
const ID = /_ids?$/;

/** Bytes and sealed state. */
const OPAQUE = new Set(
  (
    'data signature encrypted_content encrypted_index encrypted_stdout thoughtSignature thought_signature result b64_json bytes ' +
    'partial_image_b64 fallback_credit_token'
  ).split(' '),
);
/** Shorter values are filtered: sealed state is long. */
const OPAQUE_CHARS_MIN = 128;
const BASE64 = /^[\w+/=-]*$/;

/** Objects that the client defines: every key and value in them is text. */
const FREE = new Set([
  'arguments',
  'input',
  'input_examples',
  'metadata',
  'trace',
  'example',
  'examples',
  'attributes',
]);
/** JSON Schemas. */
const SCHEMAS = new Set(['parameters', 'input_schema', 'inputSchema', 'output_schema', 'outputSchema', 'schema']);
/** Objects of a JSON Schema whose keys are the client's. */
const NAMED_SCHEMAS = new Set(['properties', '$defs', 'definitions', 'patternProperties', 'dependentSchemas']);
/** Values of a JSON Schema that are no schemas. */
const SCHEMA_VALUES = new Set(['default', 'const', 'enum', 'example', 'examples', 'dependentRequired']);
const SCHEMA_WORDS = new Set(['type', 'format']);
/** Pointers into the schema, by its names. */
const REFERENCES = new Set(['$ref', '$dynamicRef']);

/** Matches the name of a wire's field: structure, not text of the client. */
const FIELD = /^[$A-Za-z_][\w$]*$/;

const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isRaw = (value: unknown): value is { rawJSON: string } =>
  (JSON as unknown as { isRawJSON(value: unknown): boolean }).isRawJSON(value);

/** Maps the members of an object. Returns the same object if none changes. */
function mapMembers<T extends object>(source: T, change: (key: string, member: JsonValue) => JsonValue): T {
  let made: JsonObject | undefined;
  for (const [key, member] of Object.entries(source) as [string, JsonValue | undefined][]) {
    if (member === undefined) continue;
    const changed = change(key, member);
    if (changed === member) continue;
    made ??= { ...(source as JsonObject) };
    made[key] = changed;
  }
  return (made ?? source) as T;
}

/** Maps the entries of a list. Returns the same list if none changes. */
export function mapEntries<T>(source: readonly T[], change: (entry: T, at: number) => T): T[] {
  let made: T[] | undefined;
  for (const [at, entry] of source.entries()) {
    const changed = change(entry, at);
    if (changed === entry) continue;
    made ??= [...source];
    made[at] = changed;
  }
  return made ?? (source as T[]);
}

/** Maps the keys and members of an object. Keys that become equal are numbered. */
function mapKeys(
  source: JsonObject,
  key: (name: string) => string,
  member: (value: JsonValue) => JsonValue,
): JsonObject {
  const entries: [string, JsonValue | undefined][] = [];
  let isChanged = false;
  for (const name of Object.keys(source)) {
    const value = source[name];
    const wanted = key(name);
    const changed = value === undefined ? value : member(value);
    if (wanted !== name || changed !== value) isChanged = true;
    entries.push([wanted, changed]);
  }
  if (!isChanged) return source;
  const named = new Map<string, JsonValue | undefined>();
  for (const [wanted, value] of entries) {
    let free = wanted;
    for (let n = 2; named.has(free); n += 1) free = `${wanted} ${n}`;
    named.set(free, value);
  }
  return Object.fromEntries(named);
}

/** Visits free JSON of a client: all its strings, keys and numbers are text. */
export function freeTexts(value: JsonValue, field: string, visit: Visit, depth = 0): JsonValue {
  const place: Place = { field, kind: 'text' };
  if (typeof value === 'string') return visit(value, place);
  if (typeof value === 'number') return numberText(String(value), value, place, visit);
  if (isRaw(value)) return numberText(value.rawJSON, value as unknown as JsonObject, place, visit);
  if (value === null || typeof value === 'boolean' || depth > limits.filtered_levels_max) return value;
  const inside = (member: JsonValue) => freeTexts(member, field, visit, depth + 1);
  if (Array.isArray(value)) return mapEntries(value, inside);
  return mapKeys(value, (name) => visit(name, place), inside);
}

/** Visits a number as text. A changed number becomes a string. */
function numberText<T extends JsonValue>(text: string, value: T, place: Place, visit: Visit): T | string {
  const replaced = visit(text, place);
  return replaced === text ? value : replaced;
}

const JSON_START = /^\s*[[{"]/;

/**
 * Visits text that may be JSON, such as arguments and results of tools. `run`: the run of a text that
 * may be part of a longer one.
 */
export function jsonTexts(text: string, field: string, visit: Visit, run?: number): string {
  const place: Place = { field, kind: JSON_START.test(text) ? 'json' : 'text' };
  return visit(text, run === undefined ? place : { ...place, run });
}

/** Visits the texts of a JSON Schema and the names of its properties. */
export function schemaTexts(value: JsonValue, field: string, visit: Visit, depth = 0): JsonValue {
  if (typeof value === 'string') return visit(value, { field, kind: 'text' });
  if (typeof value !== 'object' || value === null || depth > limits.filtered_levels_max) return value;
  const inside = (member: JsonValue) => schemaTexts(member, field, visit, depth + 1);
  if (Array.isArray(value)) return mapEntries(value, inside);
  return mapMembers(value, (key, member) => {
    if (SCHEMA_VALUES.has(key)) return freeTexts(member, field, visit, depth + 1);
    if (NAMED_SCHEMAS.has(key) && isObject(member)) {
      return mapKeys(member, (name) => visit(name, { field, kind: 'text' }), inside);
    }
    if (SCHEMA_WORDS.has(key) && typeof member === 'string' && KNOWN_WORDS.has(member)) return member;
    if (REFERENCES.has(key) && typeof member === 'string') {
      const steps = member.split('/');
      return steps.map((step) => (NAMED_SCHEMAS.has(step) ? step : visit(step, { field, kind: 'text' }))).join('/');
    }
    lookAtKey(key, field, visit);
    return inside(member);
  });
}

/** More consecutive digits than names of fields have. */
const DIGITS = /\d{5}/;

/** Visits a key that no wire has. It cannot be changed. */
function lookAtKey(key: string, field: string, visit: Visit): void {
  if (!FIELD.test(key) || DIGITS.test(key)) visit(key, { field, kind: 'pinned' });
}

/** Maps the members of a wire object and visits its keys. */
export function mapFields<T extends object>(
  source: T,
  field: string,
  visit: Visit,
  change: (key: string, member: JsonValue) => JsonValue,
): T {
  return mapMembers(source, (key, member) => {
    lookAtKey(key, field, visit);
    // Null has no text, whatever the type of its field.
    return member === null ? member : change(key, member);
  });
}

/** Visits the texts of a wire object of which only some fields are known. */
export function wireTexts(source: JsonValue, field: string, visit: Visit, key = ''): JsonValue {
  return wireValue(source, { field, visit, key, owner: undefined, depth: 0 });
}

interface WireContext {
  field: string;
  visit: Visit;
  /** The key of the value. */
  key: string;
  owner: JsonObject | undefined;
  depth: number;
}

function wireValue(value: JsonValue, context: WireContext): JsonValue {
  if (typeof value === 'string') return wireText(value, context);
  if (typeof value !== 'object' || value === null || isRaw(value)) return value;
  const { field, visit, key, depth } = context;
  if (depth > limits.filtered_levels_max) return value;
  if (Array.isArray(value)) return mapEntries(value, (entry) => wireValue(entry, { ...context, depth: depth + 1 }));
  if (FREE.has(key)) return freeTexts(value, field, visit, depth);
  if (SCHEMAS.has(key)) return schemaTexts(value, field, visit, depth);
  return mapFields(value, field, visit, (name, member) =>
    wireValue(member, { field, visit, key: name, owner: value, depth: depth + 1 }),
  );
}

function wireText(text: string, { field, visit, key, owner }: WireContext): string {
  if (LINKS.has(key)) return visit(text, { field, kind: 'link' });
  if (WORD_FIELDS.has(key)) {
    if (KNOWN_WORDS.has(text)) return text;
    return visit(text, { field, kind: WORD.test(text) ? 'pinned' : 'text' });
  }
  if (key === 'arguments' || key === 'output') return jsonTexts(text, field, visit);
  if (OPAQUE.has(key)) return opaqueText(text, { field, visit, key, owner });
  if (PINNED.has(key) || ID.test(key) || (key === 'url' && owner?.['type'] === 'url')) {
    return pointerText(text, field, visit);
  }
  return visit(text, { field, kind: 'text' });
}

function opaqueText(text: string, { field, visit, key, owner }: Omit<WireContext, 'depth'>): string {
  const type = owner?.['type'];
  if (key === 'data' && (type === 'text' || owner?.['media_type'] === 'text/plain') && type !== 'base64') {
    return visit(text, { field, kind: 'text' });
  }
  if (key === 'data' && type === 'base64') return fileTexts(text, String(owner?.['media_type'] ?? ''), field, visit);
  if (text.length >= OPAQUE_CHARS_MIN && BASE64.test(text)) return text;
  return visit(text, { field, kind: 'pinned' });
}

/** Visits sealed state of a provider or binary data, which cannot be changed. */
export function sealedText(text: string, field: string, visit: Visit): string {
  return opaqueText(text, { field, visit, key: '', owner: undefined });
}

/** Visits a pointer: an address, a name, or a data URL with the content. */
export function pointerText(text: string, field: string, visit: Visit): string {
  if (text.slice(0, 5).toLowerCase() === 'data:') return fileTexts(text, undefined, field, visit);
  return visit(text, { field, kind: 'pinned' });
}
