import type { Span } from '../finding.ts';
import { isWord } from './chars.ts';

/** RFC 5321, section 4.5.3.1. */
const LOCAL_CHARS_MAX = 64;
/** Limit for names in scripts without spaces: the text before them would be held back too. */
const UNSPACED_CHARS_MAX = 16;
const DOMAIN_CHARS_MAX = 255;

/** Scripts without spaces: their words end at the first ASCII character. */
const UNSPACED = /[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uac00-\ud7af]/;
const LETTER = /[\p{L}\p{M}]/u;
const QUOTED_LOCAL = /"([\w.%+\-'\\]{1,62}")$/;
const DOMAIN =
  /(?:[\p{L}\p{M}\p{N}](?:[\p{L}\p{M}\p{N}-]{0,61}[\p{L}\p{M}\p{N}])?\.)+(?:xn--[a-z\d-]{1,58}[a-z\d]|[\p{L}\p{M}]{2,24})/iuy;
const ASCII_DOMAIN = /(?:[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?\.)+(?:xn--[a-z\d-]{1,58}[a-z\d]|[a-z]{2,24})/iy;
/** A name that continues after the match: it is not a domain. */
const CONTINUES = /^[a-z\d]/i;
/** User names of repository hosts, in addresses that only look like mail: `git@host:path`. */
const REPOSITORY_USERS = /^(?:git|hg|svn|gitlab|gitea|forgejo)$/i;
const PICTURE_SCALE = /^\dx\.[a-z]{2,5}$/i;
const VERSION = /^v?\d+\.\d+\.\d/;
/** `Object@1b2c3d.toString`: a top-level domain has no capital inside. */
const CAMEL = /[a-z][A-Z][^.]*$/;

/** `.`, `%`, `+`, `-` and `'`. */
const isLocalSign = (unit: number) => unit === 0x2e || unit === 0x2d || unit === 0x2b || unit === 0x25 || unit === 0x27;

function isLocal(text: string, at: number): 'plain' | 'unspaced' | undefined {
  const unit = text.charCodeAt(at);
  if (unit < 0x80) return isWord(unit) || isLocalSign(unit) ? 'plain' : undefined;
  const character = text.charAt(at);
  if (!LETTER.test(character)) return undefined;
  return UNSPACED.test(character) ? 'unspaced' : 'plain';
}

function localStart(text: string, at: number): number {
  if (text.charAt(at - 1) === '"') {
    const quoted = QUOTED_LOCAL.exec(text.slice(Math.max(0, at - LOCAL_CHARS_MAX), at))?.[1];
    return at - (quoted?.length ?? 0);
  }
  let start = at;
  const script = isLocal(text, at - 1);
  const least = at - (script === 'unspaced' ? UNSPACED_CHARS_MAX : LOCAL_CHARS_MAX);
  while (start > least && script !== undefined && isLocal(text, start - 1) === script) start -= 1;
  // A quotation mark or a dot before a name is not part of it.
  while (start < at && /[.']/.test(text.charAt(start))) start += 1;
  return start;
}

function domainEnd(text: string, from: number): number | undefined {
  const code = text.charCodeAt(from);
  if (Number.isNaN(code)) return undefined;
  const part = text.slice(from, from + DOMAIN_CHARS_MAX);
  for (const expression of [ASCII_DOMAIN, DOMAIN]) {
    expression.lastIndex = 0;
    const domain = expression.exec(part)?.[0];
    if (domain === undefined || CONTINUES.test(part.charAt(domain.length))) continue;
    if (PICTURE_SCALE.test(domain) || VERSION.test(domain) || CAMEL.test(domain)) return undefined;
    return from + domain.length;
  }
  return undefined;
}

/** The email address around the at sign at an offset of a folded text. */
export function emailAt(text: string, at: number): Span | undefined {
  const start = localStart(text, at);
  if (start === at) return undefined;
  const end = domainEnd(text, at + 1);
  if (end === undefined) return undefined;
  const isRepository = /[:/]/.test(text.charAt(end)) && REPOSITORY_USERS.test(text.slice(start, at));
  return isRepository ? undefined : { start, end };
}

const DOMAIN_TAIL = /@[\p{L}\p{M}\p{N}.-]{0,255}$/u;
const QUOTE_TAIL = /\\?"?$/;

/** The start of an address that may continue after the end of a folded text. The text's length if there is none. */
export function emailHeldFrom(text: string): number {
  const tail = text.slice(-1 - DOMAIN_CHARS_MAX);
  const at = DOMAIN_TAIL.exec(tail)?.index;
  if (at !== undefined) return localStart(text, text.length - tail.length + at);
  const end = text.length - (QUOTE_TAIL.exec(tail)?.[0].length ?? 0);
  return end === text.length || isLocal(text, end - 1) !== undefined ? localStart(text, end) : text.length;
}
