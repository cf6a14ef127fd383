import { sql } from 'kysely';
import { SCARCE_TIMES, type SettleBatch, type WindowRaise, type WindowState } from '../ledger/settle.ts';
import { BulkStatement, type Step } from './bulk.ts';
import type { Database } from './database.ts';

/** How long a node's claim on money that is idle at other nodes keeps another node from claiming it. */
export const CLAIM_MS = 120;

const text = (value: string) => sql`CAST(${value} AS TEXT)`;
const bigint = (value: number) => sql`CAST(${value} AS BIGINT)`;

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
  /** The rest of the lease before the batch. */
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

const CLAIMANT = `CASE WHEN ${CLAIMS} THEN v.claimant WHEN ${MET} THEN '' ELSE ledger_windows.wanted_by END`;
const LEASED = `(ledger_windows.leased - v.cover - COALESCE(l.settled, 0) + (${GRANT}))`;
// Whether nodes with leases of the window must look at it. Charges of leases alone change neither side of the comparison.
const SCARCE = `CASE WHEN ${LEASED} > 0 AND ((${CLAIMANT}) <> '' OR b.limit_nano IS NULL
  OR ${FREE} - (${GRANT}) < ${SCARCE_TIMES} * ${LEASED}) THEN 1 ELSE 0 END`;

const RAISE_WINDOWS = sql.raw(`
  UPDATE ledger_windows SET
    spent = ledger_windows.spent + v.cost + COALESCE(l.settled, 0),
    leased = ${LEASED},
    settled_elsewhere = ${ELSEWHERE},
    granted = ${GRANT},
    free = ${FREE} - (${GRANT}),
    wanted = CASE WHEN ${CLAIMS} THEN v.need WHEN ${MET} THEN 0 ELSE ledger_windows.wanted END,
    wanted_by = ${CLAIMANT},
    wanted_at = CASE WHEN ${CLAIMS} AND ledger_windows.wanted_by <> v.claimant THEN n.seen_at ELSE ledger_windows.wanted_at END,
    scarce = ${SCARCE}
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

function nameOf({ budget_id, window_start }: { budget_id: string; window_start: string }) {
  return { budget_id, window_start };
}

function emptyWindow({ budget_id, window_start }: { budget_id: string; window_start: string }) {
  const none = { opening: 0, spent: 0, leased: 0, wanted: 0, wanted_by: '', wanted_at: 0, granted: 0, free: null };
  return { budget_id, window_start, ...none, settled_elsewhere: 0, scarce: 0 };
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

/** The steps that charge windows and leases. `states`: once they are done. */
interface WindowSteps {
  steps: Step[];
  states(): WindowState[];
}

/** The statements of a batch that change windows and leases. */
export class WindowStatements {
  readonly #engine: Database['engine'];
  readonly #openWindows = new BulkStatement<ReturnType<typeof emptyWindow>>((tx, rows) =>
    tx
      .insertInto('ledger_windows')
      .values(rows)
      .onConflict((conflict) => conflict.columns(['budget_id', 'window_start']).doNothing())
      .compile(),
  );
  readonly #lockWindows = new BulkStatement<ReturnType<typeof nameOf>>((tx, rows) =>
    lockWindowsQuery(rows).compile(tx),
  );
  readonly #raiseWindows = new BulkStatement<WindowRow, RaisedWindow>((tx, rows) =>
    raiseWindowsQuery(rows).compile(tx),
  );
  readonly #chargeLeases = new BulkStatement<ChargeRow, RaisedWindow>((tx, rows) =>
    chargeLeasesQuery(rows).compile(tx),
  );
  readonly #endLeases = new BulkStatement<ReturnType<typeof leaseName>>((tx, rows) => endLeasesQuery(rows).compile(tx));
  readonly #writeLeases = new BulkStatement<LeaseRest>((tx, rows) => writeLeasesQuery(rows).compile(tx));

  constructor(engine: Database['engine']) {
    this.#engine = engine;
  }

  /** `opensAll`: a window may have been deleted. `chargesLeases`: every node that runs reads what is settled of leases. */
  steps(
    raises: readonly WindowRaise[],
    batch: SettleBatch,
    { opensAll, chargesLeases }: { opensAll: boolean; chargesLeases: boolean },
  ): WindowSteps {
    const { node } = batch;
    const claimant = claimantOf(batch);
    const isLeaseCharge = (raise: WindowRaise) => chargesLeases && isCoveredCharge(raise);
    const raising = raises.filter((raise) => !isLeaseCharge(raise));
    const fresh = opensAll ? raising : raising.filter(({ is_new }) => is_new);
    const raised = this.#raiseWindows.step(
      raising.map((raise) => windowRow(raise, batch, claimant)),
      { must_change: true },
    );
    const chargedLeases = this.#chargeLeases.step(
      raises.filter(isLeaseCharge).map((raise) => chargeRow(raise, node)),
      { must_change: true },
    );
    const steps = [
      this.#openWindows.step(fresh.map(emptyWindow)),
      ...(this.#engine === 'postgres' ? [this.#lockWindows.step(raising.map(nameOf))] : []),
      raised,
      // After the locks of windows: a transaction that has locked windows and waits for a lease cannot be part of a cycle.
      chargedLeases,
      this.#writeLeases.step(raising.map((raise) => leaseRow(raise, node))),
      this.#endLeases.step(raising.filter(isUsedUp).map((raise) => leaseName(raise, node))),
    ];
    return { steps, states: () => statesOf(raises, [...raised.answers, ...chargedLeases.answers], claimant) };
  }
}
