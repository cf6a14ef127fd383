import type { FastifyRequest } from 'fastify';
import { GatewayError } from '../errors.ts';
import type { Principal } from '../http/principal.ts';
import { type Actor, type AuditEntry, auditStore } from '../storage/audit.ts';
import type { Announcement, ChangeFeed } from '../storage/change-feed.ts';
import { type Database, isConflict, isReferenceViolation, type Queries } from '../storage/database.ts';

/** One change under way. Everything in it happens, or nothing does. */
export interface Work {
  /** What stores are made of here: `keyStore(work.tx)`. */
  tx: Queries;
  /** The moment of the change, ISO 8601. */
  at: string;
  actor: Actor;
  /** Leaves who, what, before and after. Every change leaves at least one. */
  audit(entry: AuditEntry): Promise<void>;
  /** Tells all nodes to forget what they remember of it, once the change is committed. */
  announce(change: Announcement): void;
}

/** Runs a change in one transaction and answers when every live node knows of it. May run `run` again where the store asks for that. */
export type Change = <T>(actor: Actor, run: (work: Work) => Promise<T>) => Promise<T>;

/** Who is behind a request, for the audit. */
export function actorOf(request: Pick<FastifyRequest, 'principal' | 'id'>): Actor {
  const principal = principalOf(request);
  return {
    organization_id: principal.organization_id,
    actor: principal.key_hash === null ? 'environment' : 'key',
    key_hash: principal.key_hash,
    user_id: principal.user_id,
    request_id: request.id,
  };
}

/** Who calls an operation that nobody may call without a credential. */
export function principalOf({ principal }: Pick<FastifyRequest, 'principal'>): Principal {
  if (!principal) throw new Error('an operation for credentials was reached without one');
  return principal;
}

/** How often a change that the store gave up for another's sake is tried. */
const TRIES = 5;

/**
 * Makes the one way in which management changes what is stored. `settled` comes before every change: a limit that comes into
 * force counts what was spent before, so what this node has answered should be in the store by then.
 */
export function createChange(options: {
  database: Database;
  changes: ChangeFeed;
  now: () => number;
  settled?: () => Promise<void>;
}): Change {
  const { database, changes, now, settled } = options;
  return async (actor, run) => {
    await settled?.();
    for (let tries = 1; ; tries += 1) {
      const announced: Announcement[] = [];
      try {
        const result = await database.queries.transaction().execute(async (tx) => {
          const at = new Date(now()).toISOString();
          const entries: AuditEntry[] = [];
          const made = await run({
            tx,
            at,
            actor,
            audit: async (entry) => void entries.push(entry),
            announce: (change) => void announced.push(change),
          });
          if (entries.length === 0 && announced.length > 0) throw new Error('a change without a word for the audit');
          // Last, because all writers wait for each other there.
          await auditStore(tx).insert(entries, actor, at);
          await changes.note(tx, announced);
          return made;
        });
        await changes.heard(announced);
        return result;
      } catch (error) {
        // What a reference needs can go, and come, between a look and a write: the next look sees it.
        if (!isReferenceViolation(error) && !isConflict(error)) throw error;
        if (tries >= TRIES) {
          throw new GatewayError(409, 'Another request is changing the same resource; try again', { cause: error });
        }
      }
    }
  };
}
