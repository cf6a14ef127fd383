import { limits } from '../../limits.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { type FailureClass, UpstreamError } from '../dialect.ts';
import { classOfStatus } from '../shared/failure-class.ts';
import { asObject, asText } from '../shared/json-shape.ts';
import { type ResponseHeaders, retryAfterMs } from '../shared/retry-after.ts';

/** Decodes an error answer: `{id, message}`, or any text that a proxy wrote. Never throws. */
export function decodeError(status: number, headers: ResponseHeaders, body: string): UpstreamError {
  const error = readBody(body);
  const message = error.message || `The provider answered with status ${status} and an error in an unknown format.`;
  return new UpstreamError(classify(status, message), message, {
    status,
    native_code: error.code,
    retry_after_ms: retryAfterMs(headers),
    raw: body.slice(0, limits.upstream_raw_chars_max),
  });
}

/** The error inside a 200. Its status is the one that it reports, otherwise 500. */
export function errorInside(event: JsonObject): UpstreamError {
  const error = readError(event);
  const message = error.message || 'The provider reported an error without a message.';
  const code = Number(event['status_code'] ?? event['status'] ?? error.code);
  const status = Number.isInteger(code) && code >= 400 && code < 600 ? code : 500;
  return new UpstreamError(classify(status, message), message, {
    status,
    native_code: error.code,
    raw: JSON.stringify(event).slice(0, limits.upstream_raw_chars_max),
  });
}

const NO_MODEL =
  /^model '[^']*' (?:not found|was removed)|is not supported by the \w+ API|model .{0,80} (?:not found|was removed)/i;
const BLOCKED = /blocked|toxic|safety/i;
const SPENT = /trial key.*limited to .*month|please (?:add|update|upgrade).*(?:payment|billing|key)/i;

/** By the statuses of https://docs.cohere.com/reference/errors; 498 and 499 are Cohere's own. */
function classify(status: number, message: string): FailureClass {
  switch (status) {
    case 400:
      return NO_MODEL.test(message) ? 'not_found' : 'invalid_request';
    case 501:
      return 'not_found';
    case 429:
      // A trial key's monthly allowance is not restored by waiting.
      return SPENT.test(message) ? 'payment' : 'rate_limited';
    case 498:
      return BLOCKED.test(message) ? 'content_filter' : 'credential';
    case 499:
      return 'unavailable';
  }
  if (status < 400) return 'invalid_response';
  const failure = classOfStatus(status);
  return failure === 'unavailable' && /overload/i.test(message) ? 'overloaded' : failure;
}

function readBody(body: string): { message: string; code: string | null } {
  let value: JsonValue;
  try {
    value = JSON.parse(body);
  } catch {
    const text = body.trim();
    // An HTML page of a proxy is useless to a client; plain text is not.
    return { message: text.startsWith('<') ? '' : text.slice(0, limits.upstream_raw_chars_max), code: null };
  }
  const object = asObject(value);
  return object === undefined ? { message: '', code: null } : readError(object);
}

/** `{id, message}`; gateways in front of it also send `{error: …}` or `{detail: …}`. */
function readError(object: JsonObject): { message: string; code: string | null } {
  const error = object['error'];
  const inner = asObject(error) ?? object;
  const code = inner['code'] ?? inner['type'];
  return {
    message: asText(error) || asText(inner['message']) || asText(inner['detail']),
    code: typeof code === 'string' && code !== 'error' ? code : typeof code === 'number' ? String(code) : null,
  };
}
