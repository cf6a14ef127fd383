import type { IncomingMessage } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { GatewayError } from '../errors.ts';
import { isBodyWithheld } from './connection.ts';
import { allowBrowsers } from './cors.ts';
import { assumeJson, credentialOf } from './credential.ts';
import { brokenOff, sendError } from './error-envelope.ts';
import {
  type Authenticate,
  type AuthenticateSession,
  type ConfirmSession,
  callerName,
  type Principal,
} from './principal.ts';
import type { HttpReply, HttpRequest } from './request.ts';
import { ambiguous } from './request-head.ts';
import { newRequestId } from './request-id.ts';
import { type Access, accessOf, type Server } from './server.ts';
import type { StoreWait } from './store-wait.ts';

/** The dependencies of the steps of a request. */
export interface StepOptions {
  authenticate: Authenticate;
  /** Not set: credentials alone identify callers. */
  authenticateSession?: AuthenticateSession | undefined;
  /** Set with `authenticateSession`. */
  confirmSession?: ConfirmSession | undefined;
  /** Makes the time that a request may wait for the store. Not set: each read has a bound of its own. */
  storeWait?: (() => StoreWait) | undefined;
  /** Translates an error of another room for the client; undefined for an unknown one. */
  translate?: ((error: unknown) => GatewayError | undefined) | undefined;
  /** Counts a management request of a caller; throws if it exceeds the limit. */
  limitManagement?: ((caller: string) => void) | undefined;
  /** Called for each request after its caller is known. Returns a refusal if the request must not continue. */
  admit?: ((request: HttpRequest, reply: HttpReply) => GatewayError | undefined) | undefined;
  /** Checks the valid body of a metered request beyond its schema. Throws or rejects with its refusal. */
  checkBody?: ((request: HttpRequest) => Promise<void> | undefined) | undefined;
  /** Called at the end of every request, also if its client left, or authentication refused it. */
  observe?: ((request: HttpRequest, reply: HttpReply, ms: number) => void) | undefined;
}

const REQUEST_ID = /^[\w.:-]{1,128}$/;
/** What is done later than this after the caller was found is not of that moment. */
const IDENTIFIED_MS_MAX = 250;
const CLOSE = { connection: 'close' };

type AccessLevel = Access | 'key';

/** The id of a request: its client's own, or a new one. */
export function requestIdOf({ headers }: IncomingMessage): string {
  const requestId = headers['x-request-id'];
  return typeof requestId === 'string' && REQUEST_ID.test(requestId) ? requestId : newRequestId();
}

/** The refusal of a request on a connection beyond the bounds; undefined for a request for the gateway's health. */
function beyondConnections({ raw }: HttpRequest): GatewayError | undefined {
  if (raw.url?.startsWith('/health/') === true) return undefined;
  return new GatewayError(503, 'The gateway has reached its limit of connections; try again soon', {
    headers: { ...CLOSE, 'retry-after': '1' },
  });
}

/** Throws the refusal of a credential again, unless the route is public: an invalid credential is ignored there. */
function ignoreIfPublic(access: AccessLevel, error: unknown): undefined {
  const isIgnored = access === 'public' && error instanceof GatewayError && error.status === 401;
  if (!isIgnored) throw error;
}

/** Throws a 403 for a member's session at an operation that is not for members. */
function checkMember({ route }: HttpRequest): void {
  if (route.config.forMembers === true || accessOf(route.config) === 'public') return;
  throw new GatewayError(403, 'Only administrators of the organization can perform this operation');
}

/** Sets the caller that was found again. */
function confirmed(request: HttpRequest, caller: Principal): void {
  if (caller.session?.role === 'member') checkMember(request);
  request.principal = caller;
  request.identified_ms = performance.now();
}

/** Removes the content type of an empty body, which some clients send with every request. */
function forgetEmptyBody(headers: IncomingMessage['headers']): void {
  const length = headers['content-length'];
  if (headers['transfer-encoding'] === undefined && (length === undefined || length === '0')) {
    delete headers['content-type'];
  }
}

/**
 * The steps that every request takes whatever its operation is: as hooks of the framework, and as calls of the direct edge. Both call
 * them in this order: `begin`, `identify`, then the body, `confirm`, the handler, and `beforeSend` for each answer.
 */
export class RequestSteps {
  readonly #server: Server;
  readonly #options: StepOptions;

  constructor(server: Server, options: StepOptions) {
    this.#server = server;
    this.#options = options;
  }

  /** Sets the headers that all answers have and follows the end of the answer. Returns the refusal of a request that must not be processed. */
  begin(request: HttpRequest, reply: HttpReply): GatewayError | undefined {
    const begunMs = performance.now();
    const { running, connections } = this.#server;
    const { observe } = this.#options;
    // The only listener of this event: Node copies its list of listeners at every change.
    reply.raw.on('close', () => {
      // Includes requests whose body was still arriving and that no handler has.
      if (running.hasStopped && !reply.raw.writableFinished) request.is_stopped = true;
      observe?.(request, reply, performance.now() - begunMs);
      if (request.running_at === -1) request.claim?.release();
      if (!reply.raw.writableFinished) request.on_leave?.();
    });
    reply.header('x-request-id', request.id);
    // An answer that depends on a credential must not be stored by shared caches, which do not know `x-api-key`. Operations may override this.
    if (accessOf(request.route.config) !== 'open') reply.header('cache-control', 'private, no-store');
    if (request.method === 'DELETE') forgetEmptyBody(request.raw.headers);
    // Clients open their next connection to another gateway.
    const isReserved = connections.reserved.has(request.raw.socket);
    if (isReserved || running.isLeaving) reply.headers(CLOSE);
    const refused = ambiguous(request.raw) ?? (isReserved ? beyondConnections(request) : undefined);
    // Only browsers send it.
    if (refused === undefined && request.raw.headers.origin !== undefined) allowBrowsers(request, reply);
    return refused;
  }

  /**
   * Sets the principal if the route's access requires one. Throws or rejects with the refusal of the caller or of its request. Returns
   * undefined if the key is in memory, which is the common case.
   */
  identify(request: HttpRequest, reply: HttpReply): Promise<void> | undefined {
    const { authenticate, storeWait } = this.#options;
    const access = accessOf(request.route.config) ?? 'open';
    let principal: Principal | undefined;
    try {
      const secret = access === 'open' ? undefined : credentialOf(request.raw);
      if (secret !== undefined) {
        request.store_wait = storeWait?.();
        const caller = authenticate(secret, request.store_wait);
        if (caller instanceof Promise) return this.#identifyLater(access, caller, request, reply);
        principal = caller;
      } else if (access !== 'open') {
        const session = this.#sessionOf(access, request, reply);
        if (session !== undefined) return this.#identifyLater(access, session, request, reply);
        throw new GatewayError(401, 'Missing Authentication header');
      }
    } catch (error) {
      ignoreIfPublic(access, error);
    }
    return this.#admit(access, principal, request, reply);
  }

  /**
   * Identifies the caller of a request again that took long: its body to arrive, its turn to come, its client to read. Meanwhile the key may
   * have been revoked, or have received other limits and guardrails, or the person may have been signed out. Throws or rejects with the
   * refusal. Changes of the store check their caller in their transaction.
   */
  confirm(request: HttpRequest): Promise<void> | undefined {
    const { principal } = request;
    if (principal === undefined || performance.now() - request.identified_ms < IDENTIFIED_MS_MAX) return undefined;
    const caller = this.#callerNow(request, principal);
    if (!(caller instanceof Promise)) {
      confirmed(request, caller);
      return undefined;
    }
    return caller.then((current) => confirmed(request, current));
  }

  #callerNow(request: HttpRequest, principal: Principal): Principal | Promise<Principal> {
    const { authenticate, confirmSession, storeWait } = this.#options;
    if (principal.session !== undefined) return confirmSession?.(principal) ?? principal;
    const secret = credentialOf(request.raw);
    if (secret === undefined) return principal;
    request.store_wait = storeWait?.();
    return authenticate(secret, request.store_wait);
  }

  /** Finds the signed-in person of a request without a credential. Undefined if the operation is not for sessions, or there is no cookie. */
  #sessionOf(access: AccessLevel, request: HttpRequest, reply: HttpReply): Promise<Principal> | undefined {
    const { authenticateSession } = this.#options;
    const isForSessions = access === 'management' || access === 'any';
    if (!isForSessions || authenticateSession === undefined || request.raw.headers.cookie === undefined)
      return undefined;
    // The direct edge serves no operation for sessions.
    return authenticateSession(request as FastifyRequest, reply as FastifyReply).then((principal) => {
      if (principal === undefined) throw new GatewayError(401, 'Missing Authentication header');
      return principal;
    });
  }

  async #identifyLater(access: AccessLevel, caller: Promise<Principal>, request: HttpRequest, reply: HttpReply) {
    const principal = await caller.catch((error: unknown) => ignoreIfPublic(access, error));
    this.#admit(access, principal, request, reply);
  }

  /** Throws the refusal of a caller (undefined: none is known) or of its request. */
  #admit(access: AccessLevel, principal: Principal | undefined, request: HttpRequest, reply: HttpReply): undefined {
    if (principal !== undefined) {
      request.principal = principal;
      request.identified_ms = performance.now();
      if (principal.is_served_without_store === true) reply.header('x-gateway-served-without-store', 'true');
      if (access === 'key' && principal.kind !== 'key') {
        throw new GatewayError(403, 'Management keys cannot perform this operation; use an API key');
      }
      if (access === 'management' && principal.kind !== 'management') {
        throw new GatewayError(403, 'Only management keys can perform this operation');
      }
      if (principal.session?.role === 'member') checkMember(request);
      if (access === 'management') this.#options.limitManagement?.(callerName(principal));
      // A browser cannot send such a body for another site without asking.
      if (request.raw.headers['content-type'] === undefined) assumeJson(request.raw);
    }
    const refused = this.#options.admit?.(request, reply);
    if (refused !== undefined) throw refused;
  }

  /** Prepares an answer that is about to be sent. Its edge calls `boundIfUnread` after that. */
  beforeSend({ raw }: HttpRequest, reply: HttpReply): void {
    if (isBodyWithheld(raw)) reply.header('connection', 'close');
  }

  /** Answers a request that failed. */
  fail(error: unknown, request: HttpRequest, reply: HttpReply): void {
    sendError(brokenOff(error, request) ?? this.#options.translate?.(error) ?? error, request, reply);
  }
}
