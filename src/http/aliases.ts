import type { IncomingHttpHeaders } from 'node:http';

/**
 * Other names for the contract's own, so that clients of the public service work as they are. This is the only place
 * that knows them. (`/v1` for `/api/v1` is in `server.ts`, where paths are.)
 */
const HEADER_ALIASES: ReadonlyMap<string, readonly string[]> = new Map([
  ['x-gateway-title', ['x-openrouter-title', 'x-title']],
  ['x-gateway-categories', ['x-openrouter-categories']],
  [
    'x-gateway-experimental-metadata',
    ['x-gateway-metadata', 'x-openrouter-experimental-metadata', 'x-openrouter-metadata'],
  ],
]);

/** Whether a request asks for routing metadata by the public service's name for it. */
export function asksByPublicName(headers: IncomingHttpHeaders): boolean {
  return ['x-openrouter-metadata', 'x-openrouter-experimental-metadata'].some(
    (name) =>
      String(headers[name] ?? '')
        .trim()
        .toLowerCase() === 'enabled',
  );
}

const NO_ALIASES: readonly string[] = [];

/** The value of a request header under its own name or an alias; undefined when there is none. */
export function headerOf(headers: IncomingHttpHeaders, name: string): string | undefined {
  const own = headers[name];
  if (typeof own === 'string' && own !== '') return own;
  for (const alias of HEADER_ALIASES.get(name) ?? NO_ALIASES) {
    const value = headers[alias];
    if (typeof value === 'string' && value !== '') return value;
  }
  return undefined;
}
