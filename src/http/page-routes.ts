import type { FastifyReply, FastifyRequest } from 'fastify';
import { GatewayError } from '../errors.ts';
import { limits } from '../limits.ts';
import { brokenOff, toGatewayError } from './error-envelope.ts';
import { sendPage } from './pages/html.ts';
import { noticePage } from './pages/notice.ts';
import type { Server } from './server.ts';
import { checkSameSite, type Site } from './site.ts';

/** Translates an error of another room; undefined if it is unknown. */
export type TranslateError = (error: unknown) => GatewayError | undefined;

/** The fields of a query string or a form, each at most once. */
export type Fields = ReadonlyMap<string, string>;

/** The query string of a page's address. Throws a 400 for a repeated field. */
export function queryOf(request: FastifyRequest): Fields {
  const { url } = request.raw;
  const start = url?.indexOf('?') ?? -1;
  return fieldsOf(new URLSearchParams(start < 0 ? '' : url?.slice(start + 1)));
}

/** The form that a page sent; empty if there is none. Throws a 400 for a repeated field. */
export function formOf(request: FastifyRequest): Fields {
  return request.body instanceof URLSearchParams ? fieldsOf(request.body) : new Map();
}

/** The fields without empty ones, which were not filled in. */
function fieldsOf(params: URLSearchParams): Fields {
  const fields = new Map<string, string>();
  for (const [name, value] of params) {
    if (fields.has(name)) throw new GatewayError(400, `${name.slice(0, 50)} occurs more than once`);
    if (value !== '') fields.set(name, value);
  }
  return fields;
}

const TITLES: Readonly<Record<number, string>> = {
  400: 'This request is not valid',
  403: 'This is not allowed',
  409: 'This was already done',
  413: 'This request is too large',
  429: 'Too many attempts',
  502: 'The sign-in service does not answer',
  503: 'The gateway is not available',
};

function sendErrorPage(thrown: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const error = toGatewayError(thrown);
  if (error.status >= 500) {
    request.log.error({ request_id: request.id, status: error.status, err: error.cause ?? error }, 'request failed');
  }
  const text =
    error.status === 500
      ? `Something went wrong. The log of the gateway has the details under ${request.id}.`
      : error.message;
  const title = TITLES[error.status] ?? 'This did not work';
  void sendPage(reply.headers(error.headers ?? {}), error.status, noticePage(title, text));
}

/**
 * Registers routes for pages in a scope of their own: forms instead of JSON, errors as pages, no caching, no access for other origins. A
 * form that another site sent is refused before its handler.
 */
export async function servePages(
  server: Server,
  { site, translate }: { site: Site; translate: TranslateError | undefined },
  register: (scope: Server) => void,
): Promise<void> {
  await server.register((instance, _options, done) => {
    const scope = instance as unknown as Server;
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser(
      'application/x-www-form-urlencoded',
      { parseAs: 'string', bodyLimit: limits.form_bytes_max },
      (_request: FastifyRequest, body: string, parsed: (error: Error | null, form: URLSearchParams) => void) =>
        parsed(null, new URLSearchParams(body)),
    );
    scope.setErrorHandler((error, request, reply) =>
      sendErrorPage(brokenOff(error, request) ?? translate?.(error) ?? error, request, reply),
    );
    scope.addHook('onRequest', (request, reply, next) => {
      reply
        .header('cache-control', 'no-store')
        // `no-referrer` would make browsers hide the origin of the gateway's own forms as well.
        .header('referrer-policy', 'same-origin')
        .header('x-content-type-options', 'nosniff')
        .header('x-frame-options', 'DENY');
      if (request.method === 'POST') checkSameSite(request, site);
      next();
    });
    register(scope);
    done();
  });
}
