import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify';
import type { Server } from './server.ts';

/** Where the page that renders the document stands, and what it asks for. */
const PAGES = [
  '/docs',
  '/docs/json',
  '/docs/yaml',
  '/docs/static/index.html',
  '/docs/static/swagger-initializer.js',
  '/docs/static/*',
];

/** Headers of a connection, which is not the documentation's. */
const OF_CONNECTIONS = new Set(['connection', 'date', 'keep-alive', 'transfer-encoding']);

/** Collects every route registered after it, for `serveDocumentation`. */
export function collectRoutes(server: Server): readonly RouteOptions[] {
  const routes: RouteOptions[] = [];
  server.addHook('onRoute', (route) => {
    // Those that answer as GET does are no operations of their own.
    if (route.method !== 'HEAD') routes.push(route);
  });
  return routes;
}

/**
 * Serves the document of these routes, a page that renders it without any network, and a front page that leads there. The
 * document is made, and what makes and renders it loaded, when it is first asked for: it takes 0.2 s, and 4 MB.
 */
export function serveDocumentation(server: Server, routes: readonly RouteOptions[]): void {
  const operations = [...routes];
  let made: Promise<FastifyInstance> | undefined;
  const documentation = () => {
    made ??= import('./documentation.ts').then(({ makeDocumentation }) => makeDocumentation(operations));
    return made;
  };
  let document: string | undefined;
  server.get('/api/v1/openapi.json', { config: { access: 'open' } }, async (_request, reply) => {
    if (document === undefined) {
      const { openApiDocument } = await import('./documentation.ts');
      document = JSON.stringify(openApiDocument(await documentation()));
    }
    return reply.header('content-type', 'application/json; charset=utf-8').send(document);
  });
  const render = async ({ url, headers }: FastifyRequest, reply: FastifyReply) => {
    const answer = await (await documentation()).inject({ method: 'GET', url, headers });
    if (answer.statusCode === 404) {
      reply.callNotFound();
      return reply;
    }
    for (const [name, value] of Object.entries(answer.headers)) {
      if (!OF_CONNECTIONS.has(name)) reply.header(name, value);
    }
    const { statusCode, rawPayload } = answer;
    return reply.code(statusCode).send(rawPayload.length > 0 ? rawPayload : undefined);
  };
  for (const url of PAGES) server.get(url, render);
  server.get('/', { config: { access: 'open' } }, (_request, reply) =>
    reply
      .header('content-type', 'text/html; charset=utf-8')
      .header('content-security-policy', "default-src 'none'; style-src 'unsafe-inline'")
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
