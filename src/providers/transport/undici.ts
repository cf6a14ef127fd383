import { createRequire } from 'node:module';

const load = createRequire(import.meta.url);

// As undici's index does: adds `request` and similar methods to every kind of connection.
const { prototype } = load('undici/lib/dispatcher/dispatcher.js') as typeof import('undici').Dispatcher;
Object.assign(prototype, load('undici/lib/api'));

/**
 * The parts of undici that make connections, loaded by file: its index also loads `fetch`, web sockets and caches, 4 MB of
 * resident memory that nothing here uses.
 */
export const Agent = load('undici/lib/dispatcher/agent.js') as typeof import('undici').Agent;
export const Pool = load('undici/lib/dispatcher/pool.js') as typeof import('undici').Pool;
export const Client = load('undici/lib/dispatcher/client.js') as typeof import('undici').Client;

/** Loaded only if there is a proxy. */
export const proxyAgent = () => load('undici/lib/dispatcher/proxy-agent.js') as typeof import('undici').ProxyAgent;
