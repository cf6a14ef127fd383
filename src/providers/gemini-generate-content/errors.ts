import { limits } from '../../limits.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { lookupTable } from '../../schemas/lookup-table.ts';
import { type FailureClass, UpstreamError } from '../dialect.ts';
import { classOfStatus } from '../shared/failure-class.ts';
import { asArray, asObject, asText } from '../shared/json-shape.ts';
import { retryAfterMs } from '../shared/retry-after.ts';

/** Status names (https://cloud.google.com/apis/design/errors#handling_errors) with their failures and statuses. */
const STATUSES: Readonly<Record<string, { failure: FailureClass; status: number }>> = lookupTable({
  INVALID_ARGUMENT: { failure: 'invalid_request', status: 400 },
  FAILED_PRECONDITION: { failure: 'credential', status: 400 },
  OUT_OF_RANGE: { failure: 'invalid_request', status: 400 },
  UNAUTHENTICATED: { failure: 'credential', status: 401 },
  PERMISSION_DENIED: { failure: 'credential', status: 403 },
  NOT_FOUND: { failure: 'not_found', status: 404 },
  ABORTED: { failure: 'conflict', status: 409 },
  ALREADY_EXISTS: { failure: 'conflict', status: 409 },
  RESOURCE_EXHAUSTED: { failure: 'rate_limited', status: 429 },
  CANCELLED: { failure: 'unavailable', status: 499 },
  DATA_LOSS: { failure: 'unavailable', status: 500 },
  UNKNOWN: { failure: 'unavailable', status: 500 },
  INTERNAL: { failure: 'unavailable', status: 500 },
  UNIMPLEMENTED: { failure: 'unavailable', status: 501 },
  UNAVAILABLE: { failure: 'overloaded', status: 503 },
  DEADLINE_EXCEEDED: { failure: 'timeout', status: 504 },
});

/** Statuses with another meaning on this wire. */
const OWN_STATUSES: Readonly<Record<number, FailureClass>> = { 499: 'unavailable', 503: 'overloaded' };

interface ErrorFields {
  message: string;
  /** The status name. */
  name: string | null;
  code: number | undefined;
  /** The reason in `ErrorInfo`, such as `API_KEY_INVALID`. */
  reason: string;
  retry_ms: number | undefined;
}

/** Decodes an error answer: the provider's own error body, alone or in a list, or any text that a proxy wrote. Never throws. */
export function decodeError(
  status: number,
  headers: Record<string, string | string[] | undefined>,
  body: string,
): UpstreamError {
  const fields = readBody(body);
  const message = fields?.message || `The provider answered with status ${status} and an error in an unknown format.`;
  return new UpstreamError(classify(status, fields, message), message, {
    status,
    native_code: fields?.name ?? null,
    retry_after_ms: retryAfterMs(headers) ?? fields?.retry_ms,
    raw: body.slice(0, limits.upstream_raw_chars_max),
  });
}

/** The error inside a 200: an event of a stream, or an error body. */
export function errorInside(event: JsonObject): UpstreamError {
  const fields = readErrorFields(event);
  const message = fields?.message || 'The provider reported an error without a message.';
  const status = fields?.code ?? (fields?.name == null ? undefined : STATUSES[fields.name]?.status) ?? 500;
  return new UpstreamError(classify(status, fields, message), message, {
    status,
    native_code: fields?.name ?? null,
    retry_after_ms: fields?.retry_ms,
    raw: JSON.stringify(event).slice(0, limits.upstream_raw_chars_max),
  });
}

function classify(status: number, fields: ErrorFields | undefined, message: string): FailureClass {
  const { name = null, reason = '' } = fields ?? {};
  if (
    /^(?:BILLING_DISABLED|BILLING_NOT_ACTIVE)$/.test(reason) ||
    /billing (?:to be enabled|is disabled|account)/i.test(message)
  ) {
    return 'payment';
  }
  // A wrong key is a 400 here (https://ai.google.dev/gemini-api/docs/troubleshooting).
  if (reason === 'API_KEY_INVALID' || /^api key (?:not valid|expired|not found)/i.test(message)) return 'credential';
  if (status === 400 && isStateRefusal(message)) return 'state_rejected';
  const known = name === null ? undefined : STATUSES[name];
  // The name is more exact than the status if both agree; a proxy may have changed either.
  if (known !== undefined && Math.floor(known.status / 100) === Math.floor(status / 100)) return known.failure;
  return OWN_STATUSES[status] ?? classOfStatus(status);
}

/**
 * Whether a 400 refuses thought signatures that are missing or of another model or key ("Thought signature is not valid.", "Function call is
 * missing a thought_signature in functionCall parts.", "Corrupted thought signature."; https://ai.google.dev/gemini-api/docs/thought-signatures).
 */
function isStateRefusal(message: string): boolean {
  return /thought[ _]?signature/i.test(message);
}

function readBody(body: string): ErrorFields | undefined {
  let value: JsonValue;
  try {
    value = JSON.parse(body);
  } catch {
    return undefined;
  }
  const object = asObject(Array.isArray(value) ? value[0] : value);
  return object === undefined ? undefined : readErrorFields(object);
}

function readErrorFields(object: JsonObject): ErrorFields | undefined {
  const errorValue = object['error'];
  if (typeof errorValue === 'string') {
    // The format of the token endpoint (RFC 6749, section 5.2).
    const message = asText(object['error_description']) || errorValue;
    return { message, name: errorValue, code: undefined, reason: '', retry_ms: undefined };
  }
  const error = asObject(errorValue) ?? object;
  const details = asArray(error['details']).map((detail) => asObject(detail) ?? {});
  const code = error['code'];
  return {
    message: asText(error['message']),
    name: asText(error['status']) || null,
    code: typeof code === 'number' && code >= 400 && code < 600 ? code : undefined,
    reason: asText(details.find((detail) => asText(detail['@type']).endsWith('ErrorInfo'))?.['reason']),
    retry_ms: durationMs(details.find((detail) => asText(detail['@type']).endsWith('RetryInfo'))?.['retryDelay']),
  };
}

/** A protocol buffer duration, `34.5s`, in milliseconds. */
function durationMs(value: JsonValue | undefined): number | undefined {
  const seconds = /^(\d{1,6}(?:\.\d{1,9})?)s$/.exec(asText(value))?.[1];
  return seconds === undefined ? undefined : Math.min(Math.ceil(Number(seconds) * 1000), limits.retry_after_ms_max);
}
