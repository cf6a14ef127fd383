import { isIPv6, type ListenOptions } from 'node:net';
import fastify, {
  type FastifyBaseLogger,
  type FastifyReply,
  type FastifyRequest,
  LogController,
  type RouteOptions,
} from 'fastify';
import { GatewayError } from '../errors.ts';
import { limits } from '../limits.ts';
import { boundBodies, jsonParser, takeThen } from './bounded-bodies.ts';
import { boundCallers } from './caller-turns.ts';
import { answerClientError, continueLate, continueWithoutBody, isBodyWithheld } from './connection.ts';
import { boundConnections, type ConnectionBounds, type ConnectionExcess } from './connections.ts';
import { answerPreflight } from './cors.ts';
import { DirectEdge } from './direct-edge.ts';
import { sendError } from './error-envelope.ts';
import { HttpServer } from './http-server.ts';
import { createKnownRoutes } from './known-routes.ts';
import type { Memory } from './memory.ts';
import { unmeteredReason } from './metered.ts';
import { inTurn } from './pipelining.ts';
import { ambiguous, pathOf } from './request-head.ts';
import { RequestSteps, requestIdOf, type StepOptions } from './request-steps.ts';
import { trackRunning } from './running.ts';
import { schemaCompilers } from './schema-compilers.ts';
import { accessOf, type Server, type TypeBoxProvider } from './server.ts';
import { trustedProxies } from './trusted-proxies.ts';
import { boundIfUnread } from './unread.ts';

export interface ServerOptions extends StepOptions {
  logger: FastifyBaseLogger | false;
  body_bytes_max: number;
  /** Not set: connections are not counted. */
  connections?: ConnectionBounds | undefined;
  /** Called for each connection that exceeds a bound. */
  onExcess?: ((reason: ConnectionExcess) => void) | undefined;
  /** The memory that requests with a body share. Not set: they are not counted. */
  memory?: Memory | undefined;
}

const UNBOUNDED: ConnectionBounds = {
  connections_max: Number.POSITIVE_INFINITY,
  connections_per_address_max: Number.POSITIVE_INFINITY,
  trustedProxies: trustedProxies([]),
};

/** Throws for a route without declared access, so that the service does not start. Routes of plugins (preflights, files of the documentation) are open. */
function requireAccess(route: RouteOptions): void {
  const isOfPlugin = route.method === 'OPTIONS' || route.url.startsWith('/docs');
  if (accessOf(route.config) === undefined && !isOfPlugin) {
    throw new Error(`${route.method} ${route.url} declares no access`);
  }
  const reason = unmeteredReason(route);
  if (reason !== undefined) throw new Error(reason);
}

/**
 * Makes the HTTP server that operations are registered on. A request passes CORS (which answers preflights), authentication by
 * the route's `access`, body, validation and handler; `sendError` answers anything thrown.
 */
export function createServer(options: ServerOptions): Server {
  const { logger } = options;
  const known = createKnownRoutes();
  let direct: Server['directEdge'] | undefined;
  const http = new HttpServer({
    maxHeaderSize: limits.header_bytes_max,
    requestTimeout: limits.client_request_ms_max,
    keepAliveTimeout: limits.client_idle_ms_max,
    // Node's own answer would not wait for earlier answers; `ambiguous` refuses a request without a host.
    requireHostHeader: false,
  });
  const server = fastify({
    // With its own logger Fastify would listen to the end of each answer although it logs none, and with a factory of loggers it would
    // inspect the logger of each request. Log lines name their request themselves.
    logger: false,
    logController: new LogController({ disableRequestLogging: true }),
    schemaController: schemaCompilers,
    bodyLimit: options.body_bytes_max,
    // While the server closes, requests on open connections get the error envelope, from the hook that refuses them.
    return503OnClosing: false,
    routerOptions: { maxParamLength: 300, ignoreTrailingSlash: true },
    serverFactory(handle) {
      const begin: typeof handle = (request, response) => {
        if (direct?.serve(request, response) === true) return;
        continueWithoutBody(request, response);
        handle(request, response);
      };
      inTurn(http, begin, () => options.onExcess?.('pipelined_requests_max'));
      return http;
    },
    rewriteUrl: pathOf,
    genReqId: requestIdOf,
    // Errors before the router finds a route pass no hook.
    frameworkErrors: (error, request, reply) => {
      reply.header('x-request-id', request.id);
      if (isBodyWithheld(request.raw)) reply.header('connection', 'close');
      const thrown = ambiguous(request.raw) ?? error;
      sendError(thrown, request as FastifyRequest, reply as unknown as FastifyReply, known.at(request.url).errorFormat);
    },
    clientErrorHandler: answerClientError,
  }).withTypeProvider<TypeBoxProvider>() as unknown as Server;
  if (logger !== false) server.log = logger;

  // Only JSON is accepted: a text body would reach validation as a string.
  server.removeContentTypeParser('text/plain');
  const steps = new RequestSteps(server, options);
  server.setErrorHandler((error, request, reply) => steps.fail(error, request, reply));
  server.addHook('onRoute', requireAccess);
  boundCallers(server, (request) => steps.confirm(request));
  server.decorate('running', trackRunning(server));
  const bounds = options.connections ?? UNBOUNDED;
  server.decorate(
    'connections',
    boundConnections(http, bounds, (reason) => options.onExcess?.(reason)),
  );
  server.decorate('listenOn', async (address: ListenOptions) => {
    await server.listen(address);
    // Fastify makes a second server for this, but not if the first is passed to it.
    const other = address.host === 'localhost' && (await http.listenOnOtherLoopback(address));
    if (other)
      server.log.info(
        `Server listening at http://${isIPv6(other.address) ? `[${other.address}]` : other.address}:${other.port}`,
      );
  });

  server.addHook('onRequest', (request, reply, done) => {
    if (logger !== false) {
      request.log = logger;
      reply.log = logger;
    }
    // Set here and not as decorations, which Fastify sets by name, one by one, for every request.
    request.route = request.routeOptions;
    request.identified_ms = 0;
    request.on_leave = undefined;
    request.on_stop = undefined;
    request.long_body_bytes = 0;
    request.principal = undefined;
    request.store_wait = undefined;
    request.log_facts = undefined;
    request.running_at = -1;
    request.end_turn = undefined;
    request.is_stopped = false;
    request.claim = undefined;
    const refused = steps.begin(request, reply);
    if (refused === undefined) {
      if (!answerPreflight(request, reply)) done();
    } else if (request.is404) sendError(refused, request, reply, known.at(request.url).errorFormat);
    else done(refused);
  });
  server.addHook('onSend', (request, reply, _payload, done) => {
    request.end_turn?.();
    steps.beforeSend(request, reply);
    process.nextTick(boundIfUnread, reply.raw);
    done();
  });
  server.addHook('onRoute', known.add);
  const sendNotFound = (request: FastifyRequest, reply: FastifyReply) => {
    if (request.url === '*') return reply.code(204).header('allow', known.methods().join(', ')).send();
    const path = request.url.split('?')[0] ?? '/';
    const { methods, errorFormat } = known.at(path);
    if (methods.length === 0)
      return sendError(new GatewayError(404, `No such path: ${path.slice(0, 200)}`), request, reply, errorFormat);
    const headers = { allow: methods.join(', ') };
    const message = `${request.method} is not supported on ${path}; use ${methods.join(' or ')}`;
    return sendError(new GatewayError(405, message, { headers }), request, reply, errorFormat);
  };
  server.setNotFoundHandler(sendNotFound);
  server.addHook('onRequest', (request, reply, done) => {
    // The body of a request without a route is not read.
    if (request.is404 || known.isShadowed(request)) sendNotFound(request, reply);
    else takeThen(() => steps.identify(request, reply), done);
  });
  boundBodies(server, options.memory);
  continueLate(server);
  server.addHook('preValidation', (request, _reply, done) => takeThen(() => steps.confirm(request), done));
  server.addHook('preValidation', (request, _reply, done) =>
    takeThen(() => request.route.config.prepareBody?.(request), done),
  );
  server.addHook('preHandler', (request, _reply, done) => {
    if (request.route.config.metered === undefined) done();
    else takeThen(() => options.checkBody?.(request), done);
  });
  const { body_bytes_max } = options;
  server.decorate(
    'directEdge',
    new DirectEdge(server, { http, steps, parse: jsonParser(server), checkBody: options.checkBody, body_bytes_max }),
  );
  direct = server.directEdge;
  return server;
}
