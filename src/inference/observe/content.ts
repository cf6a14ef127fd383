import type { GatewayError } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { ByChoice } from '../../schemas/by-choice.ts';
import type { ChatChunk, ChatCompletion, ChatRequest, Choice, Message } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import type { LoggedContent, LoggedError, LoggedOutput } from '../../schemas/logged-content.ts';
import { Copier, isObject, mediaText, REMAINDER } from './content-copy.ts';

/** The kept answer of a call. Longer content is cut, and marked as cut. */
export const LOGGED_OUTPUT_CHARS_MAX = 256 * 1024;
/** The kept error of a call. Longer content is cut, and marked as cut. */
const LOGGED_ERROR_CHARS_MAX = 32 * 1024;
/** The largest gap in the ordinals of tool calls. A call beyond it is not kept. */
const LOGGED_CALL_GAP_MAX = 128;

/** Fields that are logged separately, or that select the model: no model reads them. */
const SEPARATE_FIELDS: ReadonlySet<string> = new Set([
  'messages',
  'ext',
  'model',
  'models',
  'route',
  'provider',
  'session_id',
]);

/** The value if it is a list, otherwise an empty list: upstreams and clients write null, or another value, for missing lists. */
const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const objectsOf = (value: unknown): Record<string, unknown>[] => listOf(value).filter(isObject);
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

/** The reasoning of a message: its text and its details, if they differ. */
function reasoningOf({ reasoning, reasoning_details }: Message): string | null {
  const text = textOf(reasoning);
  const details = objectsOf(reasoning_details)
    .map((detail) => textOf(detail['type'] === 'reasoning.text' ? detail['text'] : detail['summary']))
    .join('');
  if (text === '' || details === '' || text === details) return text || details || null;
  return `${text}\n${details}`;
}

/** A message with its role first, and its reasoning as text. */
function messageOf(copier: Copier, message: Message): JsonObject & Message {
  const { role, reasoning: _, reasoning_details: __, ...rest } = message;
  const reasoning = reasoningOf(message);
  const copy = copier.object({ role, ...rest, ...(reasoning === null ? {} : { reasoning }) });
  return { ...copy, role } as JsonObject & Message;
}

/** The fields beside the messages that may have text. Numbers and booleans are in the generation's record. */
function fieldsOf(copier: Copier, request: ChatRequest, taskFields: JsonObject | undefined): JsonObject {
  const fields: Record<string, unknown> = {};
  for (const name of Object.keys(request)) {
    const value = request[name];
    const mayHaveText = typeof value === 'string' || (typeof value === 'object' && value !== null);
    if (mayHaveText && !SEPARATE_FIELDS.has(name)) fields[name] = value;
  }
  const { options } = request.provider ?? {};
  if (isObject(options)) fields['provider'] = { options };
  const rest = request.ext?.rest;
  if (isObject(rest) && Object.keys(rest).length > 0) fields[REMAINDER] = rest;
  return copier.fields({ ...fields, ...taskFields });
}

function requestOf(copier: Copier, request: ChatRequest, taskFields: JsonObject | undefined): LoggedContent['request'] {
  const messages: (JsonObject & Message)[] = [];
  // The last messages are the most useful ones.
  for (const message of [...request.messages].reverse()) {
    if (copier.is_cut) break;
    messages.push(messageOf(copier, message));
  }
  return { ...fieldsOf(copier, request, taskFields), messages: messages.reverse() };
}

const paragraphs = (a: string | null, b: string | null) => (a === null ? b : b === null ? a : `${a}\n\n${b}`);

/** Two choices of one answer as one, their texts separated by a blank line. */
function joinChoices(a: LoggedOutput, b: LoggedOutput): LoggedOutput {
  const refusal = paragraphs(a.refusal ?? null, b.refusal ?? null);
  const toolCalls = [...(a.tool_calls ?? []), ...(b.tool_calls ?? [])];
  const media = [...(a.media ?? []), ...(b.media ?? [])];
  return {
    ...b,
    ...a,
    completion: paragraphs(a.completion, b.completion),
    reasoning: paragraphs(a.reasoning, b.reasoning),
    ...(refusal === null ? {} : { refusal }),
    ...(toolCalls.length === 0 ? {} : { tool_calls: toolCalls }),
    ...(media.length === 0 ? {} : { media }),
  };
}

/** Collects the texts of an answer, of all choices together, up to a length. */
export class OutputText {
  readonly #copier: Copier;
  /** The choices after the first. */
  readonly #others = new ByChoice(() => new OutputText(this.#copier));
  #content = '';
  #reasoning = '';
  #refusal = '';
  #hasContent = false;
  readonly #calls: { id: string; type: 'function'; function: { name: string; arguments: string } }[] = [];
  readonly #media: string[] = [];
  #finishReason: string | null | undefined;
  /** An error that the upstream reported inside its answer. */
  error: LoggedError | undefined;

  constructor(copier = new Copier(LOGGED_OUTPUT_CHARS_MAX)) {
    this.#copier = copier;
  }

  isCut(): boolean {
    return this.#copier.is_cut;
  }

  chunks(chunks: readonly ChatChunk[]): void {
    for (const chunk of chunks) {
      if (chunk.choice) {
        this.#others.of(chunk.choice - 1).chunks([{ ...chunk, choice: 0 }]);
        continue;
      }
      const { delta, finish_reason } = chunk;
      if (finish_reason !== undefined) this.#finishReason = finish_reason;
      if (this.#copier.is_cut) continue;
      if (delta.content != null) this.#addText(delta.content);
      this.#reasoning += this.#copier.text(textOf(delta.reasoning));
      this.#refusal += this.#copier.text(textOf(delta.refusal));
      for (const { index, id, function: called } of delta.tool_calls ?? []) {
        const call = this.#callAt(index);
        if (call === undefined) continue;
        if (id != null) call.id = id;
        call.function.name += this.#copier.text(textOf(called?.name));
        call.function.arguments += this.#copier.text(textOf(called?.arguments));
      }
      this.#addImages(delta.images);
      if (delta.audio?.transcript) this.#addText(delta.audio.transcript);
    }
  }

  whole({ choices: [first, ...others] }: ChatCompletion): void {
    this.#choice(first);
    for (const [at, choice] of others.entries()) this.#others.of(at).#choice(choice);
  }

  #choice({ message, finish_reason, error }: Choice): void {
    const { content, refusal, tool_calls, images, audio } = message;
    const parts = objectsOf(content).map(({ type, text }) => (type === 'text' ? textOf(text) : ''));
    if (content != null) this.#addText(typeof content === 'string' ? content : parts.join(''));
    if (audio?.transcript) this.#addText(audio.transcript);
    this.#reasoning = this.#copier.text(reasoningOf(message) ?? '');
    this.#refusal = this.#copier.text(textOf(refusal));
    for (const { id, function: called } of objectsOf(tool_calls)) {
      if (this.#copier.is_cut) break;
      const { name, arguments: args } = isObject(called) ? called : {};
      const copied = { name: this.#copier.text(textOf(name)), arguments: this.#copier.text(textOf(args)) };
      this.#calls.push({ id: textOf(id), type: 'function', function: copied });
    }
    this.#addImages(images);
    this.#finishReason = finish_reason;
    if (error != null) {
      const status = Number.isInteger(error.code) ? error.code : 502;
      this.error = {
        message: this.#copier.text(textOf(error.message)),
        status,
        provider_name: null,
        previous_errors: [],
      };
    }
  }

  /** Adds the text of an answer that is not chat, if it has one. */
  task(answer: unknown): void {
    const text = typeof answer === 'object' && answer !== null && 'text' in answer ? answer.text : undefined;
    if (typeof text === 'string') this.#addText(text);
  }

  result(): LoggedOutput {
    const others = this.#others.all().map((other) => other.result());
    return others.length === 0 ? this.#own() : [this.#own(), ...others].reduce(joinChoices);
  }

  #own(): LoggedOutput {
    return {
      completion: this.#hasContent ? this.#content : null,
      reasoning: this.#reasoning || null,
      ...(this.#refusal === '' ? {} : { refusal: this.#refusal }),
      ...(this.#calls.length === 0 ? {} : { tool_calls: this.#calls.filter((call) => call !== undefined) }),
      ...(this.#media.length === 0 ? {} : { media: this.#media }),
      ...(this.#finishReason === undefined ? {} : { finish_reason: this.#finishReason }),
    };
  }

  #addText(text: unknown): void {
    this.#hasContent = true;
    this.#content += this.#copier.text(textOf(text));
  }

  #addImages(images: unknown): void {
    for (const { image_url } of objectsOf(images)) {
      const url = isObject(image_url) ? image_url['url'] : image_url;
      this.#media.push(this.#copier.text(mediaText(textOf(url))));
    }
  }

  #callAt(index: number) {
    if (!Number.isInteger(index) || index < 0 || index >= this.#calls.length + LOGGED_CALL_GAP_MAX) return undefined;
    this.#calls[index] ??= { id: '', type: 'function', function: { name: '', arguments: '' } };
    return this.#calls[index];
  }
}

/** The error of a call, instead of an answer or at its end. */
function errorOf(copier: Copier, error: GatewayError): LoggedError {
  const { message, status, metadata = {} } = error;
  const { provider_name, raw, previous_errors } = metadata;
  return {
    message: copier.text(message),
    status,
    provider_name: typeof provider_name === 'string' ? provider_name : null,
    ...(raw === undefined ? {} : { raw: copier.value(raw, 0) }),
    previous_errors: Array.isArray(previous_errors)
      ? (copier.list(previous_errors).filter((one) => typeof one === 'object' && one !== null) as JsonObject[])
      : [],
  };
}

/**
 * The content of a call as it is logged: the request without media and opaque state, and the answer. `taskFields`: the fields of a call
 * that is not chat, beside its messages. Pure.
 */
export function contentOf(
  request: ChatRequest,
  output: OutputText,
  error: GatewayError | undefined,
  taskFields?: JsonObject,
): LoggedContent {
  const copier = new Copier(limits.logged_input_chars_max);
  const loggedRequest = requestOf(copier, request, taskFields);
  const errorCopier = new Copier(LOGGED_ERROR_CHARS_MAX);
  const loggedError = error === undefined ? (output.error ?? null) : errorOf(errorCopier, error);
  return {
    request: loggedRequest,
    ...(request.ext?.client.hasPrompt ? { is_prompt: true as const } : {}),
    output: output.result(),
    error: loggedError,
    ...(copier.is_cut || output.isCut() || errorCopier.is_cut ? { truncated: true as const } : {}),
  };
}
