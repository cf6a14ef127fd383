import { isUtf8 } from 'node:buffer';
import { decodeText, wideForm } from '../../schemas/text-file.ts';
import type { Visit } from '../text-places.ts';

/** Types of which nothing is read here: pictures and sounds. What a PDF says is looked at where it is read (`Call.screening`). */
const UNREAD = /^(?:image\/(?!svg)|audio\/|video\/|font\/|application\/(?:pdf|zip|gzip|vnd\.openxmlformats))/i;
/** Types that wires take for text, whatever their bytes are. */
const TEXT = /^(?:text\/|application\/(?:json|xml|yaml|x-yaml|javascript|x-javascript|typescript|sql)(?:[;,\s]|$))/i;
const BASE64_HEAD = /;\s*base64\s*(?:;|$)/i;
const CHARSET = /;\s*charset=[^;,]*/i;
const KNOWN_HEAD = /^(?:data:[a-z]{1,20}\/[a-z+.-]{1,40}(?:;charset=utf-8)?(?:;base64)?,)?$/;
const BASE64 = /^[\w+/=\s-]*$/;
const BASE64_CHARS_MIN = 128;
/** Where readers look for the mark of a PDF (ISO 32000-1, annex H). */
const PDF_MARK_BYTES = 1024;
/** What no text of before Unicode has, and hardly any other file lacks: control characters, but for those that are letters on Windows. */
const NO_OLD_TEXT = /[^\P{Cc}\t\n\v\f\r\x80-\x9f]/u;

/** Whether bytes are a text, by what is said of them or by themselves. */
function isText(bytes: Buffer, text: string, type: string): boolean {
  if (TEXT.test(type) || wideForm(bytes) !== undefined) return true;
  if (bytes.includes(0) || bytes.subarray(0, 5).toString('latin1') === '%PDF-') return false;
  return isUtf8(bytes) || !(NO_OLD_TEXT.test(text) || bytes.subarray(0, PDF_MARK_BYTES).includes('%PDF-'));
}

/** The letter of each byte: all are different. */
const NARROW = new TextDecoder('windows-1252').decode(Uint8Array.from({ length: 256 }, (_, byte) => byte));

/** A text a byte a letter, as `decodeText` reads what is no UTF-8, so that what was another encoding stays it; undefined where it has other letters. */
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
 * A file as base64, or as a data URL where `media_type` is undefined: what it says where it is a text, whatever it is declared
 * as. Pictures, sounds and PDFs go on as they are.
 */
export function fileTexts(given: string, mediaType: string | undefined, field: string, visit: Visit): string {
  const comma = mediaType === undefined ? given.indexOf(',') : -1;
  const head = given.slice(0, comma + 1);
  const type = mediaType ?? head.slice(5);
  // What a client declares it as is what a client says.
  if (!KNOWN_HEAD.test(head)) visit(head, { field, kind: 'pinned' });
  const content = given.slice(comma + 1);
  const isBase64 = mediaType !== undefined || BASE64_HEAD.test(head.slice(0, -1));
  // So few characters are looked at as they stand; more are bytes, if they can be.
  if (isBase64 && (content.length < BASE64_CHARS_MIN || !BASE64.test(content)))
    visit(content, { field, kind: 'pinned' });
  if (UNREAD.test(type.trim()) && !(isBase64 && beginsAsText(content))) return given;
  if (!isBase64) {
    const text = percentDecoded(content);
    const told = visit(text, { field, kind: 'text' });
    return told === text ? given : head + encodeURIComponent(told);
  }
  const bytes = Buffer.from(content, 'base64');
  // Read as it is for models: what filters take for other letters would pass them.
  const text = decodeText(bytes);
  if (!isText(bytes, text, type.trim())) return given;
  const told = visit(text, { field, kind: 'text' });
  if (told === text) return given;
  const narrow =
    wideForm(bytes) === undefined && !isUtf8(bytes) && !text.includes('\ufffd') ? narrowBytes(told) : undefined;
  if (narrow !== undefined) return head + narrow.toString('base64');
  return head.replace(CHARSET, ';charset=utf-8') + Buffer.from(told, 'utf8').toString('base64');
}

/** So much of a file tells whether it is a text. */
const HEAD_BASE64_CHARS = 2_048;

/** Control characters, but for white space, and what is no UTF-8. */
const NO_TEXT = /[^\P{Cc}\t\n\v\f\r]|\ufffd/u;

/** Whether what is declared as a picture, a sound or a document begins as none of them does: as a text. */
function beginsAsText(base64: string): boolean {
  const head = Buffer.from(base64.slice(0, HEAD_BASE64_CHARS), 'base64');
  // A character may be cut at the end.
  const read = new TextDecoder().decode(head.subarray(0, -3));
  return head.length > 3 && !NO_TEXT.test(read) && !read.startsWith('%PDF-');
}
