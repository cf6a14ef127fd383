import { createHash } from 'node:crypto';
import { limits } from '../../limits.ts';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** The tool call id for an upstream that sent none: deterministic for a generation and ordinal. */
export function mintCallId(generationId: string, ordinal: number): string {
  return `call_${base62(`${generationId}:${ordinal}`, 24)}`;
}

/** The id itself if it matches `fits`, else a deterministic replacement of `chars` letters and digits. */
export function fitCallId(id: string, fits: RegExp, chars: number): string {
  return fits.test(id) ? id : base62(id, chars);
}

const TOOL_NAME = new RegExp(`^[A-Za-z0-9_-]{1,${limits.tool_name_chars_max}}$`);
const HASH_CHARS = 6;

/** A tool name that every wire accepts: the name itself, or its legal characters with a hash of the whole. */
export function fitToolName(name: string): string {
  if (TOOL_NAME.test(name)) return name;
  const kept = name.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, limits.tool_name_chars_max - HASH_CHARS - 1);
  return `${kept}_${base62(name, HASH_CHARS)}`;
}

function base62(text: string, chars: number): string {
  const digest = createHash('sha256').update(text).digest();
  let out = '';
  for (let i = 0; i < chars; i += 1) out += ALPHABET[digest[i]! % 62];
  return out;
}
