import { lookupTable } from '../../schemas/lookup-table.ts';
import type { MediaNeed } from '../dialect.ts';

const BRANDS: readonly [RegExp, string][] = [
  [/^avi[fs]/, 'image/avif'],
  [/^(?:hei[cxms]|hev[cx])/, 'image/heic'],
  [/^(?:mif1|msf1)/, 'image/heif'],
  [/^(?:M4A|M4B)/, 'audio/mp4'],
  [/^qt {2}/, 'video/quicktime'],
  [/^3g/, 'video/3gpp'],
];

/** First bytes of files, in Latin-1 (the WHATWG's "MIME Sniffing", section 6, and the specifications of the formats). */
const STARTS: readonly [string, string][] = [
  ['\x89PNG\r\n\x1a\n', 'image/png'],
  ['\xff\xd8\xff', 'image/jpeg'],
  ['GIF87a', 'image/gif'],
  ['GIF89a', 'image/gif'],
  ['II*\0', 'image/tiff'],
  ['MM\0*', 'image/tiff'],
  ['fLaC', 'audio/flac'],
  ['OggS', 'audio/ogg'],
  ['ID3', 'audio/mpeg'],
  ['FLV\x01', 'video/x-flv'],
  ['\x30\x26\xb2\x75\x8e\x66\xcf\x11', 'video/x-ms-wmv'],
  ['\0\0\x01\xba', 'video/mpeg'],
  ['\0\0\x01\xb3', 'video/mpeg'],
];

/** RIFF and AIFF containers, whose type is at offset 8. */
const FORMS: Readonly<Record<string, string>> = lookupTable({
  'RIFF WEBP': 'image/webp',
  'RIFF WAVE': 'audio/wav',
  'RIFF AVI ': 'video/x-msvideo',
  'FORM AIFF': 'audio/aiff',
  'FORM AIFC': 'audio/aiff',
});

/** The main part of an office document (ECMA-376, part 1), whose name is uncompressed in the archive. */
const OFFICE: readonly [string, string][] = [
  ['word/document', 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'],
  ['xl/workbook', 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet'],
  ['ppt/presentation', 'application/vnd.openxmlformats-officedocument.presentationml.presentation'],
];

/** The range in which readers search for a PDF's header (ISO 32000-1, annex H). */
const PDF_MARK_BYTES = 1024;

/** Whether bytes are a PDF. */
export function isPdf(bytes: Buffer): boolean {
  return bytes.subarray(0, PDF_MARK_BYTES).includes('%PDF-');
}

/**
 * The media type of bytes, detected from the bytes; undefined if unknown. `declared` is used only to distinguish text types, since all of
 * them are read alike.
 */
export function mediaTypeOf(bytes: Buffer, declared: string | undefined): string | undefined {
  return binaryType(bytes) ?? textType(bytes, declared);
}

function binaryType(bytes: Buffer): string | undefined {
  const head = bytes.toString('latin1', 0, 64);
  const known = STARTS.find(([start]) => head.startsWith(start))?.[1];
  if (known !== undefined) return known;
  const form = FORMS[`${head.slice(0, 4)} ${head.slice(8, 12)}`];
  if (form !== undefined) return form;
  if (head.startsWith('BM') && head.slice(6, 10) === '\0\0\0\0') return 'image/bmp';
  if (head.slice(4, 8) === 'ftyp') {
    const brand = head.slice(8, 12);
    return BRANDS.find(([pattern]) => pattern.test(brand))?.[1] ?? 'video/mp4';
  }
  if (head.startsWith('\x1a\x45\xdf\xa3')) return head.includes('webm') ? 'video/webm' : 'video/x-matroska';
  if (isPdf(bytes)) return 'application/pdf';
  if (head.startsWith('PK\x03\x04')) return OFFICE.find(([part]) => bytes.includes(part))?.[1];
  return soundType(bytes);
}

/** Frames that begin with eleven or twelve set bits: ADTS has layer 0, MPEG audio layer II or III (layer I is out of use, and begins as UTF-16 does). */
function soundType(bytes: Buffer): string | undefined {
  const [first, second = 0] = bytes;
  if (first !== 0xff || bytes.length < 4) return undefined;
  if ((second & 0xf6) === 0xf0) return 'audio/aac';
  const isFrame = (second & 0xe0) === 0xe0 && [0x02, 0x04].includes(second & 0x06) && (second & 0x18) !== 0x08;
  return isFrame && bytes[2]! >> 4 !== 0xf ? 'audio/mpeg' : undefined;
}

function textType(bytes: Buffer, declared: string | undefined): string | undefined {
  if (bytes.includes(0)) return undefined;
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
  const declaredType = declared?.split(';')[0]?.trim().toLowerCase() ?? '';
  return /^text\/[-\w.+]+$|^application\/json$/.test(declaredType) ? declaredType : 'text/plain';
}

/** The media types that a part of each kind may have. A video may hold audio only, and audio may be in a video container. */
const KINDS: Readonly<Record<MediaNeed['kind'], RegExp>> = {
  image: /^image\//,
  audio: /^audio\/|^video\/(?:mp4|webm|3gpp|quicktime|x-matroska)$/,
  video: /^video\//,
  file: /^(?:text\/|image\/|audio\/|video\/|application\/)/,
};

/** Whether a part of this kind may have this media type. */
export function fitsKind(mimeType: string, kind: MediaNeed['kind']): boolean {
  return KINDS[kind].test(mimeType);
}
