import type { IncomingHttpHeaders } from 'node:http';

/**
 * Header names of the public service that mean the same as the contract's own, so that its clients work unchanged. No other file
 * knows them. (`/v1` as a name for `/api/v1`: `pathOf` in `request-head.ts`.)
 */
const HEADER_ALIASES: ReadonlyMap<string, readonly string[]> = new Map([
  ['x-gateway-title', ['x-openrouter-title', 'x-title']],
  ['x-gateway-categories', ['x-openrouter-categories']],
  [
    'x-gateway-experimental-metadata',
    ['x-gateway-metadata', 'x-openrouter-experimental-metadata', 'x-openrouter-metadata'],
  ],
]);

/** Whether a request enables routing metadata by a header name of the public service. */
export function usesPublicMetadataHeader(headers: IncomingHttpHeaders): boolean {
  return ['x-openrouter-metadata', 'x-openrouter-experimental-metadata'].some(
    (name) =>
      String(headers[name] ?? '')
        .trim()
        .toLowerCase() === 'enabled',
  );
}

const NO_ALIASES: readonly string[] = [];

/** The value of a request header, under its own name or an alias; undefined if it is missing or empty. */
export function headerOf(headers: IncomingHttpHeaders, name: string): string | undefined {
  const own = headers[name];
  if (typeof own === 'string' && own !== '') return own;
  for (const alias of HEADER_ALIASES.get(name) ?? NO_ALIASES) {
    const value = headers[alias];
    if (typeof value === 'string' && value !== '') return value;
  }
  return undefined;
}
