import { limits } from '../../limits.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { lookupTable } from '../../schemas/lookup-table.ts';
import { type FailureClass, UpstreamError } from '../dialect.ts';
import { classOfStatus } from '../shared/failure-class.ts';
import { asObject } from '../shared/json-shape.ts';
import { retryAfterMs } from '../shared/retry-after.ts';

/** Error types with their failures and statuses (https://platform.claude.com/docs/en/api/errors). */
const TYPES: Readonly<Record<string, { failure: FailureClass; status: number }>> = lookupTable({
  invalid_request_error: { failure: 'invalid_request', status: 400 },
  authentication_error: { failure: 'credential', status: 401 },
  billing_error: { failure: 'payment', status: 402 },
  permission_error: { failure: 'credential', status: 403 },
  not_found_error: { failure: 'not_found', status: 404 },
  conflict_error: { failure: 'conflict', status: 409 },
  request_too_large: { failure: 'invalid_request', status: 413 },
  rate_limit_error: { failure: 'rate_limited', status: 429 },
  api_error: { failure: 'unavailable', status: 500 },
  timeout_error: { failure: 'timeout', status: 504 },
  overloaded_error: { failure: 'overloaded', status: 529 },
});

/** Decodes an error answer: the provider's own error body, or any text that a proxy wrote. Never throws. */
export function decodeError(
  status: number,
  headers: Record<string, string | string[] | undefined>,
  body: string,
): UpstreamError {
  const error = readBody(body);
  const type = error?.type ?? null;
  const message = error?.message ?? `The provider answered with status ${status} and an error in an unknown format.`;
  return new UpstreamError(classify(status, type, message), message, {
    status,
    native_code: type,
    retry_after_ms: retryAfterMs(headers),
    raw: body.slice(0, limits.upstream_raw_chars_max),
  });
}

/** The error inside a 200: an `error` event of a stream, or an error body. Its status follows from its type. */
export function errorInside(event: JsonObject): UpstreamError {
  const error = readError(event);
  const type = error?.type ?? null;
  const message = error?.message ?? 'The provider reported an error without a message.';
  const status = (type === null ? undefined : TYPES[type]?.status) ?? statusIn(event) ?? 500;
  return new UpstreamError(classify(status, type, message), message, {
    status,
    native_code: type,
    raw: JSON.stringify(event).slice(0, limits.upstream_raw_chars_max),
  });
}

/** The status in an error of other servers of this wire. */
function statusIn(event: JsonObject): number | undefined {
  const error = asObject(event['error']) ?? event;
  for (const member of ['status_code', 'status', 'http_code', 'code']) {
    const status = Number(error[member]);
    if (Number.isInteger(status) && status >= 400 && status < 600) return status;
  }
  return undefined;
}

function classify(status: number, type: string | null, message: string): FailureClass {
  if (status === 400 || type === 'invalid_request_error') {
    // The state of the account is reported as a plain 400 and shows only in the message. A message that quotes the request begins
    // differently (https://github.com/anthropics/claude-code/issues/54311 for the second).
    if (/^your credit balance is too low|^you have reached your specified API usage limits/i.test(message)) {
      return 'payment';
    }
    if (/^this organization has been disabled/i.test(message)) return 'credential';
    if (/content filtering policy/i.test(message)) return 'content_filter';
    if (isStateRefusal(message)) return 'state_rejected';
  }
  const known = type === null ? undefined : TYPES[type];
  // These two types are generic: proxies send them with every status.
  if (type === 'api_error' || type === 'invalid_request_error') return classOfStatus(status);
  return known?.failure ?? classOfStatus(status);
}

/**
 * Whether a 400 refuses signed thinking that this credential, model or conversation may not replay ("Invalid `signature` in `thinking`
 * block", "Invalid `data` in `redacted_thinking` block", "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot
 * be modified", "Expected `thinking` or `redacted_thinking`, but … instead"), or opaque search results from elsewhere.
 */
function isStateRefusal(message: string): boolean {
  if (/`?(redacted_)?thinking`?/i.test(message)) {
    return /signature|invalid `?data`?|cannot be modified|but found|could not be (verified|decrypted)|different model/i.test(
      message,
    );
  }
  return /invalid.{0,20}`?(signature|encrypted_(content|index|stdout))`?/i.test(message);
}

function readBody(body: string): { type: string | null; message: string | undefined } | undefined {
  let value: JsonValue;
  try {
    value = JSON.parse(body);
  } catch {
    return undefined;
  }
  // Google wraps its own errors of a stream in a list.
  const object = asObject(Array.isArray(value) ? (value[0] ?? null) : value);
  return object === undefined ? undefined : readError(object);
}

/** `{type: "error", error: {type, message}, request_id}`; proxies also send a bare `{error: "…"}` or `{message}`. */
function readError(object: JsonObject): { type: string | null; message: string | undefined } {
  const error = object['error'];
  const inner = asObject(error) ?? object;
  const { type, message } = inner;
  return {
    type: typeof type === 'string' && type !== 'error' ? type : null,
    message: typeof error === 'string' ? error : typeof message === 'string' && message !== '' ? message : undefined,
  };
}
