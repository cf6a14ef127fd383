import type { FastifyRequest } from 'fastify';
import { keyRefusal } from '../accounts/delegation.ts';
import { isSecretValid } from '../accounts/key-secrets.ts';
import { keyOfCredential } from '../accounts/session.ts';
import { GatewayError } from '../errors.ts';
import type { Principal } from '../http/principal.ts';
import { type Actor, type AuditEntry, auditStore } from '../storage/audit.ts';
import type { Announcement, ChangeFeed } from '../storage/change-feed.ts';
import { type Database, isConflict, isReferenceViolation, type Queries } from '../storage/database.ts';
import { keyStore } from '../storage/keys.ts';
import { sessionStore } from '../storage/sessions.ts';

/** A change in progress: a transaction with its audit entries and announcements. */
export interface Work {
  /** The transaction, from which stores are made: `keyStore(work.tx)`. */
  tx: Queries;
  /** The moment of the change, ISO 8601. */
  at: string;
  actor: Actor;
  /** Adds an audit entry: who changed what, with the values before and after. Every change adds at least one. */
  audit(entry: AuditEntry): Promise<void>;
  /** After the commit, makes all nodes forget what they remember of the changed resource. */
  announce(change: Announcement): void;
}

/** Runs a change in one transaction, and resolves when every live node knows of it. May call `run` again after a conflict in the store. */
export type Change = <T>(actor: Actor, run: (work: Work) => Promise<T>) => Promise<T>;

/** The actor of a request, for the audit log. */
export function actorOf(request: Pick<FastifyRequest, 'principal' | 'id'>): Actor {
  const principal = principalOf(request);
  return {
    organization_id: principal.organization_id,
    actor: principal.session !== undefined ? 'page' : principal.key_hash === null ? 'environment' : 'key',
    key_hash: principal.key_hash,
    user_id: principal.user_id,
    request_id: request.id,
    ...(principal.secret_hash !== undefined && { secret_hash: principal.secret_hash }),
    ...(principal.session && { session: { id: principal.session.id, role: principal.session.role } }),
  };
}

/** The principal of an operation that requires a credential. */
export function principalOf({ principal }: Pick<FastifyRequest, 'principal'>): Principal {
  if (!principal) throw new Error('an operation for credentials was reached without one');
  return principal;
}

/** The member whose own keys and workspaces alone a caller may see and change; undefined if the caller may do so for the organization. */
export function ownUserOf({ session, user_id }: Principal): string | undefined {
  return session?.role === 'member' ? (user_id ?? '') : undefined;
}

/**
 * Throws unless the caller may still act: the key and its secret are valid, and so are the keys that it was made with; the signed-in person
 * has the session, the membership and the role. A request may take minutes to send its body, so that the key was revoked, or the person
 * removed or signed out, after its head was checked. It decides once the transaction has the turn of the audit log, for which every
 * revocation, removal and sign-out waits before its commit, too: each either has committed before or follows this change. It locks no row:
 * operations lock members and other rows in orders of their own.
 */
async function checkActor(tx: Queries, actor: Actor, at: string): Promise<void> {
  if (actor.session !== undefined) await checkSession(tx, actor, actor.session, at);
  else if (actor.key_hash !== null && actor.secret_hash !== undefined) {
    const refusal = await refusalOf(tx, { key_hash: actor.key_hash, secret_hash: actor.secret_hash }, at);
    if (refusal !== undefined) throw new GatewayError(401, refusal);
  }
}

/** Why a key, or this secret of it, no longer acts; undefined if it does. */
async function refusalOf(
  tx: Queries,
  { key_hash, secret_hash }: { key_hash: string; secret_hash: string },
  at: string,
): Promise<string | undefined> {
  const store = keyStore(tx);
  const key = await store.findByHash(key_hash);
  if (key === undefined || !isSecretValid(key, secret_hash, Date.parse(at))) {
    return 'This API key, or this secret of it, was revoked while the request arrived';
  }
  return keyRefusal([key, ...(await store.findAncestors(key.hash))], Date.parse(at));
}

async function checkSession(
  tx: Queries,
  { organization_id, user_id }: Actor,
  session: NonNullable<Actor['session']>,
  at: string,
): Promise<void> {
  const open = await sessionStore(tx).findOpen({ organization_id, user_id: user_id ?? '', id: session.id, at });
  const opener = open && keyOfCredential(open.credential);
  const refusal = opener && (await refusalOf(tx, opener, at));
  if (open === undefined || refusal !== undefined) throw new GatewayError(401, 'This session has ended; sign in again');
  if (session.role === 'admin' && open.role !== 'admin') {
    throw new GatewayError(403, 'Only administrators of the organization can perform this operation');
  }
}

/** How often a change is tried that the store aborted in favor of another one. */
const TRIES = 5;

/**
 * Makes the function through which management operations change the store. `settled` is awaited before every change: a new limit counts
 * earlier spending, so what this node has answered should be in the store by then.
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
          await checkActor(tx, actor, at);
          const entries: AuditEntry[] = [];
          const made = await run({
            tx,
            at,
            actor,
            audit: async (entry) => void entries.push(entry),
            announce: (change) => void announced.push(change),
          });
          if (entries.length === 0 && announced.length > 0) throw new Error('a change without an audit entry');
          // Last, because all writers wait for each other here.
          await auditStore(tx).insert(entries, actor, at);
          // The first check refuses early. Only this one counts. A change may end the key that makes it.
          const endsItself = announced.some(({ topic, id }) => topic === 'keys' && id === actor.key_hash);
          if (!endsItself) await checkActor(tx, actor, at);
          await changes.note(tx, announced);
          return made;
        });
        await changes.deliver(announced);
        return result;
      } catch (error) {
        // A referenced row may be deleted or inserted between read and write; the next try sees the current state.
        if (!isReferenceViolation(error) && !isConflict(error)) throw error;
        if (tries >= TRIES) {
          throw new GatewayError(409, 'Another request is changing the same resource; try again', { cause: error });
        }
      }
    }
  };
}
