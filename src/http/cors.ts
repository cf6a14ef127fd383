import type { FastifyReply, FastifyRequest } from 'fastify';

const EXPOSED =
  'etag, x-generation-id, x-provider-name, x-request-id, request-id, x-should-retry, retry-after, retry-after-ms, x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset, x-gateway-served-without-store';
const METHODS = 'GET, OPTIONS, PATCH, DELETE, POST, PUT';
const PREFLIGHT_S = '86400';

/**
 * Allows pages of any origin to call the API, which is protected by keys, not by cookies. Only browsers send `Origin`; other requests get
 * no CORS headers. Answers preflights, so they need no authentication.
 */
export function answerBrowsers(request: FastifyRequest, reply: FastifyReply, done: () => void): void {
  const { headers } = request.raw;
  if (headers.origin === undefined || !request.url.startsWith('/api/')) {
    done();
    return;
  }
  reply.header('access-control-allow-origin', '*');
  if (request.method !== 'OPTIONS' || headers['access-control-request-method'] === undefined) {
    reply.header('access-control-expose-headers', EXPOSED);
    done();
    return;
  }
  reply
    .code(204)
    .header('access-control-allow-methods', METHODS)
    .header('access-control-allow-headers', headers['access-control-request-headers'] ?? '*')
    .header('access-control-max-age', PREFLIGHT_S)
    .header('vary', 'access-control-request-headers')
    .send();
}
