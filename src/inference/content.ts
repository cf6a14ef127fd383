import { hash } from 'node:crypto';
import type { GatewayError } from '../errors.ts';
import { limits } from '../limits.ts';
import { readDataUrl } from '../providers/data-url.ts';
import type { ChatChunk, ChatCompletion, ChatRequest, Message } from '../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../schemas/json.ts';
import type { LoggedContent, LoggedError, LoggedOutput } from '../schemas/logged-content.ts';

/** What stands at the end of a text whose rest was too long. */
const CUT = '… [cut]';

/** Of a request, what holds text of its client's: what filters look at. Settings and routing are in the generation's record. */
const KEPT_FIELDS = [
  'tools',
  'response_format',
  'prediction',
  'metadata',
  'user',
] as const satisfies (keyof ChatRequest)[];

/** Fields that hold media, or the address of some. */
const MEDIA_FIELDS: ReadonlySet<string> = new Set([
  'url',
  'uri',
  'data',
  'file_data',
  'bytes',
  'b64_json',
  'image_url',
  'file_url',
]);

/** State that only its maker can read, and what never leaves the gateway. */
const LEFT_OUT: ReadonlySet<string> = new Set([
  'ext',
  'signature',
  'thoughtSignature',
  'encrypted_content',
  'reasoning_details',
  'cache_control',
]);

/** Below it, what stands where media would is shown as it is. */
const MEDIA_CHARS_MIN = 64;

/** How base64 begins; documents that are plain text stand in the same fields. */
const ENCODED = /^[A-Za-z0-9+/_-]+={0,2}$/;
const ENCODED_CHARS_SEEN = 256;

/** What is kept of media: type, size and hash. */
function mediaStub(base64: string, media_type: string): string {
  const padding = base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0;
  const bytes = Math.max(0, Math.floor((base64.length * 3) / 4) - padding);
  const is_hashed = base64.length <= limits.logged_media_hashed_chars_max;
  const digest = is_hashed ? `, sha256 ${hash('sha256', Buffer.from(base64, 'base64'))}` : '';
  return `[${media_type}, ${bytes} bytes${digest}]`;
}

/** An address without what may be a secret in it. */
function bareAddress(url: string): string {
  // It would be read whole, and that takes its time.
  if (url.length > limits.logged_address_chars_max) return `[address, ${url.length} characters]`;
  if (!URL.canParse(url)) return url;
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname}`;
}

/** How much a data address says of itself before its data; what is not base64 would be decoded whole to tell its size. */
const DATA_HEAD = /^data:[^,]{0,200}/i;
const SAYS_BASE64 = /;\s*base64\s*(?:;|$)/i;

function mediaText(text: string): string {
  const [head] = DATA_HEAD.exec(text) ?? [];
  if (head !== undefined && !SAYS_BASE64.test(head) && text.length > limits.logged_media_hashed_chars_max) {
    return `[media, ${text.length} characters]`;
  }
  const read = readDataUrl(text);
  if (read !== undefined) return mediaStub(read.base64, read.media_type);
  if (/^https?:\/\//i.test(text)) return bareAddress(text);
  const is_encoded = text.length >= MEDIA_CHARS_MIN && ENCODED.test(text.slice(0, ENCODED_CHARS_SEEN));
  return is_encoded ? mediaStub(text, 'media') : text;
}

/** Copies JSON as it is kept, up to a length in all: texts are cut, what comes after them left out. */
class Copier {
  #left: number;
  is_cut = false;

  constructor(chars_max: number) {
    this.#left = chars_max;
  }

  text(text: string): string {
    if (text.length <= this.#left) {
      this.#left -= text.length;
      return text;
    }
    this.is_cut = true;
    const kept = text.slice(0, this.#left).toWellFormed() + CUT;
    this.#left = 0;
    return kept;
  }

  value(value: unknown, depth: number, field = ''): JsonValue | undefined {
    if (typeof value === 'string') return this.text(MEDIA_FIELDS.has(field) ? mediaText(value) : value);
    if (value === null || typeof value === 'boolean' || typeof value === 'number') return value;
    if (typeof value !== 'object') return undefined;
    if (depth > limits.logged_depth_max) {
      this.is_cut = true;
      return CUT;
    }
    return Array.isArray(value) ? this.list(value, depth) : this.object(value as Record<string, unknown>, depth);
  }

  list(values: readonly unknown[], depth = 0): JsonValue[] {
    const kept: JsonValue[] = [];
    for (const value of values) {
      if (this.#left <= 0) {
        this.is_cut = true;
        break;
      }
      const copied = this.value(value, depth + 1);
      this.#left -= 1;
      if (copied !== undefined) kept.push(copied);
    }
    return kept;
  }

  object(value: Record<string, unknown>, depth = 0): JsonObject {
    // A block of a wire's own, as its client sent it.
    const block = value['type'] === 'native' && typeof value['block'] === 'object' ? value['block'] : undefined;
    const shown = (block ?? value) as Record<string, unknown>;
    const kept: JsonObject = {};
    // Not entries: of an object with very many fields the first are kept, and all of them would be listed.
    for (const field of Object.keys(shown)) {
      const one = shown[field];
      if (LEFT_OUT.has(field) || one === undefined) continue;
      if (this.#left <= 0) {
        this.is_cut = true;
        break;
      }
      const copied = this.value(one, depth + 1, field);
      this.#left -= field.length;
      if (copied !== undefined) kept[field] = copied;
    }
    return kept;
  }
}

function reasoningOf({ reasoning, reasoning_details = [] }: Message): string | null {
  if (reasoning != null) return reasoning;
  const texts = reasoning_details.map((detail) =>
    detail.type === 'reasoning.text' ? (detail.text ?? '') : detail.type === 'reasoning.summary' ? detail.summary : '',
  );
  return texts.join('') || null;
}

/** A message with its role first, and its reasoning as text. */
function messageOf(copier: Copier, message: Message): JsonObject & Message {
  const { role, reasoning, ...rest } = message;
  const told = reasoningOf(message);
  const kept = copier.object({ role, ...rest, ...(told === null ? {} : { reasoning: told }) });
  return { ...kept, role } as JsonObject & Message;
}

function requestOf(copier: Copier, request: ChatRequest): LoggedContent['request'] {
  const messages: (JsonObject & Message)[] = [];
  // What was said last tells most of a request.
  for (const message of [...request.messages].reverse()) {
    if (copier.is_cut) break;
    messages.push(messageOf(copier, message));
  }
  const fields = Object.fromEntries(
    KEPT_FIELDS.flatMap((name) => (request[name] == null ? [] : [[name, request[name]]])),
  );
  return { ...copier.object(fields), messages: messages.reverse() };
}

/** Gathers what an answer says, up to a length. */
export class OutputText {
  readonly #copier = new Copier(limits.logged_output_chars_max);
  #content = '';
  #reasoning = '';
  #refusal = '';
  #has_content = false;
  readonly #calls: { id: string; type: 'function'; function: { name: string; arguments: string } }[] = [];
  readonly #media: string[] = [];
  #finish_reason: string | null | undefined;
  /** What the upstream said of its failure inside its answer. */
  error: LoggedError | undefined;

  isCut(): boolean {
    return this.#copier.is_cut;
  }

  chunks(chunks: readonly ChatChunk[]): void {
    for (const { delta, finish_reason } of chunks) {
      if (finish_reason !== undefined) this.#finish_reason = finish_reason;
      if (this.#copier.is_cut) continue;
      if (delta.content != null) this.#say(delta.content);
      if (delta.reasoning) this.#reasoning += this.#copier.text(delta.reasoning);
      if (delta.refusal) this.#refusal += this.#copier.text(delta.refusal);
      for (const { index, id, function: asked } of delta.tool_calls ?? []) {
        const call = this.#callAt(index);
        if (call === undefined) continue;
        if (id !== undefined) call.id = id;
        if (asked.name !== undefined) call.function.name += this.#copier.text(asked.name);
        if (asked.arguments !== undefined) call.function.arguments += this.#copier.text(asked.arguments);
      }
      for (const { image_url } of delta.images ?? []) this.#media.push(this.#copier.text(mediaText(image_url.url)));
      if (delta.audio?.transcript) this.#say(delta.audio.transcript);
    }
  }

  whole({ choices: [{ message, finish_reason, error }] }: ChatCompletion): void {
    const { content, refusal, tool_calls = [], images = [], audio } = message;
    const text =
      typeof content === 'string' || content == null
        ? content
        : content.map((part) => (part.type === 'text' ? part.text : '')).join('');
    if (text != null) this.#say(text);
    if (audio?.transcript) this.#say(audio.transcript);
    this.#reasoning = this.#copier.text(reasoningOf(message) ?? '');
    this.#refusal = this.#copier.text(refusal ?? '');
    for (const { id, function: asked } of tool_calls) {
      if (this.#copier.is_cut) break;
      const [name, args] = [this.#copier.text(asked.name), this.#copier.text(asked.arguments)];
      this.#calls.push({ id, type: 'function', function: { name, arguments: args } });
    }
    for (const { image_url } of images) this.#media.push(this.#copier.text(mediaText(image_url.url)));
    this.#finish_reason = finish_reason;
    if (error !== undefined) {
      const { code: status, message: said } = error;
      this.error = { message: this.#copier.text(said), status, provider_name: null, previous_errors: [] };
    }
  }

  /** Of an answer that is not chat, its text where it has one. */
  task(answer: unknown): void {
    const text = typeof answer === 'object' && answer !== null && 'text' in answer ? answer.text : undefined;
    if (typeof text === 'string') this.#say(text);
  }

  result(): LoggedOutput {
    return {
      completion: this.#has_content ? this.#content : null,
      reasoning: this.#reasoning || null,
      ...(this.#refusal === '' ? {} : { refusal: this.#refusal }),
      ...(this.#calls.length === 0 ? {} : { tool_calls: this.#calls.filter((call) => call !== undefined) }),
      ...(this.#media.length === 0 ? {} : { media: this.#media }),
      ...(this.#finish_reason === undefined ? {} : { finish_reason: this.#finish_reason }),
    };
  }

  #say(text: string): void {
    this.#has_content = true;
    this.#content += this.#copier.text(text);
  }

  #callAt(index: number) {
    if (index >= this.#calls.length + limits.logged_call_gap_max) return undefined;
    this.#calls[index] ??= { id: '', type: 'function', function: { name: '', arguments: '' } };
    return this.#calls[index];
  }
}

/** What became of a call instead of an answer, or at the end of one. */
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

/** What is kept of a call: its request without media and opaque state, and what it was answered. Pure. */
export function contentOf(request: ChatRequest, output: OutputText, error: GatewayError | undefined): LoggedContent {
  const copier = new Copier(limits.logged_input_chars_max);
  const kept = requestOf(copier, request);
  const failed = new Copier(limits.logged_error_chars_max);
  const told = error === undefined ? (output.error ?? null) : errorOf(failed, error);
  return {
    request: kept,
    ...(request.ext?.client === 'completions' ? { is_prompt: true as const } : {}),
    output: output.result(),
    error: told,
    ...(copier.is_cut || output.isCut() || failed.is_cut ? { truncated: true as const } : {}),
  };
}
