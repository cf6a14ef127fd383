import { sql } from 'kysely';
import type { Charged } from '../ledger/records.ts';
import { type ActivityRaise, activityRaisesOf, type DayRaise, raisesOf, type Settle } from '../ledger/settle.ts';
import { BulkStatement, type Step } from './bulk.ts';
import { type CountedCalls, countedCalls, SeriesNames, StoredSeries, UsageStatements } from './usage-rows.ts';

function largestCover(charges: readonly Charged[]): number {
  let most = 0;
  for (const { cover } of charges) if (cover > most) most = cover;
  return most;
}

/** One object literal, for speed: it is made for each call. */
function generationRow(settle: Settle, nodeId: string, series: number | undefined) {
  const { listed } = settle;
  return {
    id: settle.id,
    node_id: nodeId,
    organization_id: settle.organization_id,
    workspace_id: settle.workspace_id,
    key_hash: settle.key_hash,
    outcome: settle.outcome as string,
    cost: settle.cost_nano,
    cover: largestCover(settle.charges),
    charges: settle.charged,
    record: settle.record,
    admitted_at: Date.parse(settle.created_at),
    created_at: settle.created_at,
    estimated: settle.estimated_nano,
    user_id: listed.user_id,
    model: listed.model,
    requested_model: listed.requested_model,
    provider_name: listed.provider_name,
    session_id: listed.session_id,
    app: listed.app,
    finish_reason: listed.finish_reason,
    streamed: listed.streamed,
    latency: listed.latency,
    failures: listed.failures,
    guardrails: listed.guardrails,
    series: series ?? null,
    tags: settle.usage.dimensions.tags || null,
  };
}

function usageRow({ key_hash, ...raise }: DayRaise) {
  return { scope: 'key', scope_id: key_hash, ...raise };
}

/** The fields in the order of the columns, which is that of the parameters. */
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

/** The calls of a batch as they are stored. */
export interface StoredCalls {
  /** Changes a row for each call that the store does not have. */
  inserted: Step;
  /** The sums that change at once. */
  sums: Step[];
  counted: CountedCalls;
  /** When the first of them was admitted, milliseconds since 1970. */
  oldest_ms: number;
}

/** The statements that store the calls of batches, and the days of their keys. */
export class CallStatements {
  readonly #seriesNames = new SeriesNames();
  readonly #storedSeries = new StoredSeries();
  readonly #countUsage = new UsageStatements();
  readonly #insertGenerations = new BulkStatement<ReturnType<typeof generationRow>>((tx, rows) =>
    tx
      .insertInto('ledger_generations')
      .values(rows)
      .onConflict((conflict) => conflict.column('id').doNothing())
      .compile(),
  );
  readonly #raiseUsage = new BulkStatement<ReturnType<typeof usageRow>>((tx, rows) =>
    tx
      .insertInto('usage_days')
      .values(rows)
      .onConflict((conflict) =>
        conflict.columns(['scope', 'scope_id', 'day']).doUpdateSet({
          usage_nano: sql`usage_days.usage_nano + excluded.usage_nano`,
          byok_usage_nano: sql`usage_days.byok_usage_nano + excluded.byok_usage_nano`,
          requests: sql`usage_days.requests + excluded.requests`,
          last_used_at: sql`CASE WHEN usage_days.last_used_at > excluded.last_used_at
            THEN usage_days.last_used_at ELSE excluded.last_used_at END`,
        }),
      )
      .compile(),
  );
  readonly #raiseActivity = new BulkStatement<ReturnType<typeof activityRow>>((tx, rows) =>
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

  of(settles: readonly Settle[], node: string): StoredCalls {
    const activity = activityRaisesOf(settles);
    const counted = countedCalls(settles, () => node, this.#seriesNames);
    const rows = settles.map((settle) => generationRow(settle, node, counted.seriesOf.get(settle.id)));
    const inserted = this.#insertGenerations.step(rows, { must_change: true });
    const sums = [
      this.#raiseUsage.step(raisesOf(activity).map(usageRow)),
      this.#raiseActivity.step(activity.map(activityRow)),
      ...this.#countUsage.callSteps({ ...counted, series: this.#storedSeries.missing(counted.series) }),
    ];
    const oldestMs = rows.reduce((least, { admitted_at }) => Math.min(least, admitted_at), Number.MAX_SAFE_INTEGER);
    return { inserted, sums, counted, oldest_ms: oldestMs };
  }

  /** Their series are in the store. */
  stored({ counted }: StoredCalls): void {
    this.#storedSeries.add(counted.series);
  }

  /** The store may have been set back. */
  forget(): void {
    this.#storedSeries.clear();
  }
}
