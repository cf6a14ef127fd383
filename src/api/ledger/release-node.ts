import { limits } from '../../limits.ts';
import { toUsd } from '../../schemas/money.ts';
import type { Database } from '../../storage/database.ts';
import { ledgerOperations } from '../../storage/ledger-operations.ts';
import type { MovedLeases } from '../../storage/lost-leases.ts';
import type { Work } from '../change.ts';

/** The result of a release. `why`: there is no node of that name, or it may still spend. */
export type ReleasedNode = (MovedLeases & { booked_nano: number }) | { why: 'unknown' | 'live' };

/** Releases the reservations of a lost node, with an audit entry; for the operation and the command. */
export async function releaseNode(
  { tx, audit }: Pick<Work, 'tx' | 'audit'>,
  { engine, node, at }: { engine: Database['engine']; node: string; at: number },
): Promise<ReleasedNode> {
  const operations = ledgerOperations(tx, engine);
  const released = await operations.release(node, at);
  if (released === undefined) {
    const isKnown = (await operations.listNodes(at)).some(({ id }) => id === node);
    return { why: isKnown ? 'live' : 'unknown' };
  }
  const { leased_nano, leases, booked_nano } = released;
  await audit({
    action: 'update',
    resource_type: 'ledger_node',
    resource_id: node,
    before: { leased: toUsd(leased_nano), windows: leases, booked: toUsd(booked_nano) },
    after: { leased: 0, windows: 0, booked: 0 },
  });
  return released;
}

/** Explains why a live node is not released, and what to do. */
export function liveNode(node: string): string {
  return `${node} sent a sign of life within the last ${limits.node_lost_ms / 1_000} seconds: it may still spend what it has reserved. Stop it first: it gives back what it does not use, and the rest can then be released.`;
}
