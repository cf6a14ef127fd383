import { GatewayError } from '../../errors.ts';
import type {
  CacheControl,
  ChatRequest,
  FilePart,
  InnerPart,
  Message,
  ReasoningDetail,
  ToolCall,
} from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { decodeText } from '../../schemas/text-file.ts';
import type { DialectEndpoint, Media, MediaNeed } from '../dialect.ts';
import type { Quirks } from '../quirks.ts';
import { parseArguments } from '../shared/arguments.ts';
import { readDataUrl } from '../shared/data-url.ts';
import { asArray, asObject } from '../shared/json-shape.ts';
import type { AddReport } from '../shared/reports.ts';
import { detailsOf, orderOf } from '../shared/slot-order.ts';
import type { ToolNames } from './names.ts';
import {
  ANTHROPIC_FORMAT,
  restOf,
  WIRE,
  type WireBlock,
  type WireCacheControl,
  type WireDocument,
  type WireImage,
  type WireImageType,
  type WireRedactedThinking,
  type WireText,
  type WireThinking,
  type WireToolUse,
} from './wire.ts';

/** What the parts of one request's encoding share. */
export interface Encoding {
  quirks: Quirks;
  names: ToolNames;
  /** Set where the client wrote its request for this very wire: it passes as it is. */
  own?: boolean;
  /** Set where reasoning of former turns was left out. */
  lost_reasoning?: boolean;
  strip_state: boolean;
  /** What was fetched, where the upstream reads no addresses. */
  media: Media;
  report: AddReport;
}

/** A part of a user, system or tool message as a block; undefined when it says nothing or has no place here. */
export function encodePart(part: InnerPart, field: string, encoding: Encoding): WireBlock | undefined {
  switch (part.type) {
    case 'native':
      if (part.wire === WIRE) return part.block as WireBlock;
      encoding.report('dropped', field, `an object of ${part.wire} cannot be expressed in this provider's API`);
      return undefined;
    case 'text':
      return encodeText(part.text, part.cache_control, encoding, restOf(part.ext));
    case 'image_url': {
      const image: WireImage = { type: 'image', source: imageSource(atHand(part.image_url.url, encoding), field) };
      return block({ ...image, ...cacheHint(part.cache_control, encoding.own) }, restOf(part.ext));
    }
    case 'file':
      return encodeFile(part, field, encoding);
    default:
      throw new GatewayError(400, `${field}: this model's provider takes no ${part.type} parts.`);
  }
}

/** An assistant turn's blocks, in the order the model made them. `callIds` gives each call its id on this wire. */
export function encodeAssistant(
  message: Message,
  field: string,
  encoding: Encoding,
  callIds: ReadonlyMap<ToolCall, string>,
): WireBlock[] {
  const details = detailsOf(message);
  const content = message.content ?? null;
  const parts: readonly InnerPart[] = typeof content === 'string' ? [{ type: 'text', text: content }] : (content ?? []);
  const calls = message.tool_calls ?? [];
  const natives = message.ext?.natives ?? [];
  const isOwn = message.ext?.wire === WIRE;
  const seen = new Set<string>();

  const counts = { reasoning: details.length, text: parts.length, call: calls.length, native: natives.length };
  const blocks = orderOf(message, counts).flatMap(({ kind, at, ext }): WireBlock | WireBlock[] => {
    const rest = isOwn ? restOf(ext) : {};
    switch (kind) {
      case 'reasoning':
        return encodeDetail(details[at]!, `${field}.reasoning_details[${at}]`, encoding, seen, rest);
      case 'text':
        return encodeAssistantPart(parts[at]!, `${field}.content[${at}]`, encoding, rest);
      case 'refusal':
        return encodeText(message.refusal ?? '', undefined, encoding, rest) ?? [];
      case 'call': {
        const call = calls[at]!;
        const id = callIds.get(call) ?? call.id;
        return [encodeCall(call, id, `${field}.tool_calls[${at}]`, encoding, rest)];
      }
      case 'native':
        return encodeNative(natives[at]!, `${field}.ext`, encoding);
      default:
        encoding.report('dropped', `${field}.${kind}`, 'this provider does not accept media of the assistant');
        return [];
    }
  });
  return hintLast(blocks, message, encoding.own);
}

/** A text block; undefined when there is nothing but white space, which the wire refuses. */
function encodeText(
  text: string,
  cacheControl: CacheControl | undefined,
  { own }: Encoding,
  rest: JsonObject,
): WireBlock | undefined {
  // A block that is a text to other wires alone.
  if (typeof rest['type'] === 'string') return { ...(rest as WireBlock), ...cacheHint(cacheControl, own) };
  if (text.trim() === '' && !own) return undefined;
  const told: WireText = { type: 'text', text, ...cacheHint(cacheControl, own) };
  return block(told, rest);
}

/** The cache hint in this wire's words; with all that the client says in it, where it speaks this wire. */
export function cacheHint(
  cacheControl: CacheControl | null | undefined,
  own = false,
): { cache_control?: WireCacheControl } {
  if (cacheControl?.type !== 'ephemeral') return {};
  if (own) return { cache_control: cacheControl };
  const { ttl } = cacheControl;
  return { cache_control: ttl === '5m' || ttl === '1h' ? { type: 'ephemeral', ttl } : { type: 'ephemeral' } };
}

/** The hint of a whole message stands on its last block that can have one. Blocks that change are replaced. */
export function hintLast(blocks: WireBlock[], message: Message, own = false): WireBlock[] {
  const hint = cacheHint(message.cache_control, own);
  const at = blocks.findLastIndex(({ type }) => type !== 'thinking' && type !== 'redacted_thinking');
  const last = blocks[at];
  if (hint.cache_control === undefined || last === undefined || last['cache_control'] !== undefined) return blocks;
  return blocks.with(at, { ...last, ...hint });
}

/** Our own fields win over what was remembered. */
function block(told: JsonObject & { type: string }, rest: JsonObject): WireBlock {
  return { ...rest, ...told };
}

function encodeDetail(
  detail: ReasoningDetail,
  field: string,
  encoding: Encoding,
  seen: Set<string>,
  rest: JsonObject,
): WireBlock[] {
  const drop = (reason: string): WireBlock[] => {
    encoding.lost_reasoning = true;
    encoding.report('dropped', field, reason);
    return [];
  };
  if (encoding.strip_state) return drop('the upstream refused the reasoning state of former turns');
  // Clients that know only one vendor leave the format out; it is then that vendor's.
  if ((detail.format ?? ANTHROPIC_FORMAT) !== ANTHROPIC_FORMAT) {
    return drop(`reasoning of format ${detail.format} belongs to another vendor`);
  }
  if (encoding.quirks.thinking === 'none' && !encoding.own) return drop('the model has no reasoning');
  if (detail.type === 'reasoning.encrypted') {
    if (detail.data === '') return drop('encrypted reasoning without data');
    if (detail.id != null && seen.has(detail.id)) return drop('the same encrypted reasoning occurs twice');
    if (detail.id != null) seen.add(detail.id);
    const told: WireRedactedThinking = { type: 'redacted_thinking', data: detail.data };
    return [block(told, rest)];
  }
  if (detail.type === 'reasoning.summary') return drop('reasoning summaries have no signature');
  if (!detail.signature && !encoding.own) return drop('unsigned thinking is refused');
  const told: WireThinking = { type: 'thinking', thinking: detail.text ?? '', signature: detail.signature ?? '' };
  return [block(told, rest)];
}

function encodeAssistantPart(part: InnerPart, field: string, encoding: Encoding, rest: JsonObject): WireBlock[] {
  if (part.type === 'native') return encodeNative(part, field, encoding);
  if (part.type !== 'text') {
    encoding.report('dropped', field, 'this provider does not accept media of the assistant');
    return [];
  }
  const remembered: JsonObject = { ...restOf(part.ext), ...rest };
  const citations = asArray(remembered['citations']).filter(
    (citation) => asObject(citation)?.['encrypted_index'] !== '',
  );
  // Citations point into search results, which go with the other opaque state.
  if (citations.length === 0 || encoding.strip_state) delete remembered['citations'];
  else remembered['citations'] = citations;
  const told = encodeText(part.text, part.cache_control, encoding, remembered);
  return told === undefined ? [] : [told];
}

function encodeCall(call: ToolCall, id: string, field: string, encoding: Encoding, rest: JsonObject): WireBlock {
  const { input, isObject } = parseArguments(call.function.arguments);
  if (!isObject) encoding.report('changed', `${field}.function.arguments`, 'not a JSON object: wrapped as `_raw`');
  if (id !== call.id) encoding.report('changed', `${field}.id`, 'the id does not fit this upstream or is used twice');
  const told: WireToolUse = { type: 'tool_use', id, name: encoding.names.toWire(call.function.name), input };
  return block(told, { ...rest, ...restOf(call.ext) });
}

function encodeNative(native: InnerPart & { type: 'native' }, field: string, encoding: Encoding): WireBlock[] {
  if (encoding.strip_state && native.wire === WIRE) {
    encoding.report('dropped', field, 'the upstream refused the opaque state of former turns');
    return [];
  }
  const told = encodePart(native, field, encoding);
  return told === undefined ? [] : [told];
}

const IMAGE_TYPES: Readonly<Record<string, WireImageType>> = {
  'image/jpeg': 'image/jpeg',
  'image/png': 'image/png',
  'image/gif': 'image/gif',
  'image/webp': 'image/webp',
};

/** What was fetched from an address takes its place. */
function atHand(url: string, { media }: Encoding): string {
  const fetched = media.get(url);
  return fetched === undefined ? url : `data:${fetched.mime_type};base64,${fetched.base64}`;
}

/** Google reads no addresses for Claude (https://platform.claude.com/docs/en/build-with-claude/vision); Anthropic does. */
export function requiredMedia({ messages }: ChatRequest, { quirks }: DialectEndpoint): MediaNeed[] {
  if (quirks.google_cloud !== true) return [];
  const needs = new Map<string, MediaNeed>();
  for (const part of messages.flatMap(({ content }) => (Array.isArray(content) ? content : []))) {
    const kind = part.type === 'image_url' ? 'image' : 'file';
    const url = part.type === 'image_url' ? part.image_url.url : part.type === 'file' ? part.file.file_data : undefined;
    if (url && /^https?:\/\//i.test(url)) needs.set(url, { url, kind });
  }
  return [...needs.values()];
}

function imageSource(url: string, field: string): WireImage['source'] {
  const data = readDataUrl(url);
  if (data === undefined) return { type: 'url', url: webAddress(url, field) };
  const mediaType = IMAGE_TYPES[data.media_type];
  if (mediaType === undefined) {
    throw new GatewayError(400, `${field}: images must be JPEG, PNG, GIF or WebP, not ${data.media_type}.`);
  }
  return { type: 'base64', media_type: mediaType, data: data.base64 };
}

function encodeFile(part: FilePart, field: string, encoding: Encoding): WireBlock {
  const rest = restOf(part.ext);
  const hint = cacheHint(part.cache_control, encoding.own);
  // Clients write null or nothing for what they leave out.
  const fileData = part.file.file_data ? atHand(part.file.file_data, encoding) : undefined;
  const fileId = part.file.file_id || undefined;
  const filename = part.file.filename || undefined;
  if (fileData !== undefined && readDataUrl(fileData)?.media_type.startsWith('image/')) {
    const image: WireImage = { type: 'image', source: imageSource(fileData, field) };
    return block({ ...image, ...hint }, rest);
  }
  const title = filename === undefined ? {} : { title: filename };
  if (fileData === undefined && fileId === undefined) {
    // A source of blocks (`content`) is remembered whole.
    if (rest['source'] !== undefined) return block({ type: 'document', ...title, ...hint }, rest);
    throw new GatewayError(400, `${field}: the file has neither data nor an id.`);
  }
  const source = fileData === undefined ? { type: 'file' as const, file_id: fileId! } : fileSource(fileData, field);
  const told: WireDocument = { type: 'document', source, ...title };
  return block({ ...told, ...hint }, rest);
}

/** `%PDF-`, as far as its base64 does not depend on what follows: some clients send bare base64 in place of a data URL. */
const PDF_BASE64 = 'JVBERi';

function fileSource(fileData: string, field: string): WireDocument['source'] {
  if (fileData.startsWith(PDF_BASE64)) return { type: 'base64', media_type: 'application/pdf', data: fileData };
  const data = readDataUrl(fileData);
  if (data === undefined) return { type: 'url', url: webAddress(fileData, field) };
  if (data.media_type === 'application/pdf') {
    return { type: 'base64', media_type: 'application/pdf', data: data.base64 };
  }
  if (data.media_type.startsWith('text/') || data.media_type === 'application/json') {
    return { type: 'text', media_type: 'text/plain', data: decodeText(Buffer.from(data.base64, 'base64')) };
  }
  throw new GatewayError(400, `${field}: files must be PDF or text for this model, not ${data.media_type}.`);
}

function webAddress(url: string, field: string): string {
  if (/^https?:\/\//i.test(url)) return url;
  throw new GatewayError(400, `${field}: the address must be an http(s) or a data URL.`);
}
