import { createHash } from 'node:crypto';

/** The end user's id for upstreams: a deterministic hash from which the id cannot be recovered. */
export function hashUser(user: string): string {
  return createHash('sha256').update(`model-gateway:${user}`).digest('hex');
}
