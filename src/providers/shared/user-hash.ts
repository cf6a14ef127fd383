import { createHash } from 'node:crypto';

/** The end user's id as upstreams see it: the same user always gives the same hash, and the id cannot be read back from it. */
export function hashUser(user: string): string {
  return createHash('sha256').update(`model-gateway:${user}`).digest('hex');
}
