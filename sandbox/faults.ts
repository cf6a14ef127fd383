import type { JsonObject } from './json.ts';
import { limits } from './limits.ts';

/**
 * The faults and variations of one answer. Zero, false and absent mean none.
 * Four places set them by the same names; a later place has precedence: the model itself, the model's name
 * (`story;tokens=500;crlf`), the object `sandbox` of the body, and headers `x-sandbox-<name>`.
 */
export interface Faults {
  /** Answers with this status and the wire's error body. */
  status: number;
  /** Seconds, sent as `retry-after` with `status`. */
  retry_after: number;
  /** `status` and the other faults apply only to this number of first requests of a user or conversation. */
  fail_times: number;
  /** Answers with an HTML page, with `status` or 200. */
  html: boolean;
  /** Never answers. */
  hang: boolean;
  /** The time before the headers of the answer. */
  delay_ms: number;
  /** The time between two chunks. Each chunk is then written separately. */
  chunk_delay_ms: number;
  /** Writes each chunk separately, without a delay. */
  flush: boolean;
  /** Destroys the connection after this number of chunks, or in the middle of a whole answer. */
  die_after_chunks: number;
  /** Ends the body without an error after this number of chunks, or in the middle of a whole answer's JSON. */
  truncate_after_chunks: number;
  /** Sends nothing more after this number of chunks, or after half of a whole answer. */
  stall_after: number;
  /** Sends an error event in place of this chunk, counted from 1, and ends the stream. A whole answer is a 200 with an error body. */
  error_in_stream: number;
  /** The size of each write to the socket, in bytes. */
  split_bytes: number;
  /** Omits the terminator: `[DONE]`, or `message_stop`. */
  no_done: boolean;
  no_usage: boolean;
  usage_every_chunk: boolean;
  /** Sends the usage in the chunk with the finish reason, not in a chunk of its own. */
  usage_on_finish: boolean;
  crlf: boolean;
  /** Sends a comment line before every chunk. */
  comments: boolean;
  /** The length of a story. */
  tokens: number;
  /** Tokens of the prompt that are reported as cached. */
  cached_tokens: number;
  /** Replaces the wire's own finish reason. */
  finish: string;
}

const names: { [name in keyof Faults]: Faults[name] } = {
  status: 0,
  retry_after: 0,
  fail_times: 0,
  html: false,
  hang: false,
  delay_ms: 0,
  chunk_delay_ms: 0,
  flush: false,
  die_after_chunks: 0,
  truncate_after_chunks: 0,
  stall_after: 0,
  error_in_stream: 0,
  split_bytes: 0,
  no_done: false,
  no_usage: false,
  usage_every_chunk: false,
  usage_on_finish: false,
  crlf: false,
  comments: false,
  tokens: 0,
  cached_tokens: 0,
  finish: '',
};

/** Thrown for an unknown fault, so that a misspelt one is never ignored. */
export class UnknownFault extends Error {
  override readonly name = 'UnknownFault';
}

function isFault(name: string): name is keyof Faults {
  return Object.hasOwn(names, name);
}

function read(name: string, value: unknown): Partial<Faults> {
  if (!isFault(name))
    throw new UnknownFault(`The sandbox knows no fault '${name}'. Known: ${Object.keys(names).join(', ')}.`);
  const kind = typeof names[name];
  if (kind === 'string') return { [name]: String(value) };
  if (kind === 'boolean') return { [name]: value === '' || value === true || value === 'true' || value === '1' };
  const amount = Number(value);
  const most = name.endsWith('_ms') ? limits.delay_ms_max : limits.tokens_max;
  if (value === '' || !Number.isInteger(amount) || amount < 0 || amount > most) {
    throw new UnknownFault(`The fault '${name}' takes a whole number from 0 to ${most}.`);
  }
  return { [name]: amount };
}

/** Divides `story;tokens=500;crlf` into the model's name and its faults. */
export function splitModel(model: string): { name: string; faults: Partial<Faults> } {
  const [name = '', ...settings] = model.split(';');
  const faults: Partial<Faults> = {};
  for (const setting of settings) {
    const equals = setting.indexOf('=');
    if (equals < 0) Object.assign(faults, read(setting, ''));
    else Object.assign(faults, read(setting.slice(0, equals), setting.slice(equals + 1)));
  }
  return { name, faults };
}

const header_prefix = 'x-sandbox-';

/** All faults of one answer. Throws an `UnknownFault`. */
export function readFaults(
  from_model: Partial<Faults>,
  body: JsonObject,
  headers: Record<string, string | string[] | undefined>,
): Faults {
  const faults: Faults = { ...names, ...from_model };
  const settings = body['sandbox'];
  if (typeof settings === 'object' && settings !== null && !Array.isArray(settings)) {
    for (const [name, value] of Object.entries(settings)) Object.assign(faults, read(name, value));
  }
  for (const [header, value] of Object.entries(headers)) {
    if (!header.startsWith(header_prefix)) continue;
    Object.assign(faults, read(header.slice(header_prefix.length).replaceAll('-', '_'), String(value)));
  }
  return faults;
}
