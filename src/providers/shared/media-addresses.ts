import type { ChatRequest, InnerPart, Message, OutputImage } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import type { ChatDialect, DialectEndpoint, Media, MediaNeed } from '../dialect.ts';

/**
 * `url`: an address or a data URL; `data`: base64, or one of those; `other`: an address in a field whose name does not announce one;
 * `host`: the name of a machine, perhaps with a port.
 */
export type AddressKind = 'url' | 'data' | 'other' | 'host';
export type FieldPath = readonly (string | number)[];
type Visit = (address: string, path: FieldPath, kind: AddressKind) => void;

/** Fields of all client APIs and wires that hold an address which the reader fetches: as text, or in `url` of an object. */
const URL_FIELDS: ReadonlySet<string> = new Set(
  'image_url video_url audio_url document_url file_url server_url'.split(' '),
);

/** Names of fields that no known wire has, but that some server may fetch from: `image`, `fallback_url`, `fileUri`, `webhook`. */
const LIKE_ADDRESS =
  /(?:^|_)(?:(?:ur[il]|href|link|endpoint|webhook|callback|image|img|picture|photo|pic|thumbnail|video|audio|file|document|pdf|media|attachment|file_id)s?|src|base|server|proxy|proxies)$/i;
const LIKE_HOST = /(?:^|_)host(?:name)?s?$/i;
/** Objects that stand for a file: some servers take an address for their `id` (`image: {id}`, `container: {id}`, a part `{type: 'image', id}`). */
const LIKE_FILE =
  /(?:^|_)(?:image|img|picture|photo|pic|thumbnail|screenshot|mask|video|audio|file|pdf|media|attachment|asset|blob|container|source|cached_content)s?(?:_ur[il])?$/i;
/** The most frequent fields, which never hold an address by the rules below, except the `id` of a file: skipped first. */
const PLAIN_TEXT: ReadonlySet<string> = new Set('role content text type model id name effort'.split(' '));
/** Further fields of the client APIs and wires whose text is never fetched, even if it is an address. */
const OTHER_TEXT: ReadonlySet<string> = new Set(
  `prompt input inputs texts instructions system system_prompt description title thinking reasoning reasoning_content reasoning_text
  summary signature refusal arguments query queries question output result context cited_text quote suffix prefix stop stop_sequences
  message error reason comment note user user_id session_id safety_identifier prompt_cache_key previous_response_id call_id tool_call_id
  tool_use_id tool_name namespace server_label filename display_name code logs stdout stderr patch diff command commands definition
  pattern regex language phase b64_json encrypted_content allowed_domains blocked_domains include_domains exclude_domains
  excluded_domains title_text tags referer referrer`.split(/\s+/),
);
/** The start of a text that is an address. Readers of URLs take a backslash for a slash, and need no slash after a scheme of the web (WHATWG URL). */
const LIKE_URL = /^[\s\p{Cc}]{0,64}(?:(?:[a-z][a-z0-9+.-]{0,20}:)?[\\/]{2}|(?:https?|wss?|ftp|file):)/iu;
const URL_START_CHARS = 128;

/** Whether a text is an address. Readers of URLs remove tabs and line ends. */
function isLikeUrl(text: string): boolean {
  if (LIKE_URL.test(text)) return true;
  const head = text.slice(0, URL_START_CHARS);
  return /[\t\n\r]/.test(head) && LIKE_URL.test(head.replace(/[\t\n\r]/g, ''));
}

/** A name in words: `fileUri` becomes `file_Uri`. */
const inWords = (name: string) => name.replace(/([a-z0-9])([A-Z])/g, '$1_$2');

/** The kind of a text in a field of this name; undefined if it is no address. */
function kindOf(name: string, text: string): AddressKind | undefined {
  if (PLAIN_TEXT.has(name) || OTHER_TEXT.has(name)) return undefined;
  const isUrl = isLikeUrl(text);
  if (!isUrl && !/hosts?(?:name)?s?$/i.test(name)) return undefined;
  const words = inWords(name);
  if (!isUrl) return LIKE_HOST.test(words) ? 'host' : undefined;
  return LIKE_ADDRESS.test(words) ? 'url' : 'other';
}

/** Fields whose addresses are never fetched: arguments of calls, sources that an answer cites, a client's own notes. */
const NOT_FETCHED: ReadonlySet<string> = new Set(
  'arguments metadata trace annotations citations logit_bias action search_results sources'.split(' '),
);
/** Schemas: their readers fetch nothing except the documents that they refer to. */
const SCHEMAS: ReadonlySet<string> = new Set('parameters input_schema schema json_schema'.split(' '));
const REFERENCES: ReadonlySet<string> = new Set(['$ref', '$dynamicRef', '$recursiveRef']);

/** Whether the gateway replaces addresses by media for an endpoint. */
export function inlinesMedia(
  { facts }: Pick<ChatDialect, 'facts'>,
  { quirks }: Pick<DialectEndpoint, 'quirks'>,
): boolean {
  return quirks.inline_media === true && facts.takesAddresses;
}

/** Parts that record what was read before: their addresses are not fetched again. */
const HISTORY: ReadonlySet<unknown> = new Set(
  `tool_result tool_call function_call custom_tool_call mcp_call mcp_tool_result computer_call shell_call local_shell_call apply_patch_call
  search_result web_search_call web_search_result web_search_tool_result web_fetch_result web_fetch_tool_result file_search_call
  tool_search_call tool_search_tool_result code_interpreter_call code_execution_tool_result bash_code_execution_tool_result
  text_editor_code_execution_tool_result image_generation_call url_citation file_citation container_file_citation`.split(
    /\s+/,
  ),
);
/** Calls of tools in the Messages API, whose arguments are in `input`. */
const TOOL_USES: ReadonlySet<unknown> = new Set(['tool_use', 'server_tool_use', 'mcp_tool_use']);

/** Deeper than a body of a client API can be, and than what a wire makes of it. */
const DEPTH_MAX = 300;

/** Visits every address in a JSON body of any client API or wire. Reads each value once. */
export function eachAddress(body: unknown, visit: Visit): void {
  if (typeof body === 'object' && body !== null) new AddressWalk(visit, Number.POSITIVE_INFINITY).walk(body);
}

/** The same for a long body. Yields to other requests between parts of it. */
export function* addressSteps(body: unknown, visit: Visit): Generator<void, void, undefined> {
  if (typeof body !== 'object' || body === null) return;
  const walk = new AddressWalk(visit, STEP_MEMBERS);
  let waiting: Rest[] = [{ of: body, path: [], from: 0 }];
  while (waiting.length > 0) {
    waiting = walk.step(waiting);
    if (waiting.length > 0) yield;
  }
}

/** Members that are visited before other requests are served. An address counts as several, a long one as more. */
const STEP_MEMBERS = 16 * 1024;
const ADDRESS_MEMBERS = 64;
const MEMBER_CHARS = 64;

/** The part of a list or an object to visit; default: all of it. */
interface WalkOptions {
  /** The first member. */
  from?: number;
  /** A member that was visited already. */
  skipped?: string | undefined;
  /** The field of a list, also of one in a list. */
  listName?: string | undefined;
  /** Whether it is in a schema, of which nothing is fetched except documents that it refers to. */
  isSchema?: boolean | undefined;
}

const WHOLE: WalkOptions = {};
const IN_SCHEMA: WalkOptions = { isSchema: true };

/** A list or an object that is not visited to its end. */
interface Rest extends WalkOptions {
  of: object;
  path: (string | number)[];
  from: number;
}

class AddressWalk {
  readonly #visit: Visit;
  readonly #stepMembers: number;
  #path: (string | number)[] = [];
  #left: number;
  #unfinished: Rest[] = [];

  constructor(visit: Visit, stepMembers: number) {
    this.#visit = visit;
    this.#stepMembers = stepMembers;
    this.#left = stepMembers;
  }

  /** Continues the waiting visits in the order of the text. Returns those that still wait. */
  step(waiting: readonly Rest[]): Rest[] {
    this.#left = this.#stepMembers;
    this.#unfinished = [];
    let at = 0;
    for (; at < waiting.length && this.#left > 0; at += 1) {
      const { of, path, from, skipped, listName, isSchema } = waiting[at]!;
      this.#path = path;
      this.walk(of, { skipped, listName, isSchema, from });
    }
    return this.#unfinished.concat(waiting.slice(at));
  }

  #report(address: string, kind: AddressKind, ...steps: (string | number)[]): void {
    this.#left -= ADDRESS_MEMBERS + Math.floor(address.length / MEMBER_CHARS);
    this.#visit(address, [...this.#path, ...steps], kind);
  }

  /** Visits a text that is not plain, or the members of an object, which must not be null. */
  #member(object: Record<string, unknown>, name: string, value: string | object, isItem: boolean): void {
    if (typeof value === 'string') {
      if (URL_FIELDS.has(name) || (name === 'url' && object['type'] === 'url')) this.#report(value, 'url', name);
      else if (name === 'file_data') this.#report(value, 'data', name);
      else if (!isItem || !HISTORY.has(object['type'])) this.#reportUnknown(name, value, name);
      return;
    }
    if (NOT_FETCHED.has(name) || (name === 'input' && TOOL_USES.has(object['type']))) return;
    const { url, data } = value as Record<string, unknown>;
    let options: WalkOptions = { listName: name, isSchema: SCHEMAS.has(name) };
    if (URL_FIELDS.has(name) && typeof url === 'string') {
      this.#report(url, 'url', name, 'url');
      options = { skipped: 'url' };
    } else if (name === 'input_audio' && typeof data === 'string') {
      this.#report(data, 'data', name, 'data');
      options = { skipped: 'data' };
    }
    this.#path.push(name);
    this.walk(value, options);
    this.#path.pop();
  }

  /** Reports a text in a field that no rule above names, if it is an address. */
  #reportUnknown(field: string, text: string, step: string | number): void {
    const kind = kindOf(field, text);
    if (kind !== undefined) this.#report(text, kind, step);
  }

  /** Reports the id of an object that stands for a file, by the field or the type of the object, if the id is an address. */
  #reportId(object: Record<string, unknown>, id: string, listName: string | undefined): void {
    if (!isLikeUrl(id)) return;
    const last = this.#path.at(-1);
    const names = [typeof last === 'string' ? last : listName, object['type']];
    if (names.some((name) => typeof name === 'string' && LIKE_FILE.test(inWords(name))))
      this.#report(id, 'other', 'id');
  }

  /** Visits a member of a schema, which must not be null. */
  #schemaMember(step: string | number, value: unknown): void {
    if (typeof value === 'string') {
      if (REFERENCES.has(step as string) && isLikeUrl(value)) this.#report(value, 'other', step);
    } else if (typeof value === 'object') {
      this.#path.push(step);
      this.walk(value as object, IN_SCHEMA);
      this.#path.pop();
    }
  }

  /** Visits the members of the list or object at the current path. */
  walk(value: object, options: WalkOptions = WHOLE): void {
    if (this.#path.length > DEPTH_MAX || ArrayBuffer.isView(value)) return;
    if (Array.isArray(value)) this.#walkList(value, options);
    else this.#walkObject(value as Record<string, unknown>, options);
  }

  /** Leaves the members from an index on to a later step. */
  #leave(of: object, from: number, { skipped, listName, isSchema }: WalkOptions): void {
    this.#unfinished.push({ of, path: [...this.#path], from, skipped, listName, isSchema });
  }

  #walkList(list: readonly unknown[], options: WalkOptions): void {
    const { listName, isSchema, from = 0 } = options;
    const path = this.#path;
    const ofItems: WalkOptions = { listName };
    for (let at = from; at < list.length; at += 1) {
      if (this.#left <= 0) {
        this.#leave(list, at, options);
        return;
      }
      this.#left -= 1;
      const one = list[at];
      if (one === null || (typeof one !== 'string' && typeof one !== 'object')) continue;
      if (isSchema === true) this.#schemaMember(at, one);
      else if (typeof one === 'string') {
        if (listName !== undefined) this.#reportUnknown(listName, one, at);
      } else {
        path.push(at);
        this.walk(one, ofItems);
        path.pop();
      }
    }
  }

  #walkObject(object: Record<string, unknown>, options: WalkOptions): void {
    const { skipped, listName, isSchema, from = 0 } = options;
    const isItem = typeof this.#path.at(-1) === 'number';
    let at = -1;
    // Parsed JSON inherits no enumerable members.
    for (const name in object) {
      at += 1;
      if (at < from) continue;
      if (this.#left <= 0) {
        this.#leave(object, at, options);
        return;
      }
      this.#left -= 1;
      const one = object[name];
      if (one === null || (typeof one !== 'string' && typeof one !== 'object')) continue;
      if (isSchema === true) this.#schemaMember(name, one);
      else if (name !== skipped) {
        if (typeof one !== 'string' || !PLAIN_TEXT.has(name)) this.#member(object, name, one, isItem);
        else if (name === 'id') this.#reportId(object, one, listName);
      }
    }
  }
}

/** A path in a client's notation: `messages[0].content[1].image_url.url`. */
export function fieldName(path: FieldPath): string {
  return path.map((step, at) => (typeof step === 'number' ? `[${step}]` : at === 0 ? step : `.${step}`)).join('');
}

/** Whether a text is an http(s) address. */
const isWebAddress = (text: string): boolean => /^https?:\/\//i.test(text);

/** The address and kind of a part's media; undefined if it has none. */
function needOf(part: InnerPart): MediaNeed | undefined {
  switch (part.type) {
    case 'image_url':
      return { url: part.image_url.url, kind: 'image' };
    case 'file':
      return part.file.file_data ? { url: part.file.file_data, kind: 'file' } : undefined;
    case 'video_url':
      return { url: part.video_url.url, kind: 'video' };
    case 'input_audio':
      return { url: part.input_audio.data, kind: 'audio' };
    default:
      return undefined;
  }
}

const isImages = (images: unknown): images is OutputImage[] => Array.isArray(images);

/** All http(s) addresses of media in messages. */
export function webMedia(messages: readonly Message[]): MediaNeed[] {
  const needs = new Map<string, MediaNeed>();
  const add = (need: MediaNeed | undefined) => {
    if (need !== undefined && isWebAddress(need.url)) needs.set(need.url, need);
  };
  for (const { content, images } of messages) {
    if (isImages(images)) for (const { image_url: imageUrl } of images) add({ url: imageUrl.url, kind: 'image' });
    if (Array.isArray(content)) for (const part of content) add(needOf(part));
  }
  return [...needs.values()];
}

/** The fetched media of an address as a data URL; the address itself if it was not fetched. */
function dataUrl(url: string, media: Media): string {
  const file = media.get(url);
  return file === undefined ? url : `data:${file.mime_type};base64,${file.base64}`;
}

function inlinePart(part: InnerPart, media: Media): InnerPart {
  const need = needOf(part);
  if (need === undefined || !media.has(need.url)) return part;
  const url = dataUrl(need.url, media);
  switch (part.type) {
    case 'image_url':
      return { ...part, image_url: { ...part.image_url, url } };
    case 'video_url':
      return { ...part, video_url: { ...part.video_url, url } };
    case 'input_audio':
      return { ...part, input_audio: { ...part.input_audio, data: media.get(need.url)!.base64 } };
    case 'file': {
      const inlined = { ...part, file: { ...part.file, file_data: url } };
      const rest = part.ext?.rest;
      if (rest?.['document_url'] !== need.url) return inlined;
      return { ...inlined, ext: { ...part.ext!, rest: { ...rest, document_url: url } as JsonObject } };
    }
    default:
      return part;
  }
}

function inlineMessage(message: Message, media: Media): Message {
  const { content, images } = message;
  const inlined = { ...message };
  if (Array.isArray(content)) inlined.content = content.map((part) => inlinePart(part, media));
  if (isImages(images)) {
    inlined.images = images.map((image) => ({
      ...image,
      image_url: { ...image.image_url, url: dataUrl(image.image_url.url, media) },
    }));
  }
  return inlined;
}

/** The request with fetched media in place of their addresses. */
export function withInlineMedia(request: ChatRequest, media: Media): ChatRequest {
  if (media.size === 0) return request;
  return { ...request, messages: request.messages.map((message) => inlineMessage(message, media)) };
}

/** An address that the reader of a body would fetch, and its field. */
export interface LeftAddress {
  address: string;
  field: string;
}

/** Whether the reader of a body would fetch this address. */
function isFetched(address: string, kind: AddressKind): boolean {
  // A public address in a field whose name does not announce one is not media: nothing could replace it.
  if (kind === 'other' || kind === 'host') return false;
  return (kind === 'url' || /^[a-z][a-z0-9+.-]*:/i.test(address)) && !/^data:/i.test(address);
}

/** The first address in a body that its reader would fetch; undefined if there is none. */
export function leftAddress(body: JsonObject): LeftAddress | undefined {
  let first: LeftAddress | undefined;
  eachAddress(body, (address, path, kind) => {
    if (first === undefined && isFetched(address, kind)) first = { address, field: fieldName(path) };
  });
  return first;
}

/** The same for a long body. Yields to other requests between parts of it. */
export function* leftAddressSteps(body: JsonObject): Generator<void, LeftAddress | undefined, undefined> {
  let first: LeftAddress | undefined;
  const steps = addressSteps(body, (address, path, kind) => {
    if (first === undefined && isFetched(address, kind)) first = { address, field: fieldName(path) };
  });
  for (const _ of steps) {
    if (first !== undefined) break;
    yield;
  }
  return first;
}
