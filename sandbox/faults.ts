import type { JsonObject } from './json.ts';
import { limits } from './limits.ts';

/**
 * What goes wrong, or only differently, in one exchange. Zero, false or absent is the ordinary course.
 * The same names stand in all four places that can set them, the later ones winning: the model's own behaviour,
 * after the model's name (`story;tokens=500;crlf`), the body's object `sandbox`, and headers `x-sandbox-<name>`.
 */
export interface Faults {
  /** Answers with this status and the wire's error body. */
  status: number;
  /** Seconds, sent as `retry-after` with `status`. */
  retry_after: number;
  /** `status` and the other faults are for the first so many requests of one user or conversation only. */
  fail_times: number;
  /** Answers with an HTML page, with `status` or 200. */
  html: boolean;
  /** Never answers. */
  hang: boolean;
  /** Before the head of the answer. */
  delay_ms: number;
  /** Between two chunks; each chunk is then a write of its own. */
  chunk_delay_ms: number;
  /** Each chunk is a write of its own also without a delay. */
  flush: boolean;
  /** The connection is destroyed after so many chunks; unstreamed: in the middle of the body. */
  die_after_chunks: number;
  /** The body ends in good order after so many chunks; unstreamed: in the middle of the JSON. */
  truncate_after_chunks: number;
  /** Nothing more comes after so many chunks; unstreamed: after half of the body. */
  stall_after: number;
  /** An error event comes in place of chunk so many, from 1, and ends the stream; unstreamed: a 200 with an error body. */
  error_in_stream: number;
  /** The bytes go out in socket writes of this size. */
  split_bytes: number;
  /** Leaves the terminator out: `[DONE]`, or `message_stop`. */
  no_done: boolean;
  no_usage: boolean;
  usage_every_chunk: boolean;
  /** The usage rides on the chunk with the finish reason, not on one of its own. */
  usage_on_finish: boolean;
  crlf: boolean;
  /** A comment line before every chunk. */
  comments: boolean;
  /** How long a story is. */
  tokens: number;
  /** So many of the prompt's tokens are said to come from the provider's cache. */
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

/** Thrown for a fault that the sandbox does not know, so that a misspelt one is never an ordinary answer. */
export class UnknownFault extends Error {
  override readonly name = 'UnknownFault';
}

function isFault(name: string): name is keyof Faults {
  return Object.hasOwn(names, name);
}

function read(name: string, given: unknown): Partial<Faults> {
  if (!isFault(name))
    throw new UnknownFault(`The sandbox knows no fault '${name}'. Known: ${Object.keys(names).join(', ')}.`);
  const kind = typeof names[name];
  if (kind === 'string') return { [name]: String(given) };
  if (kind === 'boolean') return { [name]: given === '' || given === true || given === 'true' || given === '1' };
  const amount = Number(given);
  const most = name.endsWith('_ms') ? limits.delay_ms_max : limits.tokens_max;
  if (given === '' || !Number.isInteger(amount) || amount < 0 || amount > most) {
    throw new UnknownFault(`The fault '${name}' takes a whole number from 0 to ${most}.`);
  }
  return { [name]: amount };
}

/** Cuts `story;tokens=500;crlf` into the model's name and its faults. */
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

/** All faults of one exchange. Throws `UnknownFault`. */
export function readFaults(
  from_model: Partial<Faults>,
  body: JsonObject,
  headers: Record<string, string | string[] | undefined>,
): Faults {
  const faults: Faults = { ...names, ...from_model };
  const wish = body['sandbox'];
  if (typeof wish === 'object' && wish !== null && !Array.isArray(wish)) {
    for (const [name, value] of Object.entries(wish)) Object.assign(faults, read(name, value));
  }
  for (const [header, value] of Object.entries(headers)) {
    if (!header.startsWith(header_prefix)) continue;
    Object.assign(faults, read(header.slice(header_prefix.length).replaceAll('-', '_'), String(value)));
  }
  return faults;
}
