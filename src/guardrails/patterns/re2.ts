import { createRequire } from 'node:module';

const load = createRequire(import.meta.url);

/** The engine of users' patterns. It is loaded, in some milliseconds, when the first pattern is looked at: most gateways have none. */
export function re2(): typeof import('re2js') {
  return load('re2js') as typeof import('re2js');
}
