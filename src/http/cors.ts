import type { HttpReply, HttpRequest } from './request.ts';

const EXPOSED =
  'etag, x-generation-id, x-provider-name, x-request-id, request-id, x-should-retry, retry-after, retry-after-ms, x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset, x-gateway-served-without-store';
const METHODS = 'GET, OPTIONS, PATCH, DELETE, POST, PUT';
const PREFLIGHT_S = '86400';

/**
 * Allows pages of any origin to call the API, which is protected by keys, not by cookies. Only browsers send `Origin`; other requests get
 * no CORS headers.
 */
export function allowBrowsers(request: HttpRequest, reply: HttpReply): void {
  if (!isOfBrowser(request)) return;
  reply.header('access-control-allow-origin', '*');
  if (!isPreflight(request)) reply.header('access-control-expose-headers', EXPOSED);
}

/** Answers a preflight, which needs no authentication. Returns whether the request is one. */
export function answerPreflight(request: HttpRequest, reply: HttpReply): boolean {
  if (!isPreflight(request) || !isOfBrowser(request)) return false;
  reply
    .code(204)
    .header('access-control-allow-methods', METHODS)
    .header('access-control-allow-headers', request.raw.headers['access-control-request-headers'] ?? '*')
    .header('access-control-max-age', PREFLIGHT_S)
    .header('vary', 'access-control-request-headers')
    .send();
  return true;
}

function isOfBrowser({ raw: { headers }, url }: HttpRequest): boolean {
  return headers.origin !== undefined && url.startsWith('/api/');
}

function isPreflight({ raw: { headers }, method }: HttpRequest): boolean {
  return method === 'OPTIONS' && headers['access-control-request-method'] !== undefined;
}
