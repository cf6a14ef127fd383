import { createRequire } from 'node:module';

const load = createRequire(import.meta.url);

/** The engine of users' patterns. Loaded for the first pattern, which takes some milliseconds: most gateways have no patterns. */
export function re2(): typeof import('re2js') {
  return load('re2js') as typeof import('re2js');
}
