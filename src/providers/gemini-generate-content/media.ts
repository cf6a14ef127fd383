import { GatewayError } from '../../errors.ts';
import type { ChatRequest, FilePart, InnerPart } from '../../schemas/inner.ts';
import { lookupTable } from '../../schemas/lookup-table.ts';
import type { DialectEndpoint, MediaNeed } from '../dialect.ts';
import { readDataUrl } from '../shared/data-url.ts';
import type { Encoding } from './encoding.ts';
import type { WirePart } from './wire.ts';

type MediaPart = Exclude<InnerPart, { type: 'text' } | { type: 'native' }>;
type Kind = MediaNeed['kind'];

/** Addresses that Google reads by itself: YouTube videos, and files uploaded to its own Files API (https://ai.google.dev/gemini-api/docs/video-understanding, /docs/files). */
const READ_BY_GOOGLE = /^https:\/\/(?:(?:www\.|m\.)?youtube\.com|youtu\.be|generativelanguage\.googleapis\.com)\//i;
/** Cloud Storage, on Vertex AI only (https://cloud.google.com/vertex-ai/generative-ai/docs/multimodal/image-understanding). */
const CLOUD_STORAGE = /^gs:\/\//i;
const WEB = /^https?:\/\//i;

const BY_EXTENSION: Readonly<Record<string, string>> = lookupTable({
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  png: 'image/png',
  webp: 'image/webp',
  heic: 'image/heic',
  heif: 'image/heif',
  pdf: 'application/pdf',
  txt: 'text/plain',
  wav: 'audio/wav',
  mp3: 'audio/mp3',
  aiff: 'audio/aiff',
  aac: 'audio/aac',
  ogg: 'audio/ogg',
  flac: 'audio/flac',
  m4a: 'audio/m4a',
  mp4: 'video/mp4',
  mpeg: 'video/mpeg',
  mpg: 'video/mpeg',
  mov: 'video/quicktime',
  avi: 'video/x-msvideo',
  flv: 'video/x-flv',
  webm: 'video/webm',
  wmv: 'video/x-ms-wmv',
  '3gp': 'video/3gpp',
});
const BY_KIND: Readonly<Record<Kind, string>> = {
  image: 'image/jpeg',
  file: 'application/pdf',
  audio: 'audio/mp3',
  video: 'video/mp4',
};

/** The addresses that must be fetched before the request can be encoded: all that Google does not read by itself. */
export function requiredMedia(request: ChatRequest, _endpoint: DialectEndpoint): MediaNeed[] {
  const needs = new Map<string, MediaNeed>();
  const addNeed = (url: string | undefined, kind: Kind) => {
    if (url !== undefined && WEB.test(url) && !READ_BY_GOOGLE.test(url)) needs.set(url, { url, kind });
  };
  for (const { content, images } of request.messages) {
    for (const image of images ?? []) addNeed(image.image_url.url, 'image');
    if (!Array.isArray(content)) continue;
    for (const part of content) {
      if (part.type === 'text' || part.type === 'native') continue;
      const { data, kind } = contentOf(part);
      addNeed(data, kind);
    }
  }
  return [...needs.values()];
}

/** An image, audio, video or document as a part. Throws `GatewayError` 400 if it cannot be sent. */
export function encodeMedia(part: MediaPart, field: string, encoding: Encoding): WirePart {
  const { data, kind, declared } = contentOf(part);
  if (data === undefined || data === '')
    throw new GatewayError(400, `${field}: the file has neither data nor an address.`);
  return addressed(data, kind, field, encoding) ?? inlined(data, kind, declared, field);
}

/** An image that the model generated, as a part to be sent back; undefined if its bytes are missing. */
export function encodeOwnImage(url: string, { media }: Encoding): WirePart | undefined {
  const fetched = media.get(url);
  if (fetched !== undefined) return { inlineData: { mimeType: fetched.mime_type, data: fetched.base64 } };
  const dataUrl = readDataUrl(url);
  return dataUrl === undefined ? undefined : { inlineData: { mimeType: dataUrl.media_type, data: dataUrl.base64 } };
}

function contentOf(part: MediaPart): { data: string | undefined; kind: Kind; declared: string | undefined } {
  switch (part.type) {
    case 'image_url':
      return { data: part.image_url.url, kind: 'image', declared: undefined };
    case 'video_url':
      return { data: part.video_url.url, kind: 'video', declared: undefined };
    case 'input_audio':
      return { data: part.input_audio.data, kind: 'audio', declared: audioType(part.input_audio.format) };
    case 'file':
      return { data: fileOf(part), kind: 'file', declared: extensionType(part.file.filename ?? '') };
  }
}

/** Clients send null or nothing for unset fields; an id is the address of an uploaded file. */
function fileOf({ file }: FilePart): string | undefined {
  return file.file_data || file.file_id || undefined;
}

function addressed(
  data: string,
  kind: Kind,
  field: string,
  { media, is_cloud: isCloud }: Encoding,
): WirePart | undefined {
  const fetched = media.get(data);
  if (fetched !== undefined) {
    return { inlineData: { mimeType: plainText(fetched.mime_type), data: fetched.base64 } };
  }
  const isStorage = CLOUD_STORAGE.test(data);
  if (READ_BY_GOOGLE.test(data) || (isStorage && isCloud)) {
    // An uploaded file has its own type.
    const isUploaded = /^https:\/\/generativelanguage\./i.test(data);
    const mimeType = isUploaded ? undefined : (extensionType(data) ?? BY_KIND[kind]);
    return { fileData: mimeType === undefined ? { fileUri: data } : { fileUri: data, mimeType } };
  }
  if (isStorage) throw new GatewayError(400, `${field}: addresses of Cloud Storage are read on Vertex AI only.`);
  if (WEB.test(data)) throw new GatewayError(400, `${field}: the content of this address is not available.`);
  return undefined;
}

function inlined(data: string, kind: Kind, declared: string | undefined, field: string): WirePart {
  const dataUrl = readDataUrl(data);
  if (dataUrl !== undefined) return { inlineData: { mimeType: plainText(dataUrl.media_type), data: dataUrl.base64 } };
  // Audio is sent as bare base64, and some clients send documents so.
  const isBare = kind === 'audio' || (kind === 'file' && /^[A-Za-z0-9+/_-]{8}/.test(data));
  if (!isBare) throw new GatewayError(400, `${field}: the address must be an http(s) or a data URL.`);
  return { inlineData: { mimeType: plainText(declared ?? BY_KIND[kind]), data } };
}

/** Markup and source code are read as text, under no other type (https://ai.google.dev/gemini-api/docs/document-processing). */
function plainText(mimeType: string): string {
  return /^application\/(?:json|xml|yaml|x-yaml|javascript|x-javascript|typescript|sql)$/.test(mimeType)
    ? 'text/plain'
    : mimeType;
}

function audioType(format: string): string {
  const name = format.toLowerCase();
  if (name.startsWith('pcm')) return 'audio/pcm';
  return BY_EXTENSION[name]?.replace(/^video\//, 'audio/') ?? `audio/${name}`;
}

function extensionType(name: string): string | undefined {
  const extension = /\.([a-z0-9]{2,4})(?:[?#].*)?$/i.exec(name)?.[1]?.toLowerCase();
  return extension === undefined ? undefined : BY_EXTENSION[extension];
}
