import { sql } from 'kysely';
import {
  type ActivityRaise,
  activityRaisesOf,
  type DayRaise,
  type LedgerStore,
  type Position,
  raisesOf,
  type Settle,
  type SettleAnswer,
  type SettleBatch,
} from '../ledger/settle.ts';
import { bulkInsert } from './bulk.ts';
import type { Queries } from './database.ts';

async function positionOf(queries: Queries, node: string): Promise<Position> {
  const known = await queries
    .selectFrom('ledger_nodes')
    .select(['epoch', 'batch'])
    .where('id', '=', node)
    .executeTakeFirst();
  return known ?? { epoch: 0, batch: 0 };
}

/** The number is the guard of everything in a batch: it passes once, in order, in its own epoch. */
async function pass(tx: Queries, batch: SettleBatch): Promise<SettleAnswer> {
  const passed = await tx
    .updateTable('ledger_nodes')
    .set({ batch: batch.number, seen_at: batch.at })
    .where('id', '=', batch.node)
    .where('epoch', '=', batch.epoch)
    .where('batch', '=', batch.number - 1)
    .returning('batch')
    .executeTakeFirst();
  if (passed) return { is: 'applied' };
  const node = await positionOf(tx, batch.node);
  if (node.epoch > batch.epoch) return { is: 'fenced', epoch: node.epoch };
  const applied = node.epoch === batch.epoch && node.batch >= batch.number;
  return applied ? { is: 'already_applied' } : { is: 'behind', ...node };
}

function generationRow(settle: Settle, node_id: string) {
  return {
    id: settle.id,
    node_id,
    organization_id: settle.organization_id,
    workspace_id: settle.workspace_id,
    key_hash: settle.key_hash,
    outcome: settle.outcome as string,
    cost: settle.cost_nano,
    cover: 0,
    charges: '[]',
    record: settle.record,
    admitted_at: Date.parse(settle.created_at),
    created_at: settle.created_at,
  };
}

function usageRow({ key_hash, ...raise }: DayRaise) {
  return { scope: 'key', scope_id: key_hash, ...raise };
}

/** Field by field: the order of the columns is the order of the parameters. */
function activityRow(raise: ActivityRaise) {
  return {
    organization_id: raise.organization_id,
    workspace_id: raise.workspace_id,
    key_hash: raise.key_hash,
    user_id: raise.user_id,
    day: raise.day,
    model: raise.model,
    model_permaslug: raise.model_permaslug,
    endpoint_id: raise.endpoint_id,
    provider_name: raise.provider_name,
    usage_nano: raise.usage_nano,
    byok_usage_nano: raise.byok_usage_nano,
    requests: raise.requests,
    prompt_tokens: raise.prompt_tokens,
    completion_tokens: raise.completion_tokens,
    reasoning_tokens: raise.reasoning_tokens,
  };
}

/** The ledger at rest: nodes, generations and the usage they add up to. One batch is one transaction. */
export function ledgerStore(queries: Queries): LedgerStore {
  /** Inserts what is new; what comes back may be charged, the rest was charged before. */
  const insertGenerations = bulkInsert<ReturnType<typeof generationRow>, { id: string }>((tx, rows) =>
    tx
      .insertInto('ledger_generations')
      .values(rows)
      .onConflict((conflict) => conflict.column('id').doNothing())
      .returning('id')
      .compile(),
  );
  const raiseUsage = bulkInsert<ReturnType<typeof usageRow>, never>((tx, rows) =>
    tx
      .insertInto('usage_days')
      .values(rows)
      .onConflict((conflict) =>
        conflict.columns(['scope', 'scope_id', 'day']).doUpdateSet({
          usage_nano: sql`usage_days.usage_nano + excluded.usage_nano`,
          byok_usage_nano: sql`usage_days.byok_usage_nano + excluded.byok_usage_nano`,
          requests: sql`usage_days.requests + excluded.requests`,
        }),
      )
      .compile(),
  );
  const raiseActivity = bulkInsert<ReturnType<typeof activityRow>, never>((tx, rows) =>
    tx
      .insertInto('activity_days')
      .values(rows)
      .onConflict((conflict) =>
        conflict.columns(['key_hash', 'day', 'model', 'endpoint_id']).doUpdateSet({
          usage_nano: sql`activity_days.usage_nano + excluded.usage_nano`,
          byok_usage_nano: sql`activity_days.byok_usage_nano + excluded.byok_usage_nano`,
          requests: sql`activity_days.requests + excluded.requests`,
          prompt_tokens: sql`activity_days.prompt_tokens + excluded.prompt_tokens`,
          completion_tokens: sql`activity_days.completion_tokens + excluded.completion_tokens`,
          reasoning_tokens: sql`activity_days.reasoning_tokens + excluded.reasoning_tokens`,
        }),
      )
      .compile(),
  );
  return {
    settle: (batch) =>
      queries.transaction().execute(async (tx) => {
        const answer = await pass(tx, batch);
        if (answer.is !== 'applied' || batch.settles.length === 0) return answer;
        const rows = batch.settles.map((settle) => generationRow(settle, batch.node));
        const inserted = new Set((await insertGenerations(tx, rows)).map(({ id }) => id));
        // Each id that came back once, also if a batch should name it twice.
        const charged = batch.settles.filter(({ id }) => inserted.delete(id));
        await raiseUsage(tx, raisesOf(charged).map(usageRow));
        await raiseActivity(tx, activityRaisesOf(charged).map(activityRow));
        return answer;
      }),

    position: (node) => positionOf(queries, node),

    register: async ({ node, instance, epoch_seen, at }) => {
      await queries
        .insertInto('ledger_nodes')
        .values({ id: node, epoch: 0, instance: '', batch: 0, seen_at: 0 })
        .onConflict((conflict) => conflict.column('id').doNothing())
        .execute();
      for (;;) {
        const { epoch: stored_epoch } = await positionOf(queries, node);
        const epoch = Math.max(stored_epoch, epoch_seen) + 1;
        // Compare and set: a late copy of an old registration changes nothing.
        const won = await queries
          .updateTable('ledger_nodes')
          .set({ epoch, instance, batch: 0, seen_at: at })
          .where('id', '=', node)
          .where('epoch', '=', stored_epoch)
          .returning('epoch')
          .executeTakeFirst();
        if (won) return { epoch };
      }
    },
  };
}
