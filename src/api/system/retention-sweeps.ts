import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../../inference/call.ts';
import type { Actor } from '../../storage/audit.ts';
import type { Database } from '../../storage/database.ts';
import type { Home } from '../../storage/organizations.ts';
import { retentionStore, SWEPT_KINDS, SweepLost, type SweepPlace, type SweptKind } from '../../storage/retention.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import type { Change } from '../change.ts';

/** The interval of checks whether a sweep is due. A sweep is due once a day, since deleted periods end with a UTC day. */
const LOOK_MS = 600_000;
/** The shortest pause between two portions, and the pause as a multiple of the last portion's duration. */
const PAUSE_MS = 50;
const PAUSE_SHARE = 4;
const DAY_MS = 86_400_000;

/** The setting of each kind. */
export const RETENTION_SETTINGS = {
  generations: 'generations_days',
  audit: 'audit_days',
  closed_windows: 'closed_windows_days',
} as const satisfies Record<SweptKind, string>;

/** The settings of `retention`; undefined: rows are kept for ever. */
export type RetentionDays = { readonly [setting in (typeof RETENTION_SETTINGS)[SweptKind]]?: number | undefined };

export interface RetentionSweepsOptions {
  days: () => RetentionDays;
  database: Database;
  change: Change;
  home: Pick<Home, 'organization_id'>;
  clock: Pick<Clock, 'nowMs' | 'monotonicMs'>;
  metrics: Pick<Metrics, 'retentionDeleted'>;
  log: { info(facts: object, message: string): void; warn(facts: object, message: string): void };
}

/**
 * Deletes what the settings `retention` do not keep: in portions in the background, one process at a time. A process that starts continues
 * what another one has not finished.
 */
export function createRetentionSweeps({ days, database, change, home, clock, metrics, log }: RetentionSweepsOptions) {
  const store = retentionStore(database);
  const owner = randomUUID();
  const { organization_id } = home;
  const actor: Actor = { organization_id, actor: 'environment', key_hash: null, user_id: null, request_id: null };
  const stopped = new AbortController();
  let work: Promise<void> | undefined;
  let looks: NodeJS.Timeout | undefined;

  /** Deletes portion after portion; returns the number of rows. */
  async function deleteAll(kind: SweptKind, before: string): Promise<{ deleted: number; isComplete: boolean }> {
    let deleted = 0;
    let place: SweepPlace;
    do {
      const startedMs = clock.monotonicMs();
      const portion = await store.sweep({ kind, owner, at: clock.nowMs() }, before, place);
      deleted += portion.deleted;
      metrics.retentionDeleted(kind, portion.deleted);
      place = portion.next;
      const pauseMs = Math.max(PAUSE_MS, (clock.monotonicMs() - startedMs) * PAUSE_SHARE);
      if (place !== undefined) await sleep(pauseMs, undefined, { signal: stopped.signal }).catch(() => undefined);
    } while (place !== undefined && !stopped.signal.aborted);
    return { deleted, isComplete: place === undefined };
  }

  async function sweep(kind: SweptKind, keptDays: number): Promise<void> {
    const before = new Date(Math.floor(clock.nowMs() / DAY_MS - keptDays) * DAY_MS).toISOString();
    const claim = { kind, owner, at: clock.nowMs() };
    if (!(await store.claim(claim, before))) return;
    const { deleted, isComplete } = await deleteAll(kind, before);
    await store.release(claim, isComplete ? new Date(clock.nowMs()).toISOString() : undefined);
    if (deleted === 0) return;
    const inAll = (await store.states()).find((state) => state.kind === kind)?.deleted ?? deleted;
    await change(actor, ({ audit }) =>
      audit({
        action: 'delete',
        resource_type: 'retention',
        resource_id: kind,
        before: null,
        after: { deleted_before: before, deleted, deleted_in_all: inAll, is_complete: isComplete },
      }),
    );
    log.info({ kind, before, rows: deleted }, 'deleted old rows, as the settings of retention say');
  }

  async function sweepDue(): Promise<void> {
    // Generations first: windows are kept as long as the generations that they were charged for.
    for (const kind of SWEPT_KINDS) {
      const keptDays = days()[RETENTION_SETTINGS[kind]];
      if (keptDays === undefined || stopped.signal.aborted) continue;
      try {
        await sweep(kind, keptDays);
      } catch (err) {
        if (!(err instanceof SweepLost)) log.warn({ err, kind }, 'old rows could not be deleted; trying again later');
      }
    }
  }

  const look = (): Promise<void> => {
    work ??= sweepDue().finally(() => {
      work = undefined;
    });
    return work;
  };

  return {
    start(): void {
      void look();
      looks = setInterval(() => void look(), LOOK_MS).unref();
    },
    /** Waits for the portion in progress. */
    async stop(): Promise<void> {
      clearInterval(looks);
      stopped.abort();
      await work;
    },
    /** Sweeps what is due now; for tests. */
    look,
  };
}

/** The settings of `retention` and what they have deleted, for operators. */
export async function describeRetention(database: Pick<Database, 'queries' | 'engine'>, days: RetentionDays) {
  const states = await retentionStore(database).states();
  return SWEPT_KINDS.map((kind) => {
    const { deleted = 0, deleted_before = null, ended_at = null } = states.find((state) => state.kind === kind) ?? {};
    return { kind, days: days[RETENTION_SETTINGS[kind]] ?? null, deleted, deleted_before, ended_at };
  });
}
