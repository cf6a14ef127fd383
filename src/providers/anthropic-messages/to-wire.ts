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
import { lookupTable } from '../../schemas/lookup-table.ts';
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

/** The state that the steps of one encoding share. */
export interface Encoding {
  quirks: Quirks;
  names: ToolNames;
  /** Whether the client wrote its request for this wire: it is passed on unchanged. */
  own?: boolean;
  /** Whether reasoning of former turns was left out. */
  lost_reasoning?: boolean;
  strip_state: boolean;
  /** Fetched media, for upstreams that read no addresses. */
  media: Media;
  addReport: AddReport;
}

/** A part of a user, system or tool message as a block; undefined if it is empty or cannot be sent. */
export function encodePart(part: InnerPart, field: string, encoding: Encoding): WireBlock | undefined {
  switch (part.type) {
    case 'native':
      if (part.wire === WIRE) return part.block as WireBlock;
      encoding.addReport('dropped', field, `an object of ${part.wire} cannot be expressed in this provider's API`);
      return undefined;
    case 'text':
      return encodeText(part.text, part.cache_control, encoding, restOf(part.ext));
    case 'image_url': {
      const image: WireImage = {
        type: 'image',
        source: imageSource(withFetchedMedia(part.image_url.url, encoding), field),
      };
      return block({ ...image, ...cacheHint(part.cache_control, encoding.own) }, restOf(part.ext));
    }
    case 'file':
      return encodeFile(part, field, encoding);
    default:
      throw new GatewayError(400, `${field}: this model's provider does not accept ${part.type} parts.`);
  }
}

/** An assistant turn's blocks, in the order in which the model produced them. `callIds` maps each call to its id on this wire. */
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
        encoding.addReport('dropped', `${field}.${kind}`, 'this provider does not accept media of the assistant');
        return [];
    }
  });
  return hintLast(blocks, message, encoding.own);
}

/** A text block; undefined for white space only, which the wire refuses. */
function encodeText(
  text: string,
  cacheControl: CacheControl | undefined,
  { own }: Encoding,
  rest: JsonObject,
): WireBlock | undefined {
  // A block of another kind, which other wires see as text.
  if (typeof rest['type'] === 'string') return { ...(rest as WireBlock), ...cacheHint(cacheControl, own) };
  if (text.trim() === '' && !own) return undefined;
  const encoded: WireText = { type: 'text', text, ...cacheHint(cacheControl, own) };
  return block(encoded, rest);
}

/** The cache hint on this wire; unchanged if the client uses this wire. */
export function cacheHint(
  cacheControl: CacheControl | null | undefined,
  own = false,
): { cache_control?: WireCacheControl } {
  if (cacheControl?.type !== 'ephemeral') return {};
  if (own) return { cache_control: cacheControl };
  const { ttl } = cacheControl;
  return { cache_control: ttl === '5m' || ttl === '1h' ? { type: 'ephemeral', ttl } : { type: 'ephemeral' } };
}

/** Puts the hint of a message on its last block that can have one. Changed blocks are replaced. */
export function hintLast(blocks: WireBlock[], message: Message, own = false): WireBlock[] {
  const hint = cacheHint(message.cache_control, own);
  const at = blocks.findLastIndex(({ type }) => type !== 'thinking' && type !== 'redacted_thinking');
  const last = blocks[at];
  if (hint.cache_control === undefined || last === undefined || last['cache_control'] !== undefined) return blocks;
  return blocks.with(at, { ...last, ...hint });
}

/** Our own fields take precedence over remembered ones. */
function block(fields: JsonObject & { type: string }, rest: JsonObject): WireBlock {
  return { ...rest, ...fields };
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
    encoding.addReport('dropped', field, reason);
    return [];
  };
  if (encoding.strip_state) return drop('the upstream refused the reasoning state of former turns');
  // Clients for one vendor omit the format.
  if ((detail.format ?? ANTHROPIC_FORMAT) !== ANTHROPIC_FORMAT) {
    return drop(`reasoning of format ${detail.format} belongs to another vendor`);
  }
  if (encoding.quirks.thinking === 'none' && !encoding.own) return drop('the model has no reasoning');
  if (detail.type === 'reasoning.encrypted') {
    if (detail.data === '') return drop('encrypted reasoning without data');
    if (detail.id != null && seen.has(detail.id)) return drop('the same encrypted reasoning occurs twice');
    if (detail.id != null) seen.add(detail.id);
    const redacted: WireRedactedThinking = { type: 'redacted_thinking', data: detail.data };
    return [block(redacted, rest)];
  }
  if (detail.type === 'reasoning.summary') return drop('reasoning summaries have no signature');
  if (!detail.signature && !encoding.own) return drop('unsigned thinking is refused');
  const thinking: WireThinking = { type: 'thinking', thinking: detail.text ?? '', signature: detail.signature ?? '' };
  return [block(thinking, rest)];
}

function encodeAssistantPart(part: InnerPart, field: string, encoding: Encoding, rest: JsonObject): WireBlock[] {
  if (part.type === 'native') return encodeNative(part, field, encoding);
  if (part.type !== 'text') {
    encoding.addReport('dropped', field, 'this provider does not accept media of the assistant');
    return [];
  }
  const remembered: JsonObject = { ...restOf(part.ext), ...rest };
  const citations = asArray(remembered['citations']).filter(
    (citation) => asObject(citation)?.['encrypted_index'] !== '',
  );
  // Citations refer to search results, which are dropped with the other opaque state.
  if (citations.length === 0 || encoding.strip_state) delete remembered['citations'];
  else remembered['citations'] = citations;
  const text = encodeText(part.text, part.cache_control, encoding, remembered);
  return text === undefined ? [] : [text];
}

function encodeCall(call: ToolCall, id: string, field: string, encoding: Encoding, rest: JsonObject): WireBlock {
  const { input, isObject } = parseArguments(call.function.arguments);
  if (!isObject) encoding.addReport('changed', `${field}.function.arguments`, 'not a JSON object: wrapped as `_raw`');
  if (id !== call.id)
    encoding.addReport('changed', `${field}.id`, 'the id does not fit this upstream or is used twice');
  const toolUse: WireToolUse = { type: 'tool_use', id, name: encoding.names.toWire(call.function.name), input };
  return block(toolUse, { ...rest, ...restOf(call.ext) });
}

function encodeNative(native: InnerPart & { type: 'native' }, field: string, encoding: Encoding): WireBlock[] {
  if (encoding.strip_state && native.wire === WIRE) {
    encoding.addReport('dropped', field, 'the upstream refused the opaque state of former turns');
    return [];
  }
  const encoded = encodePart(native, field, encoding);
  return encoded === undefined ? [] : [encoded];
}

const IMAGE_TYPES: Readonly<Record<string, WireImageType>> = lookupTable({
  'image/jpeg': 'image/jpeg',
  'image/png': 'image/png',
  'image/gif': 'image/gif',
  'image/webp': 'image/webp',
});

/** The address, or a data URL if its media were fetched. */
function withFetchedMedia(url: string, { media }: Encoding): string {
  const fetched = media.get(url);
  return fetched === undefined ? url : `data:${fetched.mime_type};base64,${fetched.base64}`;
}

/** Media that must be fetched: Google reads no addresses for Claude (https://platform.claude.com/docs/en/build-with-claude/vision); Anthropic does. */
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
  // Clients send null or nothing for unset fields.
  const fileData = part.file.file_data ? withFetchedMedia(part.file.file_data, encoding) : undefined;
  const fileId = part.file.file_id || undefined;
  const filename = part.file.filename || undefined;
  if (fileData !== undefined && readDataUrl(fileData)?.media_type.startsWith('image/')) {
    const image: WireImage = { type: 'image', source: imageSource(fileData, field) };
    return block({ ...image, ...hint }, rest);
  }
  const title = filename === undefined ? {} : { title: filename };
  if (fileData === undefined && fileId === undefined) {
    // A source of blocks (`content`) is remembered as a whole.
    if (rest['source'] !== undefined) return block({ type: 'document', ...title, ...hint }, rest);
    throw new GatewayError(400, `${field}: the file has neither data nor an id.`);
  }
  const source = fileData === undefined ? { type: 'file' as const, file_id: fileId! } : fileSource(fileData, field);
  const document: WireDocument = { type: 'document', source, ...title };
  return block({ ...document, ...hint }, rest);
}

/** The base64 of `%PDF-`, as far as it does not depend on the following bytes: some clients send bare base64 instead of a data URL. */
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
