import { hash } from 'node:crypto';
import { limits } from '../../limits.ts';
import { readDataUrl } from '../../providers/shared/data-url.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { decodeText } from '../../schemas/text-file.ts';

/** What stands at the end of a text whose rest was too long. */
const CUT = '… [cut]';

/** About what a number takes. */
const NUMBER_CHARS = 8;

/** Whether a value has fields. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

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

/** Credentials that a client sends for servers of its own tools. */
const SECRETS: ReadonlySet<string> = new Set(['authorization', 'authorization_token', 'headers', 'api_key']);

/** Fields that hold schemas: a model reads all of them, whatever their fields are called. */
const SCHEMAS: ReadonlySet<string> = new Set(['parameters', 'input_schema', 'schema', 'json_schema']);

/** State that only its maker can read. */
const OPAQUE: ReadonlySet<string> = new Set(['signature', 'thoughtSignature', 'encrypted_content']);

/** Below it, what stands where media would is shown as it is. */
const MEDIA_CHARS_MIN = 64;

/** Base64; documents that are plain text stand in the same fields. All that would be kept as text is looked at. */
const ENCODED = /^[A-Za-z0-9+/_\-\s]+={0,2}$/;

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

/** How much a data address says of itself before its data; what is not base64 would be decoded whole for its size. */
const DATA_HEAD = /^data:[^,]{0,200}/i;
const TEXT_TYPE = /^(?:text\/|application\/json$)/;
const SAYS_BASE64 = /;\s*base64\s*(?:;|$)/i;

/** What is kept of a text that stands where media would. */
export function mediaText(text: string): string {
  const [head] = DATA_HEAD.exec(text) ?? [];
  if (head !== undefined && !SAYS_BASE64.test(head) && text.length > limits.logged_media_hashed_chars_max) {
    return `[media, ${text.length} characters]`;
  }
  const read = readDataUrl(text);
  if (read !== undefined) {
    // A model reads the text of such a file as it reads the rest of the request.
    const is_text = TEXT_TYPE.test(read.media_type) && text.length <= limits.logged_media_hashed_chars_max;
    return is_text ? decodeText(Buffer.from(read.base64, 'base64')) : mediaStub(read.base64, read.media_type);
  }
  if (/^https?:\/\//i.test(text)) return bareAddress(text);
  const is_encoded =
    text.length >= MEDIA_CHARS_MIN && ENCODED.test(text.slice(0, limits.logged_input_chars_max).replace(/=+$/, ''));
  return is_encoded ? mediaStub(text, 'media') : text;
}

/** A hint of how to cache; a schema may have a property of that name. */
function isCacheHint(field: string, value: unknown): boolean {
  return field === 'cache_control' && typeof value === 'object' && value !== null && 'type' in value;
}

/** A block of a wire's own, as its client sent it; what has more fields than that is a client's. */
function isNative(value: Record<string, unknown>): value is { block: Record<string, unknown> } {
  return value['type'] === 'native' && isObject(value['block']) && Object.keys(value).length <= 3;
}

const EXTENSION: ReadonlySet<string> = new Set(['wire', 'rest', 'order', 'natives', 'issuer']);
const EXTENSION_WORD_CHARS_MAX = 80;

/** What doors and decoders make of what the inner language has no place for; what has other fields is a client's. */
function isExtension(value: unknown): value is Record<string, unknown> {
  if (!isObject(value) || !isObject(value['rest'])) return false;
  const isShort = (word: unknown) =>
    word === undefined || (typeof word === 'string' && word.length < EXTENSION_WORD_CHARS_MAX);
  return isShort(value['wire']) && isShort(value['issuer']) && Object.keys(value).every((name) => EXTENSION.has(name));
}

/** The remainder of a wire's object, under the name that it is kept by: an upstream of that wire gets it. */
export const REMAINDER = 'wire_fields';

/** Copies JSON as it is kept, up to a length in all: texts are cut, what comes after them left out. Reads any shape. */
export class Copier {
  #left: number;
  /** What is copied: a conversation, which may hold media and opaque state, other fields, or a schema among them. */
  #of: 'conversation' | 'fields' | 'schema' = 'conversation';
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

  /** The fields of a request beside its conversation: texts stay texts whatever their field is called. */
  fields(value: Record<string, unknown>): JsonObject {
    return this.#within('fields', () => this.object(value));
  }

  value(value: unknown, depth: number, field = ''): JsonValue | undefined {
    if (typeof value === 'string') {
      return this.text(this.#of === 'conversation' && MEDIA_FIELDS.has(field) ? mediaText(value) : value);
    }
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
      this.#left -= typeof value === 'number' ? NUMBER_CHARS : 1;
      if (copied !== undefined) kept.push(copied);
    }
    return kept;
  }

  object(value: Record<string, unknown>, depth = 0): JsonObject {
    const shown = this.#of !== 'schema' && isNative(value) ? value.block : value;
    const kept: JsonObject = {};
    // Not entries: of an object with very many fields the first are kept, and all of them would be listed.
    for (const field of Object.keys(shown)) {
      const one = shown[field];
      if (one === undefined || this.#isLeftOut(shown, field, one)) continue;
      if (this.#left <= 0) {
        this.is_cut = true;
        break;
      }
      const is_extension = field === 'ext' && this.#of !== 'schema' && isExtension(one);
      const copied = is_extension ? this.remainder(one, depth + 1) : this.#member(field, one, depth + 1);
      this.#left -= field.length;
      // Not by assignment: of "__proto__" that would make no field.
      if (copied !== undefined) {
        Object.defineProperty(kept, is_extension ? REMAINDER : field, {
          value: copied,
          enumerable: true,
          configurable: true,
          writable: true,
        });
      }
    }
    return kept;
  }

  /** What an upstream of the client's own wire gets beside the public fields; undefined: nothing. */
  remainder({ rest, natives, order }: Record<string, unknown>, depth = 0): JsonObject | undefined {
    const kept: JsonObject = isObject(rest) ? this.object(rest, depth) : {};
    const slots = (Array.isArray(order) ? order : []).flatMap((slot: unknown) => {
      const ext = isObject(slot) && isObject(slot['ext']) ? slot['ext']['rest'] : undefined;
      const copied = isObject(ext) ? this.object(ext, depth) : {};
      return Object.keys(copied).length === 0 ? [] : [copied];
    });
    if (slots.length > 0) kept['blocks'] = slots;
    if (Array.isArray(natives) && natives.length > 0) kept['natives'] = this.list(natives, depth);
    return Object.keys(kept).length === 0 ? undefined : kept;
  }

  #member(field: string, value: unknown, depth: number): JsonValue | undefined {
    if (this.#of !== 'fields' || !SCHEMAS.has(field)) return this.value(value, depth, field);
    return this.#within('schema', () => this.value(value, depth, field));
  }

  #within<T>(of: 'fields' | 'schema', copy: () => T): T {
    const before = this.#of;
    this.#of = of;
    try {
      return copy();
    } finally {
      this.#of = before;
    }
  }

  #isLeftOut(of: Record<string, unknown>, field: string, value: unknown): boolean {
    if (this.#of === 'schema') return false;
    if (SECRETS.has(field)) return of['type'] === 'mcp' || of['type'] === 'url' || 'server_url' in of;
    if (this.#of === 'fields') return false;
    return (OPAQUE.has(field) && typeof value === 'string') || isCacheHint(field, value);
  }
}
