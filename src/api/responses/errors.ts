import type { GatewayError } from '../../errors.ts';
import { type ErrorFormat, errorBody } from '../../http/error-envelope.ts';
import { errorTypeOf } from '../shared/error-type.ts';

/** `response.error.code` of a failed response: one of the codes of this API. */
export function errorCodeOf(status: number, metadata: Record<string, unknown> | undefined): string {
  switch (errorTypeOf(status, metadata)) {
    case 'rate_limit_exceeded':
      return 'rate_limit_exceeded';
    case 'invalid_request':
    case 'unprocessable':
    case 'payload_too_large':
      return 'invalid_prompt';
    case 'content_policy_violation':
      return 'image_content_policy_violation';
    default:
      return 'server_error';
  }
}

/** `error.type` for OpenAI's clients (https://platform.openai.com/docs/guides/error-codes). */
function clientTypeOf(status: number): string {
  if (status === 401) return 'authentication_error';
  if (status === 402) return 'insufficient_quota';
  if (status === 403) return 'permission_error';
  if (status === 429) return 'rate_limit_error';
  return status >= 500 ? 'server_error' : 'invalid_request_error';
}

/** The field that the error names; null if none. */
function paramOf({ metadata }: GatewayError): string | null {
  const violations = metadata?.['violations'];
  const first: unknown = Array.isArray(violations) ? violations[0] : undefined;
  const path = typeof first === 'object' && first !== null && 'path' in first ? first.path : metadata?.['field'];
  return typeof path === 'string' && path !== '' ? path : null;
}

/**
 * Makes the error body of this API before a stream: the common envelope, with the fields that OpenAI's clients read (`type`, `param`), and
 * `error_type`.
 */
export const responsesError: ErrorFormat = (error, { user_id }) => {
  const { error: shown, ...rest } = errorBody(error, user_id);
  return {
    error: { ...(shown as object), type: clientTypeOf(error.status), param: paramOf(error) },
    error_type: errorTypeOf(error.status, error.metadata),
    ...rest,
  };
};
