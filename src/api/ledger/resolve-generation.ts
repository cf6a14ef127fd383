import { toUsd } from '../../schemas/money.ts';
import { type Database, isUniqueViolation } from '../../storage/database.ts';
import { ledgerOperations, type Resolvable } from '../../storage/ledger-operations.ts';
import type { Change } from '../change.ts';

/** What a resolution did, or why there was none. */
export type Resolution =
  | { generation: Resolvable }
  | { why: 'unknown' }
  | { why: 'known'; cost_nano: number }
  | { why: 'resolved' };

/** Corrects the cost of a generation whose end is not known, once, with an audit entry; for the operation and the command. */
export async function resolveGeneration(
  { queries, engine }: Pick<Database, 'queries' | 'engine'>,
  { change, actor }: { change: Change; actor: Parameters<Change>[0] },
  { id, cost_nano, reason }: { id: string; cost_nano: number; reason: string },
): Promise<Resolution> {
  const generation = await ledgerOperations(queries, engine).findResolvable(id);
  if (generation === undefined) return { why: 'unknown' };
  if (!generation.is_estimated) return { why: 'known', cost_nano: generation.cost_nano };
  try {
    await change({ ...actor, organization_id: generation.organization_id }, async ({ tx, at, audit }) => {
      await ledgerOperations(tx, engine).resolve(generation, { cost_nano, reason, at });
      await audit({
        action: 'update',
        resource_type: 'generation',
        resource_id: id,
        before: { cost: toUsd(generation.cost_nano), is_byok: generation.is_byok },
        after: { cost: toUsd(cost_nano), is_byok: generation.is_byok, reason },
      });
    });
  } catch (error) {
    if (isUniqueViolation(error)) return { why: 'resolved' };
    throw error;
  }
  return { generation };
}
