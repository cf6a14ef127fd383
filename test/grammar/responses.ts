/**
 * The grammar of a streamed answer of the Responses API, and of its Response object, from the contract alone
 * (specification, "Responses API items"; OpenAI's reference of streaming events). It shares nothing with the code that
 * writes streams.
 */
import { isDeepStrictEqual } from 'node:util';
import type { JsonObject, JsonValue } from '../../src/schemas/json.ts';
import { leaksOf } from '../readings/leaks.ts';
import { array, object } from '../readings/recordings.ts';

export interface ResponsesGrammar {
  /** Another endpoint may have continued the answer; its request may then be reported. */
  continued?: boolean;
}

const TERMINAL = new Set(['response.completed', 'response.incomplete', 'response.failed']);
/** The members that a Response object always has (its official type, and the public service's documentation). */
const ALWAYS = (
  'id object created_at completed_at status model output error incomplete_details usage instructions metadata tools tool_choice ' +
  'parallel_tool_calls temperature top_p presence_penalty frequency_penalty reasoning text truncation store service_tier ' +
  'max_output_tokens max_tool_calls previous_response_id background top_logprobs user prompt_cache_key safety_identifier'
).split(' ');
/** Members that repeat the request have a value also if the request omits them. */
const KINDS = {
  number: 'temperature top_p presence_penalty frequency_penalty top_logprobs',
  boolean: 'parallel_tool_calls background store',
  string: 'truncation',
};
const ERROR_CODES = new Set<JsonValue | undefined>([
  'server_error',
  'rate_limit_exceeded',
  'invalid_prompt',
  'image_content_policy_violation',
]);

/** The last parts of the names of events for the provider's own items. */
const OWN_EVENT =
  /\.(?:in_progress|searching|interpreting|generating|partial_image|compacting|completed|failed|added|delta|done)$/;

function fail(rule: string, value?: unknown): never {
  throw new Error(`responses stream: ${rule}${value === undefined ? '' : `: ${JSON.stringify(value)?.slice(0, 400)}`}`);
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isCount(value: JsonValue | undefined): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0;
}

function textOf(value: JsonValue | undefined, rule: string): string {
  return typeof value === 'string' ? value : fail(rule, value);
}

/**
 * Throws at the first place where a whole stream violates the grammar. Returns its events, and the response of the last
 * one.
 */
export function checkResponsesStream(
  text: string,
  grammar: ResponsesGrammar = {},
): { events: JsonObject[]; response: JsonObject } {
  const events = dataOf(text).map((data) => object(JSON.parse(data) as JsonValue));
  const checker = new StreamChecker(grammar);
  events.forEach((event, at) => {
    checker.event(event, at);
  });
  return { events, response: checker.end() };
}

/** The texts of the events; framing and the end are checked here. */
function dataOf(text: string): string[] {
  if (text.includes('\r')) fail('a line does not end with LF alone');
  if (!text.endsWith('data: [DONE]\n\n')) fail('the last event is not [DONE]', text.slice(-200));
  const data: string[] = [];
  for (const event of text.slice(0, -2).split('\n\n')) {
    if (/^:[^\n]*$/.test(event)) continue;
    if (!/^data: [^\n]+$/.test(event)) fail('an event is neither one line of data nor a comment', event);
    data.push(event.slice('data: '.length));
  }
  if (data.indexOf('[DONE]') !== data.length - 1) fail('[DONE] is repeated');
  return data.slice(0, -1);
}

/** A finished or failed Response object by itself. */
export function checkResponse(response: JsonObject): void {
  const leaks = leaksOf(response);
  if (leaks.length > 0) fail('internal data is visible', leaks);
  for (const name of ALWAYS) if (!(name in response)) fail(`a response without ${name}`, response);
  const { id, object: kind, created_at, completed_at, status, error, incomplete_details, usage, output } = response;
  if (typeof id !== 'string' || !/^gen-\d{10}-[A-Za-z0-9]{20}$/.test(id)) fail('the id is not a generation id', id);
  if (kind !== 'response') fail('the object is not a response', kind);
  for (const [of, names] of Object.entries(KINDS)) {
    for (const name of names.split(' '))
      if (typeof response[name] !== of) fail(`${name} is not a ${of}`, response[name]);
  }
  for (const name of ['reasoning', 'text', 'metadata']) {
    if (!isObject(response[name])) fail(`${name} is not an object`, response[name]);
  }
  if (typeof object(object(response['text'])['format'])['type'] !== 'string')
    fail('a format without a type', response['text']);
  if (!Array.isArray(response['tools'])) fail('tools is not a list', response['tools']);
  if (!isCount(created_at)) fail('created_at is not a number of seconds', created_at);
  if (typeof response['model'] !== 'string') fail('no model', response['model']);
  if (!Array.isArray(output)) fail('no output', output);
  if (status !== 'completed' && status !== 'incomplete' && status !== 'failed')
    fail('a final response without a final status', status);
  if (status === 'completed' ? !isCount(completed_at) : completed_at !== null) fail('completed_at', completed_at);
  if (status === 'incomplete') {
    const { reason } = object(incomplete_details);
    if (reason !== 'max_output_tokens' && reason !== 'content_filter') fail('incomplete without a reason', reason);
  } else if (incomplete_details !== null)
    fail('incomplete_details of a response that is not incomplete', incomplete_details);
  if (status === 'failed') {
    const { code, message } = object(error);
    if (!ERROR_CODES.has(code)) fail('an error without a code', error);
    if (typeof message !== 'string' || message === '') fail('an error without a message', error);
    if (typeof response['error_type'] !== 'string') fail('an error without a type', response['error_type']);
  } else if (error !== null || 'error_type' in response) fail('an error of a response that did not fail', error);
  checkUsage(object(usage));
  const ids = new Set<JsonValue | undefined>();
  for (const item of output.map(object)) {
    if (typeof item['id'] !== 'string' || item['id'] === '' || ids.has(item['id'])) fail('an invalid id', item);
    ids.add(item['id']);
    checkItem(item, status === 'completed');
  }
}

function checkUsage(usage: JsonObject): void {
  const { input_tokens, output_tokens, total_tokens, cost = 0, is_byok } = usage;
  if (!isCount(input_tokens) || !isCount(output_tokens)) fail('usage without counts', usage);
  if (input_tokens + output_tokens !== total_tokens) fail('the total is not the sum', usage);
  const { cached_tokens, cache_write_tokens } = object(usage['input_tokens_details']);
  if (!isCount(cached_tokens) || !isCount(cache_write_tokens)) fail('usage without cached tokens', usage);
  if (!isCount(object(usage['output_tokens_details'])['reasoning_tokens']))
    fail('usage without reasoning tokens', usage);
  if (typeof cost !== 'number' || cost < 0) fail('an invalid cost', usage);
  if (typeof is_byok !== 'boolean') fail('usage without is_byok', usage);
}

/** A finished item by itself. */
function checkItem(item: JsonObject, isCompleted: boolean): void {
  const { type, status } = item;
  const hasState = type === 'message' || type === 'function_call' || type === 'custom_tool_call';
  if (hasState && status !== 'completed' && status !== 'incomplete') fail('an item without a final status', item);
  if (hasState && isCompleted && status === 'incomplete') fail('an incomplete item of a completed response', item);
  switch (type) {
    case 'message':
      if (item['role'] !== 'assistant') fail('a message whose role is not assistant', item);
      if (array(item['content']).length === 0) fail('an empty message', item);
      for (const part of array(item['content']).map(object)) checkPart(part);
      break;
    case 'reasoning':
      for (const part of array(item['summary']).map(object)) {
        if (part['type'] !== 'summary_text' || typeof part['text'] !== 'string')
          fail('an invalid part of a summary', item);
      }
      if (!Array.isArray(item['summary'])) fail('reasoning without a summary', item);
      for (const part of array(item['content']).map(object)) {
        if (part['type'] !== 'reasoning_text' || typeof part['text'] !== 'string')
          fail('an invalid part of reasoning', item);
      }
      break;
    case 'function_call':
      for (const name of ['call_id', 'name']) if (!item[name]) fail(`a call without ${name}`, item);
      textOf(item['arguments'], 'a call without arguments');
      break;
    case 'custom_tool_call':
      for (const name of ['call_id', 'name']) if (!item[name]) fail(`a call without ${name}`, item);
      textOf(item['input'], 'a call without input');
  }
}

function checkPart(part: JsonObject): void {
  if (part['type'] === 'refusal') {
    textOf(part['refusal'], 'a refusal of nothing');
    return;
  }
  if (part['type'] !== 'output_text') fail('a part without a known type', part);
  textOf(part['text'], 'a part without text');
  if (!Array.isArray(part['annotations'])) fail('a part without annotations', part);
  for (const annotation of array(part['annotations']).map(object)) {
    if (typeof annotation['type'] !== 'string') fail('an annotation without a type', annotation);
    if (annotation['type'] !== 'url_citation') continue;
    const { url, title, start_index = 0, end_index = 0 } = annotation;
    if (typeof url !== 'string' || (title !== undefined && typeof title !== 'string'))
      fail('an invalid citation', annotation);
    if (!isCount(start_index) || !isCount(end_index) || start_index > end_index)
      fail('an invalid position', annotation);
  }
}

/** Probabilities in events: only the finished part must have the bytes of its tokens. */
function withoutBytes(logprobs: JsonValue): JsonObject[] {
  return array(logprobs).map((logprob) => {
    const { bytes: _, top_logprobs, ...token } = object(logprob);
    return { ...token, ...(top_logprobs === undefined ? {} : { top_logprobs: withoutBytes(top_logprobs) }) };
  });
}

/** A part of the open item: of a message, of reasoning, or of its summary. */
interface OpenPart {
  kind: 'output_text' | 'refusal' | 'reasoning_text' | 'summary_text';
  text: string;
  logprobs: JsonValue[];
  annotations: JsonValue[];
  isDone: boolean;
  /** The part as the event that ends it shows it. */
  done: JsonObject | undefined;
}

interface OpenItem {
  id: string;
  type: string;
  added: JsonObject;
  parts: OpenPart[];
  summary: OpenPart[];
  /** The state of a call. */
  input: string;
  isDone: boolean;
}

const WHOLE_TEXT: Record<OpenPart['kind'], string> = {
  output_text: 'response.output_text.',
  refusal: 'response.refusal.',
  reasoning_text: 'response.reasoning_text.',
  summary_text: 'response.reasoning_summary_text.',
};

class StreamChecker {
  readonly #continued: boolean;
  #begun: JsonObject | undefined;
  #item: OpenItem | undefined;
  #response: JsonObject | undefined;
  #isLate = false;
  /** The open item of the provider was reported as completed. */
  #isOver = false;
  readonly #items: JsonObject[] = [];
  readonly #ids = new Set<JsonValue | undefined>();

  constructor({ continued = false }: ResponsesGrammar) {
    this.#continued = continued;
  }

  event(event: JsonObject, at: number): void {
    const type = textOf(event['type'], 'an event of no type');
    if (event['sequence_number'] !== at) fail(`event ${at} has another number`, event);
    if (this.#response !== undefined) fail('an event follows the end', event);
    const leaks = leaksOf(event);
    if (leaks.length > 0) fail('internal data is visible', leaks);
    if (at === 0 || at === 1) {
      this.#begin(event, at === 0 ? 'response.created' : 'response.in_progress');
      return;
    }
    if (TERMINAL.has(type)) this.#finish(type, object(event['response']));
    else if (type === 'response.debug') this.#debug(event);
    else if (type === 'response.output_item.added') this.#add(event);
    else if (this.#item === undefined && type === 'response.output_text.annotation.added') this.#annotateLate(event);
    else this.#ofItem(type, event);
  }

  end(): JsonObject {
    return this.#response ?? fail('the stream has no end');
  }

  #begin(event: JsonObject, type: string): void {
    if (event['type'] !== type) fail(`the stream does not begin with ${type}`, event);
    const response = object(event['response']);
    for (const name of ALWAYS) if (!(name in response)) fail(`a response without ${name}`, response);
    if (response['status'] !== 'in_progress') fail('the first event has a final status', response['status']);
    if (array(response['output']).length > 0 || !Array.isArray(response['output'])) fail('the first event has output');
    for (const name of ['usage', 'error', 'incomplete_details', 'completed_at']) {
      if (response[name] !== null) fail(`the first event has ${name}`, response[name]);
    }
    if (this.#begun !== undefined && !isDeepStrictEqual(response, this.#begun))
      fail('the first event is repeated', response);
    this.#begun = response;
  }

  #debug(event: JsonObject): void {
    if ((this.#item !== undefined || this.#items.length > 0) && !this.#continued)
      fail('a debug event follows the first item');
    object(object(event['debug'])['echo_upstream_body'] ?? fail('an empty debug event', event));
  }

  #add({ output_index, item: value }: JsonObject): void {
    const item = object(value);
    if (this.#isLate) fail('an item opens after late citations', item);
    if (this.#item !== undefined) fail('an item opens before the last is closed', item);
    if (output_index !== this.#items.length) fail('an item whose index is not the next one', output_index);
    const id = textOf(item['id'], 'an item without an id');
    const type = textOf(item['type'], 'an item of no type');
    if (id === '' || this.#ids.has(id)) fail('an id that another item has', item);
    this.#ids.add(id);
    const begins: Record<string, JsonObject> = {
      message: { status: 'in_progress', role: 'assistant', content: [] },
      reasoning: { summary: [] },
      function_call: { status: 'in_progress', arguments: '' },
      custom_tool_call: { status: 'in_progress', input: '' },
      image_generation_call: { status: 'in_progress', result: null },
    };
    for (const [name, begun] of Object.entries(begins[type] ?? {})) {
      if (!isDeepStrictEqual(item[name], begun)) fail(`a ${type} does not begin with its ${name}`, item);
    }
    if (type === 'function_call' || type === 'custom_tool_call') {
      const callId = textOf(item['call_id'], 'a call without call_id');
      if (callId === '' || this.#ids.has(`call ${callId}`)) fail('a call_id that another call has', item);
      this.#ids.add(`call ${callId}`);
      if (textOf(item['name'], 'a call without a name') === '') fail('a call without a name', item);
    }
    this.#isOver = false;
    this.#item = { id, type, added: item, parts: [], summary: [], input: '', isDone: false };
  }

  #ofItem(type: string, event: JsonObject): void {
    const item = this.#item ?? fail('an event of an item that is not open', event);
    if (event['output_index'] !== this.#items.length) fail('an event with another output_index', event);
    if (type === 'response.output_item.done') {
      this.#close(item, object(event['item']));
      return;
    }
    if (event['item_id'] !== item.id) fail('an event of another item', event);
    for (const name of ['content_index', 'summary_index', 'annotation_index']) {
      if (name in event && !isCount(event[name])) fail(`${name} is not a position`, event);
    }
    if (type === 'response.content_part.added') this.#openPart(item, item.parts, event['content_index'], event);
    else if (type === 'response.content_part.done') this.#donePart(item.parts[Number(event['content_index'])], event);
    else if (type === 'response.reasoning_summary_part.added') {
      this.#openPart(item, item.summary, event['summary_index'], event);
    } else if (type === 'response.reasoning_summary_part.done') {
      this.#donePart(item.summary[Number(event['summary_index'])], event);
    } else if (type === 'response.output_text.annotation.added') this.#annotate(item, event);
    else if (/^response\.(?:output_text|refusal|reasoning_text|reasoning_summary_text)\.(?:delta|done)$/.test(type)) {
      this.#say(item, type, event);
    } else if (/^response\.(?:function_call_arguments|custom_tool_call_input)\.(?:delta|done)$/.test(type)) {
      this.#call(item, type, event);
    } else this.#ofOwnItem(item, type);
  }

  /** An event of an upstream of this wire for an item of its own: `response.web_search_call.searching`. */
  #ofOwnItem({ type: of }: OpenItem, type: string): void {
    const spoken = ['message', 'reasoning', 'function_call', 'custom_tool_call'];
    if (spoken.includes(of) || !type.startsWith('response.')) fail(`an unknown event of a ${of}`, type);
    const kind = of.replace(/_call$/, '');
    if (!type.includes(kind)) fail(`an event of another type than ${of}`, type);
    if (!OWN_EVENT.test(type)) fail(`an event with an invalid name of a ${of}`, type);
    if (this.#isOver) fail(`an event of a completed ${of}`, type);
    this.#isOver = /_call\.(?:completed|failed)$/.test(type);
  }

  #openPart(item: OpenItem, parts: OpenPart[], index: JsonValue | undefined, event: JsonObject): void {
    if (index !== parts.length) fail('a part whose index is not the next one', event);
    if ([...item.parts, ...item.summary].some(({ done }) => done === undefined))
      fail('a part opens while another is open', event);
    const part = object(event['part']);
    const kind = part['type'];
    const known =
      item.type === 'message'
        ? kind === 'output_text' || kind === 'refusal'
        : item.type === 'reasoning' && kind === (parts === item.summary ? 'summary_text' : 'reasoning_text');
    if (!known) fail(`a part of another type in a ${item.type}`, event);
    if (part['text'] !== (kind === 'refusal' ? undefined : '')) fail('a part that begins with text', event);
    if (kind === 'refusal' && part['refusal'] !== '') fail('a part that begins with text', event);
    if (kind === 'output_text' && !isDeepStrictEqual(part['annotations'], []))
      fail('a part that begins with citations', event);
    const open: OpenPart = {
      kind: kind as OpenPart['kind'],
      text: '',
      logprobs: [],
      annotations: [],
      isDone: false,
      done: undefined,
    };
    parts.push(open);
  }

  #say(item: OpenItem, type: string, event: JsonObject): void {
    const index = 'summary_index' in event ? item.summary[Number(event['summary_index'])] : undefined;
    const part = index ?? item.parts[Number(event['content_index'])] ?? fail('an event of an unknown part', event);
    if (!type.startsWith(WHOLE_TEXT[part.kind])) fail('an event of another type of part', event);
    if (part.done !== undefined || part.isDone) fail('an event of a finished part', event);
    if (part.kind === 'output_text' && !Array.isArray(event['logprobs'])) fail('a text without logprobs', event);
    if (type.endsWith('.delta')) {
      const delta = textOf(event['delta'], 'a delta without text');
      if (delta === '') fail('an empty delta', event);
      part.text += delta;
      part.logprobs.push(...array(event['logprobs']));
      return;
    }
    const whole = event[part.kind === 'refusal' ? 'refusal' : 'text'];
    if (whole !== part.text) fail('the whole text is not the sum of its deltas', event);
    if (part.kind === 'output_text') {
      // Citations that followed their text are only here.
      const logprobs = array(event['logprobs']);
      if (!isDeepStrictEqual(logprobs.slice(0, part.logprobs.length), part.logprobs)) fail('logprobs', event);
      part.logprobs = logprobs;
    }
    part.isDone = true;
  }

  #donePart(part: OpenPart | undefined, event: JsonObject): void {
    if (part === undefined || part.done !== undefined) fail('the end of a part that is not open', event);
    if (!part.isDone) fail('a part ends before its text', event);
    const done = object(event['part']);
    if (done['type'] !== part.kind) fail('a part changes its type', event);
    if (done[part.kind === 'refusal' ? 'refusal' : 'text'] !== part.text) fail('a part ends with another text', event);
    if (part.kind === 'output_text') {
      if (!isDeepStrictEqual(done['annotations'], part.annotations)) fail('a part ends with other citations', event);
      if (!isDeepStrictEqual(withoutBytes(done['logprobs'] ?? []), withoutBytes(part.logprobs))) {
        fail('a part ends with other logprobs', event);
      }
    }
    part.done = done;
  }

  /** A citation may come after the end of its part, but not of its message. */
  #annotate(item: OpenItem, event: JsonObject): void {
    const part = item.parts[Number(event['content_index'])];
    if (part?.kind !== 'output_text') fail('a citation of a part that is not text', event);
    if (event['annotation_index'] !== part.annotations.length) fail('a citation with another index', event);
    part.annotations.push(event['annotation'] ?? fail('an empty citation', event));
    if (part.done !== undefined) part.done = { ...part.done, annotations: [...part.annotations] };
  }

  /** A citation of a closed message follows all items; the last event has it in its position. */
  #annotateLate(event: JsonObject): void {
    const at = Number(event['output_index']);
    const item = this.#items[at] ?? fail('a citation of an unknown item', event);
    if (event['item_id'] !== item['id'] || item['type'] !== 'message') fail('a citation of another item', event);
    const content = array(item['content']).map(object);
    const index = Number(event['content_index']);
    const part = content[index];
    if (part?.['type'] !== 'output_text') fail('a citation of a part that is not text', event);
    const annotations = array(part['annotations']);
    if (event['annotation_index'] !== annotations.length) fail('a citation with another index', event);
    const annotation = event['annotation'] ?? fail('an empty citation', event);
    content[index] = { ...part, annotations: [...annotations, annotation] };
    this.#items[at] = { ...item, content };
    this.#isLate = true;
  }

  #call(item: OpenItem, type: string, event: JsonObject): void {
    const isCustom = type.startsWith('response.custom_tool_call_input.');
    if (item.type !== (isCustom ? 'custom_tool_call' : 'function_call')) fail('an event of another type', event);
    if (item.isDone) fail('an event of a finished call', event);
    if (type.endsWith('.delta')) {
      const delta = textOf(event['delta'], 'a delta without text');
      if (delta === '') fail('an empty delta', event);
      item.input += delta;
      return;
    }
    if (event[isCustom ? 'input' : 'arguments'] !== item.input)
      fail('the whole arguments are not the sum of their deltas', event);
    if (!isCustom && event['name'] !== item.added['name']) fail('a call changes its name', event);
    item.isDone = true;
  }

  #close(item: OpenItem, done: JsonObject): void {
    for (const name of ['id', 'type', 'call_id', 'name', 'role', 'phase', 'namespace']) {
      if (!isDeepStrictEqual(done[name], item.added[name])) fail(`an item changes its ${name}`, done);
    }
    if ([...item.parts, ...item.summary].some((part) => part.done === undefined)) fail('a part is left open', done);
    if (item.type === 'message' || item.type === 'reasoning') {
      const parts = item.parts.map((part) => part.done);
      if (!isDeepStrictEqual(array(done['content']), parts)) fail('an item ends with other parts', done);
      const summary = item.summary.map((part) => part.done);
      if (!isDeepStrictEqual(array(done['summary']), summary)) fail('an item ends with another summary', done);
    } else if (item.type === 'function_call' || item.type === 'custom_tool_call') {
      if (!item.isDone) fail('a call ends before its arguments are finished', done);
      const text = done[item.type === 'function_call' ? 'arguments' : 'input'];
      if (text !== item.input) fail('a call ends with other arguments', done);
    }
    this.#items.push(done);
    this.#item = undefined;
  }

  #finish(type: string, response: JsonObject): void {
    if (this.#item !== undefined) fail('an item is left open', this.#item);
    checkResponse(response);
    if (type !== `response.${response['status']}`) fail('the last event is not that of its status', response['status']);
    for (const name of ['id', 'created_at', 'object', 'tools', 'instructions', 'metadata']) {
      if (!isDeepStrictEqual(response[name], this.#begun?.[name])) fail(`${name} changes within the stream`, response);
    }
    if (!isDeepStrictEqual(response['output'], this.#items)) fail('the output differs from the items', response);
    const open = this.#items.slice(0, -1).find(({ status }) => status === 'incomplete');
    if (open !== undefined && ['message', 'function_call'].includes(String(open['type']))) {
      fail('an item before the last is incomplete', open);
    }
    this.#response = response;
  }
}
