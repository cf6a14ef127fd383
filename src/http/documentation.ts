import { readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import fastify, { type FastifyInstance, type RouteOptions } from 'fastify';
import type { TSchema } from 'typebox';
import { limits } from '../limits.ts';
import { documentAnswers, documentedHeaders, type Json, type Operation } from './documented-answers.ts';
import { schemaCompilers } from './schema-compilers.ts';
import { type Access, accessOf } from './server.ts';

/** The version of the interface, which the document states. */
const VERSION = '1.0.0';

/** Moves schemas with a `title` to `components`, and leaves references in their place. */
function hoist(value: Json, components: Record<string, Json>): Json {
  if (Array.isArray(value)) return value.map((item) => hoist(item, components));
  if (value === null || typeof value !== 'object') return value;
  const hoisted = Object.fromEntries(Object.entries(value).map(([name, child]) => [name, hoist(child, components)]));
  const { title } = value;
  const isSchema = typeof title === 'string' && ('type' in value || 'anyOf' in value);
  if (!isSchema) return hoisted;
  const known = components[title];
  if (known !== undefined && JSON.stringify(known) !== JSON.stringify(hoisted)) {
    throw new Error(`two different schemas are called ${title}`);
  }
  components[title] = hoisted;
  return { $ref: `#/components/schemas/${title}` };
}

/** Adds to the package's page what narrow screens need: a viewport, and tables that scroll. Hides the column of links, which is always empty. */
const NARROW_SCREENS = `<meta name="viewport" content="width=device-width, initial-scale=1">
<style>.swagger-ui .table-container, .swagger-ui .responses-inner { overflow-x: auto } .swagger-ui .response-col_links { display: none }</style>`;

/** Security requirements that differ from the document's default. Public operations show more to callers with a credential. */
const SECURITY: Partial<Record<Access | 'key', Record<string, string[]>[]>> = {
  open: [],
  public: [{ bearer: [] }, {}],
};

/** Headers that belong to a connection, not to a page. */
const CONNECTION_HEADERS = new Set(['connection', 'date', 'keep-alive', 'transfer-encoding', 'accept-ranges']);

export interface Page {
  headers: Record<string, string>;
  body: Buffer;
}

export interface Documentation {
  /** The OpenAPI document, as it is served. */
  document(): Buffer;
  /** The page at a path below `/docs`; undefined if there is none. Each page is rendered once. */
  page(path: string): Promise<Page | undefined>;
}

/** The paths of all pages. Only these are requested from the inner server, never a path that a client made up. */
function pagePaths(): Set<string> {
  const files = join(dirname(createRequire(import.meta.url).resolve('@fastify/swagger-ui/package.json')), 'static');
  const names = [...readdirSync(files), 'swagger-initializer.js'];
  // `index.html` is the template of `/docs`, not a page.
  const pages = names.filter((name) => name !== 'index.html');
  return new Set(['/docs', '/docs/json', '/docs/yaml', ...pages.map((name) => `/docs/static/${name}`)]);
}

/** Makes the OpenAPI document of these routes, and the pages that render it. */
export async function makeDocumentation(routes: readonly RouteOptions[]): Promise<Documentation> {
  const server = await describe(routes);
  const paths = pagePaths();
  const pages = new Map<string, Promise<Page | undefined>>();
  let bytes: Buffer | undefined;

  async function render(path: string): Promise<Page | undefined> {
    const answer = await server.inject({ method: 'GET', url: path });
    if (answer.statusCode === 404) return undefined;
    if (answer.statusCode !== 200) throw new Error(`${path} was answered with ${answer.statusCode}: ${answer.body}`);
    const headers: Record<string, string> = {};
    for (const [name, value] of Object.entries(answer.headers)) {
      if (!CONNECTION_HEADERS.has(name) && value !== undefined) headers[name] = String(value);
    }
    if (path !== '/docs') return { headers, body: answer.rawPayload };
    const body = Buffer.from(answer.body.replace('<head>', `<head>\n${NARROW_SCREENS}`));
    return { headers: { ...headers, 'content-length': String(body.length) }, body };
  }

  return {
    document() {
      bytes ??= Buffer.from(JSON.stringify(openApiDocument(server)));
      return bytes;
    },
    async page(path) {
      if (!paths.has(path)) return undefined;
      // Stored before it is rendered, so that concurrent first requests share one rendering.
      const page = pages.get(path) ?? render(path);
      pages.set(path, page);
      try {
        return await page;
      } catch (error) {
        pages.delete(path);
        throw error;
      }
    },
  };
}

/** An inner server without a listener, which describes the routes and renders their description below `/docs`. */
async function describe(routes: readonly RouteOptions[]): Promise<FastifyInstance> {
  // Only the paths of pages are requested from it; the routes are there to be described.
  const server: FastifyInstance = fastify({
    routerOptions: { ignoreTrailingSlash: true },
    schemaController: schemaCompilers,
  });
  await server.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Model Gateway',
        version: VERSION,
        description:
          'One HTTP API in front of all model providers. All paths also work under `/v1`. Every answer has `X-Request-Id`: ' +
          'the id that the request sent, or a new one. ' +
          `A JSON body has at most ${limits.json_values_max} values, ${limits.json_levels_max} levels of lists and objects, and ` +
          `${limits.json_keys_max} keys in one object; a body that exceeds a bound is a 400 that names it.`,
      },
      servers: [{ url: '/' }],
      components: {
        securitySchemes: {
          bearer: {
            type: 'http',
            scheme: 'bearer',
            description: 'An API key, or for administration a management key.',
          },
        },
      },
      security: [{ bearer: [] }],
    },
    transform: ({ schema, url, route }) => {
      const access = accessOf(route.config);
      const hidden = access === undefined || schema?.operationId === undefined;
      const security = SECURITY[access ?? 'open'];
      return {
        schema: {
          ...schema,
          ...(security === undefined ? {} : { security }),
          ...(route.config?.events === undefined
            ? {}
            : { response: withEvents(schema?.response, route.config.events) }),
          hide: hidden,
        },
        url,
      };
    },
  });
  for (const { method, url, schema, config } of routes) {
    server.route({ method, url, schema, config, handler: () => undefined });
  }
  await server.register(swaggerUi, {
    routePrefix: '/docs',
    // The package's own policy makes browsers use TLS for everything, which a gateway in a private network may not have.
    staticCSP:
      "default-src 'self'; base-uri 'self'; object-src 'none'; frame-ancestors 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'",
    uiConfig: {
      url: '/api/v1/openapi.json',
      validatorUrl: null,
      layout: 'BaseLayout',
      deepLinking: true,
      tryItOutEnabled: true,
    },
    theme: { title: 'Model Gateway API' },
    transformSpecification: () => openApiDocument(server),
    transformSpecificationClone: false,
  });
  await server.ready();
  return server;
}

/** Adds the stream of events to the 200 of an operation that streams if the request wants one. */
function withEvents(response: unknown, events: TSchema): Record<string, unknown> {
  const declared = response as Record<string, unknown>;
  const content = { 'application/json': { schema: declared['200'] }, 'text/event-stream': { schema: events } };
  return { ...declared, 200: { description: 'The answer, whole or as a stream of events.', content } };
}

/** The document that the service serves; the committed `openapi.json` equals it. */
function openApiDocument(server: FastifyInstance): Record<string, Json> {
  const plain = JSON.parse(JSON.stringify(server.swagger())) as { paths: Json; components: Record<string, Json> };
  const schemas: Record<string, Json> = {};
  const paths = hoist(plain.paths, schemas) as unknown as Record<string, Record<string, Operation>>;
  for (const methods of Object.values(paths)) {
    for (const [method, operation] of Object.entries(methods)) documentAnswers(method.toUpperCase(), operation);
  }
  const sorted = Object.fromEntries(Object.entries(schemas).sort(([a], [b]) => (a < b ? -1 : 1)));
  return {
    ...(plain as unknown as Record<string, Json>),
    paths: paths as unknown as Json,
    components: { ...plain.components, headers: documentedHeaders, schemas: sorted },
  };
}
