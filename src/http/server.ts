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
import type { Metered } from './metered.ts';
import type { Principal } from './principal.ts';
import type { StoreWait } from './store-wait.ts';

/** Types request parts and answers of a route by its TypeBox schemas. */
export interface TypeBoxProvider extends FastifyTypeProvider {
  validator: this['schema'] extends TSchema ? Static<this['schema']> : unknown;
  serializer: this['schema'] extends TSchema ? Static<this['schema']> : unknown;
}

/** The Fastify instance that operations are registered on. */
export type Server = FastifyInstance<
  RawServerDefault,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  TypeBoxProvider
>;

/**
 * Who may call a route. `public`: anybody, a valid credential is noted and a wrong one ignored. `open`: anybody, no
 * credential is looked at. `management`: a management key. `any`: either kind. Operations for ordinary keys alone are those that run
 * models: they name what meters them in place of it.
 */
export type Access = 'public' | 'open' | 'management' | 'any';

declare module 'fastify' {
  interface FastifyContextConfig {
    access?: Access;
    metered?: Metered;
    /** For the document: what each event holds where the answer is a stream of server-sent events. */
    events?: TSchema;
    /** How errors are told. Absent: by the contract's envelope. */
    errorFormat?: ErrorFormat;
    /** Takes into a body, before it is validated, what `exact` has of it: the same with integers beyond 2^53 as they were written. */
    regain?: (body: unknown, exact: JsonValue) => void;
  }
  interface FastifyInstance {
    connections: Connections;
    /** Like `listen`; on both addresses of `localhost`. */
    listenOn(options: Pick<ListenOptions, 'host' | 'port' | 'reusePort'>): Promise<void>;
  }
  interface FastifyRequest {
    /** What its route says. Fastify makes `routeOptions` anew each time it is asked for them. */
    route: FastifyRequest['routeOptions'];
    /** Called when its client leaves before the answer is out. One who puts something here takes it away again. */
    on_leave: (() => void) | undefined;
    /** Called when the gateway does not wait for its answer any longer. The same holds for it. */
    on_stop: (() => void) | undefined;
    /** The length of a body that was read in slices: what walks over all of it has turns of its own. 0: of no such body. */
    long_body_bytes: number;
    principal: Principal | undefined;
    /** Undefined: its waits for the store have no common bound. */
    store_wait: StoreWait | undefined;
    /** Facts that an operation adds to the request's one log line. */
    log_facts: Record<string, unknown> | undefined;
  }
}

/** Who may call a route: its declared access, or `key` if it runs models. Undefined if the route declares neither. */
export function accessOf(config: FastifyContextConfig | undefined): Access | 'key' | undefined {
  return config?.metered === undefined ? config?.access : 'key';
}
