import { limits } from '../../limits.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { lookupTable } from '../../schemas/lookup-table.ts';
import { type FailureClass, type Frame, UpstreamError } from '../dialect.ts';
import { classOfStatus } from '../shared/failure-class.ts';
import { asObject } from '../shared/json-shape.ts';
import { retryAfterMs } from '../shared/retry-after.ts';

/**
 * Exceptions with their failures and statuses (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html and
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/CommonErrors.html).
 */
const TYPES: Readonly<Record<string, { failure: FailureClass; status: number }>> = lookupTable({
  ValidationException: { failure: 'invalid_request', status: 400 },
  ServiceQuotaExceededException: { failure: 'rate_limited', status: 400 },
  ConflictException: { failure: 'conflict', status: 400 },
  AccessDeniedException: { failure: 'credential', status: 403 },
  UnrecognizedClientException: { failure: 'credential', status: 403 },
  InvalidSignatureException: { failure: 'credential', status: 403 },
  IncompleteSignatureException: { failure: 'credential', status: 403 },
  MissingAuthenticationTokenException: { failure: 'credential', status: 403 },
  ExpiredTokenException: { failure: 'credential', status: 403 },
  ResourceNotFoundException: { failure: 'not_found', status: 404 },
  ModelTimeoutException: { failure: 'timeout', status: 408 },
  ModelErrorException: { failure: 'unavailable', status: 424 },
  ModelStreamErrorException: { failure: 'unavailable', status: 424 },
  ThrottlingException: { failure: 'rate_limited', status: 429 },
  ModelNotReadyException: { failure: 'overloaded', status: 429 },
  InternalServerException: { failure: 'unavailable', status: 500 },
  ServiceUnavailableException: { failure: 'overloaded', status: 503 },
});

/** Statuses with another meaning on this wire. */
const OWN_STATUSES: Readonly<Record<number, FailureClass>> = { 424: 'unavailable', 503: 'overloaded' };

/** Decodes an error answer: the service's own error body, or any text that a proxy wrote. Never throws. */
export function decodeError(
  status: number,
  headers: Record<string, string | string[] | undefined>,
  body: string,
): UpstreamError {
  const fields = parse(body);
  const type = typeOf(headers['x-amzn-errortype']) ?? typeOf(fields['__type']) ?? typeOf(fields['code']) ?? null;
  const message = messageOf(fields) ?? `The provider answered with status ${status} and an error in an unknown format.`;
  return new UpstreamError(classify(status, type, message), message, {
    status,
    native_code: type,
    retry_after_ms: retryAfterMs(headers),
    raw: body.slice(0, limits.upstream_raw_chars_max),
  });
}

/** The exception inside a 200. Its status follows from its type, or is the original status of the model's answer. */
export function exceptionInside({ event, data }: Frame): UpstreamError {
  const fields = parse(data);
  // In streams the names start with a lower-case letter.
  const type = event === undefined ? null : event.charAt(0).toUpperCase() + event.slice(1);
  const message = messageOf(fields) ?? 'The provider reported an error without a message.';
  const original = fields['originalStatusCode'];
  const hasOriginal = typeof original === 'number' && original >= 400 && original < 600;
  const status = hasOriginal ? original : (TYPES[type ?? '']?.status ?? 500);
  return new UpstreamError(classify(status, hasOriginal ? null : type, message), message, {
    status,
    native_code: type,
    raw: data.slice(0, limits.upstream_raw_chars_max),
  });
}

function classify(status: number, type: string | null, message: string): FailureClass {
  const known = type === null ? undefined : TYPES[type];
  const failure = known?.failure ?? OWN_STATUSES[status] ?? classOfStatus(status);
  // An account that cannot be charged is refused like one without permission.
  if (failure === 'credential' && /payment instrument|payment method|billing/i.test(message)) return 'payment';
  if (failure !== 'invalid_request') return failure;
  // Another endpoint may have the model: regions and profiles have different names.
  if (
    /model identifier is invalid|on-demand throughput isn.t supported|(isn.t|not) supported in (this|the) region|reached the end of its life|Access denied\. This Model is marked/i.test(
      message,
    )
  ) {
    return 'not_found';
  }
  if (/content filter(ing)? policy|blocked by our content filters/i.test(message)) return 'content_filter';
  if (isStateRefusal(message)) return 'state_rejected';
  return failure;
}

/** Whether a 400 refuses signed or redacted reasoning that this model, account or conversation may not replay, in the model's words. */
function isStateRefusal(message: string): boolean {
  return (
    /thinking|reasoning/i.test(message) &&
    /signature|invalid `?data`?|cannot be modified|but found|could not be (verified|decrypted)|redacted/i.test(message)
  );
}

/** `ValidationException:http://…`, `com.amazon.coral.validate#ValidationException`, or the name alone. */
function typeOf(value: JsonValue | undefined): string | undefined {
  const text = Array.isArray(value) ? value[0] : value;
  if (typeof text !== 'string' || text === '') return undefined;
  return text.slice(0, limits.upstream_raw_chars_max).replace(/^.*#/, '').split(':', 1)[0];
}

function parse(body: string): JsonObject {
  try {
    return asObject(JSON.parse(body)) ?? {};
  } catch {
    return {};
  }
}

/** `{message}`; the signature's check writes it with a capital letter. */
function messageOf(fields: JsonObject): string | undefined {
  const message = fields['message'] ?? fields['Message'] ?? fields['originalMessage'];
  return typeof message === 'string' && message !== '' ? message : undefined;
}
