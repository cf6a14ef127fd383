import { hash } from 'node:crypto';
import { limits } from '../../limits.ts';
import { readDataUrl } from '../../providers/shared/data-url.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { decodeText } from '../../schemas/text-file.ts';
import { lengthWithout } from '../../schemas/trailing.ts';

/** Levels of a kept JSON value. */
const LOGGED_DEPTH_MAX = 64;
/** Longer media are logged without a hash. */
export const LOGGED_MEDIA_HASHED_CHARS_MAX = 4 * 1024 * 1024;
/** Longer addresses of media are logged as their length only. */
export const LOGGED_ADDRESS_CHARS_MAX = 64 * 1024;

/** The end of a text that was cut. */
const CUT = '… [cut]';

/** The counted length of a number. */
const NUMBER_CHARS = 8;

/** Whether a value has fields. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Fields with media or its address. */
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

/** Credentials of the client's own tool servers. */
const SECRETS: ReadonlySet<string> = new Set(['authorization', 'authorization_token', 'headers', 'api_key']);

/** Fields with schemas: a model reads all of a schema, whatever its fields are called. */
const SCHEMAS: ReadonlySet<string> = new Set(['parameters', 'input_schema', 'schema', 'json_schema']);

/** State that only its provider can read. */
const OPAQUE: ReadonlySet<string> = new Set(['signature', 'thoughtSignature', 'encrypted_content']);

/** A shorter value of a media field is logged unchanged. */
const MEDIA_CHARS_MIN = 64;

/** Base64. Plain text documents are in the same fields, so the whole text that would be logged is tested. */
const ENCODED = /^[A-Za-z0-9+/_\-\s]+={0,2}$/;

/** Replaces media: its type, size and hash. */
function mediaStub(base64: string, mediaType: string): string {
  const padding = base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0;
  const bytes = Math.max(0, Math.floor((base64.length * 3) / 4) - padding);
  const isHashed = base64.length <= LOGGED_MEDIA_HASHED_CHARS_MAX;
  const digest = isHashed ? `, sha256 ${hash('sha256', Buffer.from(base64, 'base64'))}` : '';
  return `[${mediaType}, ${bytes} bytes${digest}]`;
}

/** An address without the parts that may be secret. */
function bareAddress(url: string): string {
  // Parsing a long address takes too long.
  if (url.length > LOGGED_ADDRESS_CHARS_MAX) return `[address, ${url.length} characters]`;
  if (!URL.canParse(url)) return url;
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname}`;
}

/** The head of a data URL. Data that is not base64 would have to be decoded for its size. */
const DATA_HEAD = /^data:[^,]{0,200}/i;
const TEXT_TYPE = /^(?:text\/|application\/json$)/;
const IS_BASE64 = /;\s*base64\s*(?:;|$)/i;

/** The logged form of a media field: text files as text, other media as a stub, addresses without secrets. */
export function mediaText(text: string): string {
  const [head] = DATA_HEAD.exec(text) ?? [];
  if (head !== undefined && !IS_BASE64.test(head) && text.length > LOGGED_MEDIA_HASHED_CHARS_MAX) {
    return `[media, ${text.length} characters]`;
  }
  const data = readDataUrl(text);
  if (data !== undefined) {
    // A model reads a text file like the rest of the request.
    const isText = TEXT_TYPE.test(data.media_type) && text.length <= LOGGED_MEDIA_HASHED_CHARS_MAX;
    return isText ? decodeText(Buffer.from(data.base64, 'base64')) : mediaStub(data.base64, data.media_type);
  }
  if (/^https?:\/\//i.test(text)) return bareAddress(text);
  const kept = text.slice(0, limits.logged_input_chars_max);
  const isEncoded = text.length >= MEDIA_CHARS_MIN && ENCODED.test(kept.slice(0, lengthWithout(kept, '=')));
  return isEncoded ? mediaStub(text, 'media') : text;
}

/** Whether a field is a cache hint: a schema may have a property of that name. */
function isCacheHint(field: string, value: unknown): boolean {
  return field === 'cache_control' && typeof value === 'object' && value !== null && 'type' in value;
}

/** Whether a value is a native block; objects with more fields are a client's own. */
function isNative(value: Record<string, unknown>): value is { block: Record<string, unknown> } {
  return value['type'] === 'native' && isObject(value['block']) && Object.keys(value).length <= 3;
}

const EXTENSION: ReadonlySet<string> = new Set(['wire', 'rest', 'order', 'natives', 'issuer']);
const EXTENSION_WORD_CHARS_MAX = 80;

/** Whether a value is the extension of an inner object (`RequestExt` and others); objects with other fields are a client's own. */
function isExtension(value: unknown): value is Record<string, unknown> {
  if (!isObject(value) || !isObject(value['rest'])) return false;
  const isShort = (word: unknown) =>
    word === undefined || (typeof word === 'string' && word.length < EXTENSION_WORD_CHARS_MAX);
  return isShort(value['wire']) && isShort(value['issuer']) && Object.keys(value).every((name) => EXTENSION.has(name));
}

/** The logged name of a wire's extension fields, which upstreams of that wire get. */
export const REMAINDER = 'wire_fields';

/** Copies JSON for the log, up to a total length: cuts texts, and leaves out the rest. Accepts any shape. */
export class Copier {
  #left: number;
  /** The kind of the copied value: a conversation may have media and opaque state, other fields and schemas have not. */
  #kind: 'conversation' | 'fields' | 'schema' = 'conversation';
  is_cut = false;

  constructor(charsMax: number) {
    this.#left = charsMax;
  }

  text(text: string): string {
    if (text.length <= this.#left) {
      this.#left -= text.length;
      return text;
    }
    this.is_cut = true;
    const copy = text.slice(0, this.#left).toWellFormed() + CUT;
    this.#left = 0;
    return copy;
  }

  /** The fields of a request beside its conversation. Their texts are copied, whatever the fields are called. */
  fields(value: Record<string, unknown>): JsonObject {
    return this.#within('fields', () => this.object(value));
  }

  value(value: unknown, depth: number, field = ''): JsonValue | undefined {
    if (typeof value === 'string') {
      return this.text(this.#kind === 'conversation' && MEDIA_FIELDS.has(field) ? mediaText(value) : value);
    }
    if (value === null || typeof value === 'boolean' || typeof value === 'number') return value;
    if (typeof value !== 'object') return undefined;
    if (depth > LOGGED_DEPTH_MAX) {
      this.is_cut = true;
      return CUT;
    }
    return Array.isArray(value) ? this.list(value, depth) : this.object(value as Record<string, unknown>, depth);
  }

  list(values: readonly unknown[], depth = 0): JsonValue[] {
    const copy: JsonValue[] = [];
    for (const value of values) {
      if (this.#left <= 0) {
        this.is_cut = true;
        break;
      }
      const copied = this.value(value, depth + 1);
      this.#left -= typeof value === 'number' ? NUMBER_CHARS : 1;
      if (copied !== undefined) copy.push(copied);
    }
    return copy;
  }

  object(value: Record<string, unknown>, depth = 0): JsonObject {
    const source = this.#kind !== 'schema' && isNative(value) ? value.block : value;
    const copy: JsonObject = {};
    // Without `Object.entries`, which would list all fields of a large object to keep the first ones.
    for (const field of Object.keys(source)) {
      const one = source[field];
      if (one === undefined || this.#isOmitted(source, field, one)) continue;
      if (this.#left <= 0) {
        this.is_cut = true;
        break;
      }
      const isExtensionField = field === 'ext' && this.#kind !== 'schema' && isExtension(one);
      const copied = isExtensionField ? this.remainder(one, depth + 1) : this.#member(field, one, depth + 1);
      this.#left -= field.length;
      // Assignment would not create a field "__proto__".
      if (copied !== undefined) {
        Object.defineProperty(copy, isExtensionField ? REMAINDER : field, {
          value: copied,
          enumerable: true,
          configurable: true,
          writable: true,
        });
      }
    }
    return copy;
  }

  /** The fields that only upstreams of the client's own wire get; undefined if there are none. */
  remainder({ rest, natives, order }: Record<string, unknown>, depth = 0): JsonObject | undefined {
    const copy: JsonObject = isObject(rest) ? this.object(rest, depth) : {};
    const slots = (Array.isArray(order) ? order : []).flatMap((slot: unknown) => {
      const ext = isObject(slot) && isObject(slot['ext']) ? slot['ext']['rest'] : undefined;
      const copied = isObject(ext) ? this.object(ext, depth) : {};
      return Object.keys(copied).length === 0 ? [] : [copied];
    });
    if (slots.length > 0) copy['blocks'] = slots;
    if (Array.isArray(natives) && natives.length > 0) copy['natives'] = this.list(natives, depth);
    return Object.keys(copy).length === 0 ? undefined : copy;
  }

  #member(field: string, value: unknown, depth: number): JsonValue | undefined {
    if (this.#kind !== 'fields' || !SCHEMAS.has(field)) return this.value(value, depth, field);
    return this.#within('schema', () => this.value(value, depth, field));
  }

  #within<T>(kind: 'fields' | 'schema', copy: () => T): T {
    const before = this.#kind;
    this.#kind = kind;
    try {
      return copy();
    } finally {
      this.#kind = before;
    }
  }

  #isOmitted(parent: Record<string, unknown>, field: string, value: unknown): boolean {
    if (this.#kind === 'schema') return false;
    if (SECRETS.has(field)) return parent['type'] === 'mcp' || parent['type'] === 'url' || 'server_url' in parent;
    if (this.#kind === 'fields') return false;
    return (OPAQUE.has(field) && typeof value === 'string') || isCacheHint(field, value);
  }
}
