import type { Visit } from './wire-texts.ts';

/** Types of which nothing is read here: pictures and sounds. What a PDF says is looked at where it is read (`Call.screening`). */
const UNREAD = /^(?:image\/(?!svg)|audio\/|video\/|font\/|application\/(?:pdf|zip|gzip|vnd\.openxmlformats))/i;
/** Types that wires take for text, whatever their bytes are. */
const TEXT = /^(?:text\/|application\/(?:json|xml|yaml|x-yaml|javascript|x-javascript|typescript|sql)(?:[;,\s]|$))/i;
const BASE64_HEAD = /;\s*base64\s*(?:;|$)/i;
const KNOWN_HEAD = /^(?:data:[a-z]{1,20}\/[a-z+.-]{1,40}(?:;charset=utf-8)?(?:;base64)?,)?$/;
const BASE64 = /^[\w+/=\s-]*$/;
const BASE64_CHARS_MIN = 128;
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The text of bytes; undefined where they are none. */
function textOf(bytes: Buffer): string | undefined {
  // UTF-16 has a mark, or shows by letters of ASCII.
  const [a, b, c, d] = bytes;
  if ((a === 0xff && b === 0xfe) || (a && b === 0 && c && d === 0)) return new TextDecoder('utf-16le').decode(bytes);
  if ((a === 0xfe && b === 0xff) || (a === 0 && b && c === 0 && d)) return new TextDecoder('utf-16be').decode(bytes);
  if (bytes.includes(0) || bytes.subarray(0, 5).toString('latin1') === '%PDF-') return undefined;
  try {
    return utf8.decode(bytes);
  } catch {
    // A text file of before Unicode: each byte is a character.
    return undefined;
  }
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
export function fileTexts(given: string, media_type: string | undefined, field: string, visit: Visit): string {
  const comma = media_type === undefined ? given.indexOf(',') : -1;
  const head = given.slice(0, comma + 1);
  const type = media_type ?? head.slice(5);
  // What a client declares it as is what a client says.
  if (!KNOWN_HEAD.test(head)) visit(head, { field, kind: 'pinned' });
  const content = given.slice(comma + 1);
  const is_base64 = media_type !== undefined || BASE64_HEAD.test(head.slice(0, -1));
  // So few characters are looked at as they stand; more are bytes, if they can be.
  if (is_base64 && (content.length < BASE64_CHARS_MIN || !BASE64.test(content)))
    visit(content, { field, kind: 'pinned' });
  if (UNREAD.test(type.trim()) && !(is_base64 && beginsAsText(content))) return given;
  const text = is_base64 ? textOf(Buffer.from(content, 'base64')) : percentDecoded(content);
  if (text === undefined) return latinFile(given, { head, content, is_text: TEXT.test(type.trim()) }, field, visit);
  const told = visit(text, { field, kind: 'text' });
  if (told === text) return given;
  if (!is_base64) return head + encodeURIComponent(told);
  return head + Buffer.from(told, 'utf8').toString('base64');
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

/** Where readers look for the mark of a PDF (ISO 32000-1, annex H). */
const PDF_MARK_CHARS = 1024;
/** What no text of before Unicode has, and hardly any other file lacks: control characters, but for those that are letters on Windows. */
const NO_OLD_TEXT = /[^\P{Cc}\t\n\v\f\r\x80-\x9f]/u;

/** A file that is not UTF-8: each byte is a character where it is a text, by what is said of it or by its bytes. */
function latinFile(
  given: string,
  { head, content, is_text }: { head: string; content: string; is_text: boolean },
  field: string,
  visit: Visit,
): string {
  const text = Buffer.from(content, 'base64').toString('latin1');
  if (!is_text && (NO_OLD_TEXT.test(text) || text.slice(0, PDF_MARK_CHARS).includes('%PDF-'))) return given;
  const told = visit(text, { field, kind: 'text' });
  return told === text ? given : head + Buffer.from(told, 'latin1').toString('base64');
}
