import type { ChatRequest, InnerPart, Message, OutputImage } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import type { ChatDialect, DialectEndpoint, Media, MediaNeed } from '../dialect.ts';

/** `url`: an address or a data URL; `data`: base64, or one of those. */
export type AddressKind = 'url' | 'data';
export type FieldPath = readonly (string | number)[];
type Visit = (address: string, path: FieldPath, kind: AddressKind) => void;

/** Fields of all client APIs and wires that hold an address which the reader fetches: as text, or in `url` of an object. */
const URL_FIELDS: ReadonlySet<string> = new Set(
  'image_url video_url audio_url document_url file_url server_url'.split(' '),
);

/** Names of fields that no known wire has, but that some server may fetch from: `image`, `fallback_url`, `webhook`. */
const LIKE_ADDRESS =
  /(?:^|_)(?:ur[il]s?|links?|endpoint|webhooks?|callbacks?|(?:image|video|audio|file|document|media|file_id)s?)$/i;
/** The most frequent fields, which never hold an address by the rules below: skipped first. */
const PLAIN_TEXT: ReadonlySet<string> = new Set('role content text type model id name effort'.split(' '));
/** The start of a text that is an address. Readers of URLs take a backslash for a slash, and need no slash after a scheme of the web (WHATWG URL). */
const LIKE_URL = /^[\s\p{Cc}]{0,64}(?:(?:[a-z][a-z0-9+.-]{0,20}:)?[\\/]{2}|(?:https?|wss?|ftp|file):)/iu;
const URL_START_CHARS = 128;

/** Whether a text is an address. Readers of URLs remove tabs and line ends. */
const isLikeUrl = (text: string): boolean =>
  LIKE_URL.test(text) || LIKE_URL.test(text.slice(0, URL_START_CHARS).replace(/[\t\n\r]/g, ''));

/** Fields that nobody fetches from: schemas, arguments of calls, sources that an answer cites, a client's own notes. */
const NOT_FETCHED: ReadonlySet<string> = new Set(
  'parameters input_schema schema json_schema arguments metadata trace annotations citations logit_bias action search_results sources'.split(
    ' ',
  ),
);

/** Whether the gateway replaces addresses by media for an endpoint. */
export function inlinesMedia(
  { facts }: Pick<ChatDialect, 'facts'>,
  { quirks }: Pick<DialectEndpoint, 'quirks'>,
): boolean {
  return quirks.inline_media === true && facts.takesAddresses;
}

/** Whether a part of this type records what was read before: nobody fetches its address again. */
const isHistory = (type: unknown): boolean => typeof type === 'string' && /_(?:result|call|citation)$/.test(type);

/** Deeper than the fields of any wire. */
const DEPTH_MAX = 48;

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

/** Members that are looked at before other requests are served. An address counts as many, and as more if it is long. */
const STEP_MEMBERS = 16 * 1024;
const ADDRESS_MEMBERS = 64;
const MEMBER_CHARS = 64;

/** What is looked at of a list or an object; all of it by default. */
interface WalkOptions {
  /** The first member. */
  from?: number;
  /** A member that was looked at already. */
  skipped?: string | undefined;
  /** Whether the texts of a list may be addresses. */
  hasAddresses?: boolean | undefined;
}

const WHOLE: WalkOptions = {};

/** A list or an object that was not looked at to its end. */
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

  /** Goes on with what waits, in the order of the text. Returns what still waits. */
  step(waiting: readonly Rest[]): Rest[] {
    this.#left = this.#stepMembers;
    this.#unfinished = [];
    let at = 0;
    for (; at < waiting.length && this.#left > 0; at += 1) {
      const { of, path, from, skipped, hasAddresses } = waiting[at]!;
      this.#path = path;
      this.walk(of, { skipped, hasAddresses, from });
    }
    return this.#unfinished.concat(waiting.slice(at));
  }

  #report(address: string, kind: AddressKind, ...steps: (string | number)[]): void {
    this.#left -= ADDRESS_MEMBERS + Math.floor(address.length / MEMBER_CHARS);
    this.#visit(address, [...this.#path, ...steps], kind);
  }

  /** Looks at a text that is not plain, or goes into an object, which must not be null. */
  #member(object: Record<string, unknown>, name: string, value: string | object): void {
    if (typeof value === 'string') {
      if (URL_FIELDS.has(name) || (name === 'url' && object['type'] === 'url')) this.#report(value, 'url', name);
      else if (name === 'file_data') this.#report(value, 'data', name);
      else if (LIKE_ADDRESS.test(name) && isLikeUrl(value) && !isHistory(object['type']))
        this.#report(value, 'url', name);
      return;
    }
    if (NOT_FETCHED.has(name)) return;
    // Arguments of a call in the Messages API.
    if (name === 'input' && typeof object['type'] === 'string' && object['type'].endsWith('tool_use')) return;
    const { url, data } = value as Record<string, unknown>;
    let options = WHOLE;
    if (URL_FIELDS.has(name) && typeof url === 'string') {
      this.#report(url, 'url', name, 'url');
      options = { skipped: 'url' };
    } else if (name === 'input_audio' && typeof data === 'string') {
      this.#report(data, 'data', name, 'data');
      options = { skipped: 'data' };
    } else if (Array.isArray(value) && LIKE_ADDRESS.test(name)) options = { hasAddresses: true };
    this.#path.push(name);
    this.walk(value, options);
    this.#path.pop();
  }

  /** Looks at the members of a list or an object, which is at the current path. */
  walk(value: object, { skipped, hasAddresses, from = 0 }: WalkOptions = WHOLE): void {
    const path = this.#path;
    if (path.length > DEPTH_MAX || ArrayBuffer.isView(value)) return;
    const names = Array.isArray(value) ? undefined : Object.keys(value);
    const list = value as unknown[];
    const object = value as Record<string, unknown>;
    const { length } = names ?? list;
    for (let at = from; at < length; at += 1) {
      if (this.#left <= 0) {
        this.#unfinished.push({ of: value, path: [...path], from: at, skipped, hasAddresses });
        return;
      }
      this.#left -= 1;
      if (names === undefined) {
        const one = list[at];
        if (typeof one === 'object' && one !== null) {
          path.push(at);
          this.walk(one);
          path.pop();
        } else if (hasAddresses === true && typeof one === 'string' && isLikeUrl(one)) this.#report(one, 'url', at);
        continue;
      }
      const name = names[at]!;
      if (name === skipped) continue;
      const one = object[name];
      const isPlain = typeof one === 'string' ? PLAIN_TEXT.has(name) : typeof one !== 'object' || one === null;
      if (!isPlain) this.#member(object, name, one as string | object);
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
