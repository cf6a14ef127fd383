import type { FastifyError } from 'fastify';
import { GatewayError, internalError } from '../errors.ts';
import { lookupTable } from '../schemas/lookup-table.ts';
import { metadataMembers } from '../schemas/routing-metadata.ts';
import type { HttpReply, HttpRequest } from './request.ts';
import { ValidationError } from './validation.ts';

const TRANSLATED: Record<string, () => GatewayError> = lookupTable({
  FST_ERR_CTP_INVALID_JSON_BODY: () => new GatewayError(400, 'The request body is not valid JSON'),
  FST_ERR_CTP_EMPTY_JSON_BODY: () => new GatewayError(400, 'The request body is empty; a JSON object is expected'),
  FST_ERR_CTP_INVALID_MEDIA_TYPE: () => new GatewayError(400, 'content-type must be application/json'),
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: () =>
    new GatewayError(400, 'The length of the request body differs from its content-length header'),
  FST_ERR_BAD_URL: () => new GatewayError(400, 'The path of the request is not a valid URL'),
  FST_ERR_MAX_PARAM_LENGTH: () => new GatewayError(404, 'Resource not found'),
  FST_ERR_CTP_BODY_TOO_LARGE: () => new GatewayError(413, 'Request payload too large'),
});

/** Turns anything that was thrown into the error that the client sees. Unknown errors become a 500 with one fixed sentence. */
export function toGatewayError(thrown: unknown): GatewayError {
  if (thrown instanceof GatewayError) return thrown;
  if (thrown instanceof ValidationError) {
    return new GatewayError(400, thrown.message, { metadata: { violations: thrown.violations } });
  }
  const error = thrown as FastifyError;
  const translate = typeof error?.code === 'string' ? TRANSLATED[error.code] : undefined;
  if (translate) return translate();
  if (error?.statusCode === 400) return new GatewayError(400, 'The request is not valid', { cause: thrown });
  return internalError(thrown);
}

/** The error of a request whose connection its client broke off; undefined for any other error. The client does not read it, and it is no fault of the gateway. */
export function brokenOff(thrown: unknown, { raw }: HttpRequest): GatewayError | undefined {
  // A body that the gateway refuses is ended with a `GatewayError`.
  const isBroken = raw.errored != null && thrown === raw.errored && !(thrown instanceof GatewayError);
  return isBroken ? new GatewayError(400, 'The request broke off before its end', { cause: thrown }) : undefined;
}

/** The error body of the contract's envelope. */
export function errorBody(error: GatewayError, userId: string | null): Record<string, unknown> {
  return {
    error: { code: error.status, message: error.message, metadata: error.metadata ?? null },
    gateway_metadata: null,
    ...metadataMembers(error.gateway_metadata),
    user_id: userId,
  };
}

/** Facts about the request that an error body may contain. */
export interface ErrorFacts {
  user_id: string | null;
  /** Undefined if the request failed before it had an id. */
  generation_id: string | undefined;
}

/** Makes the error body of a client API with a form of its own. */
export type ErrorFormat = (error: GatewayError, facts: ErrorFacts) => Record<string, unknown>;

function bodyFor(
  error: GatewayError,
  { request, reply, errorFormat }: { request: HttpRequest; reply: HttpReply; errorFormat: ErrorFormat | undefined },
): Record<string, unknown> {
  const userId = request.principal?.user_id ?? null;
  if (errorFormat === undefined) return errorBody(error, userId);
  const generationId = reply.getHeader('x-generation-id');
  return errorFormat(error, {
    user_id: userId,
    generation_id: typeof generationId === 'string' ? generationId : undefined,
  });
}

/** Answers a failed request, once, in the error format of its API. Logs errors of status 500 and above with their cause. */
export function sendError(
  thrown: unknown,
  request: HttpRequest,
  reply: HttpReply,
  errorFormat: ErrorFormat | undefined = request.route?.config?.errorFormat,
): void {
  const error = toGatewayError(thrown);
  if (error.status >= 500) {
    request.log.error({ request_id: request.id, status: error.status, err: error.cause ?? error }, 'request failed');
  }
  void reply
    .code(error.status)
    .headers(error.headers ?? {})
    .header('content-type', 'application/json; charset=utf-8')
    .send(JSON.stringify(bodyFor(error, { request, reply, errorFormat })));
}
