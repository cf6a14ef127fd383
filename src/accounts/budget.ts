import { type Budget, type BudgetInterval, windowEnd } from '../schemas/budget.ts';
import type { KeyBudget } from '../schemas/key.ts';
import { toUsd } from '../schemas/money.ts';
import type { BudgetInterval as WorkspaceInterval } from '../schemas/workspace.ts';

/** The subject of a limit: a dimension of activity, and an id. */
export interface Payer {
  by: 'key_hash' | 'user_id' | 'workspace_id' | 'organization_id';
  id: string;
  organization_id: string;
}

/** A budget with its source: a limit that was set somewhere. Requests of its payer count against it. */
export interface SourcedBudget extends Budget {
  payer: Payer;
  guardrail_id: string | null;
}

/** The name of a payer. A user has another name in each organization. */
export function subjectOf({ by, id, organization_id }: Payer): string {
  switch (by) {
    case 'key_hash':
      return `key:${id}`;
    case 'user_id':
      return `user:${organization_id}:${id}`;
    case 'workspace_id':
      return `workspace:${id}`;
    case 'organization_id':
      return `organization:${id}`;
  }
}

/** The names of all payers whose limits a caller's requests count against. */
export function subjectsOf(caller: {
  key_hash: string | null;
  organization_id: string;
  workspace_id: string;
  user_id: string | null;
}): string[] {
  const { organization_id } = caller;
  return (['key_hash', 'user_id', 'workspace_id', 'organization_id'] as const).flatMap((by) => {
    const id = caller[by];
    return id === null ? [] : [subjectOf({ by, id, organization_id })];
  });
}

/** A budget of a parent key, labelled for a refusal to a key that was made with that key. */
export function ofParentKey<B extends { label: string }>(budget: B): B {
  return { ...budget, label: budget.label.replace(/this API key$/, 'the API key that this key was made with') };
}

/**
 * Whether others spend from a budget too: one of a workspace or the organization, also if a guardrail sets it for all of a workspace. Its
 * amounts show what others spend.
 */
export function isShared({ id, scope }: Pick<Budget, 'id' | 'scope'>): boolean {
  return scope === 'workspace' || scope === 'organization' || SHARED_BY_GUARDRAIL.test(id);
}

const SHARED_BY_GUARDRAIL = /^guardrail:[^:]+:workspace:/;

/** A budget in force, with its spending in the current window. */
export interface BudgetState extends Budget {
  subject: string;
  guardrail_id: string | null;
  spent_nano: number;
}

/** The public record of a budget, for the key. */
export function describeKeyBudget(state: BudgetState, nowMs: number): KeyBudget {
  const { limit_nano, spent_nano, reset_interval } = state;
  const resetsMs = windowEnd(reset_interval, nowMs);
  return {
    scope: scopeOf(state),
    guardrail_id: state.guardrail_id,
    budget_id: null,
    limit_usd: toUsd(limit_nano),
    spend_usd: toUsd(spent_nano),
    remaining_usd: toUsd(limit_nano - spent_nano),
    include_byok: state.include_byok,
    reset_interval: reset_interval === 'never' ? null : reset_interval,
    resets_at: resetsMs === undefined ? null : new Date(resetsMs).toISOString(),
  };
}

const scopes = ['workspace_default_key', 'member', 'api_key', 'key_limit', 'workspace', 'organization'] as const;

function scopeOf({ scope, subject }: BudgetState): KeyBudget['scope'] {
  if (scope === 'workspace' || scope === 'organization') return scope;
  if (scope === 'key') return 'key_limit';
  if (subject.startsWith('key:')) return 'api_key';
  return subject.startsWith('user:') ? 'member' : 'workspace_default_key';
}

/** Sorts budgets in the order of the public service. */
export function inOrderOfScope(budgets: readonly KeyBudget[]): KeyBudget[] {
  return [...budgets].sort((a, b) => scopes.indexOf(a.scope) - scopes.indexOf(b.scope));
}

type Reset = Exclude<BudgetInterval, 'never'> | null;

/** The budget of a key's own limit; none if it has no limit. */
export function keyBudgets(key: {
  hash: string;
  organization_id: string;
  limit_nano: number | null;
  limit_reset: Reset;
  include_byok_in_limit: boolean;
}): SourcedBudget[] {
  const { hash, organization_id, limit_nano, limit_reset } = key;
  if (limit_nano === null) return [];
  const resetInterval = limit_reset ?? 'never';
  return [
    {
      id: `key:${hash}:${resetInterval}`,
      scope: 'key',
      payer: { by: 'key_hash', id: hash, organization_id },
      guardrail_id: null,
      label: 'the limit of this API key',
      reset_interval: resetInterval,
      limit_nano,
      include_byok: key.include_byok_in_limit,
    },
  ];
}

/** One budget for each assignee of a guardrail; none if it does not limit spending. */
export function guardrailBudgets(
  guardrail: { id: string; organization_id: string; name: string; limit_nano: number | null; reset_interval: Reset },
  assignees: { key_hashes: readonly string[]; user_ids: readonly string[]; workspace_ids: readonly string[] },
  includeByok: boolean,
): SourcedBudget[] {
  const { id: guardrailId, organization_id, name, limit_nano } = guardrail;
  if (limit_nano === null) return [];
  const resetInterval: BudgetInterval = guardrail.reset_interval ?? 'never';
  const budgetOf =
    (by: Payer['by'], whom: string) =>
    (id: string): SourcedBudget => {
      const payer = { by, id, organization_id };
      return {
        id: `guardrail:${guardrailId}:${subjectOf(payer)}:${resetInterval}`,
        scope: 'guardrail',
        payer,
        guardrail_id: guardrailId,
        label: `the limit of the guardrail "${name}" for ${whom}`,
        reset_interval: resetInterval,
        limit_nano,
        include_byok: includeByok,
      };
    };
  return [
    ...assignees.key_hashes.map(budgetOf('key_hash', 'this API key')),
    ...assignees.user_ids.map(budgetOf('user_id', 'the owner of this API key')),
    ...assignees.workspace_ids.map(budgetOf('workspace_id', 'all of this workspace')),
  ];
}

/** The budgets of a workspace. */
export function workspaceBudgets(
  workspace: { id: string; organization_id: string; slug: string; include_byok_in_budgets: boolean },
  budgets: readonly { reset_interval: WorkspaceInterval; limit_nano: number }[],
): SourcedBudget[] {
  const { id, organization_id, slug, include_byok_in_budgets: includeByok } = workspace;
  return budgets.map(({ reset_interval: named, limit_nano }) => {
    const resetInterval = named === 'lifetime' ? 'never' : named;
    return {
      id: `workspace:${id}:${resetInterval}`,
      scope: 'workspace',
      payer: { by: 'workspace_id', id, organization_id },
      guardrail_id: null,
      label: `the ${named} budget of the workspace "${slug}"`,
      reset_interval: resetInterval,
      limit_nano,
      include_byok: includeByok,
    };
  });
}

/** The budget of an organization's credits: over all time it spends no more than was granted. */
export function creditBudget(organizationId: string, grantedNano: number): SourcedBudget {
  return {
    id: `credits:${organizationId}`,
    scope: 'organization',
    payer: { by: 'organization_id', id: organizationId, organization_id: organizationId },
    guardrail_id: null,
    label: 'the credits of the organization',
    reset_interval: 'never',
    limit_nano: grantedNano,
    include_byok: false,
  };
}
