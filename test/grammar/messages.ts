/**
 * The grammar of a streamed answer in the Messages API, from its documentation alone
 * (https://platform.claude.com/docs/en/build-with-claude/streaming). It shares nothing with the code that writes
 * streams.
 */
import type { JsonObject, JsonValue } from '../../src/schemas/json.ts';
import { leaksOf } from '../readings/leaks.ts';
import { array, object } from '../readings/recordings.ts';

/** The result of a checked stream. */
export interface CheckedMessage {
  events: JsonObject[];
  /**
   * The message of `message_start` with its blocks, its stop reason and its last usage; undefined if an error preceded
   * it.
   */
  message: JsonObject | undefined;
  error: JsonObject | undefined;
}

const CALL_ID = /^[A-Za-z0-9_-]{1,64}$/;
const DELTAS: Record<string, ReadonlySet<string>> = {
  text: new Set(['text_delta', 'citations_delta']),
  thinking: new Set(['thinking_delta', 'signature_delta']),
  redacted_thinking: new Set(),
  tool_use: new Set(['input_json_delta']),
};
const STOP_REASONS = new Set<JsonValue | undefined>([
  'end_turn',
  'max_tokens',
  'stop_sequence',
  'tool_use',
  'pause_turn',
  'compaction',
  'refusal',
  'model_context_window_exceeded',
]);
const ERRORS = new Set<JsonValue | undefined>([
  'invalid_request_error',
  'authentication_error',
  'billing_error',
  'permission_error',
  'not_found_error',
  'conflict_error',
  'request_too_large',
  'rate_limit_error',
  'timeout_error',
  'api_error',
  'overloaded_error',
]);
const COUNTS = ['input_tokens', 'output_tokens', 'cache_creation_input_tokens', 'cache_read_input_tokens'];

function fail(rule: string, value?: unknown): never {
  throw new Error(`messages stream: ${rule}${value === undefined ? '' : `: ${JSON.stringify(value)?.slice(0, 300)}`}`);
}

/** Throws at the first place where a whole stream violates the grammar. Returns its result. */
export function checkMessagesStream(text: string): CheckedMessage {
  const checker = new MessagesChecker();
  const events = eventsOf(text);
  for (const event of events) checker.event(event);
  return { events, ...checker.end() };
}

function eventsOf(text: string): JsonObject[] {
  if (text.includes('\r')) fail('a line does not end with LF alone');
  if (!text.endsWith('\n\n')) fail('the last event has no end', text.slice(-200));
  return text
    .slice(0, -2)
    .split('\n\n')
    .map((event) => {
      const [, name, data] =
        /^event: ([a-z_]+)\ndata: ([^\n]+)$/.exec(event) ?? fail('not a line of event and a line of data', event);
      const value = object(JSON.parse(data!) as JsonValue);
      if (value['type'] !== name) fail('an event whose name is not its type', event);
      return value;
    });
}

class MessagesChecker {
  #message: JsonObject | undefined;
  #content: JsonObject[] = [];
  #open: JsonObject | undefined;
  #input = '';
  #hasEnded = false;
  #hasStopped = false;
  #error: JsonObject | undefined;
  readonly #callIds = new Set<string>();
  readonly #steps: Record<string, (event: JsonObject) => void> = {
    ping: (event) => only(event, ['type', 'debug']),
    error: (event) => this.#fail(event),
    message_start: (event) => this.#start(event),
    content_block_start: (event) => this.#startBlock(event),
    content_block_delta: (event) => this.#delta(event),
    content_block_stop: (event) => this.#stopBlock(event),
    message_delta: (event) => this.#end(event),
    message_stop: (event) => this.#stop(event),
  };

  event(event: JsonObject): void {
    if (this.#error !== undefined || this.#hasStopped) fail('an event follows the end', event);
    const leaks = leaksOf(event);
    if (leaks.length > 0) fail('fields of the inner language', leaks);
    const type = String(event['type']);
    const step = this.#steps[type] ?? fail('an event of an unknown type', event);
    const mayComeFirst = type === 'ping' || type === 'error' || type === 'message_start';
    if (this.#message === undefined && !mayComeFirst) fail('an event before message_start', event);
    const mayComeLast = type === 'ping' || type === 'message_stop' || type === 'error';
    if (this.#hasEnded && !mayComeLast) fail('an event after message_delta', event);
    step(event);
  }

  end(): Pick<CheckedMessage, 'message' | 'error'> {
    if (this.#error === undefined && !this.#hasStopped) fail('no end');
    const message = this.#message && { ...this.#message, content: this.#content };
    return { message, error: this.#error };
  }

  #start(event: JsonObject): void {
    only(event, ['type', 'message']);
    if (this.#message !== undefined) fail('a second message_start', event);
    const message = object(event['message']);
    const { id, type, role, model, content, stop_reason, stop_sequence } = message;
    if (typeof id !== 'string' || !/^gen-\d+-[A-Za-z0-9]{20}$/.test(id)) fail('the id is not a generation id', id);
    if (type !== 'message' || role !== 'assistant') fail('not an assistant message', message);
    if (typeof model !== 'string' || model === '') fail('no model', message);
    if (!Array.isArray(content) || content.length > 0) fail('message_start has content', content);
    if (stop_reason !== null || stop_sequence !== null) fail('message_start has a stop reason', message);
    checkObjects(message);
    checkUsage(message['usage']);
    if (object(message['usage'])['output_tokens'] !== 0) fail('message_start counts output', message);
    this.#message = message;
  }

  #startBlock(event: JsonObject): void {
    only(event, ['type', 'index', 'content_block']);
    if (this.#open !== undefined) fail('a block while another is open', event);
    if (event['index'] !== this.#content.length) fail('the index is not the next one', event);
    const block = { ...object(event['content_block']) };
    switch (block['type']) {
      case 'text':
        if (block['text'] !== '') fail('a text block that begins with text', block);
        break;
      case 'thinking':
        if (block['thinking'] !== '' || block['signature'] !== '')
          fail('a thinking block that begins with content', block);
        break;
      case 'redacted_thinking':
        if (typeof block['data'] !== 'string' || block['data'] === '') fail('redacted thinking without data', block);
        break;
      case 'tool_use': {
        const { id, name, input } = block;
        if (typeof id !== 'string' || !CALL_ID.test(id)) fail('an id that the wire does not accept', id);
        if (this.#callIds.has(id)) fail('two calls with one id', id);
        this.#callIds.add(id);
        if (typeof name !== 'string' || name === '') fail('a call without a name', block);
        if (JSON.stringify(input) !== '{}') fail('a call that begins with input', block);
        break;
      }
      default:
        if (typeof block['type'] !== 'string' || !/^[a-z0-9_]+$/.test(block['type']))
          fail('a block without a known type', block);
    }
    this.#open = block;
    this.#input = '';
    this.#content.push(block);
  }

  #delta(event: JsonObject): void {
    only(event, ['type', 'index', 'delta']);
    const block = this.#open;
    if (block === undefined || event['index'] !== this.#content.length - 1)
      fail('a delta without an open block', event);
    const delta = object(event['delta']);
    const { type } = delta;
    if (typeof type !== 'string') fail('a delta without a known type', event);
    const allowed = DELTAS[String(block['type'])];
    if (allowed !== undefined && !allowed.has(type))
      fail(`a delta of another kind than its block ${block['type']}`, event);
    switch (type) {
      case 'text_delta':
        only(delta, ['type', 'text']);
        if (delta['text'] === '') fail('an empty delta', event);
        block['text'] = `${block['text']}${stringOf(delta['text'])}`;
        break;
      case 'thinking_delta':
        only(delta, ['type', 'thinking']);
        if (block['signature'] !== '') fail('thinking after its signature', event);
        if (delta['thinking'] === '') fail('an empty delta', event);
        block['thinking'] = `${block['thinking']}${stringOf(delta['thinking'])}`;
        break;
      case 'signature_delta':
        only(delta, ['type', 'signature']);
        if (block['signature'] !== '') fail('a second signature', event);
        block['signature'] = stringOf(delta['signature']);
        if (block['signature'] === '') fail('an empty signature', event);
        break;
      case 'citations_delta':
        only(delta, ['type', 'citation']);
        if (typeof object(delta['citation'])['type'] !== 'string') fail('a citation without a type', event);
        block['citations'] = [...array(block['citations']), delta['citation']!];
        break;
      case 'input_json_delta':
        this.#input += stringOf(delta['partial_json']);
        break;
      case 'compaction_delta':
        block['content'] = `${block['content'] ?? ''}${delta['content'] ?? ''}`;
        for (const [name, value] of Object.entries(delta)) if (!(name in block)) block[name] = value;
    }
  }

  #stopBlock(event: JsonObject): void {
    only(event, ['type', 'index']);
    const block = this.#open;
    if (block === undefined || event['index'] !== this.#content.length - 1)
      fail('content_block_stop without an open block', event);
    if (block['type'] === 'text' && block['text'] === '' && array(block['citations']).length === 0)
      fail('an empty block', block);
    if (block['type'] === 'thinking' && block['thinking'] === '' && block['signature'] === '')
      fail('an empty block', block);
    if (this.#input !== '') block['input'] = objectOf(this.#input);
    this.#open = undefined;
  }

  #end(event: JsonObject): void {
    only(event, ['type', 'delta', 'usage', 'context_management']);
    if (this.#open !== undefined) fail('message_delta while a block is open', this.#open);
    const { stop_reason, stop_sequence, ...rest } = object(event['delta']);
    if (!STOP_REASONS.has(stop_reason)) fail('an unknown stop reason', stop_reason);
    if ((stop_reason === 'stop_sequence') !== (typeof stop_sequence === 'string'))
      fail('stop_sequence', event['delta']);
    if (typeof stop_sequence !== 'string' && stop_sequence !== null) fail('stop_sequence', event['delta']);
    checkObjects(object(event['delta']));
    const calls = this.#callIds.size > 0;
    if (stop_reason === 'tool_use' && !calls) fail('the stop reason tool_use without a call');
    if (stop_reason === 'end_turn' && calls) fail('calls with the stop reason end_turn');
    const usage = checkUsage(event['usage']);
    checkCosts(usage);
    const { context_management } = event;
    this.#message = {
      ...this.#message,
      ...rest,
      stop_reason,
      stop_sequence,
      usage,
      ...(context_management === undefined ? {} : { context_management }),
    };
    this.#hasEnded = true;
  }

  #stop(event: JsonObject): void {
    only(event, ['type', 'gateway_metadata', 'openrouter_metadata']);
    if (!this.#hasEnded) fail('message_stop before message_delta');
    this.#hasStopped = true;
  }

  #fail(event: JsonObject): void {
    only(event, ['type', 'error', 'request_id', 'usage', 'gateway_metadata', 'openrouter_metadata']);
    if (this.#hasEnded) fail('an error after the end', event);
    const error = object(event['error']);
    if (!ERRORS.has(error['type'])) fail('an error of an unknown type', error);
    if (typeof error['message'] !== 'string' || error['message'] === '') fail('an error without a message', error);
    if (event['usage'] !== undefined) checkUsage(event['usage']);
    this.#error = error;
  }
}

function only(value: JsonObject, names: readonly string[]): void {
  for (const name of Object.keys(value)) if (!names.includes(name)) fail(`an unknown field ${name}`, value);
}

function stringOf(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : fail('not a text', value);
}

function objectOf(text: string): JsonObject {
  const value = JSON.parse(text) as JsonValue;
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? value
    : fail('an input that is not an object', text);
}

function checkUsage(value: JsonValue | undefined): JsonObject {
  const usage = object(value);
  for (const name of COUNTS) {
    const count = usage[name];
    const isOptional = name.startsWith('cache');
    const isCount = typeof count === 'number' && Number.isInteger(count) && count >= 0;
    if (!isCount && !(isOptional && count === null)) fail(`${name} is not a count`, usage);
  }
  const { service_tier, cache_creation, output_tokens_details = {}, server_tool_use } = usage;
  if (service_tier !== null && typeof service_tier !== 'string') fail('service_tier', usage);
  if (cache_creation !== null) {
    const { ephemeral_5m_input_tokens, ephemeral_1h_input_tokens } = objectIn(cache_creation);
    const written = countOf(ephemeral_5m_input_tokens, usage) + countOf(ephemeral_1h_input_tokens, usage);
    if (written > countOf(usage['cache_creation_input_tokens'], usage))
      fail('more cache writes by lifetime than cache writes in all', usage);
  }
  if (server_tool_use !== null) {
    for (const name of ['web_search_requests', 'web_fetch_requests']) countOf(objectIn(server_tool_use)[name], usage);
  }
  const { thinking_tokens = 0 } = objectIn(output_tokens_details);
  if (countOf(thinking_tokens, usage) > countOf(usage['output_tokens'], usage))
    fail('more thinking tokens than output tokens', usage);
  return usage;
}

function objectIn(value: JsonValue | undefined): JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : fail('not an object', value);
}

function countOf(value: JsonValue | undefined, usage: JsonObject): number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 ? value : fail('not a count', usage);
}

/** Checks the costs in the last usage. */
function checkCosts(usage: JsonObject): void {
  const { cost, cost_details = {}, is_byok } = usage;
  // It is missing if a price is unknown.
  if (cost === undefined) return;
  if (typeof cost !== 'number' || cost < 0 || typeof is_byok !== 'boolean') fail('not a cost', usage);
  for (const [name, value] of Object.entries(objectIn(cost_details)))
    if (typeof value !== 'number' && !(value === null && name === 'upstream_inference_cost')) fail('not a cost', usage);
}

/** Values that are objects, or null. */
function checkObjects(message: JsonObject): void {
  for (const name of ['stop_details', 'container']) if (message[name] !== null) objectIn(message[name]);
}
