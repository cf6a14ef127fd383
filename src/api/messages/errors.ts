import { type ErrorStatus, GatewayError } from '../../errors.ts';
import type { ErrorFormat } from '../../http/error-envelope.ts';
import { metadataMembers } from '../../schemas/routing-metadata.ts';
import { errorTypeOf } from '../shared/error-type.ts';

/** https://platform.claude.com/docs/en/api/errors; statuses of no row there are told as the nearest one. */
const KINDS: Record<ErrorStatus, string> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  405: 'invalid_request_error',
  408: 'timeout_error',
  409: 'conflict_error',
  413: 'request_too_large',
  422: 'invalid_request_error',
  429: 'rate_limit_error',
  500: 'api_error',
  502: 'api_error',
  503: 'overloaded_error',
};

/** An error as clients of the Messages API read it, before a stream and inside one. */
export const messagesError: ErrorFormat = (error: GatewayError, { generation_id }) => {
  return {
    type: 'error',
    error: {
      type: KINDS[error.status],
      message: error.message,
      error_type: errorTypeOf(error.status, error.metadata),
      ...(error.metadata === undefined ? {} : { metadata: error.metadata }),
      // The wire's own place of what a program is to do about an error.
      ...(error.metadata?.['error_code'] === undefined ? {} : { details: error.metadata }),
    },
    request_id: generation_id ?? null,
    ...metadataMembers(error.gateway_metadata),
  };
};

/** An answer that its upstream ended with an error: the wire has no reason to stop that says so. */
export function brokenAnswer(told: { message: string } | undefined): GatewayError {
  return new GatewayError(502, told?.message ?? 'The provider ended its answer with an error');
}
