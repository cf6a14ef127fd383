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
import type { Authenticate, AuthenticateSession, Principal } from './principal.ts';
import { ambiguityOf, pathOf } from './request-head.ts';
import { trackRunning } from './running.ts';
import { schemaCompilers } from './schema-compilers.ts';
import { accessOf, type Server, type TypeBoxProvider } from './server.ts';
import type { StoreWait } from './store-wait.ts';
import { trustedProxies } from './trusted-proxies.ts';
import { boundUnreadSoon } from './unread.ts';

export interface ServerOptions {
  authenticate: Authenticate;
  /** Not set: credentials alone identify callers. */
  authenticateSession?: AuthenticateSession | undefined;
  /** Makes the time that a request may wait for the store. Not set: each read has a bound of its own. */
  storeWait?: (() => StoreWait) | undefined;
  logger: FastifyBaseLogger | false;
  body_bytes_max: number;
  /** Not set: connections are not counted. */
  connections?: ConnectionBounds | undefined;
  /** Called for each connection that exceeds a bound. */
  onExcess?: ((reason: ConnectionExcess) => void) | undefined;
  /** The memory that requests with a body share. Not set: they are not counted. */
  memory?: Memory | undefined;
  /** Translates an error of another room for the client; undefined for an unknown one. */
  translate?: ((error: unknown) => GatewayError | undefined) | undefined;
  /** Counts a management request of a caller; throws if it exceeds the limit. */
  limitManagement?: ((caller: string) => void) | undefined;
  /** Called at the end of every request, also if its client left, or authentication refused it. */
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

/** The refusal of a request on a connection beyond the bounds; undefined for a request for the gateway's health. */
function beyondConnections({ raw }: FastifyRequest): GatewayError | undefined {
  if (raw.url?.startsWith('/health/') === true) return undefined;
  return new GatewayError(503, 'The gateway has reached its limit of connections; try again soon', {
    headers: { ...CLOSE, 'retry-after': '1' },
  });
}
const CLOSE = { connection: 'close' };

/** Throws for a route without declared access, so that the service does not start. Routes of plugins (preflights, files of the documentation) are open. */
function requireAccess(route: RouteOptions): void {
  const isOfPlugin = route.method === 'OPTIONS' || route.url.startsWith('/docs');
  if (accessOf(route.config) === undefined && !isOfPlugin) {
    throw new Error(`${route.method} ${route.url} declares no access`);
  }
  const reason = unmeteredReason(route);
  if (reason !== undefined) throw new Error(reason);
}

/** Sets the principal, or ends the request with 401 or 403. Synchronous if the key is in memory, which is the common case. */
function identify(
  { authenticate, authenticateSession, storeWait, limitManagement }: ServerOptions,
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
    if (principal.session?.role === 'member' && request.route.config.forMembers !== true && access !== 'public') {
      throw new GatewayError(403, 'Only administrators of the organization can perform this operation');
    }
    if (access === 'management') limitManagement?.(principal.session?.id ?? principal.key_hash ?? 'environment');
    assumeJson(request.raw);
    done();
  };
  try {
    const secret = credentialOf(request.raw);
    if (secret === undefined) {
      const missing = new GatewayError(401, 'Missing Authentication header');
      const isForSessions = access === 'management' || access === 'any';
      if (!isForSessions || authenticateSession === undefined || request.raw.headers.cookie === undefined)
        throw missing;
      authenticateSession(request, reply)
        .then((principal) => (principal === undefined ? refuse(missing) : accept(principal)))
        .catch(refuse);
      return;
    }
    request.store_wait = storeWait?.();
    const principal = authenticate(secret, request.store_wait);
    if (principal instanceof Promise) principal.then(accept).catch(refuse);
    else accept(principal);
  } catch (error) {
    refuse(error);
  }
}

/** The refusal of a request that another reader could interpret differently, or end elsewhere. Its connection is closed. */
function ambiguous(request: IncomingMessage): GatewayError | undefined {
  const fault = ambiguityOf(request);
  return fault === undefined ? undefined : new GatewayError(400, fault, { headers: CLOSE });
}

/** Removes the content type of an empty body, which some clients send with every request. */
function forgetEmptyBody(headers: IncomingMessage['headers']): void {
  const length = headers['content-length'];
  if (headers['transfer-encoding'] === undefined && (length === undefined || length === '0')) {
    delete headers['content-type'];
  }
}

/**
 * Makes the HTTP server that operations are registered on. A request passes CORS (which answers preflights), authentication by
 * the route's `access`, body, validation and handler; `sendError` answers anything thrown.
 */
export function createServer(options: ServerOptions): Server {
  const { logger } = options;
  const known = createKnownRoutes();
  const http = new HttpServer({
    maxHeaderSize: limits.header_bytes_max,
    requestTimeout: limits.client_request_ms_max,
    keepAliveTimeout: limits.client_idle_ms_max,
    // Node's own answer would not wait for earlier answers; `ambiguityOf` refuses a request without a host.
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
        continueWithoutBody(request, response);
        handle(request, response);
      };
      inTurn(http, begin, () => options.onExcess?.('pipelined_requests_max'));
      return http;
    },
    rewriteUrl: pathOf,
    genReqId: (request) => {
      const requestId = request.headers['x-request-id'];
      return typeof requestId === 'string' && REQUEST_ID.test(requestId) ? requestId : randomUUID();
    },
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
    // Fastify makes a second server for this, but not if the first is passed to it.
    const other = address.host === 'localhost' && (await http.listenOnOtherLoopback(address));
    if (other)
      server.log.info(
        `Server listening at http://${isIPv6(other.address) ? `[${other.address}]` : other.address}:${other.port}`,
      );
  });

  server.addHook('onRequest', (request, reply, done) => {
    const begunMs = performance.now();
    if (logger !== false) {
      request.log = logger;
      reply.log = logger;
    }
    // Set here and not as decorations, which Fastify sets by name, one by one, for every request.
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
    // The only listener of this event: Node copies its list of listeners at every change.
    reply.raw.on('close', () => {
      // Includes requests whose body was still arriving and that no handler has.
      if (server.running.hasStopped() && !reply.raw.writableFinished) request.is_stopped = true;
      observe?.(request, reply, performance.now() - begunMs);
      if (!request.is_handled) request.claim?.release();
      if (!reply.raw.writableFinished) request.on_leave?.();
    });
    reply.header('x-request-id', request.id);
    // An answer that depends on a credential must not be stored by shared caches, which do not know `x-api-key`. Operations may override this.
    if (accessOf(request.route.config) !== 'open') reply.header('cache-control', 'private, no-store');
    if (request.method === 'DELETE') forgetEmptyBody(request.raw.headers);
    // Clients open their next connection to another gateway.
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
    // The body of a request without a route is not read.
    if (request.is404 || known.isShadowed(request)) sendNotFound(request, reply);
    else identify(options, request, reply, done);
  });
  boundBodies(server, options.memory);
  continueLate(server);
  return server;
}
