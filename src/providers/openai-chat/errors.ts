import { limits } from '../../limits.ts';
import { type FailureClass, UpstreamError } from '../dialect.ts';
import { type ResponseHeaders, retryAfterMs } from '../shared/retry-after.ts';
import { isObject, textOf } from './wire.ts';

/** The contents of an error body, in any of the known shapes. */
interface ErrorFields {
  message: string | undefined;
  code: string | undefined;
  /** The status that an error inside a 200 reports. */
  status: number | undefined;
}

/**
 * Classifies an error answer. Reads `{error: {…}}`, Mistral's `{object: "error"}`, FastAPI's `detail`, Cloudflare's `errors`,
 * and any text.
 */
export function decodeError(status: number, headers: ResponseHeaders, body: string): UpstreamError {
  const fields = readBody(body);
  const message = fields.message ?? `The upstream answered with status ${status}.`;
  return new UpstreamError(classify(status, fields.code, message), message, {
    status,
    native_code: fields.code ?? null,
    retry_after_ms: retryAfterMs(headers),
    raw: cut(body),
  });
}

/** The error inside a 200 (a stream's event or a whole body); undefined if the object is not an error. */
export function errorInside(value: unknown, isErrorEvent = false): UpstreamError | undefined {
  const fields = readErrorFields(value);
  if (fields === undefined && !isErrorEvent) return undefined;
  const message = fields?.message ?? 'The upstream reported an error without a message.';
  const status = fields?.status ?? statusOfCode(fields?.code);
  return new UpstreamError(classify(status, fields?.code, message), message, {
    status,
    native_code: fields?.code ?? null,
    raw: cut(JSON.stringify(value)),
  });
}

function readBody(body: string): ErrorFields {
  const trimmed = body.trim();
  if (trimmed === '') return { message: undefined, code: undefined, status: undefined };
  try {
    const fields = readErrorFields(JSON.parse(trimmed));
    if (fields !== undefined) return fields;
  } catch {
    // An HTML page of a proxy is useless to a client; plain text is not.
    if (!trimmed.startsWith('<')) return { message: cut(trimmed), code: undefined, status: undefined };
  }
  return { message: undefined, code: undefined, status: undefined };
}

function readErrorFields(value: unknown): ErrorFields | undefined {
  // Google's compatible endpoint wraps its error in a list.
  const body = Array.isArray(value) ? value[0] : value;
  if (!isObject(body)) return undefined;
  const { error } = body;
  if (isObject(error)) {
    const message = textOf(error['message']) ?? detailText(error['detail']);
    const code = codeOf(error['code']) ?? textOf(error['type']) ?? textOf(error['status']);
    if (message === undefined && code === undefined) return undefined;
    return { message, code, status: statusOf(error['status_code']) ?? statusOf(error['code']) };
  }
  const code = codeOf(body['code']) ?? textOf(body['type']);
  const status = statusOf(body['status_code']) ?? statusOf(body['status']) ?? statusOf(body['code']);
  if (textOf(error) !== undefined) return { message: textOf(error), code, status };
  if (Array.isArray(body['errors']) && body['choices'] === undefined) {
    // https://developers.cloudflare.com/workers-ai/platform/errors/
    const listed = body['errors'].find(isObject);
    const listedMessage = textOf(listed?.['message']);
    if (listedMessage !== undefined) return { message: listedMessage, code: codeOf(listed?.['code']), status };
  }
  const message = textOf(body['message']) ?? detailText(body['detail']) ?? detailText(body['message']);
  const isError = body['object'] === 'error' || body['choices'] === undefined;
  return isError && message !== undefined ? { message, code, status } : undefined;
}

/** FastAPI: a text, or a list of `{loc, msg}`; Mistral wraps the list as `{detail: […]}`. */
function detailText(detail: unknown): string | undefined {
  const details = isObject(detail) ? detail['detail'] : detail;
  if (!Array.isArray(details)) return textOf(details);
  const lines = details.filter(isObject).map((entry) => {
    const place = Array.isArray(entry['loc']) ? `${entry['loc'].join('.')}: ` : '';
    return place + (textOf(entry['msg']) ?? '');
  });
  return textOf(lines.join('; '));
}

function codeOf(code: unknown): string | undefined {
  return typeof code === 'number' && code !== 0 ? String(code) : textOf(code);
}

function statusOf(value: unknown): number | undefined {
  const number = typeof value === 'string' ? Number(value) : value;
  return typeof number === 'number' && Number.isInteger(number) && number >= 400 && number <= 599 ? number : undefined;
}

function statusOfCode(code: string | undefined): number {
  if (code === undefined) return 502;
  if (/rate_limit|too_many|resource_exhausted|insufficient_quota/i.test(code)) return 429;
  if (/authentication|invalid_api_key|unauthenticated/i.test(code)) return 401;
  if (/model_not_found|not_found_error/i.test(code)) return 404;
  if (/^(?:request_)?timeout(?:_error)?$/i.test(code)) return 408;
  if (/overload/i.test(code)) return 503;
  if (/invalid_request|tool_use_failed|content_filter|context_length/i.test(code)) return 400;
  return 502;
}

const NO_CREDIT =
  /insufficient_quota|insufficient (?:balance|funds|credit|quota)|credit balance|exceeded your current quota|billing[ _](?:hard[ _]limit|details|not[ _]active)|payment required|arrearage/i;
const BAD_CREDENTIAL =
  /invalid_api_key|(?:incorrect|invalid) api key|api key (?:not valid|not found|expired|is invalid)|unauthorized/i;
const FILTERED =
  /content_filter|content_policy|ResponsibleAIPolicyViolation|content management policy|data_inspection_failed|violates? (?:our )?(?:usage|safety|content)|content (?:exists|filter)|moderation/i;
const NO_MODEL =
  /model_not_found|no such model|model_not_available|unknown_model|invalid_model|(?:model|deployment)\S* (?:`[^`]*` |'[^']*' |"[^"]*" |\S+ )?(?:does not exist|was not found|not found|is not supported|is not available|has been decommissioned)|DeploymentNotFound|model_decommissioned/i;
const BAD_STATE =
  /invalid[ _](?:thought[ _])?signature|thought_signature|encrypted[ _]content|reasoning_content.{0,40}(?:must be passed|missing)|required following item/i;
const OVERLOADED = /overload|over capacity|at capacity|too busy|engine_overloaded/i;
/** Groq: the model called a tool wrongly. Another endpoint may do better, so it is not an error of the caller. */
const BAD_GENERATION = /tool_use_failed|json_validate_failed|output_parse_failed/i;

/** Linear: no quotation holds another quote of its kind. The text is bounded. */
const QUOTED = /'[^']*'|"[^"]*"|`[^`]*`/g;

function classify(status: number, code: string | undefined, message: string): FailureClass {
  const text = `${code?.slice(0, limits.upstream_raw_chars_max) ?? ''} ${message.slice(0, limits.upstream_raw_chars_max)}`;
  if (status === 429) return NO_CREDIT.test(text) ? 'payment' : 'rate_limited';
  if (status === 402) return 'payment';
  if (status === 408) return 'timeout';
  if (status === 409 || status === 425) return 'conflict';
  if (status === 404 || status === 405 || status === 410) return 'not_found';
  if (status === 401) return 'credential';
  // Providers refuse content with a 403 as well (xAI, Groq's guard).
  if (status === 403) return NO_CREDIT.test(text) ? 'payment' : FILTERED.test(text) ? 'content_filter' : 'credential';
  if (status === 529) return 'overloaded';
  if (status >= 500) return OVERLOADED.test(text) ? 'overloaded' : 'unavailable';
  if (status < 400) return 'invalid_response';
  // 400, 413, 422 and similar: an error of the caller unless the text shows otherwise. Quoted text is the caller's: a tool named
  // `billing_details` must not look like an empty account.
  const unquoted = text.replace(QUOTED, '');
  if (NO_CREDIT.test(unquoted)) return 'payment';
  if (BAD_CREDENTIAL.test(unquoted)) return 'credential';
  if (BAD_GENERATION.test(text)) return 'invalid_response';
  if (FILTERED.test(text)) return 'content_filter';
  if (BAD_STATE.test(text)) return 'state_rejected';
  if (NO_MODEL.test(text)) return 'not_found';
  return 'invalid_request';
}

function cut(text: string): string {
  return text.slice(0, limits.upstream_raw_chars_max);
}
