import type { Clock } from '../../inference/call.ts';
import { toUsd } from '../../schemas/money.ts';
import type { Actor } from '../../storage/audit.ts';
import type { Database } from '../../storage/database.ts';
import { ledgerOperations } from '../../storage/ledger-operations.ts';
import type { Home } from '../../storage/organizations.ts';
import type { Change } from '../change.ts';

/**
 * The interval of searches for lost nodes, if their reservations are to be booked as spent; setting
 * `ledger.lost_node_release_after`.
 */
const LOST_NODES_LOOK_MS = 15_000;

export interface LostNodesOptions {
  /** `ledger.lost_node_release_after` in milliseconds; undefined: nodes are never booked. */
  after_ms: number | undefined;
  database: Database;
  change: Change;
  home: Pick<Home, 'organization_id'>;
  clock: Pick<Clock, 'nowMs'>;
  log: { warn(facts: object, message: string): void };
}

/**
 * Books the reservations of nodes that were silent for `after_ms` as spent, with an audit entry. A node is booked at the second check
 * that sees the same silence: after an outage of the store all nodes look lost, and report before the next check.
 */
export function createLostNodes({ after_ms, database, change, home, clock, log }: LostNodesOptions) {
  const { engine, queries } = database;
  const { organization_id } = home;
  const actor: Actor = { organization_id, actor: 'environment', key_hash: null, user_id: null, request_id: null };
  let silent = new Map<string, number>();
  let timer: NodeJS.Timeout | undefined;
  let looking: Promise<void> | undefined;

  async function book(node: string, silentMs: number): Promise<void> {
    const booked = await change(actor, async ({ tx, audit }) => {
      const moved = await ledgerOperations(tx, engine).book(node, clock.nowMs(), silentMs);
      if (moved === undefined || moved.leases === 0) return undefined;
      const { leased_nano, leases: windows } = moved;
      await audit({
        action: 'update',
        resource_type: 'ledger_node',
        resource_id: node,
        before: { leased: toUsd(leased_nano), windows, booked: 0 },
        after: { leased: 0, windows: 0, booked: toUsd(leased_nano) },
      });
      return moved;
    });
    if (booked === undefined) return;
    const facts = { node, usd: toUsd(booked.leased_nano), windows: booked.leases, silent_s: silentMs / 1000 };
    log.warn(facts, 'a node is lost: the money that it had reserved counts as spent until the node returns');
  }

  async function check(silentMs: number): Promise<void> {
    const nodes = await ledgerOperations(queries, engine).findSilent(clock.nowMs(), silentMs);
    const before = silent;
    silent = new Map(nodes.map(({ id, seen_at }) => [id, seen_at]));
    for (const { id, seen_at } of nodes) if (before.get(id) === seen_at) await book(id, silentMs);
  }

  return {
    start(): void {
      if (after_ms === undefined) return;
      timer = setInterval(() => {
        looking ??= check(after_ms)
          .catch((err: unknown) => log.warn({ err }, 'the search for lost nodes failed; trying again at the next one'))
          .finally(() => {
            looking = undefined;
          });
      }, LOST_NODES_LOOK_MS).unref();
    },
    async stop(): Promise<void> {
      clearInterval(timer);
      await looking;
    },
    /** Checks once, now; for tests. */
    check: () => (after_ms === undefined ? Promise.resolve() : check(after_ms)),
  };
}
