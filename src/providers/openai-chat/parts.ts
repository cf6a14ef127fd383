import { GatewayError } from '../../errors.ts';
import { contentsOf } from '../../schemas/contents.ts';
import type { ChatRequest, FilePart, InnerPart } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { decodeText } from '../../schemas/text-file.ts';
import type { DialectEndpoint, MediaNeed } from '../dialect.ts';
import { addReport, type Encoding } from './encoding.ts';

const WEB_URL = /^https?:\/\//i;

/** The URLs that this upstream cannot fetch itself. */
export function requiredMedia(request: ChatRequest, { quirks }: DialectEndpoint): MediaNeed[] {
  const needs: MediaNeed[] = [];
  if (contentsOf(request).media === 0) return needs;
  for (const message of request.messages) {
    if (!Array.isArray(message.content)) continue;
    for (const part of message.content) {
      if (ownShape(part) !== undefined) continue;
      if (part.type === 'file' && !quirks.document_url && part.file.file_data && WEB_URL.test(part.file.file_data)) {
        needs.push({ url: part.file.file_data, kind: 'file' });
      } else if (part.type === 'image_url' && quirks.inline_images && WEB_URL.test(part.image_url.url)) {
        needs.push({ url: part.image_url.url, kind: 'image' });
      }
    }
  }
  return needs;
}

/** The part for this upstream: the client's own object if nothing changes, undefined if it cannot be sent. */
export function encodePart(encoding: Encoding, part: InnerPart, field: string): JsonObject | undefined {
  if (part.type === 'native') {
    if (part.wire === 'openai-chat') return part.block;
    addReport(encoding, 'dropped', field, 'this part belongs to another API');
    return undefined;
  }
  const own = ownShape(part);
  if (own !== undefined) return own;
  const converted = convertPart(encoding, part, field);
  return cleanPart(encoding, converted as unknown as JsonObject);
}

/** The part as the client of this wire sent it, if the inner language has another shape for it (Mistral's documents). */
function ownShape(part: InnerPart): JsonObject | undefined {
  if (part.type !== 'file' || part.ext?.wire !== 'openai-chat') return undefined;
  return part.ext.rest['type'] === 'document_url' ? part.ext.rest : undefined;
}

function convertPart(encoding: Encoding, part: Exclude<InnerPart, { type: 'native' }>, field: string): object {
  const { quirks } = encoding;
  if (part.type === 'file') return encodeFile(encoding, part, field);
  if (part.type === 'image_url' && quirks.inline_images && WEB_URL.test(part.image_url.url)) {
    return { ...part, image_url: { ...part.image_url, url: inlined(encoding, part.image_url.url) } };
  }
  return part;
}

function encodeFile(encoding: Encoding, part: FilePart, field: string): object {
  const { quirks } = encoding;
  const { file_data: data, filename, ...others } = part.file;
  if (data === undefined || data === null) {
    if (Object.values(others).some((value) => value != null)) return part;
    throw new GatewayError(400, `${field}: the file has neither data nor an id.`);
  }
  if (quirks.document_url) {
    // https://docs.mistral.ai/capabilities/document_ai/document_qna
    return { type: 'document_url', document_url: data, ...(filename == null ? {} : { document_name: filename }) };
  }
  const url = WEB_URL.test(data) ? inlined(encoding, data) : data;
  const text = textOfDataUrl(url);
  if (text !== undefined) {
    addReport(encoding, 'changed', field, 'a text file is sent as text');
    return { type: 'text', text: filename == null ? text : `${filename}:\n${text}` };
  }
  if (url === data && filename != null) return part;
  // OpenAI requires a name with the data.
  return { ...part, file: { ...part.file, file_data: url, filename: filename ?? 'file' } };
}

/** The fetched media as a data URL; a URL that was not fetched is sent unchanged, for the upstream to accept or refuse. */
function inlined(encoding: Encoding, url: string): string {
  const media = encoding.options.media.get(url);
  return media === undefined ? url : `data:${media.mime_type};base64,${media.base64}`;
}

/** The text of a data URL of text or JSON, which are not files on this wire. */
function textOfDataUrl(url: string): string | undefined {
  if (!/^data:(?:text\/|application\/json[;,])/.test(url)) return undefined;
  const comma = url.indexOf(',');
  if (comma === -1) return undefined;
  const payload = url.slice(comma + 1);
  if (url.slice(0, comma).endsWith(';base64')) return decodeText(Buffer.from(payload, 'base64'));
  try {
    return decodeURIComponent(payload);
  } catch {
    return payload;
  }
}

/** Removes the gateway's own members, and the `null` members that some clients send. */
function cleanPart(encoding: Encoding, part: JsonObject): JsonObject {
  let copy: JsonObject | undefined;
  for (const name in part) {
    const isInternal = name === 'ext' || (name === 'cache_control' && !encoding.quirks.cache_control);
    if (!isInternal && part[name] !== null) continue;
    copy ??= { ...part };
    delete copy[name];
  }
  return copy ?? part;
}
