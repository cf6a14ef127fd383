import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify';
import { GatewayError } from '../errors.ts';
import type { Documentation } from './documentation.ts';
import type { Server } from './server.ts';

/** The page that renders the document, and the files that it loads. */
const PAGES = ['/docs', '/docs/json', '/docs/yaml', '/docs/static/:file'];

/** Collects the routes that are registered afterwards, for `serveDocumentation`. */
export function collectRoutes(server: Server): readonly RouteOptions[] {
  const routes: RouteOptions[] = [];
  server.addHook('onRoute', (route) => {
    // HEAD routes repeat those of GET.
    if (route.method !== 'HEAD') routes.push(route);
  });
  return routes;
}

/**
 * Serves the OpenAPI document of these routes, a page that renders it without network access, and a front page that links to it. The
 * document and its renderer are loaded at the first request: this takes 0.2 s and 4 MB.
 */
export function serveDocumentation(server: Server, routes: readonly RouteOptions[]): void {
  const operations = [...routes];
  let making: Promise<Documentation> | undefined;
  const documentation = () => {
    making ??= import('./documentation.ts')
      .then(({ makeDocumentation }) => makeDocumentation(operations))
      .catch((error: unknown) => {
        // A temporary failure, such as a lack of descriptors: the next request tries again.
        making = undefined;
        throw error;
      });
    return making;
  };
  server.get('/api/v1/openapi.json', { config: { access: 'open' } }, async (_request, reply) => {
    const { document } = await documentation();
    return reply.header('content-type', 'application/json; charset=utf-8').send(document());
  });
  const render = async ({ url, headers }: FastifyRequest, reply: FastifyReply) => {
    const path = url.replace(/\/?(?:\?.*)?$/, '');
    const page = await (await documentation()).page(path);
    if (page === undefined) throw new GatewayError(404, `No such path: ${path.slice(0, 200)}`);
    reply.headers(page.headers);
    const isKnown = headers['if-none-match'] !== undefined && headers['if-none-match'] === page.headers['etag'];
    return isKnown ? reply.code(304).send() : reply.send(page.body);
  };
  for (const url of PAGES) server.get(url, render);
  server.get('/', { config: { access: 'open' } }, (_request, reply) =>
    reply
      .header('content-type', 'text/html; charset=utf-8')
      .header(
        'content-security-policy',
        "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
      )
      .send(FRONT_PAGE),
  );
}

const FRONT_PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Model Gateway</title>
<style>
  :root { color-scheme: light dark }
  body { font: 16px/1.6 system-ui, sans-serif; max-width: 40rem; margin: 15vh auto 0; padding: 0 1.5rem }
  h1 { font-size: 1.6rem; margin-bottom: .3rem }
  li { margin: .3rem 0 }
  code { font-size: .95em }
</style>
<h1>Model Gateway</h1>
<p>The gateway is running. Point an OpenAI SDK at <code>/api/v1</code> with an API key.</p>
<ul>
  <li><a href="/docs">API reference</a></li>
  <li><a href="/api/v1/openapi.json">OpenAPI document</a></li>
  <li><a href="/api/v1/models">Models</a></li>
  <li><a href="/health/ready">Readiness</a> and <a href="/metrics">metrics</a></li>
</ul>
</html>
`;
