import { randomUUID } from 'node:crypto';
import type { AuditEvent } from '../schemas/audit.ts';
import type { Page, Paged } from '../schemas/page.ts';
import { portionsOf } from './portions.ts';
import type { Queries } from './queries.ts';
import { nextNumber } from './sequence.ts';

/** One change: the state before (null: created) and after (null: deleted), without secrets. */
export type AuditEntry = Pick<AuditEvent, 'action' | 'resource_type' | 'resource_id'> & {
  before: object | null;
  after: object | null;
};

/** Who made a change, and by which request. */
export interface Actor {
  organization_id: string;
  /** How the actor authenticated: with a key, the environment's management key, a command, or a signed-in page. */
  actor: AuditEvent['actor'];
  key_hash: string | null;
  /** The SHA-256 of the secret of that key that was sent. Not stored. */
  secret_hash?: string;
  user_id: string | null;
  request_id: string | null;
  /** The session with which a signed-in person called an operation, and the role that allowed it. Not stored. */
  session?: { id: string; role: 'admin' | 'member' };
}

/** The changes to list. A filter that is not set matches all. */
export interface AuditFilter {
  organization_id: string;
  resource_type?: AuditEvent['resource_type'] | undefined;
  resource_id?: string | undefined;
  actor_user_id?: string | undefined;
  /** Only events older than this one; none if the event is of another organization. */
  before?: string | undefined;
}

/** Who changed what: events are only added, never changed. */
export function auditStore(queries: Queries) {
  return {
    /**
     * Writes the events of a change, in order, in its transaction, so that neither exists without the other. Call it last in
     * the transaction: concurrent writers wait for each other here.
     */
    insert: async (entries: readonly AuditEntry[], actor: Actor, at: string): Promise<void> => {
      if (entries.length === 0) return;
      const state = (value: object | null) => (value === null ? null : JSON.stringify(value));
      const first = await nextNumber(queries, 'audit_events', entries.length);
      const rows = entries.map((entry, index) => ({
        seq: first + index,
        id: randomUUID(),
        organization_id: actor.organization_id,
        created_at: at,
        actor_key_hash: actor.key_hash,
        actor_user_id: actor.user_id,
        actor: actor.actor,
        action: entry.action,
        resource_type: entry.resource_type,
        resource_id: entry.resource_id,
        state_before: state(entry.before),
        state_after: state(entry.after),
        request_id: actor.request_id,
      }));
      for (const chunk of portionsOf(rows)) await queries.insertInto('audit_events').values(chunk).execute();
    },

    /** The newest first. */
    listBy: async (filter: AuditFilter, page: Page): Promise<Paged<AuditEvent>> => {
      let query = queries.selectFrom('audit_events').where('organization_id', '=', filter.organization_id);
      for (const column of ['resource_type', 'resource_id', 'actor_user_id'] as const) {
        const value = filter[column];
        if (value !== undefined) query = query.where(column, '=', value);
      }
      const { before, organization_id } = filter;
      if (before !== undefined) {
        query = query.where('seq', '<', ({ selectFrom }) =>
          selectFrom('audit_events')
            .select('seq')
            .where('id', '=', before)
            .where('organization_id', '=', organization_id),
        );
      }
      const { count } = await query.select(({ fn }) => fn.countAll<number>().as('count')).executeTakeFirstOrThrow();
      const rows = await query.selectAll().orderBy('seq', 'desc').limit(page.limit).offset(page.offset).execute();
      return {
        total_count: count,
        data: rows.map((row) => ({
          id: row.id,
          created_at: row.created_at,
          actor: row.actor as Actor['actor'],
          actor_key_hash: row.actor_key_hash,
          actor_user_id: row.actor_user_id,
          action: row.action as AuditEvent['action'],
          resource_type: row.resource_type as AuditEvent['resource_type'],
          resource_id: row.resource_id,
          before: row.state_before,
          after: row.state_after,
          request_id: row.request_id,
        })),
      };
    },
  };
}

export type AuditStore = ReturnType<typeof auditStore>;
