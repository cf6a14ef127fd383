import type { FastifyRequest } from 'fastify';
import { GatewayError } from '../errors.ts';
import { limits } from '../limits.ts';

/** A file of a form. */
export interface FormFile {
  bytes: Buffer;
  filename: string;
  /** The media type that its sender named; empty: none. */
  type: string;
}

/** The fields of a form by their names; one that stands several times is a list. */
export type Form = Record<string, string | string[] | FormFile>;

const LINE = Buffer.from('\r\n');
const HEAD_END = Buffer.from('\r\n\r\n');

function broken(why: string): GatewayError {
  return new GatewayError(400, `The multipart form is not valid: ${why}`);
}

/** A parameter of a header, in quotes or without; what a browser escapes in it is put back (HTML, "Multipart form data"). */
function parameter(header: string, name: string): string | undefined {
  const match = new RegExp(`;\\s*${name}=(?:"([^"]*)"|([^;\\s]+))`, 'i').exec(header);
  const value = match?.[1] ?? match?.[2];
  return value?.replace(/%22/g, '"').replace(/%0D/g, '\r').replace(/%0A/g, '\n');
}

function headersOf(text: string): Map<string, string> {
  const lines = text.split('\r\n').map((line): [string, string] => {
    const colon = line.indexOf(':');
    return [line.slice(0, Math.max(0, colon)).trim().toLowerCase(), line.slice(colon + 1).trim()];
  });
  return new Map(lines);
}

function addField(form: Form, name: string, value: string): void {
  const before = Object.hasOwn(form, name) ? form[name] : undefined;
  if (before === undefined) form[name] = value;
  else if (Array.isArray(before)) before.push(value);
  else if (typeof before === 'string') form[name] = [before, value];
  else throw broken(`${name} is both a file and a text`);
}

function addPart(form: Form, head: string, content: Buffer): void {
  const headers = headersOf(head);
  const disposition = headers.get('content-disposition') ?? '';
  const name = parameter(disposition, 'name');
  if (name === undefined || name === '__proto__') throw broken('a part has no name');
  const filename = parameter(disposition, 'filename');
  if (filename === undefined) {
    if (content.length > limits.form_field_bytes_max) throw broken(`${name} is too long`);
    addField(form, name, content.toString('utf8'));
    return;
  }
  if (Object.hasOwn(form, name)) throw broken(`${name} occurs twice`);
  form[name] = { bytes: content, filename, type: headers.get('content-type') ?? '' };
}

/** Where the first delimiter ends; its line break may be missing at the very beginning. Text before it is as short as a part's head. */
function beginning(body: Buffer, delimiter: Buffer): number {
  if (body.subarray(0, delimiter.length - 2).equals(delimiter.subarray(2))) return delimiter.length - 2;
  const at = body.subarray(0, limits.form_head_bytes_max + delimiter.length).indexOf(delimiter);
  if (at < 0) throw broken(`its boundary is not in its first ${limits.form_head_bytes_max} bytes`);
  return at + delimiter.length;
}

/**
 * Reads a form with files (RFC 7578) that was received whole. Files are views of the bytes, not copies, and their bytes are looked at
 * once. Throws a 400 for what is no form, or has more parts than any operation reads.
 */
export function parseForm(body: Buffer, content_type: string): Form {
  const boundary = parameter(content_type, 'boundary');
  if (boundary === undefined || boundary.length > 70) throw broken('its content type has no boundary');
  const delimiter = Buffer.from(`\r\n--${boundary}`);
  const form: Form = {};
  let at = beginning(body, delimiter);
  for (let parts = 0; body.toString('latin1', at, at + 2) !== '--'; parts += 1) {
    if (parts === limits.form_parts_max) throw broken(`it has more than ${limits.form_parts_max} parts`);
    const head = body.subarray(at, at + limits.form_head_bytes_max + HEAD_END.length);
    const line_end = at + head.indexOf(LINE);
    const head_end = at + head.indexOf(HEAD_END);
    if (line_end < at || head_end < at) throw broken('a part has no head');
    const end = body.indexOf(delimiter, head_end + 2);
    if (end < 0) throw broken('its last boundary is missing');
    addPart(form, body.toString('utf8', line_end + 2, head_end), body.subarray(Math.min(head_end + 4, end), end));
    at = end + delimiter.length;
  }
  return form;
}

/** Fastify's parser of forms, for the scope of the operations that take one. */
export function formParser(
  request: FastifyRequest,
  body: Buffer,
  done: (error: Error | null, form?: Form) => void,
): void {
  try {
    done(null, parseForm(body, request.headers['content-type'] ?? ''));
  } catch (error) {
    done(error as Error);
  }
}
