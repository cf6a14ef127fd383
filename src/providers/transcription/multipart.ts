import { createHash } from 'node:crypto';
import { mediaTypes } from '../../audio/sound.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import type { Sound } from './dialect.ts';

/** A name in quotes (HTML, "Multipart form data", escaping). */
function quoted(name: string): string {
  return name.replace(/"/g, '%22').replace(/\r/g, '%0D').replace(/\n/g, '%0A');
}

function formText(value: JsonValue): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** A list repeats its field; the suffix of its name depends on the wire. */
function pairsOf(fields: JsonObject, listSuffix: string): [string, string][] {
  return Object.entries(fields).flatMap(([name, value]): [string, string][] => {
    if (value === null || value === undefined) return [];
    if (!Array.isArray(value)) return [[name, formText(value)]];
    return value.map((item) => [`${name}${listSuffix}`, formText(item)]);
  });
}

/**
 * A form with audio as its `file` (RFC 7578). The boundary is a hash of the content: the content cannot contain its own hash, and the
 * same form is the same bytes.
 */
export function multipart(
  { bytes, format }: Sound,
  fields: JsonObject,
  { list_suffix: listSuffix = '[]' }: { list_suffix?: '[]' | '' } = {},
): { headers: Record<string, string>; payload: Buffer } {
  const pairs = pairsOf(fields, listSuffix);
  const digest = createHash('sha256').update(JSON.stringify(pairs)).update(bytes).digest('hex');
  const boundary = `gateway-form-${digest.slice(0, 32)}`;
  const texts = pairs.map(
    ([name, value]) =>
      `--${boundary}\r\ncontent-disposition: form-data; name="${quoted(name)}"\r\n\r\n${value.toWellFormed()}\r\n`,
  );
  const head =
    `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="audio.${format}"\r\n` +
    `content-type: ${mediaTypes[format]}\r\n\r\n`;
  return {
    headers: { 'content-type': `multipart/form-data; boundary=${boundary}` },
    payload: Buffer.concat([Buffer.from(texts.join('') + head), bytes, Buffer.from(`\r\n--${boundary}--\r\n`)]),
  };
}
