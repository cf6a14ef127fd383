import { randomUUID } from 'node:crypto';
import type { StoredBudget, StoredWorkspace, WorkspaceSettings } from '../accounts/workspace.ts';
import type { Page, Paged } from '../schemas/page.ts';
import { isStorable } from '../schemas/text.ts';
import type { BudgetInterval } from '../schemas/workspace.ts';
import { budgetStore } from './budgets.ts';
import type { Queries } from './queries.ts';
import { nextNumber } from './sequence.ts';

/** Names a workspace of an organization by its id or its slug; those of other organizations do not exist for it. */
export interface WorkspaceName {
  organization_id: string;
  id_or_slug: string;
}

interface Row extends Omit<StoredWorkspace, 'default_provider_sort'> {
  default_provider_sort: string | null;
}

/** The stored workspace; only values of the request's enumeration are stored. */
export function toWorkspace(row: Row): StoredWorkspace {
  return { ...row, default_provider_sort: row.default_provider_sort as StoredWorkspace['default_provider_sort'] };
}

function written({ io_logging_api_key_ids: ids, ...settings }: WorkspaceSettings) {
  return {
    ...settings,
    ...(ids === undefined ? {} : { io_logging_api_key_ids: ids === null ? null : JSON.stringify(ids) }),
  };
}

/** Workspaces and their budgets. */
export function workspaceStore(queries: Queries) {
  /** Updates the budgets of a workspace's guardrails, which depend on its settings. Locks the guardrails, so that none is assigned meanwhile. */
  const keepGuardrails = async (workspaceId: string, at: string): Promise<void> => {
    const rows = await queries
      .selectFrom('guardrails')
      .select('id')
      .where('workspace_id', '=', workspaceId)
      .orderBy('id')
      .execute();
    for (const { id } of rows) {
      const locked = await queries
        .updateTable('guardrails')
        .set(({ ref }) => ({ version: ref('version') }))
        .where('id', '=', id)
        .returning('id')
        .executeTakeFirst();
      if (locked) await budgetStore(queries).keepGuardrail(id, at);
    }
  };
  return {
    /** Inserts a workspace; throws a unique violation if the organization has one with this slug. */
    insert: async (
      workspace: WorkspaceSettings & {
        organization_id: string;
        name: string;
        slug: string;
        created_by: string | null;
        created_at: string;
      },
    ): Promise<StoredWorkspace> => {
      const row = await queries
        .insertInto('workspaces')
        .values({
          description: null,
          default_image_model: null,
          default_text_model: null,
          default_provider_sort: null,
          io_logging_api_key_ids: null,
          io_logging_sampling_rate_bp: 10_000,
          is_data_discount_logging_enabled: false,
          is_observability_broadcast_enabled: false,
          is_observability_io_logging_enabled: false,
          default_guardrail_id: null,
          include_byok_in_budgets: false,
          ...written(workspace),
          organization_id: workspace.organization_id,
          name: workspace.name,
          slug: workspace.slug,
          created_by: workspace.created_by,
          created_at: workspace.created_at,
          id: randomUUID(),
          is_default: false,
          updated_at: null,
          seq: await nextNumber(queries, 'workspaces'),
          version: 1,
        })
        .returningAll()
        .executeTakeFirstOrThrow();
      if (row.default_guardrail_id !== null) {
        await budgetStore(queries).keepGuardrail(row.default_guardrail_id, workspace.created_at);
      }
      return toWorkspace(row);
    },

    find: async ({ organization_id, id_or_slug }: WorkspaceName): Promise<StoredWorkspace | undefined> => {
      if (!isStorable(id_or_slug)) return undefined;
      const row = await queries
        .selectFrom('workspaces')
        .selectAll()
        .where('organization_id', '=', organization_id)
        .where((eb) => eb.or([eb('id', '=', id_or_slug), eb('slug', '=', id_or_slug)]))
        .executeTakeFirst();
      return row && toWorkspace(row);
    },

    /** The workspace, locked until the transaction ends. */
    lock: async ({ organization_id, id_or_slug }: WorkspaceName): Promise<StoredWorkspace | undefined> => {
      if (!isStorable(id_or_slug)) return undefined;
      const row = await queries
        .updateTable('workspaces')
        .set(({ ref }) => ({ version: ref('version') }))
        .where('organization_id', '=', organization_id)
        .where((eb) => eb.or([eb('id', '=', id_or_slug), eb('slug', '=', id_or_slug)]))
        .returningAll()
        .executeTakeFirst();
      return row && toWorkspace(row);
    },

    /** `before` is its previous default guardrail; to change it, the caller must have locked both guardrails. */
    update: async (
      id: string,
      change: WorkspaceSettings & { updated_at: string },
      before: string | null = null,
    ): Promise<StoredWorkspace> => {
      const row = await queries
        .updateTable('workspaces')
        .set(written(change))
        .set(({ eb }) => ({ version: eb('version', '+', 1) }))
        .where('id', '=', id)
        .returningAll()
        .executeTakeFirstOrThrow();
      await budgetStore(queries).keepWorkspace(id, change.updated_at);
      if (change.include_byok_in_budgets !== undefined) await keepGuardrails(id, change.updated_at);
      if (change.default_guardrail_id !== undefined && change.default_guardrail_id !== before) {
        for (const guardrail of [before, change.default_guardrail_id]) {
          if (guardrail !== null) await budgetStore(queries).keepGuardrail(guardrail, change.updated_at);
        }
      }
      return toWorkspace(row);
    },

    /** Removes a default guardrail from all workspaces, and returns their ids. */
    dropGuardrail: async (guardrailId: string, updatedAt: string): Promise<string[]> => {
      const rows = await queries
        .updateTable('workspaces')
        .set({ default_guardrail_id: null, updated_at: updatedAt })
        .set(({ eb }) => ({ version: eb('version', '+', 1) }))
        .where('default_guardrail_id', '=', guardrailId)
        .returning('id')
        .execute();
      return rows.map(({ id }) => id);
    },

    /** Which of these integer ids are those of the organization's API keys. */
    findKeyIds: async (organizationId: string, ids: readonly number[]): Promise<Set<number>> => {
      const rows = await queries
        .selectFrom('api_keys')
        .select('id')
        .where('organization_id', '=', organizationId)
        .where('is_management', '=', false)
        .where('id', 'in', [...ids])
        .execute();
      return new Set(rows.map(({ id }) => id));
    },

    /** Deletes the workspace with everything in it; its keys must be deleted before. */
    delete: async (id: string): Promise<void> => {
      const guardrails = queries.selectFrom('guardrails').select('id').where('workspace_id', '=', id);
      for (const { id: guardrailId } of await guardrails.execute())
        await budgetStore(queries).close({ guardrail_id: guardrailId });
      for (const table of ['guardrail_key_assignments', 'guardrail_member_assignments'] as const) {
        await queries.deleteFrom(table).where('guardrail_id', 'in', guardrails).execute();
      }
      const tables = [
        'guardrails',
        'workspace_budgets',
        'workspace_members',
        'byok_credentials',
        'authorization_codes',
      ] as const;
      for (const table of tables) await queries.deleteFrom(table).where('workspace_id', '=', id).execute();
      const { organization_id } = await queries
        .deleteFrom('workspaces')
        .where('id', '=', id)
        .returning('organization_id')
        .executeTakeFirstOrThrow();
      await budgetStore(queries).close({ payers: [{ by: 'workspace_id', id, organization_id }] });
    },

    /** The workspaces of an organization, or those of one of its members. */
    listBy: async (
      whose: { organization_id: string; member_user_id?: string | undefined },
      page: Page,
    ): Promise<Paged<StoredWorkspace>> => {
      const { organization_id, member_user_id: userId } = whose;
      let query = queries.selectFrom('workspaces').where('organization_id', '=', organization_id);
      if (userId !== undefined) {
        query = query.where(({ eb, or, selectFrom }) => {
          const joined = selectFrom('workspace_members').select('workspace_id').where('user_id', '=', userId);
          return or([eb('is_default', '=', true), eb('id', 'in', joined)]);
        });
      }
      const { count } = await query.select(({ fn }) => fn.countAll<number>().as('count')).executeTakeFirstOrThrow();
      const rows = await query.selectAll().orderBy('seq').limit(page.limit).offset(page.offset).execute();
      return { total_count: count, data: rows.map(toWorkspace) };
    },

    /** The budgets of a workspace, the longest interval first. */
    listBudgets: async (workspaceId: string): Promise<StoredBudget[]> => {
      const rows = await queries
        .selectFrom('workspace_budgets')
        .selectAll()
        .where('workspace_id', '=', workspaceId)
        .execute();
      const order = ['lifetime', 'monthly', 'weekly', 'daily'];
      return rows
        .map((row) => ({ ...row, reset_interval: row.reset_interval as BudgetInterval }))
        .sort((a, b) => order.indexOf(a.reset_interval) - order.indexOf(b.reset_interval));
    },

    /** Sets the budget of an interval. */
    putBudget: async (budget: {
      workspace_id: string;
      interval: BudgetInterval;
      limit_nano: number;
      at: string;
    }): Promise<StoredBudget> => {
      const { workspace_id, interval, limit_nano, at } = budget;
      const row = await queries
        .insertInto('workspace_budgets')
        .values({
          id: randomUUID(),
          workspace_id,
          reset_interval: interval,
          limit_nano,
          created_at: at,
          updated_at: null,
        })
        .onConflict((conflict) =>
          conflict.columns(['workspace_id', 'reset_interval']).doUpdateSet({ limit_nano, updated_at: at }),
        )
        .returningAll()
        .executeTakeFirstOrThrow();
      await budgetStore(queries).keepWorkspace(workspace_id, at);
      return { ...row, reset_interval: interval };
    },

    deleteBudget: async (budget: { workspace_id: string; interval: BudgetInterval; at: string }): Promise<void> => {
      const { workspace_id, interval, at } = budget;
      await queries
        .deleteFrom('workspace_budgets')
        .where('workspace_id', '=', workspace_id)
        .where('reset_interval', '=', interval)
        .execute();
      await budgetStore(queries).keepWorkspace(workspace_id, at);
    },
  };
}

export type WorkspaceStore = ReturnType<typeof workspaceStore>;
