import type { FastifyReply, FastifyRequest } from 'fastify';

const EXPOSED =
  'etag, x-generation-id, x-provider-name, x-request-id, request-id, x-should-retry, retry-after, retry-after-ms, x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset, x-gateway-served-without-store';
const METHODS = 'GET, OPTIONS, PATCH, DELETE, POST, PUT';
const PREFLIGHT_S = '86400';

/**
 * Lets pages of any origin call the API, and nothing else: what protects it is the key, and no cookie counts here. Only requests of a browser
 * say where they come from; all others pass without a header. Preflights are answered before authentication.
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
