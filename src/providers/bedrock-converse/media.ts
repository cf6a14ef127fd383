import { GatewayError } from '../../errors.ts';
import type { AudioPart, ChatRequest, FilePart, ImagePart, InnerPart, VideoPart } from '../../schemas/inner.ts';
import { lookupTable } from '../../schemas/lookup-table.ts';
import type { MediaNeed } from '../dialect.ts';
import { readDataUrl } from '../shared/data-url.ts';
import type { Encoding } from './encoding.ts';
import { isNova } from './family.ts';
import { restOf, type WireBlock, type WireSource } from './wire.ts';

/** The name of a document (Amazon Bedrock, `DocumentBlock`). */
const DOCUMENT_NAME_CHARS_MAX = 200;

const WEB_URL = /^https?:\/\//i;
const S3_URI = /^s3:\/\/[^/]+\/./i;

/** The wire's formats by media type (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ContentBlock.html). */
const IMAGES: Readonly<Record<string, string>> = lookupTable({
  'image/jpeg': 'jpeg',
  'image/png': 'png',
  'image/gif': 'gif',
  'image/webp': 'webp',
});
const DOCUMENTS: Readonly<Record<string, string>> = lookupTable({
  'application/pdf': 'pdf',
  'text/csv': 'csv',
  'application/msword': 'doc',
  'application/vnd.openxmlformats-officedocument.wordprocessingml.document': 'docx',
  'application/vnd.ms-excel': 'xls',
  'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet': 'xlsx',
  'text/html': 'html',
  'text/markdown': 'md',
  'text/x-markdown': 'md',
  'text/plain': 'txt',
  'application/json': 'txt',
});
const VIDEOS: Readonly<Record<string, string>> = lookupTable({
  'video/mp4': 'mp4',
  'video/quicktime': 'mov',
  'video/x-matroska': 'mkv',
  'video/webm': 'webm',
  'video/x-flv': 'flv',
  'video/mpeg': 'mpeg',
  'video/mpg': 'mpg',
  'video/x-ms-wmv': 'wmv',
  'video/wmv': 'wmv',
  'video/3gpp': 'three_gp',
});
const AUDIOS: ReadonlySet<string> = new Set(
  'aac flac m4a mka mkv mp3 mp4 mpeg mpga ogg opus pcm wav webm x-aac'.split(' '),
);
/** File extensions that differ from the format's name. */
const ENDINGS: Readonly<Record<string, string>> = lookupTable({
  jpg: 'jpeg',
  '3gp': 'three_gp',
  markdown: 'md',
  htm: 'html',
});

/** The addresses that must be fetched: the wire accepts bytes, or objects in S3. */
export function requiredMedia(request: ChatRequest): MediaNeed[] {
  const needs: MediaNeed[] = [];
  for (const { role, content } of request.messages) {
    // Media of other roles are not sent.
    if (!Array.isArray(content) || (role !== 'user' && role !== 'tool')) continue;
    for (const part of content) {
      const [kind, url] = addressOf(part) ?? [];
      if (kind !== undefined && url !== undefined && WEB_URL.test(url)) needs.push({ url, kind });
    }
  }
  return needs;
}

function addressOf(part: InnerPart): [MediaNeed['kind'], string | undefined] | undefined {
  if (part.type === 'image_url') return ['image', part.image_url.url];
  if (part.type === 'video_url') return ['video', part.video_url.url];
  return part.type === 'file' ? ['file', part.file.file_data] : undefined;
}

/** The content of a part, with its media type if known, and its extension if it is in S3. */
interface Content {
  source: WireSource;
  media_type: string | undefined;
  ending: string | undefined;
}

function contentOf(url: string, field: string, { media }: Encoding): Content {
  if (S3_URI.test(url)) {
    return { source: { s3Location: { uri: url } }, media_type: undefined, ending: endingOf(url) };
  }
  const data = readDataUrl(url);
  if (data !== undefined) return { source: { bytes: data.base64 }, media_type: data.media_type, ending: undefined };
  const fetched = media.get(url);
  if (fetched !== undefined) {
    return { source: { bytes: fetched.base64 }, media_type: fetched.mime_type, ending: endingOf(url) };
  }
  if (WEB_URL.test(url)) throw new GatewayError(400, `${field}: the content of this address could not be fetched.`);
  throw new GatewayError(400, `${field}: the address must be an http(s), s3 or data URL.`);
}

function endingOf(name: string): string | undefined {
  const ending = /\.([A-Za-z0-9]{1,8})(?:[?#].*)?$/.exec(name)?.[1]?.toLowerCase();
  return ending === undefined ? undefined : (ENDINGS[ending] ?? ending);
}

function formatOf(content: Content, formats: Readonly<Record<string, string>>): string | undefined {
  const known = content.media_type === undefined ? undefined : formats[content.media_type];
  if (known !== undefined) return known;
  const { ending } = content;
  return ending !== undefined && Object.values(formats).includes(ending) ? ending : undefined;
}

function typeOf({ media_type: mediaType, ending }: Content): string {
  return mediaType ?? ending ?? 'unknown';
}

/** An image as a block. Throws `GatewayError` 400 for a type that the wire does not have. */
export function encodeImage(part: ImagePart, field: string, encoding: Encoding): WireBlock {
  return imageBlock(contentOf(part.image_url.url, field, encoding), field, restOf(part.ext));
}

function imageBlock(content: Content, field: string, rest: WireBlock): WireBlock {
  const format = formatOf(content, IMAGES);
  if (format === undefined) {
    throw new GatewayError(400, `${field}: images must be JPEG, PNG, GIF or WebP, not ${typeOf(content)}.`);
  }
  return { image: { ...rest, format, source: content.source } };
}

/** The base64 of `%PDF-`, as far as it does not depend on the following bytes: some clients send bare base64 instead of a data URL. */
const PDF_BASE64 = 'JVBERi';

/** A file as the block of its kind: a document, an image or a video. Throws `GatewayError` 400 for other types. */
export function encodeFile(part: FilePart, field: string, encoding: Encoding): WireBlock {
  const { file_data: fileData, filename } = part.file;
  if (!fileData) throw new GatewayError(400, `${field}: this model's provider accepts files as data only.`);
  const url = fileData.startsWith(PDF_BASE64) ? `data:application/pdf;base64,${fileData}` : fileData;
  const content = contentOf(url, field, encoding);
  if (filename && content.ending === undefined) content.ending = endingOf(filename);
  const rest = restOf(part.ext);
  if (formatOf(content, IMAGES) !== undefined) return imageBlock(content, field, rest);
  if (formatOf(content, VIDEOS) !== undefined) return videoBlock(content, field, rest, encoding);
  const format = formatOf(content, DOCUMENTS) ?? (content.media_type?.startsWith('text/') === true ? 'txt' : undefined);
  if (format === undefined) {
    throw new GatewayError(400, `${field}: this model's provider does not accept files of type ${typeOf(content)}.`);
  }
  return {
    document: { ...rest, format, name: nameDocument(filename ?? '', encoding.documents), source: content.source },
  };
}

/** A name that the wire accepts: letters, digits, single spaces, hyphens, brackets; unique in a request. */
function nameDocument(filename: string, used: Set<string>): string {
  const stem = filename.replace(/\.[A-Za-z0-9]{1,8}$/, '');
  const fits = stem.replace(/[^A-Za-z0-9 ()[\]-]+/g, ' ').replace(/ {2,}/g, ' ');
  const name =
    fits
      .trim()
      .slice(0, DOCUMENT_NAME_CHARS_MAX - 8)
      .trim() || 'Document 1';
  const bare = name.replace(/ 1$/, '');
  let unique = name;
  for (let n = 2; used.has(unique); n += 1) unique = `${bare} ${n}`;
  used.add(unique);
  return unique;
}

/** A video as a block. */
export function encodeVideo(part: VideoPart, field: string, encoding: Encoding): WireBlock {
  return videoBlock(contentOf(part.video_url.url, field, encoding), field, restOf(part.ext), encoding);
}

function videoBlock(content: Content, field: string, rest: WireBlock, encoding: Encoding): WireBlock {
  if (!accepts('video', encoding)) throw new GatewayError(400, `${field}: this model does not accept video.`);
  const format = formatOf(content, VIDEOS);
  if (format === undefined) {
    throw new GatewayError(400, `${field}: this model's provider does not accept video of type ${typeOf(content)}.`);
  }
  return { video: { ...rest, format, source: content.source } };
}

/** An audio recording as a block. */
export function encodeAudio(part: AudioPart, field: string, encoding: Encoding): WireBlock {
  if (!accepts('audio', encoding)) throw new GatewayError(400, `${field}: this model does not accept audio.`);
  const { data, format } = part.input_audio;
  const name = format.toLowerCase();
  if (!AUDIOS.has(name)) {
    throw new GatewayError(400, `${field}: this model's provider does not accept audio of format ${format}.`);
  }
  const bytes = readDataUrl(data)?.base64 ?? data;
  return { audio: { ...restOf(part.ext), format: name, source: { bytes } } };
}

function accepts(modality: string, { input_modalities: inputModalities, family }: Encoding): boolean {
  return inputModalities.includes(modality) || (modality === 'video' && isNova(family));
}
