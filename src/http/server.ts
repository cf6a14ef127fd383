import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ListenOptions } from 'node:net';
import type {
  FastifyBaseLogger,
  FastifyContextConfig,
  FastifyInstance,
  FastifyTypeProvider,
  RawServerDefault,
} from 'fastify';
import type { Static, TSchema } from 'typebox';
import type { JsonValue } from '../schemas/json.ts';
import type { Connections } from './connections.ts';
import type { ErrorFormat } from './error-envelope.ts';
import type { MeteredInference } from './metered.ts';
import type { Principal } from './principal.ts';
import type { HttpRequest } from './request.ts';
import type { StoreWait } from './store-wait.ts';

/** Types request parts and answers of a route by its TypeBox schemas. */
export interface TypeBoxProvider extends FastifyTypeProvider {
  validator: this['schema'] extends TSchema ? Static<this['schema']> : unknown;
  serializer: this['schema'] extends TSchema ? Static<this['schema']> : unknown;
}

/** The Fastify instance on which operations are registered. */
export type Server = FastifyInstance<
  RawServerDefault,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  TypeBoxProvider
>;

/**
 * Who may call a route. `public`: anybody; a valid credential is noted, an invalid one ignored. `open`: anybody; credentials are not
 * read. `management`: management keys. `any`: keys of both kinds. Operations for ordinary keys run models: they declare `metered` instead.
 */
export type Access = 'public' | 'open' | 'management' | 'any';

declare module 'fastify' {
  interface FastifyContextConfig {
    access?: Access;
    metered?: MeteredInference;
    /** Whether usual requests are served without the framework (`DirectEdge`): for the few operations that are called most. */
    direct?: boolean;
    /** Whether members may call the operation with their session; it then shows and changes only what is theirs. */
    forMembers?: boolean;
    /** Whether simultaneous requests of one caller share one answer, so that they need no bound of their own. */
    shared?: boolean;
    /** The schema of each event if the answer is a stream of server-sent events, for the OpenAPI document. */
    events?: TSchema;
    /** The form of errors. Not set: the contract's envelope. */
    errorFormat?: ErrorFormat;
    /** Changes a parsed body before validation. Throws the refusal of its request. */
    prepareBody?: (request: HttpRequest) => undefined;
    /** Restores integers beyond 2^53 in a parsed body as they were written, from `exact`, before validation. */
    regain?: (body: unknown, exact: JsonValue) => void;
  }
  interface FastifyInstance {
    /** Serves usual requests to direct operations. Returns false for any other request, to which nothing happened then. */
    directEdge: { serve(request: IncomingMessage, response: ServerResponse): boolean };
    connections: Connections;
    /** Like `listen`, but on both loopback addresses for `localhost`. */
    listenOn(options: Pick<ListenOptions, 'host' | 'port' | 'reusePort'>): Promise<void>;
  }
  interface FastifyRequest {
    /** The options of the route, stored because Fastify makes new `routeOptions` at each access. */
    route: FastifyRequest['routeOptions'];
    /** Called if the client leaves before the answer is sent. The code that sets it must unset it. */
    on_leave: (() => void) | undefined;
    /** Called if the gateway stops waiting for the answer. The code that sets it must unset it. */
    on_stop: (() => void) | undefined;
    /** When its caller was found, on the monotonic clock. */
    identified_ms: number;
    /** The length of a body that was read in slices, so that walks over it take turns of their own; 0 for a short body. */
    long_body_bytes: number;
    principal: Principal | undefined;
    /** Undefined if the waits for the store have no common bound. */
    store_wait: StoreWait | undefined;
    /** The fields that an operation adds to the log line of the request, read when that is written. */
    log_facts: (() => Record<string, unknown>) | undefined;
  }
}

/** Who may call a route: its declared access, or `key` if it runs models. Undefined if the route declares neither. */
export function accessOf(config: FastifyContextConfig | undefined): Access | 'key' | undefined {
  return config?.metered === undefined ? config?.access : 'key';
}
