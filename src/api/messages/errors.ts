import { type ErrorStatus, GatewayError } from '../../errors.ts';
import type { ErrorSkin } from '../../http/error-envelope.ts';

/** A kind of error as Anthropic's clients know it, and the finer one of the public service. */
type Kind = readonly [type: string, error_type: string];

const INVALID: Kind = ['invalid_request_error', 'invalid_request'];

/** https://platform.claude.com/docs/en/api/errors; statuses of no row there are told as the nearest one. */
const KINDS: Record<ErrorStatus, Kind> = {
  400: INVALID,
  401: ['authentication_error', 'authentication'],
  402: ['billing_error', 'payment_required'],
  403: ['permission_error', 'permission_denied'],
  404: ['not_found_error', 'not_found'],
  405: INVALID,
  408: ['timeout_error', 'timeout'],
  409: ['conflict_error', 'invalid_request'],
  413: ['request_too_large', 'payload_too_large'],
  422: ['invalid_request_error', 'unprocessable'],
  429: ['rate_limit_error', 'rate_limit_exceeded'],
  500: ['api_error', 'server'],
  502: ['api_error', 'provider_unavailable'],
  503: ['overloaded_error', 'provider_overloaded'],
};

/** An error as clients of the Messages API read it, before a stream and inside one. */
export const messagesError: ErrorSkin = (error: GatewayError, { generation_id }) => {
  const [type, error_type] = KINDS[error.status];
  return {
    type: 'error',
    error: {
      type,
      message: error.message,
      error_type,
      ...(error.metadata === undefined ? {} : { metadata: error.metadata }),
      // The wire's own place of what a program is to do about an error.
      ...(error.metadata?.['error_code'] === undefined ? {} : { details: error.metadata }),
    },
    request_id: generation_id ?? null,
    ...(error.gateway_metadata === undefined ? {} : { gateway_metadata: error.gateway_metadata }),
  };
};

/** An answer that its upstream ended with an error: the wire has no reason to stop that says so. */
export function brokenAnswer(told: { message: string } | undefined): GatewayError {
  return new GatewayError(502, told?.message ?? 'The provider ended its answer with an error');
}
