import type { IncomingHttpHeaders, IncomingMessage, Server as NodeServer, ServerResponse } from 'node:http';
import type { FastifyBaseLogger, FastifyInstance, RouteOptions } from 'fastify';
import { boundedBody, readJson } from './bounded-bodies.ts';
import type { FastifyParse } from './json-body.ts';
import type { Claim } from './memory.ts';
import type { Principal } from './principal.ts';
import type { HeaderValue, HttpReply, HttpRequest } from './request.ts';
import { type RequestSteps, requestIdOf, type StepOptions } from './request-steps.ts';
import { accessOf, type Server } from './server.ts';
import type { StoreWait } from './store-wait.ts';
import { boundIfUnread } from './unread.ts';
import { validatorCompiler } from './validation.ts';

/** A hook of one route. It calls `done` before it returns. */
type SendHook = (request: HttpRequest, reply: HttpReply, payload: unknown, done: () => void) => void;

/** An operation with `direct: true`, prepared for calls without the framework. */
interface DirectRoute {
  facts: HttpRequest['route'];
  path: string;
  validate(body: unknown): { value?: unknown; error?: Error };
  onSend: SendHook | undefined;
  /** Its handler is read at each request: later hooks of `onRoute` wrap it. */
  options: { handler(request: HttpRequest, reply: HttpReply): unknown };
}

/** What a direct route may declare. The direct edge would not run any other hook, so a route that has one is refused. */
const ROUTE_OPTIONS: ReadonlySet<string> = new Set([
  'method',
  'url',
  'path',
  'routePath',
  'prefix',
  'logLevel',
  'config',
  'schema',
  'onSend',
  'handler',
  'bodyLimit',
]);

/** Content types that every client library sends. Any other spelling takes the framework's way. */
const JSON_TYPES: ReadonlySet<string | undefined> = new Set([
  'application/json',
  'application/json; charset=utf-8',
  'application/json;charset=utf-8',
  'application/json; charset=UTF-8',
]);

/** Whether a request has nothing that only the framework's edge knows: another type or coding of the body, an expectation, an upgrade, HTTP/1.0. */
function isUsual({ headers, httpVersionMinor }: IncomingMessage): boolean {
  return (
    JSON_TYPES.has(headers['content-type']) &&
    headers.expect === undefined &&
    headers['content-encoding'] === undefined &&
    headers.upgrade === undefined &&
    httpVersionMinor === 1
  );
}

function only<T>(hooks: T | T[] | undefined, route: RouteOptions): T | undefined {
  if (!Array.isArray(hooks)) return hooks;
  if (hooks.length > 1) throw new Error(`${route.url} is direct: it can have one hook of a kind`);
  return hooks[0];
}

function directRoute(route: RouteOptions, bodyBytesMax: number): DirectRoute {
  const { url, config, schema } = route;
  const unknown = Object.keys(route).filter((name) => !ROUTE_OPTIONS.has(name) && Boolean(Reflect.get(route, name)));
  if (unknown.length > 0) throw new Error(`${url} is direct: it cannot have ${unknown.join(', ')}`);
  const { body, params, querystring, headers } = schema as Record<string, object | undefined>;
  if (body === undefined || (params ?? querystring ?? headers) !== undefined || url.includes(':')) {
    throw new Error(`${url} is direct: it must have a fixed path, a schema for its body, and no other`);
  }
  const facts = { url, config, schema, bodyLimit: route.bodyLimit ?? bodyBytesMax } as HttpRequest['route'];
  return {
    facts,
    path: url,
    validate: validatorCompiler({ schema: body as never, httpPart: 'body', method: 'POST', url }) as never,
    onSend: only(route.onSend, route) as SendHook | undefined,
    options: route as never,
  };
}

class DirectRequest implements HttpRequest {
  readonly id: string;
  readonly raw: IncomingMessage;
  readonly server: FastifyInstance;
  readonly log: FastifyBaseLogger;
  readonly headers: IncomingHttpHeaders;
  readonly url: string;
  readonly method = 'POST';
  readonly is404 = false;
  route: HttpRequest['route'];
  body: unknown = undefined;
  on_leave: (() => void) | undefined = undefined;
  on_stop: (() => void) | undefined = undefined;
  identified_ms = 0;
  long_body_bytes = 0;
  principal: Principal | undefined = undefined;
  store_wait: StoreWait | undefined = undefined;
  log_facts: (() => Record<string, unknown>) | undefined = undefined;
  running_at = -1;
  is_stopped = false;
  claim: Claim | undefined = undefined;

  constructor(raw: IncomingMessage, server: Server, route: DirectRoute) {
    this.id = requestIdOf(raw);
    this.raw = raw;
    this.headers = raw.headers;
    this.server = server as unknown as FastifyInstance;
    this.log = server.log;
    this.url = route.path;
    this.route = route.facts;
  }
}

export interface DirectEdgeOptions {
  http: NodeServer;
  steps: RequestSteps;
  parse: FastifyParse;
  /** Checks a valid body beyond its schema. Throws or rejects with its refusal. */
  checkBody: StepOptions['checkBody'];
  body_bytes_max: number;
}

/**
 * Serves the operations that declare `direct: true` without the framework: a look-up by path, then the steps that the framework's hooks
 * call, in the same order, then the handler. What is not usual (`isUsual`), and any other spelling of the path, takes the framework's way,
 * which gives the same answers.
 */
export class DirectEdge {
  readonly #server: Server;
  readonly #options: DirectEdgeOptions;
  /** By request target. */
  readonly #routes = new Map<string | undefined, DirectRoute>();

  /** Finds the routes that are registered afterwards. */
  constructor(server: Server, options: DirectEdgeOptions) {
    this.#server = server;
    this.#options = options;
    server.addHook('onRoute', (route) => {
      if (route.config?.direct === true) this.#add(route);
    });
  }

  #add(route: RouteOptions): void {
    if (route.method !== 'POST' || accessOf(route.config) !== 'key') {
      throw new Error(`${route.method} ${route.url} is direct: it must be a POST that is metered`);
    }
    const direct = directRoute(route, this.#options.body_bytes_max);
    this.#routes.set(route.url, direct);
    // The alias of `pathOf`.
    if (route.url.startsWith('/api/v1/')) this.#routes.set(route.url.slice('/api'.length), direct);
  }

  /** Begins to serve a request. Returns false for a request that is not of this edge; nothing happened to it then. */
  serve(raw: IncomingMessage, response: ServerResponse): boolean {
    if (raw.method !== 'POST') return false;
    const route = this.#routes.get(raw.url);
    // While the server closes, the framework says so in its answers.
    if (route === undefined || !isUsual(raw) || !this.#options.http.listening) return false;
    raw.url = route.path;
    const request = new DirectRequest(raw, this.#server, route);
    void new DirectCall(request, response, route, this.#options).run();
    return true;
  }
}

function ignore(): void {}

/** A request on its way to its handler, and its reply. */
class DirectCall implements HttpReply {
  readonly request: DirectRequest;
  readonly raw: ServerResponse;
  readonly #route: DirectRoute;
  readonly #options: DirectEdgeOptions;
  readonly #headers: Record<string, string> = {};
  #isHijacked = false;

  constructor(request: DirectRequest, raw: ServerResponse, route: DirectRoute, options: DirectEdgeOptions) {
    this.request = request;
    this.raw = raw;
    this.#route = route;
    this.#options = options;
  }

  get sent(): boolean {
    return this.#isHijacked || this.raw.writableEnded;
  }

  code(status: number): this {
    this.raw.statusCode = status;
    return this;
  }

  header(name: string, value: string): this {
    this.#headers[name] = value;
    return this;
  }

  headers(headers: Readonly<Record<string, string>>): this {
    Object.assign(this.#headers, headers);
    return this;
  }

  hasHeader(name: string): boolean {
    return this.#headers[name] !== undefined;
  }

  getHeader(name: string): string | undefined {
    return this.#headers[name];
  }

  getHeaders(): Record<string, HeaderValue> {
    return this.#headers;
  }

  hijack(): this {
    this.#isHijacked = true;
    return this;
  }

  /** Head and body are one write. */
  send(answer?: unknown): this {
    if (this.sent) return this;
    const payload = (answer ?? '') as string | Buffer;
    this.#options.steps.beforeSend(this.request, this);
    this.#route.onSend?.(this.request, this, payload, ignore);
    const { raw } = this;
    const length = Buffer.byteLength(payload);
    this.#headers['content-length'] = String(length);
    raw.writeHead(raw.statusCode, this.#headers);
    // A text of ASCII, the usual one, is copied and not encoded.
    raw.end(payload, length === payload.length ? 'latin1' : 'utf8');
    boundIfUnread(raw);
    return this;
  }

  /** Takes the request through its steps to its handler, and answers if one of them fails. */
  async run(): Promise<void> {
    const { request } = this;
    const { steps, parse } = this.#options;
    try {
      const refused = steps.begin(request, this);
      if (refused !== undefined) throw refused;
      const identifying = steps.identify(request, this);
      if (identifying !== undefined) await identifying;
      const bounded = boundedBody(request, this, request.raw);
      const payload = bounded instanceof Promise ? await bounded : bounded;
      try {
        request.body = await readJson(request, payload, parse);
      } catch (error) {
        // The client may still send its body.
        this.header('connection', 'close');
        throw error;
      }
      const confirming = steps.confirm(request);
      if (confirming !== undefined) await confirming;
      const checking = this.#check();
      if (checking !== undefined) await checking;
      await this.#route.options.handler(request, this);
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Checks the body. Throws or rejects with its refusal. */
  #check(): Promise<void> | undefined {
    const { request } = this;
    const { validate, facts } = this.#route;
    facts.config.prepareBody?.(request);
    const { error } = validate(request.body);
    if (error !== undefined) throw error;
    return this.#options.checkBody?.(request);
  }

  #fail(error: unknown): void {
    const { raw, request } = this;
    if (this.sent) {
      request.log.error({ request_id: request.id, err: error }, 'request failed after its answer was sent');
      return;
    }
    try {
      this.#options.steps.fail(error, request, this);
    } catch (thrown) {
      // No answer can be written.
      request.log.error({ request_id: request.id, err: thrown }, 'error could not be sent');
      raw.destroy();
    }
  }
}
