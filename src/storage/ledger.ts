import { sql } from 'kysely';
import type { Charged } from '../ledger/records.ts';
import {
  type ActivityRaise,
  activityRaisesOf,
  type DayRaise,
  isSame,
  type LeaseRow,
  type LedgerStore,
  type Position,
  raisesOf,
  type Settle,
  type SettleAnswer,
  type SettleBatch,
  UnstorableData,
  type WindowRaise,
  type WindowState,
  windowRaisesOf,
} from '../ledger/settle.ts';
import { limits } from '../limits.ts';
import { BulkStatement, transact } from './bulk.ts';
import type { Database } from './database.ts';
import { deletedTo, withoutDeleted } from './deleted-generations.ts';
import { restoreLeases } from './lost-leases.ts';
import type { Queries } from './queries.ts';
import { settledOf } from './settled.ts';
import type { StoreClock } from './store-clock.ts';
import { storeNow } from './store-now.ts';
import { isDataFault } from './unavailable.ts';
import { countedRows, SeriesNames, StoredSeries, UsageStatements } from './usage-rows.ts';

/** How long a node's claim on money that is idle at other nodes keeps another node from claiming it. */
export const CLAIM_MS = 120;

interface NodeRow extends Position {
  instance: string;
}

async function findNode(queries: Queries, node: string): Promise<NodeRow> {
  const known = await queries
    .selectFrom('ledger_nodes')
    .select(['epoch', 'batch', 'instance'])
    .where('id', '=', node)
    .executeTakeFirst();
  return known ?? { epoch: 0, batch: 0, instance: '' };
}

/** The last batch of a node. Releasing a node raises its epoch; its last batch is of the epoch before. */
function positionOf({ epoch, batch, instance }: NodeRow): Position {
  return { epoch: instance === '' ? Math.max(0, epoch - 1) : epoch, batch };
}

/** A literal: with a parameter no engine uses the partial index of leases above zero. */
const NOTHING = sql.lit(0);

const text = (value: string) => sql`CAST(${value} AS TEXT)`;
const bigint = (value: number) => sql`CAST(${value} AS BIGINT)`;

/**
 * Numbering guards everything in a batch: it is applied once, in order, in its own epoch. No batch is applied in the epoch of
 * a release: after the store was set back, a node may have registered that epoch. Nor is one whose calls are so old that the store may
 * have counted and deleted them, unless they were looked for.
 */
function passQuery(engine: Database['engine']) {
  return sql`UPDATE ledger_nodes SET batch = ${bigint(0)}, seen_at = ${storeNow(engine, 0)}
    WHERE id = ${text('')} AND epoch = ${bigint(0)} AND batch = ${bigint(0)} AND instance <> ''
      AND COALESCE(deleted_to, 0) <= ${bigint(0)} RETURNING seen_at`;
}

/** The parameters of `passQuery`; PostgreSQL uses its own clock. `oldest`: no call that may be deleted was admitted from then on. */
function passRow(engine: Database['engine'], { node, epoch, number, at }: SettleBatch, oldest: number) {
  const guard = { node, epoch, before: number - 1, oldest };
  return engine === 'sqlite' ? { number, at, ...guard } : { number, ...guard };
}

/** Why a batch was not applied; undefined: it would be applied now. */
async function refusalOf(
  tx: Queries,
  engine: Database['engine'],
  batch: SettleBatch,
): Promise<Exclude<SettleAnswer, { is: 'applied' }> | undefined> {
  const node = await tx
    .selectFrom('ledger_nodes')
    .select(['epoch', 'batch', 'instance', storeNow(engine, batch.at).as('now')])
    .where('id', '=', batch.node)
    .executeTakeFirst();
  const { epoch, batch: number, instance, now } = node ?? { epoch: 0, batch: 0, instance: '', now: batch.at };
  if (epoch > batch.epoch || (epoch === batch.epoch && instance === '')) return { is: 'fenced', epoch };
  if (epoch === batch.epoch && number === batch.number - 1) return undefined;
  if (epoch !== batch.epoch || number < batch.number) return { is: 'behind', epoch, batch: number };
  return { is: 'already_applied', leases: await leasesOf(tx, batch.node), now };
}

function leasesOf(queries: Queries, node: string): Promise<LeaseRow[]> {
  return queries
    .selectFrom('ledger_leases')
    .select(['budget_id', 'window_start', 'amount'])
    .where('node_id', '=', node)
    .where('amount', '>', NOTHING)
    .execute();
}

/** The name of a claim: a node in one epoch. A claim from an earlier epoch has no owner any more. */
function claimantOf({ node, epoch }: { node: string; epoch: number }): string {
  return `${node} ${epoch}`;
}

/** A row of the windows in a batch, in the order of the parameters. */
interface WindowRow {
  budget_id: string;
  window_start: string;
  cost: number;
  cover: number;
  need: number;
  want: number;
  slack: number;
  divisor: number;
  own: number;
  withdraws: number;
  claimant: string;
  node: string;
}

interface LeaseRest {
  node: string;
  budget_id: string;
  window_start: string;
  /** What remains of the lease before the batch. */
  rest: number;
}

interface RaisedWindow {
  budget_id: string;
  window_start: string;
  spent: number;
  leased: number;
  granted: number;
  free: number | null;
  wanted_by: string;
  settled_elsewhere: number;
}

/** A row of the leases that a batch charges alone, in the order of the parameters. */
interface ChargeRow {
  budget_id: string;
  window_start: string;
  cost: number;
  node: string;
}

// FREE is what is free once this batch is counted, GRANT the part of it that is granted. `need` 0 takes only what is plainly free.
const FREE = '(b.limit_nano - ledger_windows.spent - v.cost - ledger_windows.leased + v.cover)';
const GRANT = `CASE WHEN v.want = 0 OR b.limit_nano IS NULL OR ${FREE} < v.need OR ${FREE} <= 0 THEN 0
  WHEN ${FREE} < v.want THEN ${FREE}
  WHEN (${FREE} - v.want) / v.divisor < v.slack THEN v.want + (${FREE} - v.want) / v.divisor
  ELSE v.want + v.slack END`;
// What other nodes have settled of their leases since they last raised the window: spent, though not yet in its row.
const ELSEWHERE = `(SELECT CAST(COALESCE(SUM(o.settled), 0) AS BIGINT) FROM ledger_leases AS o
  WHERE o.budget_id = v.b AND o.window_start = v.w AND o.node_id <> v.node)`;
// A node that is refused although others hold what it lacks makes a claim: others return idle money for it. Another node's
// claim is kept for `claim_ms`. A repeated request does not renew a claim: otherwise a node that requests just after its
// turn would never get one. The time of the batch is that at which its node was seen.
const CLAIMS = `(v.need > 0 AND (${GRANT}) = 0 AND ledger_windows.leased - COALESCE(l.settled, 0) - ${ELSEWHERE} > v.own
  AND ${FREE} + ledger_windows.leased - v.own - COALESCE(l.settled, 0) - ${ELSEWHERE} >= v.need
  AND NOT (ledger_windows.wanted_by <> '' AND ledger_windows.wanted_by <> v.claimant
    AND ledger_windows.wanted_at > n.seen_at - ${CLAIM_MS}))`;
// A claim ends when its node is granted something, or withdraws it.
const MET = `(ledger_windows.wanted_by = v.claimant AND (v.withdraws = 1 OR (v.want > 0 AND (${GRANT}) > 0)))`;

const RAISE_WINDOWS = sql.raw(`
  UPDATE ledger_windows SET
    spent = ledger_windows.spent + v.cost + COALESCE(l.settled, 0),
    leased = ledger_windows.leased - v.cover - COALESCE(l.settled, 0) + (${GRANT}),
    settled_elsewhere = ${ELSEWHERE},
    granted = ${GRANT},
    free = ${FREE} - (${GRANT}),
    wanted = CASE WHEN ${CLAIMS} THEN v.need WHEN ${MET} THEN 0 ELSE ledger_windows.wanted END,
    wanted_by = CASE WHEN ${CLAIMS} THEN v.claimant WHEN ${MET} THEN '' ELSE ledger_windows.wanted_by END,
    wanted_at = CASE WHEN ${CLAIMS} AND ledger_windows.wanted_by <> v.claimant THEN n.seen_at ELSE ledger_windows.wanted_at END
  FROM v JOIN ledger_nodes AS n ON n.id = v.node LEFT JOIN ledger_budgets AS b ON b.id = v.b
    LEFT JOIN ledger_leases AS l ON l.node_id = v.node AND l.budget_id = v.b AND l.window_start = v.w
  WHERE ledger_windows.budget_id = v.b AND ledger_windows.window_start = v.w
  RETURNING ledger_windows.budget_id, ledger_windows.window_start, ledger_windows.spent, ledger_windows.leased,
    ledger_windows.granted, ledger_windows.free, ledger_windows.wanted_by, ledger_windows.settled_elsewhere`);

const WINDOW_OF_LEASE = `FROM ledger_windows AS w WHERE w.budget_id = ledger_leases.budget_id
  AND w.window_start = ledger_leases.window_start`;

const CHARGE_LEASES = sql.raw(`
  UPDATE ledger_leases SET amount = ledger_leases.amount - v.cost, settled = ledger_leases.settled + v.cost
  FROM v WHERE ledger_leases.node_id = v.node AND ledger_leases.budget_id = v.b AND ledger_leases.window_start = v.w
  RETURNING ledger_leases.budget_id, ledger_leases.window_start,
    (SELECT w.spent ${WINDOW_OF_LEASE}) + ledger_leases.settled AS spent,
    (SELECT w.leased ${WINDOW_OF_LEASE}) - ledger_leases.settled AS leased,
    CAST(0 AS BIGINT) AS granted,
    (SELECT b.limit_nano - w.spent - w.leased FROM ledger_windows AS w JOIN ledger_budgets AS b ON b.id = w.budget_id
      WHERE w.budget_id = ledger_leases.budget_id AND w.window_start = ledger_leases.window_start) AS free,
    (SELECT w.wanted_by ${WINDOW_OF_LEASE}) AS wanted_by,
    (SELECT CAST(COALESCE(SUM(o.settled), 0) AS BIGINT) FROM ledger_leases AS o WHERE o.budget_id = ledger_leases.budget_id
      AND o.window_start = ledger_leases.window_start AND o.node_id <> ledger_leases.node_id) AS settled_elsewhere`);

/** Charges what leases cover, and returns the state of each window. Changes rows of the node alone: other nodes do not wait for it. */
function chargeLeasesQuery(rows: readonly ChargeRow[]) {
  const values = rows.map(
    ({ budget_id, window_start, cost, node }) =>
      sql`(${text(budget_id)}, ${text(window_start)}, ${bigint(cost)}, ${text(node)})`,
  );
  return sql`WITH v (b, w, cost, node) AS (VALUES ${sql.join(values)}) ${CHARGE_LEASES}`;
}

/** Settles, returns and grants in one statement, which returns the new state of each window. */
function raiseWindowsQuery(rows: readonly WindowRow[]) {
  const values = rows.map((row) => {
    const fields = [text(row.budget_id), text(row.window_start), bigint(row.cost), bigint(row.cover), bigint(row.need)];
    fields.push(bigint(row.want), bigint(row.slack), bigint(row.divisor), bigint(row.own));
    fields.push(bigint(row.withdraws), text(row.claimant), text(row.node));
    return sql`(${sql.join(fields)})`;
  });
  return sql`WITH v (b, w, cost, cover, need, want, slack, divisor, own, withdraws, claimant, node) AS (VALUES ${sql.join(values)}) ${RAISE_WINDOWS}`;
}

/** Writes the rest of each lease plus the grant of its window. */
function writeLeasesQuery(rows: readonly LeaseRest[]) {
  const values = rows.map(
    ({ node, budget_id, window_start, rest }) =>
      sql`(${text(node)}, ${text(budget_id)}, ${text(window_start)}, ${bigint(rest)})`,
  );
  return sql`WITH v (node, b, w, rest) AS (VALUES ${sql.join(values)})
    INSERT INTO ledger_leases (node_id, budget_id, window_start, amount)
    SELECT v.node, v.b, v.w, v.rest + ledger_windows.granted
    FROM v JOIN ledger_windows ON ledger_windows.budget_id = v.b AND ledger_windows.window_start = v.w
    WHERE v.rest + ledger_windows.granted > 0
    ON CONFLICT (node_id, budget_id, window_start) DO UPDATE SET amount = excluded.amount, settled = 0`;
}

/** Deletes used-up leases whose window has granted nothing. */
function endLeasesQuery(rows: readonly { node: string; budget_id: string; window_start: string }[]) {
  const names = rows.map((row) => sql`(${text(row.node)}, ${text(row.budget_id)}, ${text(row.window_start)})`);
  return sql`DELETE FROM ledger_leases WHERE (node_id, budget_id, window_start) IN (VALUES ${sql.join(names)})
    AND NOT EXISTS (SELECT 1 FROM ledger_windows AS w WHERE w.budget_id = ledger_leases.budget_id
      AND w.window_start = ledger_leases.window_start AND w.granted > 0)`;
}

/** Locks the windows in one order: two nodes that lock them in different orders would deadlock. */
function lockWindowsQuery(rows: readonly { budget_id: string; window_start: string }[]) {
  const names = rows.map((row) => sql`(${text(row.budget_id)}, ${text(row.window_start)})`);
  return sql`SELECT 1 FROM ledger_windows WHERE (budget_id, window_start) IN (VALUES ${sql.join(names)})
    ORDER BY budget_id COLLATE "C", window_start COLLATE "C" FOR UPDATE`;
}

function largestCover(charges: readonly Charged[]): number {
  let most = 0;
  for (const { cover } of charges) if (cover > most) most = cover;
  return most;
}

/** One literal, without a list of columns of its own for what is listed: it is made for each call. */
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

function nameOf({ budget_id, window_start }: { budget_id: string; window_start: string }) {
  return { budget_id, window_start };
}

function emptyWindow({ budget_id, window_start }: { budget_id: string; window_start: string }) {
  const none = { opening: 0, spent: 0, leased: 0, wanted: 0, wanted_by: '', wanted_at: 0, granted: 0, free: null };
  return { budget_id, window_start, ...none, settled_elsewhere: 0 };
}

function windowRow(raise: WindowRaise, { divisor, node }: SettleBatch, claimant: string): WindowRow {
  const { budget_id, window_start, cost, cover, need, want, slack, own } = raise;
  const withdraws = raise.withdraws ? 1 : 0;
  return { budget_id, window_start, cost, cover, need, want, slack, divisor, own, withdraws, claimant, node };
}

function leaseName({ budget_id, window_start }: WindowRaise, node: string) {
  return { node, budget_id, window_start };
}

/** Whether nothing is left of a lease, apart from a grant of the batch. */
function isUsedUp({ own, cover }: WindowRaise): boolean {
  return own > 0 && own === cover;
}

/**
 * Whether a raise is a charge that the lease covers, and no more: it changes nothing of what is free, and something remains of
 * the lease. Then the window's row is neither locked nor written.
 */
function isCoveredCharge({ is_new, own, cost, cover, want, withdraws }: WindowRaise): boolean {
  return !is_new && want === 0 && !withdraws && cost > 0 && cost === cover && own > cover;
}

function chargeRow({ budget_id, window_start, cost }: WindowRaise, node: string): ChargeRow {
  return { budget_id, window_start, cost, node };
}

function leaseRow({ budget_id, window_start, own, cover }: WindowRaise, node: string): LeaseRest {
  return { node, budget_id, window_start, rest: own - cover };
}

/** The states of the windows that a batch has raised. */
function statesOf(raises: readonly WindowRaise[], raised: readonly RaisedWindow[], claimant: string): WindowState[] {
  const byName = new Map(raised.map((row) => [`${row.budget_id} ${row.window_start}`, row]));
  return raises.map(({ budget_id, window_start, own, cover }): WindowState => {
    const row = byName.get(`${budget_id} ${window_start}`);
    if (row === undefined) throw new Error(`The window ${budget_id} ${window_start} was not raised`);
    const { free, granted, wanted_by, settled_elsewhere: elsewhere } = row;
    const claims = wanted_by === claimant;
    const claimed = wanted_by !== '' && !claims;
    const lease = own - cover + granted;
    const [spent, leased] = [row.spent + elsewhere, row.leased - elsewhere];
    return { budget_id, window_start, lease, leased, spent, free, claimed, claims };
  });
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

/** A window of a lease that another node waits for, or whose limit was lowered or removed. */
interface ClaimedLease {
  budget_id: string;
  window_start: string;
  wanted_by: string;
  spent: number;
  leased: number;
  limit_nano: number | null;
  /** The node that waits, if it was active lately. */
  claimant: string | null;
}

/** Compiled once: a node with leases runs it four times a second. Parameters: `at` (on SQLite alone), then the node. */
function claimedLeasesQuery(queries: Queries, engine: Database['engine']) {
  return queries
    .selectFrom('ledger_leases as l')
    .innerJoin('ledger_windows as w', (join) =>
      join.onRef('w.budget_id', '=', 'l.budget_id').onRef('w.window_start', '=', 'l.window_start'),
    )
    .leftJoin('ledger_budgets as b', 'b.id', 'l.budget_id')
    .select(['l.budget_id', 'l.window_start', 'w.wanted_by', 'w.spent', 'w.leased', 'b.limit_nano'])
    .select(
      sql<string | null>`(SELECT c.id FROM ledger_nodes AS c
        WHERE c.id || ' ' || CAST(c.epoch AS TEXT) = w.wanted_by
          AND c.seen_at > ${storeNow(engine, 0)} - ${sql.lit(limits.node_live_ms)})`.as('claimant'),
    )
    .where('l.node_id', '=', '')
    .where('l.amount', '>', NOTHING)
    .where(({ eb, or, ref }) =>
      or([
        eb('w.wanted_by', '<>', sql.lit('')),
        eb('b.limit_nano', 'is', null),
        eb(sql<number>`${ref('w.spent')} + ${ref('w.leased')}`, '>', ref('b.limit_nano')),
      ]),
    )
    .compile();
}

/** A store that adjusts the clock with the time in each answer. */
export function withTime(store: LedgerStore, clock: StoreClock): LedgerStore {
  const timed = async <T extends object>(send: () => Promise<T>): Promise<T> => {
    const sentMs = clock.monotonic_ms();
    const answer = await send();
    if ('now' in answer && typeof answer.now === 'number') clock.adjust(answer.now, sentMs);
    return answer;
  };
  return {
    ...store,
    settle: (batch) => timed(() => store.settle(batch)),
    watch: (node, at) => timed(() => store.watch(node, at)),
  };
}

/** The ledger's tables: nodes, generations, and the usage that is the sum of these. One batch is one transaction. */
export function ledgerStore(queries: Queries, engine: Database['engine']): LedgerStore {
  const pass = new BulkStatement<object, { seen_at: number }>((tx) => passQuery(engine).compile(tx));
  const insertGenerations = new BulkStatement<ReturnType<typeof generationRow>>((tx, rows) =>
    tx
      .insertInto('ledger_generations')
      .values(rows)
      .onConflict((conflict) => conflict.column('id').doNothing())
      .compile(),
  );
  const countUsage = new UsageStatements();
  const findClaimed = new BulkStatement<object, ClaimedLease>((tx) => claimedLeasesQuery(tx, engine));
  const seriesNames = new SeriesNames();
  const storedSeries = new StoredSeries();
  const raiseUsage = new BulkStatement<ReturnType<typeof usageRow>>((tx, rows) =>
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
  const raiseActivity = new BulkStatement<ReturnType<typeof activityRow>>((tx, rows) =>
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
  const openWindows = new BulkStatement<ReturnType<typeof emptyWindow>>((tx, rows) =>
    tx
      .insertInto('ledger_windows')
      .values(rows)
      .onConflict((conflict) => conflict.columns(['budget_id', 'window_start']).doNothing())
      .compile(),
  );
  const lockWindows = new BulkStatement<ReturnType<typeof nameOf>>((tx, rows) => lockWindowsQuery(rows).compile(tx));
  const raiseWindows = new BulkStatement<WindowRow, RaisedWindow>((tx, rows) => raiseWindowsQuery(rows).compile(tx));
  const chargeLeases = new BulkStatement<ChargeRow, RaisedWindow>((tx, rows) => chargeLeasesQuery(rows).compile(tx));
  const endLeases = new BulkStatement<ReturnType<typeof leaseName>>((tx, rows) => endLeasesQuery(rows).compile(tx));
  const writeLeases = new BulkStatement<LeaseRest>((tx, rows) => writeLeasesQuery(rows).compile(tx));
  // Not known before the first `watch`. All processes on an embedded store are of one version.
  let olderNodesMayRun = engine === 'postgres';

  /** One transaction of a batch that charges `charged`; does nothing if the store has one of these already. */
  async function apply(
    batch: SettleBatch,
    charged: readonly Settle[],
    { comparedTo, opensAll }: { comparedTo: number; opensAll: boolean },
  ): Promise<Extract<SettleAnswer, { is: 'applied' }> | { is: 'not_passed' | 'some_known' | 'window_missing' }> {
    const { node, at } = batch;
    const claimant = claimantOf(batch);
    const activity = activityRaisesOf(charged);
    const counted = countedRows(charged, () => node, seriesNames);
    const raises = windowRaisesOf(charged, batch.windows);
    const isLeaseCharge = (raise: WindowRaise) => !olderNodesMayRun && isCoveredCharge(raise);
    const raising = raises.filter((raise) => !isLeaseCharge(raise));
    const fresh = opensAll ? raising : raising.filter(({ is_new }) => is_new);
    const rows = charged.map((settle) => generationRow(settle, node, counted.seriesOf.get(settle.id)));
    const oldest = rows.reduce((least, { admitted_at }) => Math.min(least, admitted_at), Number.MAX_SAFE_INTEGER);
    const passed = pass.step([passRow(engine, batch, Math.max(oldest, comparedTo))], { must_change: true });
    const inserted = insertGenerations.step(rows, { must_change: true });
    const raised = raiseWindows.step(
      raising.map((raise) => windowRow(raise, batch, claimant)),
      { must_change: true },
    );
    const chargedLeases = chargeLeases.step(
      raises.filter(isLeaseCharge).map((raise) => chargeRow(raise, node)),
      { must_change: true },
    );
    const steps = [
      passed,
      inserted,
      raiseUsage.step(raisesOf(activity).map(usageRow)),
      raiseActivity.step(activity.map(activityRow)),
      ...countUsage.steps({ ...counted, series: storedSeries.missing(counted.series) }),
      openWindows.step(fresh.map(emptyWindow)),
      ...(engine === 'postgres' ? [lockWindows.step(raising.map(nameOf))] : []),
      raised,
      // After the locks of windows: whoever has locked windows and waits for a lease waits for no cycle.
      chargedLeases,
      writeLeases.step(raising.map((raise) => leaseRow(raise, node))),
      endLeases.step(raising.filter(isUsedUp).map((raise) => leaseName(raise, node))),
    ];
    const missed = await transact(queries, steps).catch((error: unknown) => {
      throw isDataFault(error) ? new UnstorableData((error as Error).message, { cause: error }) : error;
    });
    if (missed === passed) return { is: 'not_passed' };
    if (missed === inserted) return { is: 'some_known' };
    if (missed !== undefined && !opensAll) return { is: 'window_missing' };
    if (missed !== undefined) throw new Error('A window or a lease of a batch does not exist in the store');
    storedSeries.add(counted.series);
    const [{ seen_at: now } = { seen_at: at }] = passed.answers;
    return { is: 'applied', windows: statesOf(raises, [...raised.answers, ...chargedLeases.answers], claimant), now };
  }

  /** The settles that the store does not have, each once. */
  async function unknownOf(settles: readonly Settle[]): Promise<Settle[]> {
    const ids = settles.map(({ id }) => id);
    const rows = await queries.selectFrom('ledger_generations').select('id').where('id', 'in', ids).execute();
    const known = new Set(rows.map(({ id }) => id));
    return settles.filter(({ id }) => !known.has(id) && known.add(id));
  }

  /** Ends a claim whose node is no longer active: nobody needs to return money for it. */
  async function endClaim(claim: Pick<LeaseRow, 'budget_id' | 'window_start'> & { wanted_by: string }): Promise<void> {
    await queries
      .updateTable('ledger_windows')
      .set({ wanted: 0, wanted_by: '', wanted_at: 0 })
      .where('budget_id', '=', claim.budget_id)
      .where('window_start', '=', claim.window_start)
      .where('wanted_by', '=', claim.wanted_by)
      .execute();
  }

  return {
    settle: async (batch) => {
      let comparedTo = 0;
      let opensAll = false;
      for (let charged = batch.settles; ; ) {
        const answer = await apply(batch, charged, { comparedTo, opensAll });
        if (answer.is === 'applied') return answer;
        if (answer.is === 'window_missing') {
          // It was deleted as long closed.
          opensAll = true;
          continue;
        }
        if (answer.is === 'some_known') {
          // What was charged before is not charged again.
          const unknown = await unknownOf(charged);
          if (unknown.length < charged.length) {
            charged = unknown;
            continue;
          }
          if ((await deletedTo(queries, batch.node)) === comparedTo)
            throw new Error('The store accepts generations that it does not keep');
          // They were deleted meanwhile.
        }
        const refusal = await queries.transaction().execute((tx) => refusalOf(tx, engine, batch));
        if (refusal) return refusal;
        // What was counted and deleted is not charged again. If more is deleted meanwhile, the batch does not pass.
        comparedTo = await deletedTo(queries, batch.node);
        charged = await withoutDeleted(queries, batch.node, charged);
      }
    },

    watch: async (node, at) => {
      const clock = storeNow(engine, at);
      const { answers: rows } = await findClaimed.run(queries, [engine === 'sqlite' ? { at, node } : { node }]);
      const wanted: { budget_id: string; window_start: string }[] = [];
      for (const { budget_id, window_start, wanted_by, claimant, spent, leased, limit_nano } of rows) {
        const isOver = limit_nano === null || spent + leased > limit_nano;
        if (isOver || (claimant !== null && claimant !== node)) wanted.push({ budget_id, window_start });
        if (wanted_by !== '' && claimant === null) await endClaim({ budget_id, window_start, wanted_by });
      }
      const { nodes, older, now, seen_at } = await queries
        .selectFrom('ledger_nodes')
        .select(({ fn, cast }) => [
          fn.coalesce(fn.max(sql<number>`CASE WHEN id = ${node} THEN seen_at END`), sql<number>`0`).as('seen_at'),
          cast<number>(
            fn.coalesce(
              fn.sum(sql<number>`CASE WHEN seen_at > ${clock} - ${sql.lit(limits.node_live_ms)} THEN 1 ELSE 0 END`),
              sql<number>`0`,
            ),
            'bigint',
          ).as('nodes'),
          fn
            .coalesce(
              fn.max(sql<number>`CASE WHEN charges_leases = 0 AND seen_at > ${clock} - ${sql.lit(limits.node_lost_ms)}
                THEN 1 ELSE 0 END`),
              sql<number>`0`,
            )
            .as('older'),
          clock.as('now'),
        ])
        .executeTakeFirstOrThrow();
      olderNodesMayRun = older > 0;
      // A node may hold money for long without settling anything: it is not lost.
      if (seen_at < now - limits.node_live_ms / 2) {
        await queries.updateTable('ledger_nodes').set({ seen_at: now }).where('id', '=', node).execute();
      }
      return { wanted, nodes, now };
    },

    look: (windows) =>
      queries
        .selectFrom('ledger_windows')
        .select(['budget_id', 'window_start'])
        .select((eb) => [
          eb('spent', '+', settledOf('ledger_windows')).as('spent'),
          eb('leased', '-', settledOf('ledger_windows')).as('leased'),
        ])
        .where(({ eb, or }) =>
          or(
            windows.map(({ budget_id, window_start }) =>
              eb.and([eb('budget_id', '=', budget_id), eb('window_start', '=', window_start)]),
            ),
          ),
        )
        .execute(),

    position: async (node) => positionOf(await findNode(queries, node)),

    register: ({ node, instance, epoch_seen, known, at }) => {
      // The store may have been set back.
      storedSeries.clear();
      return queries.transaction().execute(async (tx) => {
        await tx
          .insertInto('ledger_nodes')
          .values({ id: node, epoch: 0, instance: '', batch: 0, seen_at: 0, charges_leases: 1 })
          .onConflict((conflict) => conflict.column('id').doNothing())
          .execute();
        const row = await findNode(tx, node);
        if (!isSame(positionOf(row), known)) return undefined;
        const epoch = Math.max(row.epoch, epoch_seen) + 1;
        // Compare and set: a late copy of an old registration changes nothing.
        const updated = await tx
          .updateTable('ledger_nodes')
          .set({ epoch, instance, batch: 0, seen_at: storeNow(engine, at), charges_leases: 1 })
          .where('id', '=', node)
          .where('epoch', '=', row.epoch)
          .where('batch', '=', row.batch)
          .returning('seen_at')
          .executeTakeFirst();
        if (updated === undefined) return undefined;
        await restoreLeases(tx, node);
        return { epoch, leases: await leasesOf(tx, node), now: updated.seen_at };
      });
    },
  };
}
