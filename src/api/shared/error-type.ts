import type { GatewayError } from '../../errors.ts';

/** Error types by status, as the public service names them (its documentation, "Errors"). */
const ERROR_TYPES: Readonly<Record<number, string>> = {
  400: 'invalid_request',
  401: 'authentication',
  402: 'payment_required',
  403: 'permission_denied',
  404: 'not_found',
  405: 'invalid_request',
  408: 'timeout',
  409: 'invalid_request',
  413: 'payload_too_large',
  422: 'unprocessable',
  429: 'rate_limit_exceeded',
  500: 'server',
  502: 'provider_unavailable',
  503: 'provider_overloaded',
};

/** The `error_type` of an error, which is finer than its status. */
export function errorTypeOf(status: number, metadata: Record<string, unknown> | undefined): string {
  // A provider's 403 refuses content; a 403 of the gateway refuses the key.
  if (status === 403 && metadata?.['provider_name'] != null) return 'content_policy_violation';
  return ERROR_TYPES[status] ?? 'unmapped';
}

/** The error beside or inside a choice of chat and completions. Generated clients of the public service require `error_type` in its metadata. */
export function choiceError({ status, message, metadata }: GatewayError) {
  return { code: status, message, metadata: { error_type: errorTypeOf(status, metadata), ...metadata } };
}
