import type { Readable } from 'node:stream';
import type { FastifyRequest } from 'fastify';
import { GatewayError } from '../errors.ts';
import { limits } from '../limits.ts';
import { tooLarge } from './gathered-body.ts';
import { inTurns } from './in-turns.ts';
import { joined } from './joined.ts';
import { type ReceivedBody, receive, requireLength } from './json-body.ts';

/** A file of a multipart form. */
export interface FormFile {
  bytes: Buffer;
  filename: string;
  /** The media type that the client sent; empty if none. */
  type: string;
}

/** The fields of a form by name; a repeated field is a list. */
export type Form = Record<string, string | string[] | FormFile>;

const LINE = Buffer.from('\r\n');
const HEAD_END = Buffer.from('\r\n\r\n');

function broken(why: string): GatewayError {
  return new GatewayError(400, `The multipart form is not valid: ${why}`);
}

/** A parameter of a header, quoted or not, with the escapes of browsers undone (HTML, "Multipart form data"). */
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
  const previous = Object.hasOwn(form, name) ? form[name] : undefined;
  if (previous === undefined) form[name] = value;
  else if (Array.isArray(previous)) previous.push(value);
  else if (typeof previous === 'string') form[name] = [previous, value];
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

/** The offset behind the first delimiter, whose line break may be missing at the start of the body. The preamble is at most as long as a part's head. */
function endOfFirstDelimiter(body: Buffer, delimiter: Buffer): number {
  if (body.subarray(0, delimiter.length - 2).equals(delimiter.subarray(2))) return delimiter.length - 2;
  const at = body.subarray(0, limits.form_head_bytes_max + delimiter.length).indexOf(delimiter);
  if (at < 0) throw broken(`its boundary is not in its first ${limits.form_head_bytes_max} bytes`);
  return at + delimiter.length;
}

/** The offset of the delimiter at or after `from`, or a negative number. A body that resembles its delimiter is searched slowly: in slices. */
function* delimiterAt(body: Buffer, delimiter: Buffer, from: number): Generator<void, number, undefined> {
  for (let at = from; at < body.length; at += limits.joined_slice_bytes) {
    const offset = body.subarray(at, at + limits.joined_slice_bytes + delimiter.length - 1).indexOf(delimiter);
    if (offset >= 0) return at + offset;
    yield;
  }
  return -1;
}

/**
 * Parses a complete multipart form (RFC 7578) in one pass, and yields between slices of it. Files are views of the bytes, not copies.
 * Throws a 400 if the form is invalid, or has more parts than any operation reads.
 */
export function* parseForm(body: Buffer, contentType: string): Generator<void, Form, undefined> {
  const boundary = parameter(contentType, 'boundary');
  if (boundary === undefined || boundary.length > 70) throw broken('its content type has no boundary');
  const delimiter = Buffer.from(`\r\n--${boundary}`);
  const form: Form = {};
  let at = endOfFirstDelimiter(body, delimiter);
  for (let parts = 0; body.toString('latin1', at, at + 2) !== '--'; parts += 1) {
    if (parts === limits.form_parts_max) throw broken(`it has more than ${limits.form_parts_max} parts`);
    const head = body.subarray(at, at + limits.form_head_bytes_max + HEAD_END.length);
    const lineEnd = at + head.indexOf(LINE);
    const headEnd = at + head.indexOf(HEAD_END);
    if (lineEnd < at || headEnd < at) throw broken('a part has no head');
    const end = yield* delimiterAt(body, delimiter, headEnd + 2);
    if (end < 0) throw broken('its last boundary is missing');
    addPart(form, body.toString('utf8', lineEnd + 2, headEnd), body.subarray(Math.min(headEnd + 4, end), end));
    at = end + delimiter.length;
  }
  return form;
}

function* joinedForm(chunks: Buffer[], contentType: string): Generator<void, Form, undefined> {
  return yield* parseForm(yield* joined(chunks), contentType);
}

/** A form as it arrives. */
class FormBody implements ReceivedBody {
  readonly #request: FastifyRequest;
  readonly #bytesMax: number;
  readonly #chunks: Buffer[] = [];
  #length = 0;

  constructor(request: FastifyRequest, bytesMax: number) {
    this.#request = request;
    this.#bytesMax = bytesMax;
  }

  write(chunk: Buffer): void {
    this.#length += chunk.length;
    if (this.#length > this.#bytesMax) throw tooLarge();
    this.#chunks.push(chunk);
  }

  end(): Promise<Form | undefined> {
    const { headers, raw } = this.#request;
    requireLength(this.#request, this.#length);
    // Without a byte there is no boundary.
    if (this.#chunks.length === 0) throw broken('it is empty');
    const parsing = joinedForm(this.#chunks, headers['content-type'] ?? '');
    return inTurns(parsing, () => raw.socket?.destroyed === true);
  }
}

/** Fastify's content type parser for forms, for the scope of the operations that accept one. Long forms are read in several turns of the event loop. */
export function readForm(request: FastifyRequest, payload: Readable): Promise<unknown> {
  return receive(payload, new FormBody(request, request.route.bodyLimit ?? limits.body_bytes_max));
}
