import { limits } from '../../limits.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { lookupTable } from '../../schemas/lookup-table.ts';
import { UpstreamError } from '../dialect.ts';
import { decodeError as decodePlainError, errorInside } from '../openai-chat/errors.ts';
import { asObject, asText } from '../shared/json-shape.ts';
import type { ResponseHeaders } from '../shared/retry-after.ts';

/**
 * The statuses of the codes of a failed response that carries none (https://platform.openai.com/docs/api-reference/responses/object,
 * `error.code`).
 */
const STATUS: Readonly<Record<string, number>> = lookupTable({
  server_error: 500,
  rate_limit_exceeded: 429,
  insufficient_quota: 429,
  invalid_prompt: 400,
  bio_policy: 400,
  misalignment_policy_violation: 400,
  image_content_policy_violation: 400,
  data_residency_mismatch: 400,
  vector_store_timeout: 504,
  failed_to_download_image: 400,
  image_file_not_found: 400,
});

/** Codes of content refused by policy; the messages do not always say so. */
const POLICIES: ReadonlySet<string> = new Set([
  'invalid_prompt',
  'bio_policy',
  'misalignment_policy_violation',
  'image_content_policy_violation',
]);

/**
 * The error of an `error` event, which is flat in the documentation and nested on the wire, or of a response that failed inside a 200.
 */
export function failureOf(event: JsonObject): UpstreamError {
  const error = asObject(event['error']) ?? event;
  const code = asText(error['code']);
  const statusCode = STATUS[code] ?? (/image/.test(code) ? 400 : undefined);
  const decoded = errorInside(
    { error: { ...error, ...(statusCode === undefined ? {} : { status_code: statusCode }) } },
    true,
  )!;
  const { failure, message, status, native_code: nativeCode } = decoded;
  return new UpstreamError(POLICIES.has(code) ? 'content_filter' : failure, message, {
    status,
    native_code: nativeCode,
    raw: JSON.stringify(event).slice(0, limits.upstream_raw_chars_max),
  });
}

/**
 * Messages that refuse items of former turns: items of another organization or model, without the item that they belong to, or not in
 * the store, which the gateway does not use.
 */
const BAD_STATE =
  /items are not persisted|required (?:following|'reasoning') item|encrypted[ _]content|duplicate item found/i;

/** Decodes an error answer like the chat wire, and recognises refused state of former turns, which only this wire has. */
export function decodeError(status: number, headers: ResponseHeaders, body: string): UpstreamError {
  const error = decodePlainError(status, headers, body);
  if ((status !== 400 && status !== 404) || !BAD_STATE.test(error.message)) return error;
  const { message, native_code: nativeCode, raw } = error;
  return new UpstreamError('state_rejected', message, { status, native_code: nativeCode, raw });
}

/** The error for a body or event that is not of this wire. */
export function invalid(message: string, raw: JsonValue | undefined): UpstreamError {
  const text = typeof raw === 'string' ? raw : raw === undefined ? undefined : JSON.stringify(raw);
  return new UpstreamError('invalid_response', message, {
    status: 200,
    raw: text?.slice(0, limits.upstream_raw_chars_max),
  });
}
