import { sql } from 'kysely';
import {
  type BudgetState,
  creditBudget,
  guardrailBudgets,
  keyBudgets,
  type Payer,
  type SourcedBudget,
  subjectOf,
  subjectsOf,
  workspaceBudgets,
} from '../accounts/budget.ts';
import type { StoredKey } from '../accounts/key.ts';
import { type Budget, windowStart } from '../schemas/budget.ts';
import type { Page, Paged } from '../schemas/page.ts';
import { isStorable } from '../schemas/text.ts';
import type { BudgetInterval as WorkspaceInterval } from '../schemas/workspace.ts';
import { portionsOf } from './portions.ts';
import type { Queries } from './queries.ts';
import { settledOf } from './settled.ts';

const intervals = ['daily', 'weekly', 'monthly', 'never'] as const;

/** A limit in force, with the names of what it is set for; each is null if the limit is not of that kind. */
export interface SetBudget extends Budget {
  subject: string;
  guardrail_id: string | null;
  guardrail_name: string | null;
  key_name: string | null;
  user_name: string | null;
  workspace_name: string | null;
  workspace_id: string | null;
}

/** The limits to list. */
export interface BudgetFilter {
  organization_id: string;
  scope?: Budget['scope'] | undefined;
  workspace_id?: string | undefined;
  key_hash?: string | undefined;
  guardrail_id?: string | undefined;
}

/** Selects the budgets that one source has created. */
type Slice = { scope: Budget['scope']; subject: string } | { guardrail_id: string } | { subject: string };

/**
 * Budgets in force. The source of a limit (a key, a guardrail and its assignments, a workspace, credits) is stored elsewhere;
 * its store updates the budgets here in the same transaction. The caller of a `keep` method has locked the row of the source,
 * so that changes of it are ordered.
 */
export function budgetStore(queries: Queries) {
  const sliced = (slice: Slice) => {
    let query = queries.selectFrom('ledger_budgets').selectAll();
    for (const [column, value] of Object.entries(slice)) {
      query = query.where(column as 'scope' | 'subject' | 'guardrail_id', '=', value);
    }
    return query.execute();
  };

  /**
   * Nodes with leases look at the windows of these budgets soon. Call it after the change, in its transaction: it waits for batches that
   * read the limit before, and a batch that waits for it reads the new one.
   */
  const markScarce = async (ids: readonly string[]): Promise<void> => {
    for (const chunk of portionsOf(ids)) {
      await queries
        .updateTable('ledger_windows')
        .set({ scarce: 1 })
        .where('budget_id', 'in', chunk)
        // Also the newest window without a lease: a batch may be about to lease the first.
        .where(({ eb, or }) =>
          or([
            eb('leased', '>', 0),
            eb(
              'window_start',
              '=',
              sql<string>`(SELECT MAX(n.window_start) FROM ledger_windows AS n WHERE n.budget_id = ledger_windows.budget_id)`,
            ),
          ]),
        )
        .execute();
    }
  };

  const close = async (ids: readonly string[]): Promise<void> => {
    for (const chunk of portionsOf(ids)) {
      await queries
        .updateTable('ledger_budgets')
        .set(({ eb }) => ({ limit_nano: null, version: eb('version', '+', 1) }))
        .where('id', 'in', chunk)
        .where('limit_nano', 'is not', null)
        .execute();
    }
    await markScarce(ids);
  };

  const put = async (budgets: readonly SourcedBudget[]): Promise<void> => {
    for (const chunk of portionsOf(budgets)) {
      await queries
        .insertInto('ledger_budgets')
        .values(chunk.map(({ payer, ...budget }) => ({ ...budget, subject: subjectOf(payer), version: 1 })))
        .onConflict((conflict) =>
          conflict.column('id').doUpdateSet({
            limit_nano: sql`excluded.limit_nano`,
            label: sql`excluded.label`,
            include_byok: sql`excluded.include_byok`,
            version: sql`ledger_budgets.version + 1`,
          }),
        )
        .execute();
    }
  };

  /**
   * What the payers of these budgets, all of one kind, have used since a day, and what is spent of the budgets' windows that start then;
   * nano-USD. One statement sees one state of the store: a batch is in both sums or in neither, and raises both by the same amount later.
   */
  const usagesAndSpent = async (budgets: readonly SourcedBudget[], day: string) => {
    const payers = budgets.map(({ payer }) => payer);
    const [{ by, organization_id } = { by: 'organization_id' as const, organization_id: '' }] = payers;
    const names = payers.map(({ id }) => id);
    const windows = queries
      .selectFrom('ledger_windows')
      .select(['budget_id as id', sql<string>`'spent'`.as('of')])
      .select((eb) => [eb('spent', '+', settledOf('ledger_windows')).as('amount'), sql<number>`0`.as('byok_amount')])
      .where(
        'budget_id',
        'in',
        budgets.map(({ id }) => id),
      )
      .where('window_start', '=', day);
    const own = queries
      .selectFrom('activity_days')
      .select([
        `${by} as id`,
        sql<string>`'usage'`.as('of'),
        sql<number>`CAST(SUM(usage_nano) AS BIGINT)`.as('amount'),
        sql<number>`CAST(SUM(byok_usage_nano) AS BIGINT)`.as('byok_amount'),
      ])
      .where('organization_id', '=', organization_id)
      .where(by, 'in', names)
      .where('day', '>=', day)
      .groupBy(by);
    // A key's limits count the calls of the keys that were made with it, deleted ones too.
    const ofDescendants = queries
      .selectFrom('api_key_ancestors as a')
      .innerJoin('activity_days as d', 'd.key_hash', 'a.key_hash')
      .select([
        'a.ancestor_hash as id',
        sql<string>`'usage'`.as('of'),
        sql<number>`CAST(SUM(d.usage_nano) AS BIGINT)`.as('amount'),
        sql<number>`CAST(SUM(d.byok_usage_nano) AS BIGINT)`.as('byok_amount'),
      ])
      .where('d.organization_id', '=', organization_id)
      .where('a.ancestor_hash', 'in', names)
      .where('d.day', '>=', day)
      .groupBy('a.ancestor_hash');
    const sums = windows.unionAll(own);
    const rows = await (by === 'key_hash' ? sums.unionAll(ofDescendants) : sums).execute();
    const usages = new Map<string, { usage: number; byok_usage: number }>();
    const spent = new Map<string, number>();
    for (const { id, of, amount, byok_amount } of rows) {
      if (of === 'spent') {
        spent.set(id, amount);
        continue;
      }
      const { usage, byok_usage } = usages.get(id) ?? { usage: 0, byok_usage: 0 };
      usages.set(id, { usage: usage + amount, byok_usage: byok_usage + byok_amount });
    }
    return { usages, spent };
  };

  /** Opens windows for budgets of one kind of payer and one interval, in the order of their ids; see `open`. */
  const openAlike = async (budgets: readonly SourcedBudget[], start: string): Promise<void> => {
    const empty = {
      window_start: start,
      opening: 0,
      spent: 0,
      leased: 0,
      wanted: 0,
      wanted_by: '',
      wanted_at: 0,
      granted: 0,
      settled_elsewhere: 0,
      scarce: 0,
    };
    for (const chunk of portionsOf(budgets)) {
      await queries
        .insertInto('ledger_windows')
        .values(chunk.map(({ id }) => ({ budget_id: id, ...empty, free: null })))
        .onConflict((conflict) => conflict.columns(['budget_id', 'window_start']).doNothing())
        .execute();
    }
    for (const chunk of portionsOf(budgets)) {
      const { usages, spent } = await usagesAndSpent(chunk, start);
      for (const { id, payer, include_byok } of chunk) {
        const { usage, byok_usage } = usages.get(payer.id) ?? { usage: 0, byok_usage: 0 };
        const missing = usage + (include_byok ? byok_usage : 0) - (spent.get(id) ?? 0);
        if (missing === 0) continue;
        // In the order in which batches lock windows.
        await queries
          .updateTable('ledger_windows')
          .set(({ eb }) => ({ opening: eb('opening', '+', missing), spent: eb('spent', '+', missing) }))
          .where('budget_id', '=', id)
          .where('window_start', '=', start)
          .execute();
      }
    }
  };

  /**
   * A budget that takes effect in the middle of a window starts with what its payer has settled in the window so far.
   * Running calls count against the budgets that they were admitted with.
   */
  const open = async (budgets: readonly SourcedBudget[], at: string): Promise<void> => {
    const ordered = [...budgets].sort((a, b) => (a.id < b.id ? -1 : 1));
    const alike = Map.groupBy(ordered, ({ payer, reset_interval }) => `${payer.by} ${reset_interval}`);
    for (const group of alike.values()) {
      const [{ reset_interval } = { reset_interval: 'never' as const }] = group;
      await openAlike(group, windowStart(reset_interval, Date.parse(at)));
    }
  };

  const keep = async (slice: Slice, wanted: readonly SourcedBudget[], at: string): Promise<void> => {
    const stored = await sliced(slice);
    const known = new Map(stored.map((budget) => [budget.id, budget]));
    const ids = new Set(wanted.map(({ id }) => id));
    await close(stored.filter(({ id, limit_nano }) => limit_nano !== null && !ids.has(id)).map(({ id }) => id));
    const changed = wanted.filter(({ id, limit_nano, label, include_byok }) => {
      const before = known.get(id);
      return before?.limit_nano !== limit_nano || before.label !== label || before.include_byok !== include_byok;
    });
    await put(changed);
    await markScarce(changed.filter(({ id }) => known.has(id)).map(({ id }) => id));
    const opened = changed.filter(({ id, include_byok }) => {
      const before = known.get(id);
      return before === undefined || before.limit_nano === null || before.include_byok !== include_byok;
    });
    await open(opened, at);
  };

  const assigneesOf = async (guardrailId: string) => {
    const keys = queries.selectFrom('guardrail_key_assignments').select('key_hash as assignee');
    const users = queries.selectFrom('guardrail_member_assignments').select('user_id as assignee');
    const workspaces = queries.selectFrom('workspaces').select('id as assignee');
    const [keyHashes, userIds, workspaceIds] = [
      await keys.where('guardrail_id', '=', guardrailId).execute(),
      await users.where('guardrail_id', '=', guardrailId).execute(),
      await workspaces.where('default_guardrail_id', '=', guardrailId).execute(),
    ];
    return {
      workspace_ids: workspaceIds.map(({ assignee }) => assignee),
      key_hashes: keyHashes.map(({ assignee }) => assignee),
      user_ids: userIds.map(({ assignee }) => assignee),
    };
  };

  return {
    /** The budgets that requests of these subjects count against, ordered by id. */
    findBySubjects: async (subjects: readonly string[]): Promise<Budget[]> => {
      const rows = await queries
        .selectFrom('ledger_budgets')
        .select(['id', 'scope', 'label', 'reset_interval', 'limit_nano', 'include_byok'])
        .where('subject', 'in', [...subjects])
        .where('limit_nano', 'is not', null)
        .orderBy('id')
        .execute();
      // The columns' CHECKs allow only the values of the type.
      return rows as Budget[];
    },

    /** The limits in force of an organization, ordered by id: those of credits, guardrails, keys, then workspaces. */
    listBy: async (filter: BudgetFilter, page: Page): Promise<Paged<SetBudget>> => {
      const { organization_id: organizationId, scope, workspace_id, key_hash, guardrail_id } = filter;
      const names = [workspace_id, key_hash, guardrail_id].filter((name) => name !== undefined);
      if (!names.every(isStorable)) return { total_count: 0, data: [] };
      const userPrefix = subjectOf({ by: 'user_id', id: '', organization_id: organizationId });
      const idAfter = (prefix: string) =>
        sql<string>`CASE WHEN b.subject LIKE ${`${prefix}%`} THEN substr(b.subject, ${sql.lit(prefix.length + 1)}) END`;
      let query = queries
        .selectFrom('ledger_budgets as b')
        .leftJoin('api_keys as k', (join) => join.on('k.hash', '=', idAfter('key:')))
        .leftJoin('users as u', (join) => join.on('u.id', '=', idAfter(userPrefix)))
        .leftJoin('workspaces as w', (join) => join.on('w.id', '=', idAfter('workspace:')))
        .leftJoin('guardrails as g', 'g.id', 'b.guardrail_id')
        .where('b.limit_nano', 'is not', null)
        .where(({ eb, or }) =>
          or([
            eb('k.organization_id', '=', organizationId),
            eb('w.organization_id', '=', organizationId),
            eb('u.id', 'is not', null),
            eb(
              'b.subject',
              '=',
              subjectOf({ by: 'organization_id', id: organizationId, organization_id: organizationId }),
            ),
          ]),
        );
      if (scope !== undefined) query = query.where('b.scope', '=', scope);
      if (guardrail_id !== undefined) query = query.where('b.guardrail_id', '=', guardrail_id);
      if (key_hash !== undefined) {
        const subject = subjectOf({ by: 'key_hash', id: key_hash, organization_id: organizationId });
        query = query.where('b.subject', '=', subject);
      }
      if (workspace_id !== undefined) {
        query = query.where(({ eb, or }) =>
          or([eb('k.workspace_id', '=', workspace_id), eb('w.id', '=', workspace_id)]),
        );
      }
      const { count } = await query.select(({ fn }) => fn.countAll<number>().as('count')).executeTakeFirstOrThrow();
      const rows = await query
        .select(['b.id', 'b.scope', 'b.label', 'b.reset_interval', 'b.limit_nano', 'b.include_byok', 'b.subject'])
        .select(['b.guardrail_id', 'g.name as guardrail_name', 'k.name as key_name', 'w.name as workspace_name'])
        .select(sql<string | null>`COALESCE(u.email, u.name)`.as('user_name'))
        .select(sql<string | null>`COALESCE(k.workspace_id, w.id)`.as('workspace_id'))
        .orderBy('b.id')
        .limit(page.limit)
        .offset(page.offset)
        .execute();
      // The columns' CHECKs allow only the values of the type.
      return { total_count: count, data: rows as SetBudget[] };
    },

    /** The budgets of these scopes that limit a caller, without those of its key's parents. */
    findStates: async (
      caller: Parameters<typeof subjectsOf>[0],
      budgetScopes: readonly Budget['scope'][],
      nowMs: number,
    ): Promise<BudgetState[]> => {
      const subjects = subjectsOf(caller);
      const starts = intervals.map((interval) => windowStart(interval, nowMs));
      const rows = await queries
        .selectFrom('ledger_budgets as b')
        .leftJoin('ledger_windows as w', (join) =>
          join.onRef('w.budget_id', '=', 'b.id').on('w.window_start', 'in', [...new Set(starts)]),
        )
        .select(['b.id', 'b.scope', 'b.label', 'b.reset_interval', 'b.limit_nano', 'b.include_byok', 'b.subject'])
        .select(['b.guardrail_id', 'w.window_start'])
        .select((eb) => eb('w.spent', '+', settledOf('w')).as('spent'))
        .where('b.subject', 'in', subjects)
        .where('b.scope', 'in', [...budgetScopes])
        .where('b.limit_nano', 'is not', null)
        .orderBy('b.id')
        .execute();
      const states = new Map<string, BudgetState>();
      for (const { window_start, spent, ...budget } of rows as (Omit<
        BudgetState,
        'spent_nano' | 'workspace_budget_id'
      > & {
        window_start: string | null;
        spent: number | null;
      })[]) {
        const isCurrent = window_start === windowStart(budget.reset_interval, nowMs);
        const known = states.get(budget.id)?.spent_nano ?? 0;
        states.set(budget.id, { ...budget, spent_nano: isCurrent ? (spent ?? 0) : known });
      }
      return [...states.values()];
    },

    /** Updates the budget of a key's own limit. */
    keepKey: async (key: StoredKey, at: string): Promise<void> => {
      const subject = subjectOf({ by: 'key_hash', id: key.hash, organization_id: key.organization_id });
      await keep({ scope: 'key', subject }, keyBudgets(key), at);
    },

    /** Updates the budgets of a guardrail: its limit, its assignments, and what its workspace counts. */
    keepGuardrail: async (id: string, at: string): Promise<void> => {
      const row = await queries
        .selectFrom('guardrails as g')
        .innerJoin('workspaces as w', 'w.id', 'g.workspace_id')
        .select(['g.id', 'g.organization_id', 'g.name', 'g.limit_nano', 'g.reset_interval'])
        .select(['g.include_byok_in_budgets', 'w.include_byok_in_budgets as workspace_includes_byok'])
        .where('g.id', '=', id)
        .executeTakeFirstOrThrow();
      const resetInterval = row.reset_interval as 'daily' | 'weekly' | 'monthly' | null;
      const assignees =
        row.limit_nano === null ? { key_hashes: [], user_ids: [], workspace_ids: [] } : await assigneesOf(id);
      const includeByok = row.include_byok_in_budgets || row.workspace_includes_byok;
      const wanted = guardrailBudgets({ ...row, reset_interval: resetInterval }, assignees, includeByok);
      await keep({ guardrail_id: id }, wanted, at);
    },

    /** Updates the budgets of a workspace. */
    keepWorkspace: async (id: string, at: string): Promise<void> => {
      const row = await queries
        .selectFrom('workspaces')
        .select(['id', 'organization_id', 'slug', 'include_byok_in_budgets'])
        .where('id', '=', id)
        .executeTakeFirstOrThrow();
      const budgets = await queries
        .selectFrom('workspace_budgets')
        .select(['reset_interval', 'limit_nano'])
        .where('workspace_id', '=', id)
        .execute();
      const subject = subjectOf({ by: 'workspace_id', id, organization_id: row.organization_id });
      const wanted = workspaceBudgets(row, budgets as { reset_interval: WorkspaceInterval; limit_nano: number }[]);
      await keep({ scope: 'workspace', subject }, wanted, at);
    },

    /** Updates the budget of the credits that were granted to an organization. */
    keepCredits: async (organizationId: string, grantedNano: number, at: string): Promise<void> => {
      const budget = creditBudget(organizationId, grantedNano);
      await keep({ scope: 'organization', subject: subjectOf(budget.payer) }, [budget], at);
    },

    /** Closes the budgets of a guardrail, of deleted payers, or of a guardrail for these payers. */
    close: async ({ guardrail_id, payers }: { guardrail_id?: string; payers?: readonly Payer[] }): Promise<void> => {
      let query = queries.selectFrom('ledger_budgets').select('id').where('limit_nano', 'is not', null);
      if (guardrail_id !== undefined) query = query.where('guardrail_id', '=', guardrail_id);
      if (payers === undefined) return close((await query.execute()).map(({ id }) => id));
      for (const chunk of portionsOf(payers.map(subjectOf))) {
        await close((await query.where('subject', 'in', chunk).execute()).map(({ id }) => id));
      }
    },
  };
}
