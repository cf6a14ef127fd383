import { isUtf8 } from 'node:buffer';
import { decodeText, wideForm } from '../../schemas/text-file.ts';
import type { Visit } from '../text-places.ts';

/** Types whose content is not filtered here: images, audio, fonts. The text of a PDF is filtered after it is extracted. */
const UNREAD = /^(?:image\/(?!svg)|audio\/|video\/|font\/|application\/(?:pdf|zip|gzip|vnd\.openxmlformats))/i;
/** Types that wires treat as text, whatever the bytes. */
const TEXT = /^(?:text\/|application\/(?:json|xml|yaml|x-yaml|javascript|x-javascript|typescript|sql)(?:[;,\s]|$))/i;
const BASE64_HEAD = /;\s*base64\s*(?:;|$)/i;
const CHARSET = /;\s*charset=[^;,]*/i;
const KNOWN_HEAD = /^(?:data:[a-z]{1,20}\/[a-z+.-]{1,40}(?:;charset=utf-8)?(?:;base64)?,)?$/;
const BASE64 = /^[\w+/=\s-]*$/;
const BASE64_CHARS_MIN = 128;
/** Readers search the first 1,024 bytes for the header of a PDF (ISO 32000-1, annex H). */
const PDF_MARK_BYTES = 1024;
/** Control characters except those that are letters in Windows encodings: absent in legacy text, present in most other files. */
const NO_OLD_TEXT = /[^\P{Cc}\t\n\v\f\r\x80-\x9f]/u;

/** Whether bytes are text, by their declared type or by their content. */
function isText(bytes: Buffer, text: string, type: string): boolean {
  if (TEXT.test(type) || wideForm(bytes) !== undefined) return true;
  if (bytes.includes(0) || bytes.subarray(0, 5).toString('latin1') === '%PDF-') return false;
  return isUtf8(bytes) || !(NO_OLD_TEXT.test(text) || bytes.subarray(0, PDF_MARK_BYTES).includes('%PDF-'));
}

/** The letter of each byte in Windows-1252. All are different. */
const NARROW = new TextDecoder('windows-1252').decode(Uint8Array.from({ length: 256 }, (_, byte) => byte));

/** Encodes a text with one byte per letter, the inverse of `decodeText` for legacy encodings. Undefined if it has other letters. */
function narrowBytes(text: string): Buffer | undefined {
  const bytes = Buffer.alloc(text.length);
  for (let at = 0; at < text.length; at += 1) {
    const byte = text.charCodeAt(at) < 128 ? text.charCodeAt(at) : NARROW.indexOf(text[at]!);
    if (byte === -1) return undefined;
    bytes[at] = byte;
  }
  return bytes;
}

function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * Visits the text of a file, given as base64, or as a data URL if `mediaType` is undefined, whatever its declared
 * type. Images, audio and PDFs are returned unchanged.
 */
export function fileTexts(data: string, mediaType: string | undefined, field: string, visit: Visit): string {
  const comma = mediaType === undefined ? data.indexOf(',') : -1;
  const head = data.slice(0, comma + 1);
  const type = mediaType ?? head.slice(5);
  // The declared type is text of the client.
  if (!KNOWN_HEAD.test(head)) visit(head, { field, kind: 'pinned' });
  const content = data.slice(comma + 1);
  const isBase64 = mediaType !== undefined || BASE64_HEAD.test(head.slice(0, -1));
  // Short content is filtered as written. Longer content is treated as bytes if it is valid base64.
  if (isBase64 && (content.length < BASE64_CHARS_MIN || !BASE64.test(content)))
    visit(content, { field, kind: 'pinned' });
  if (UNREAD.test(type.trim()) && !(isBase64 && startsAsText(content))) return data;
  if (!isBase64) {
    const text = percentDecoded(content);
    const filtered = visit(text, { field, kind: 'text' });
    return filtered === text ? data : head + encodeURIComponent(filtered);
  }
  const bytes = Buffer.from(content, 'base64');
  // Decoded as for models: with another decoding filters would see other letters.
  const text = decodeText(bytes);
  if (!isText(bytes, text, type.trim())) return data;
  const filtered = visit(text, { field, kind: 'text' });
  if (filtered === text) return data;
  const narrow =
    wideForm(bytes) === undefined && !isUtf8(bytes) && !text.includes('\ufffd') ? narrowBytes(filtered) : undefined;
  if (narrow !== undefined) return head + narrow.toString('base64');
  return head.replace(CHARSET, ';charset=utf-8') + Buffer.from(filtered, 'utf8').toString('base64');
}

/** The part of a file that is checked to be text. */
const HEAD_BASE64_CHARS = 2_048;

/** Control characters except white space, and invalid UTF-8. */
const NO_TEXT = /[^\P{Cc}\t\n\v\f\r]|\ufffd/u;

/** Whether content declared as an image, audio or document starts as text. */
function startsAsText(base64: string): boolean {
  const head = Buffer.from(base64.slice(0, HEAD_BASE64_CHARS), 'base64');
  // A character may be cut at the end.
  const read = new TextDecoder().decode(head.subarray(0, -3));
  return head.length > 3 && !NO_TEXT.test(read) && !read.startsWith('%PDF-');
}
