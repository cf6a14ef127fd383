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
 * Serves the OpenAPI document of these routes, and a page that renders it without network access. The document and its renderer are loaded at the first request: this takes 0.2 s and 4 MB.
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
}
