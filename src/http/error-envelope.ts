import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { GatewayError, internalError } from '../errors.ts';
import { metadataMembers } from '../schemas/routing-metadata.ts';
import { ValidationError } from './validation.ts';

const TRANSLATED: Record<string, () => GatewayError> = {
  FST_ERR_CTP_INVALID_JSON_BODY: () => new GatewayError(400, 'The request body is not valid JSON'),
  FST_ERR_CTP_EMPTY_JSON_BODY: () => new GatewayError(400, 'The request body is empty; a JSON object is expected'),
  FST_ERR_CTP_INVALID_MEDIA_TYPE: () => new GatewayError(400, 'content-type must be application/json'),
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: () =>
    new GatewayError(400, 'The length of the request body differs from its content-length header'),
  FST_ERR_BAD_URL: () => new GatewayError(400, 'The path of the request is not a valid URL'),
  FST_ERR_MAX_PARAM_LENGTH: () => new GatewayError(404, 'Resource not found'),
  FST_ERR_CTP_BODY_TOO_LARGE: () => new GatewayError(413, 'Request payload too large'),
};

/** Turns anything thrown into the one error a client may see. Unknown throws become 500 with one fixed sentence. */
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

/** What a request is answered with whose client broke it off: nobody reads that, and nothing of ours failed. */
export function brokenOff(thrown: unknown, { raw }: FastifyRequest): GatewayError | undefined {
  // A body that we refuse ends with our own error.
  const isBroken = raw.errored != null && thrown === raw.errored && !(thrown instanceof GatewayError);
  return isBroken ? new GatewayError(400, 'The request broke off before its end', { cause: thrown }) : undefined;
}

/** The error body of the contract. */
export function errorBody(error: GatewayError, user_id: string | null): Record<string, unknown> {
  return {
    error: { code: error.status, message: error.message, metadata: error.metadata ?? null },
    gateway_metadata: null,
    ...metadataMembers(error.gateway_metadata),
    user_id,
  };
}

/** What an error's body is told of its request. */
export interface ErrorFacts {
  user_id: string | null;
  /** Undefined where the request failed before it had one. */
  generation_id: string | undefined;
}

/** How an API that has a form of its own tells errors. */
export type ErrorFormat = (error: GatewayError, facts: ErrorFacts) => Record<string, unknown>;

function bodyFor(
  error: GatewayError,
  {
    request,
    reply,
    errorFormat,
  }: { request: FastifyRequest; reply: FastifyReply; errorFormat: ErrorFormat | undefined },
): Record<string, unknown> {
  const user_id = request.principal?.user_id ?? null;
  if (errorFormat === undefined) return errorBody(error, user_id);
  const generation_id = reply.getHeader('x-generation-id');
  return errorFormat(error, { user_id, generation_id: typeof generation_id === 'string' ? generation_id : undefined });
}

/** Answers a failed request, once, in the form of its API; what is not the client's fault is logged with its cause. */
export function sendError(
  thrown: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  errorFormat: ErrorFormat | undefined = request.routeOptions?.config?.errorFormat,
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
