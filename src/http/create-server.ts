import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
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
import { boundBodies, releaseClaim } from './bounded-bodies.ts';
import { answerClientError, continueLate, continueWithoutBody, isBodyWithheld } from './connection.ts';
import { boundConnections, type ConnectionBounds, type ConnectionExcess } from './connections.ts';
import { answerBrowsers } from './cors.ts';
import { assumeJson, credentialOf } from './credential.ts';
import { brokenOff, sendError } from './error-envelope.ts';
import { HttpServer } from './http-server.ts';
import { createKnownRoutes } from './known-routes.ts';
import type { Memory } from './memory.ts';
import { unmeteredReason } from './metered.ts';
import { inTurn } from './pipelining.ts';
import type { Authenticate, Principal } from './principal.ts';
import { ambiguityOf, pathOf } from './request-head.ts';
import { trackRunning } from './running.ts';
import { schema_compilers } from './schema-compilers.ts';
import { accessOf, type Server, type TypeBoxProvider } from './server.ts';
import type { StoreWait } from './store-wait.ts';
import { trustedProxies } from './trusted-proxies.ts';
import { boundUnreadSoon } from './unread.ts';

export interface ServerOptions {
  authenticate: Authenticate;
  /** The time that a request may wait for the store. Absent: each read has its own bound. */
  storeWait?: (() => StoreWait) | undefined;
  logger: FastifyBaseLogger | false;
  body_bytes_max: number;
  /** Absent: connections are not counted. */
  connections?: ConnectionBounds | undefined;
  /** Called for each connection that passes a bound. */
  onExcess?: ((reason: ConnectionExcess) => void) | undefined;
  /** What requests with a body share. Absent: they are not counted. */
  memory?: Memory | undefined;
  /** What an error of another room means to a client; undefined for one that it does not know. */
  translate?: ((error: unknown) => GatewayError | undefined) | undefined;
  /** Counts a management request of a caller; throws when it is one too many. */
  limitManagement?: ((caller: string) => void) | undefined;
  /** Told of every request at its end, also when its client left, those included that authentication refuses. */
  observe?: ((request: FastifyRequest, reply: FastifyReply, ms: number) => void) | undefined;
}

const REQUEST_ID = /^[\w.:-]{1,128}$/;

function allow(access: 'key' | 'management', principal: Principal): void {
  if (access === 'management' && principal.kind !== 'management') {
    throw new GatewayError(403, 'Only management keys can perform this operation');
  }
  if (access === 'key' && principal.kind !== 'key') {
    throw new GatewayError(403, 'Management keys cannot perform this operation; use an API key');
  }
}

const UNBOUNDED: ConnectionBounds = {
  connections_max: Number.POSITIVE_INFINITY,
  connections_per_address_max: Number.POSITIVE_INFINITY,
  trustedProxies: trustedProxies([]),
};

/** The refusal of a request on a connection beyond the bounds, which serves the health of the gateway alone. */
function beyondConnections({ raw }: FastifyRequest): GatewayError | undefined {
  if (raw.url?.startsWith('/health/') === true) return undefined;
  return new GatewayError(503, 'The gateway has reached its limit of connections; try again soon', {
    headers: { ...CLOSE, 'retry-after': '1' },
  });
}
const CLOSE = { connection: 'close' };

/** Every route says who may call it, or the service does not start. Routes that plugins add (preflights, the documentation's files) are open. */
function requireAccess(route: RouteOptions): void {
  const of_plugin = route.method === 'OPTIONS' || route.url.startsWith('/docs');
  if (accessOf(route.config) === undefined && !of_plugin) {
    throw new Error(`${route.method} ${route.url} declares no access`);
  }
  const reason = unmeteredReason(route);
  if (reason !== undefined) throw new Error(reason);
}

/** Sets the principal, or ends the request with 401 or 403. Synchronous when the key is known, which is the common case. */
function identify(
  { authenticate, storeWait, limitManagement }: ServerOptions,
  request: FastifyRequest,
  reply: FastifyReply,
  done: (error?: Error) => void,
): void {
  const access = accessOf(request.route.config) ?? 'open';
  if (access === 'open') {
    done();
    return;
  }
  const refuse = (error: unknown) => {
    const ignored = access === 'public' && error instanceof GatewayError && error.status === 401;
    done(ignored ? undefined : (error as Error));
  };
  const accept = (principal: Principal) => {
    request.principal = principal;
    if (principal.is_served_without_store === true) reply.header('x-gateway-served-without-store', 'true');
    if (access === 'key' || access === 'management') allow(access, principal);
    if (access === 'management') limitManagement?.(principal.key_hash ?? 'environment');
    assumeJson(request.raw);
    done();
  };
  try {
    const secret = credentialOf(request.raw);
    if (secret === undefined) throw new GatewayError(401, 'Missing Authentication header');
    request.store_wait = storeWait?.();
    const found = authenticate(secret, request.store_wait);
    if (found instanceof Promise) found.then(accept).catch(refuse);
    else accept(found);
  } catch (error) {
    refuse(error);
  }
}

/** The refusal of a request that another reader could take for another one, or end elsewhere; its connection ends with it. */
function ambiguous(request: IncomingMessage): GatewayError | undefined {
  const fault = ambiguityOf(request);
  return fault === undefined ? undefined : new GatewayError(400, fault, { headers: CLOSE });
}

/** Clients that name a content type with every request name it for an empty body too, which is no JSON. */
function forgetEmptyBody(headers: IncomingMessage['headers']): void {
  const length = headers['content-length'];
  if (headers['transfer-encoding'] === undefined && (length === undefined || length === '0')) {
    delete headers['content-type'];
  }
}

/**
 * Makes the shell that all operations stand in. Order of what happens to a request: CORS (preflights are answered
 * there), authentication by the route's `access`, body, validation, handler; anything thrown meets `sendError`.
 */
export function createServer(options: ServerOptions): Server {
  const { logger } = options;
  const known = createKnownRoutes();
  const http = new HttpServer({
    maxHeaderSize: limits.header_bytes_max,
    requestTimeout: limits.client_request_ms_max,
    keepAliveTimeout: limits.client_idle_ms_max,
    // Node's own answer would not wait for its turn; `ambiguityOf` refuses a request without a host.
    requireHostHeader: false,
  });
  const server = fastify({
    // With a logger of its own Fastify would listen to the end of each answer, though it is to log none, and with a factory of
    // loggers it would look over what that makes for each request. Lines name their request themselves.
    logger: false,
    logController: new LogController({ disableRequestLogging: true }),
    schemaController: schema_compilers,
    bodyLimit: options.body_bytes_max,
    // While it closes, requests on open connections get our envelope, from the hook that refuses them.
    return503OnClosing: false,
    routerOptions: { maxParamLength: 300, ignoreTrailingSlash: true },
    serverFactory(handle) {
      const begin: typeof handle = (request, response) => {
        continueWithoutBody(request, response);
        handle(request, response);
      };
      inTurn(http, begin, () => options.onExcess?.('pipelined_requests_max'));
      return http;
    },
    rewriteUrl: pathOf,
    genReqId: (request) => {
      const given = request.headers['x-request-id'];
      return typeof given === 'string' && REQUEST_ID.test(given) ? given : randomUUID();
    },
    // What fails before a route is found meets no hook.
    frameworkErrors: (error, request, reply) => {
      reply.header('x-request-id', request.id);
      if (isBodyWithheld(request.raw)) reply.header('connection', 'close');
      const thrown = ambiguous(request.raw) ?? error;
      sendError(thrown, request as FastifyRequest, reply as unknown as FastifyReply, known.at(request.url).errorFormat);
    },
    clientErrorHandler: answerClientError,
  }).withTypeProvider<TypeBoxProvider>() as unknown as Server;
  if (logger !== false) server.log = logger;

  // Only JSON: a text body would reach validation as a string.
  server.removeContentTypeParser('text/plain');
  const { translate, observe } = options;
  server.setErrorHandler((error, request, reply) =>
    sendError(brokenOff(error, request) ?? translate?.(error) ?? error, request, reply),
  );
  server.addHook('onRoute', requireAccess);
  server.decorate('running', trackRunning(server, releaseClaim));
  const bounds = options.connections ?? UNBOUNDED;
  server.decorate(
    'connections',
    boundConnections(http, bounds, (reason) => options.onExcess?.(reason)),
  );
  server.decorate('listenOn', async (address: ListenOptions) => {
    await server.listen(address);
    // Fastify has a second server for that, but not where it is handed the first.
    const other = address.host === 'localhost' && (await http.listenOnOtherLoopback(address));
    if (other)
      server.log.info(
        `Server listening at http://${isIPv6(other.address) ? `[${other.address}]` : other.address}:${other.port}`,
      );
  });

  server.addHook('onRequest', (request, reply, done) => {
    const begun_ms = performance.now();
    if (logger !== false) {
      request.log = logger;
      reply.log = logger;
    }
    // Set here: what Fastify is told to decorate it sets by names that it looks up one by one.
    request.route = request.routeOptions;
    request.on_leave = undefined;
    request.on_stop = undefined;
    request.long_body_bytes = 0;
    request.principal = undefined;
    request.store_wait = undefined;
    request.log_facts = undefined;
    request.is_handled = false;
    request.is_stopped = false;
    request.claim = undefined;
    // The one listener for all who want to know: Node copies its list of them at every change.
    reply.raw.on('close', () => {
      // Also one whose body was still on its way, which no handler has.
      if (server.running.hasStopped() && !reply.raw.writableFinished) request.is_stopped = true;
      observe?.(request, reply, performance.now() - begun_ms);
      if (!request.is_handled) request.claim?.release();
      if (!reply.raw.writableFinished) request.on_leave?.();
    });
    reply.header('x-request-id', request.id);
    // What depends on a credential is no shared cache's to keep: to those `x-api-key` says nothing. Operations may say otherwise.
    if (accessOf(request.route.config) !== 'open') reply.header('cache-control', 'private, no-store');
    if (request.method === 'DELETE') forgetEmptyBody(request.raw.headers);
    // Clients that read this open their next connection elsewhere.
    const isReserved = server.connections.isReserved(request.raw.socket);
    if (isReserved || server.running.isLeaving()) reply.headers(CLOSE);
    const refused = ambiguous(request.raw) ?? (isReserved ? beyondConnections(request) : undefined);
    if (refused === undefined) answerBrowsers(request, reply, done);
    else if (request.is404) sendError(refused, request, reply, known.at(request.url).errorFormat);
    else done(refused);
  });
  server.addHook('onSend', ({ raw }, reply, _payload, done) => {
    if (isBodyWithheld(raw)) reply.header('connection', 'close');
    boundUnreadSoon(reply.raw);
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
    // A body that nobody wants is not read.
    if (request.is404 || known.isShadowed(request)) sendNotFound(request, reply);
    else identify(options, request, reply, done);
  });
  boundBodies(server, options.memory);
  continueLate(server);
  return server;
}
