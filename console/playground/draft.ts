/**
 * What a person has written in the playground, and the requests made from it. All of it stays in the memory of the tab.
 */
import { computed, type Signal, signal } from '@preact/signals';
import type { AnswerParts, ChatError } from '../chat.ts';
import { count } from '../format.ts';
import { readJson } from '../json-text.ts';
import type { Image } from './images.ts';

/** Longer texts are refused, so that no paste makes the page stop. */
export const JSON_CHARS_MAX = 100_000;
export const PROMPT_CHARS_MAX = 500_000;

/** The key: lost when the tab is closed. */
export const secret = signal('');
export const system = signal('');
export const prompt = signal('');
export const images = signal<Image[]>([]);
export const temperature = signal('');
export const longest = signal('');
export const effort = signal('');
export const tools = signal('');
export const toolChoice = signal('');
export const schema = signal('');
export const isStrict = signal(true);

export interface Answer extends AnswerParts {
  state: 'running' | 'done' | 'failed' | 'stopped';
  /** Whether the request wanted JSON. */
  isJson: boolean;
  failure?: { message: string } & Partial<Pick<ChatError, 'code' | 'requestId' | 'id'>>;
  ms?: number;
  firstMs?: number;
}

/** One request of a model, and the results of the tools that it called. */
export interface Step {
  answer: Signal<Answer>;
  abort: AbortController;
  results: Signal<string[]>;
  areSent: Signal<boolean>;
}

/** The answers of one model in a turn: several if it called tools. */
export interface Cell {
  model: string;
  steps: Signal<Step[]>;
}

export interface Turn {
  id: number;
  text: string;
  images: Image[];
  cells: Cell[];
}

export const turns = signal<Turn[]>([]);

/** The JSON of a field, or its error; undefined if the field is empty. */
type Parsed = { value: unknown } | { fault: string } | undefined;

function parse(text: string, what: string): Parsed {
  if (text.length > JSON_CHARS_MAX) {
    return { fault: `${what}: ${count(text.length)} characters; at most ${count(JSON_CHARS_MAX)} are allowed.` };
  }
  if (text.trim() === '') return undefined;
  const { fault } = readJson(text);
  return fault === undefined ? { value: JSON.parse(text) as unknown } : { fault: `${what}: ${fault}.` };
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The error of one definition of a tool. Tools of other types than functions are left to the gateway. */
function toolFault(tool: unknown, at: string, names: Set<string>): string | undefined {
  if (!isObject(tool)) return `${at}: must be an object such as {"type": "function", "function": {…}}.`;
  if (typeof tool['type'] !== 'string') return `${at}.type: must be "function", or the type of a tool of the gateway.`;
  if (tool['type'] !== 'function') return undefined;
  const made = tool['function'];
  if (!isObject(made)) return `${at}.function: must be an object with name, description and parameters.`;
  const { name, description, parameters } = made;
  if (typeof name !== 'string' || !/^[\w-]{1,64}$/.test(name)) {
    return `${at}.function.name: must be 1 to 64 letters, digits, _ or -.`;
  }
  if (names.has(name)) return `${at}.function.name: another tool has the name ${name}.`;
  names.add(name);
  if (description !== undefined && typeof description !== 'string')
    return `${at}.function.description: must be a text.`;
  if (parameters !== undefined && !isObject(parameters))
    return `${at}.function.parameters: must be a JSON schema, an object.`;
  return undefined;
}

/** The definitions of tools. */
function parseTools(text: string): Parsed {
  const parsed = parse(text, 'Tools');
  if (parsed === undefined || 'fault' in parsed) return parsed;
  const { value } = parsed;
  if (!Array.isArray(value)) return { fault: 'Tools: must be a list, [ … ].' };
  const names = new Set<string>();
  for (const [index, tool] of value.entries()) {
    const fault = toolFault(tool, `tools[${index}]`, names);
    if (fault !== undefined) return { fault };
  }
  return value.length === 0 ? undefined : parsed;
}

/** The schema of the answer, as `json_schema` of a request: from the schema alone, or from the whole object with `name` and `schema`. */
function parseSchema(text: string, strict: boolean): Parsed {
  const parsed = parse(text, 'Schema');
  if (parsed === undefined || 'fault' in parsed) return parsed;
  const { value } = parsed;
  if (!isObject(value)) return { fault: 'Schema: must be an object such as {"type": "object", "properties": {…}}.' };
  if (typeof value['name'] === 'string' && isObject(value['schema'])) return { value };
  return { value: { name: 'answer', strict, schema: value } };
}

const parsedTools = computed(() => parseTools(tools.value));
const parsedSchema = computed(() => parseSchema(schema.value, isStrict.value));
const faultOf = (parsed: Parsed): string | undefined =>
  parsed !== undefined && 'fault' in parsed ? parsed.fault : undefined;
/** The errors of the fields. */
export const toolsFault = computed(() => faultOf(parsedTools.value));
export const schemaFault = computed(() => faultOf(parsedSchema.value));
/** The parts of the request, for the headings of the fields. */
export const toolCount = computed(() => (jsonOf(parsedTools.value) as unknown[] | undefined)?.length ?? 0);
export const hasSchema = computed(() => jsonOf(parsedSchema.value) !== undefined);

const jsonOf = (parsed: Parsed): unknown => (parsed !== undefined && 'value' in parsed ? parsed.value : undefined);

const contentOf = (text: string, files: readonly Image[]) =>
  files.length === 0
    ? text
    : [
        ...(text.trim() === '' ? [] : [{ type: 'text', text }]),
        ...files.map(({ url }) => ({ type: 'image_url', image_url: { url } })),
      ];

/**
 * An answer as a message of the next request; undefined if no part of it can be sent. Calls without results are
 * omitted, because providers refuse them.
 */
function messagesOf({ answer, results, areSent }: Step): object[] {
  const { text, calls, reasoningDetails, state } = answer.value;
  if (areSent.value) {
    const details = reasoningDetails.length === 0 ? {} : { reasoning_details: reasoningDetails };
    const tool_calls = calls.map(({ id, name, args }) => ({
      id,
      type: 'function',
      function: { name, arguments: args },
    }));
    return [
      { role: 'assistant', content: text, tool_calls, ...details },
      ...calls.map(({ id }, index) => ({ role: 'tool', tool_call_id: id, content: results.value[index] ?? '' })),
    ];
  }
  return text.trim() === '' || state === 'failed' ? [] : [{ role: 'assistant', content: text }];
}

/** The messages of a model: turns that it did not answer have no answer in them. */
function conversation(model: string, until: readonly Turn[]): object[] {
  return until.flatMap(({ text, images: files, cells }) => [
    { role: 'user', content: contentOf(text, files) },
    ...(cells.find((cell) => cell.model === model)?.steps.value.flatMap(messagesOf) ?? []),
  ]);
}

/** The request of a model for these turns. Invalid fields are omitted; the page then sends nothing. */
export function bodyFor(model: string, until: readonly Turn[]) {
  const list = jsonOf(parsedTools.value);
  const json_schema = jsonOf(parsedSchema.value);
  return {
    model,
    messages: [
      ...(system.value.trim() === '' ? [] : [{ role: 'system', content: system.value }]),
      ...conversation(model, until),
    ],
    stream: true,
    ...(temperature.value === '' ? {} : { temperature: Number(temperature.value) }),
    ...(longest.value === '' ? {} : { max_tokens: Number(longest.value) }),
    ...(effort.value === '' ? {} : { reasoning_effort: effort.value }),
    ...(list === undefined
      ? {}
      : { tools: list, ...(toolChoice.value === '' ? {} : { tool_choice: toolChoice.value }) }),
    ...(json_schema === undefined ? {} : { response_format: { type: 'json_schema', json_schema } }),
  };
}

/** The request with the prompt that is not sent yet; without a prompt, the last one that was sent. */
export function shownBody(model: string) {
  const body = bodyFor(model, withPrompt());
  const isAnswer = (message: object | undefined) => (message as { role: string } | undefined)?.role === 'assistant';
  return isAnswer(body.messages.at(-1)) ? { ...body, messages: body.messages.slice(0, -1) } : body;
}

/** The turns with the prompt that is not sent yet. */
export const withPrompt = (): Turn[] =>
  hasPrompt() ? [...turns.value, { id: 0, text: prompt.value, images: images.value, cells: [] }] : turns.value;

export const hasPrompt = (): boolean => prompt.value.trim() !== '' || images.value.length > 0;
