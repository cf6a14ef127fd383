import { type ErrorStatus, GatewayError } from '../../errors.ts';
import type { ErrorFormat } from '../../http/error-envelope.ts';
import { metadataMembers } from '../../schemas/routing-metadata.ts';
import { errorTypeOf } from '../shared/error-type.ts';

/** https://platform.claude.com/docs/en/api/errors; other statuses have the nearest type. */
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

/** Makes the error body of the Messages API, before a stream and inside one. */
export const messagesError: ErrorFormat = (error: GatewayError, { generation_id }) => {
  return {
    type: 'error',
    error: {
      type: KINDS[error.status],
      message: error.message,
      error_type: errorTypeOf(error.status, error.metadata),
      ...(error.metadata === undefined ? {} : { metadata: error.metadata }),
      // The wire's field for machine-readable details.
      ...(error.metadata?.['error_code'] === undefined ? {} : { details: error.metadata }),
    },
    request_id: generation_id ?? null,
    ...metadataMembers(error.gateway_metadata),
  };
};

/** The error of an answer that its upstream ended with an error, for which the wire has no stop reason. */
export function brokenAnswer(cause: { message: string } | undefined): GatewayError {
  return new GatewayError(502, cause?.message ?? 'The provider ended its answer with an error');
}
