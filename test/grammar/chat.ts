/**
 * The grammar of a streamed answer in the chat API and in the two forms of prompts, from the contract alone
 * (specification, "Completion response"). It shares nothing with the code that writes streams.
 */
import type { JsonObject, JsonValue } from '../../src/schemas/json.ts';
import { leaksOf } from '../readings/leaks.ts';
import { array, object } from '../readings/recordings.ts';

/** `chat`: deltas; `prompt`: the chat API with `prompt`; `completions`: `POST /completions`. */
export type ChatForm = 'chat' | 'prompt' | 'completions';

export interface ChatGrammar {
  form?: ChatForm;
  /** The number of choices of the answer: prompts of one request, or `n`. */
  choices?: number;
  /** Another endpoint may have continued the answer, and is then named. */
  continued?: boolean;
}

const OBJECTS = { chat: 'chat.completion.chunk', prompt: 'chat.completion.chunk', completions: 'text_completion' };
const FINISHES = new Set<JsonValue | undefined>([
  'tool_calls',
  'stop',
  'length',
  'content_filter',
  'error',
  'function_call',
]);
const IN_CHUNKS = new Set(
  'id object created model provider system_fingerprint service_tier choices usage gateway_metadata openrouter_metadata generations debug error'.split(
    ' ',
  ),
);
const IN_DELTAS = new Set(
  'role content reasoning reasoning_details tool_calls function_call refusal images audio annotations'.split(' '),
);
const IN_CHOICES = new Set('index delta finish_reason native_finish_reason logprobs error'.split(' '));
const IN_TEXT_CHOICES = new Set('index text reasoning finish_reason native_finish_reason logprobs error'.split(' '));
const DETAILS: Record<string, ReadonlySet<string>> = {
  'reasoning.text': new Set(['type', 'text', 'signature', 'format', 'id', 'index']),
  'reasoning.summary': new Set(['type', 'summary', 'format', 'id', 'index']),
  'reasoning.encrypted': new Set(['type', 'data', 'format', 'id', 'index']),
};
const COUNTS = ['prompt_tokens', 'completion_tokens', 'total_tokens'];

function fail(rule: string, value?: unknown): never {
  throw new Error(`chat stream: ${rule}${value === undefined ? '' : `: ${JSON.stringify(value)?.slice(0, 300)}`}`);
}

/** Throws at the first place where a whole stream violates the grammar. Returns its parsed chunks. */
export function checkChatStream(text: string, grammar: ChatGrammar = {}): JsonObject[] {
  const chunks = dataOf(text).map((data) => {
    const value = JSON.parse(data) as JsonValue;
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : fail('not an object', data);
  });
  const checker = new ChatChecker(grammar);
  for (const chunk of chunks) checker.chunk(chunk);
  checker.end();
  return chunks;
}

/** The texts of the events; framing and the end are checked here. */
function dataOf(text: string): string[] {
  if (text.includes('\r')) fail('a line does not end with LF alone');
  if (!text.endsWith('data: [DONE]\n\n')) fail('the last event is not [DONE]', text.slice(-200));
  const events = text.slice(0, -2).split('\n\n');
  const data: string[] = [];
  for (const event of events) {
    if (/^:[^\n]*$/.test(event)) continue;
    if (!/^data: [^\n]+$/.test(event)) fail('an event is neither one line of data nor a comment', event);
    data.push(event.slice('data: '.length));
  }
  if (data.indexOf('[DONE]') !== data.length - 1) fail('[DONE] is repeated');
  return data.slice(0, -1);
}

class ChatChecker {
  readonly #form: ChatForm;
  readonly #choices: number;
  readonly #continued: boolean;
  #first: JsonObject | undefined;
  #answering: JsonObject | undefined;
  #hasBegun = false;
  #hasUsage = false;
  #hasError = false;
  readonly #choicesWithRole = new Set<number>();
  readonly #finished = new Set<number>();
  /** The state of each choice. */
  readonly #callsByChoice = new Map<number, string[]>();
  #calls: string[] = [];
  readonly #details = new Map<JsonValue | undefined, string>();

  constructor({ form = 'chat', choices = 1, continued = false }: ChatGrammar) {
    this.#form = form;
    this.#choices = choices;
    this.#continued = continued;
  }

  chunk(chunk: JsonObject): void {
    if (this.#hasUsage) fail('a chunk follows the usage', chunk);
    for (const name of Object.keys(chunk)) if (!IN_CHUNKS.has(name)) fail(`a chunk has ${name}`, chunk);
    const leaks = leaksOf(chunk);
    if (leaks.length > 0) fail('internal data is visible', leaks);
    this.#envelope(chunk);
    const choices = chunk['choices'];
    if (!Array.isArray(choices)) fail('choices is not an array', chunk);
    if (chunk['gateway_metadata'] !== undefined && chunk['usage'] === undefined)
      fail('metadata is not in the last chunk');
    const isBatch = this.#form === 'completions' && this.#choices > 1 && chunk['usage'] !== undefined;
    if (array(chunk['generations']).length !== (isBatch ? this.#choices : 0))
      fail('the generation ids of prompts are wrong', chunk);
    if (chunk['usage'] !== undefined) {
      this.#usage(chunk);
      return;
    }
    if (chunk['debug'] !== undefined) {
      if (choices.length > 0) fail('a debug chunk has choices', chunk);
      if (this.#hasBegun && !this.#continued && this.#choices === 1) fail('a debug chunk follows content', chunk);
      object(object(chunk['debug'])['echo_upstream_body'] ?? fail('an empty debug chunk', chunk));
      return;
    }
    if (choices.length !== 1) fail('a chunk does not have one choice', chunk);
    this.#hasBegun = true;
    const choice = object(choices[0]);
    this.#choice(choice);
    if (chunk['error'] !== undefined) this.#error(object(chunk['error']), choice);
  }

  end(): void {
    if (!this.#hasUsage) fail('the usage is missing');
    if (this.#finished.size !== this.#choices && !this.#hasError) fail('not every choice is finished');
  }

  #envelope(chunk: JsonObject): void {
    const { id, object: kind, created, model, provider } = chunk;
    if (typeof id !== 'string' || !/^gen-\d{10}-[A-Za-z0-9]{20}$/.test(id)) fail('the id is not a generation id', id);
    if (kind !== OBJECTS[this.#form]) fail(`the object is not ${OBJECTS[this.#form]}`, kind);
    if (!Number.isInteger(created)) fail('created is not a number of seconds', created);
    if (typeof model !== 'string') fail('no model', model);
    if (provider !== undefined && (typeof provider !== 'string' || provider === '')) fail('the provider has no name');
    this.#first ??= chunk;
    for (const name of ['id', 'created']) {
      if (chunk[name] !== this.#first[name]) fail(`${name} changes within the stream`, chunk);
    }
    // A body that was sent names its recipient.
    if (this.#choices > 1 || this.#continued || chunk['debug'] !== undefined) return;
    this.#answering ??= chunk;
    if (model !== this.#answering['model']) fail('model changes within the stream', chunk);
    if (provider !== this.#answering['provider']) fail('provider changes within the stream', chunk);
  }

  #choice(choice: JsonObject): void {
    const isText = this.#form !== 'chat';
    const known = isText ? IN_TEXT_CHOICES : IN_CHOICES;
    for (const name of Object.keys(choice)) if (!known.has(name)) fail(`a choice has ${name}`, choice);
    const { index, finish_reason, native_finish_reason, logprobs } = choice;
    if (typeof index !== 'number' || !Number.isInteger(index) || index < 0 || index >= this.#choices) {
      fail('no choice has this index', index);
    }
    this.#calls = this.#callsByChoice.get(index) ?? [];
    this.#callsByChoice.set(index, this.#calls);
    if (this.#finished.has(index)) fail('content follows the finish reason', choice);
    if (native_finish_reason !== null && typeof native_finish_reason !== 'string') fail('native_finish_reason', choice);
    if (logprobs !== null && typeof logprobs !== 'object') fail('logprobs are neither null nor an object', choice);
    if (isText) {
      if (typeof choice['text'] !== 'string') fail('a choice without text', choice);
      if (choice['reasoning'] !== undefined && typeof choice['reasoning'] !== 'string') fail('reasoning', choice);
    } else {
      const delta = object(choice['delta'] ?? fail('a choice without delta', choice));
      this.#role(index, delta['role'], finish_reason === 'error');
      this.#delta(delta);
    }
    if (finish_reason === null) {
      if (native_finish_reason !== null) fail('the native finish reason precedes the finish reason', choice);
      return;
    }
    if (!FINISHES.has(finish_reason)) fail('an unknown finish reason', finish_reason);
    if (finish_reason === 'tool_calls' && this.#calls.length === 0)
      fail('the finish reason tool_calls without a call', choice);
    this.#finished.add(index);
    const saysWhy = finish_reason === 'error' || finish_reason === 'content_filter';
    if (choice['error'] !== undefined && !saysWhy) fail('an error in a choice that did not fail', choice);
    if (choice['error'] !== undefined) checkError(object(choice['error']));
  }

  /** Only in the first delta, because clients concatenate the strings of all deltas. A failure needs none. */
  #role(index: number, role: JsonValue | undefined, isFailure: boolean): void {
    const hasRole = this.#choicesWithRole.has(index);
    if (role === undefined && (hasRole || isFailure)) return;
    if (role !== 'assistant') fail('the role of the first delta is not assistant', role);
    if (hasRole) fail('the role is repeated');
    this.#choicesWithRole.add(index);
  }

  #delta(delta: JsonObject): void {
    for (const name of Object.keys(delta)) if (!IN_DELTAS.has(name)) fail(`a delta has ${name}`, delta);
    if (typeof delta['content'] !== 'string') fail('a delta without content', delta);
    const { reasoning, refusal } = delta;
    if (reasoning !== undefined && reasoning !== null && typeof reasoning !== 'string') fail('reasoning', delta);
    if (refusal !== undefined && (typeof refusal !== 'string' || refusal === '')) fail('refusal', delta);
    for (const name of ['reasoning_details', 'tool_calls', 'images', 'annotations']) {
      const value = delta[name];
      if (value !== undefined && (!Array.isArray(value) || value.length === 0)) fail(`${name} is empty`, delta);
    }
    if (delta['reasoning_details'] !== undefined && reasoning === undefined)
      fail('reasoning details without the reasoning text', delta);
    for (const detail of array(delta['reasoning_details']).map(object)) this.#detail(detail);
    for (const call of array(delta['tool_calls']).map(object)) this.#call(call);
    for (const annotation of array(delta['annotations']).map(object)) {
      const type = annotation['type'];
      if (typeof type !== 'string' || typeof annotation[type] !== 'object')
        fail('an annotation without a type', annotation);
    }
    for (const image of array(delta['images']).map(object)) {
      if (typeof object(image['image_url'])['url'] !== 'string') fail('an image without a URL', image);
    }
  }

  #detail(detail: JsonObject): void {
    const type = String(detail['type']);
    const known = DETAILS[type] ?? fail('a reasoning detail without a type', detail);
    for (const name of Object.keys(detail)) if (!known.has(name)) fail(`a detail has ${name}`, detail);
    if (typeof detail['format'] !== 'string') fail('a detail without a format', detail);
    if (type === 'reasoning.summary' && typeof detail['summary'] !== 'string') fail('an empty summary', detail);
    if (type === 'reasoning.encrypted' && typeof detail['data'] !== 'string') fail('empty encrypted data', detail);
    const { index } = detail;
    if (index === undefined) return;
    if (typeof index !== 'number' || !Number.isInteger(index) || index < 0) fail('a wrong index of a detail', detail);
    const former = this.#details.get(index);
    if (former !== undefined && former !== type) fail('a reasoning detail changes its type', detail);
    this.#details.set(index, type);
  }

  #call(call: JsonObject): void {
    const { index, id, type } = call;
    const { name, arguments: argumentsText } = object(call['function'] ?? fail('a call without its function', call));
    if (typeof index !== 'number' || !Number.isInteger(index) || index < 0) fail('a call without an index', call);
    if (argumentsText !== undefined && typeof argumentsText !== 'string') fail('arguments are not a string', call);
    if (index < this.#calls.length) {
      if (id !== undefined || type !== undefined || name !== undefined) fail('a call is opened twice', call);
      return;
    }
    if (index !== this.#calls.length) fail(`call ${index} opens before call ${this.#calls.length}`, call);
    if (typeof id !== 'string' || id === '' || this.#calls.includes(id)) fail('a call without an id of its own', call);
    if (type !== 'function' || typeof name !== 'string' || name === '')
      fail('a call opens without a type or a name', call);
    this.#calls.push(id);
  }

  /** The failure of a stream is reported once, by its last chunk. */
  #error(error: JsonObject, choice: JsonObject): void {
    if (this.#hasError) fail('an error is repeated', error);
    this.#hasError = true;
    checkError(error);
    if (choice['finish_reason'] !== 'error') fail('an error without the finish reason error', choice);
    if (choice['error'] !== undefined) fail('the error is in the choice as well', choice);
  }

  #usage(chunk: JsonObject): void {
    this.#hasUsage = true;
    if (array(chunk['choices']).length > 0) fail('the usage chunk has choices', chunk);
    if (chunk['error'] !== undefined || chunk['debug'] !== undefined) fail('the usage chunk has other members', chunk);
    const usage = object(chunk['usage']);
    const counts = COUNTS.map((name) => usage[name]);
    if (!counts.every((count) => Number.isInteger(count) && (count as number) >= 0))
      fail('usage without counts', usage);
    if (Number(counts[0]) + Number(counts[1]) !== counts[2]) fail('the total is not the sum', usage);
    // It is missing if a price is unknown.
    const { cost = 0 } = usage;
    if (typeof cost !== 'number' || cost < 0) fail('an invalid cost', usage);
  }
}

function checkError({ code, message, metadata }: JsonObject): void {
  const isStatus = typeof code === 'number' && Number.isInteger(code) && code >= 400 && code < 600;
  if (!isStatus) fail('the code of an error is not a status', code);
  if (typeof message !== 'string' || message === '') fail('an error without a message');
  if (metadata !== undefined && (typeof metadata !== 'object' || metadata === null))
    fail('invalid metadata of an error');
}
