import type { Budget, BudgetInterval } from '../schemas/budget.ts';
import type { BudgetInterval as WorkspaceInterval } from '../schemas/workspace.ts';

/** A budget that a limit somewhere asks for: what requests of its subject count against. */
export interface SourcedBudget extends Budget {
  /** Whom it limits, as `subjectsOf` names them. */
  subject: string;
  guardrail_id: string | null;
}

/** Whom limits are set for. */
export const subjects = {
  key: (hash: string) => `key:${hash}`,
  user: (organization_id: string, user_id: string) => `user:${organization_id}:${user_id}`,
  workspace: (id: string) => `workspace:${id}`,
  organization: (id: string) => `organization:${id}`,
};

/** Everybody whose limits a caller's requests count against. */
export function subjectsOf(caller: {
  key_hash: string | null;
  organization_id: string;
  workspace_id: string;
  user_id: string | null;
}): string[] {
  const { key_hash, organization_id, workspace_id, user_id } = caller;
  return [
    ...(key_hash === null ? [] : [subjects.key(key_hash)]),
    ...(user_id === null ? [] : [subjects.user(organization_id, user_id)]),
    subjects.workspace(workspace_id),
    subjects.organization(organization_id),
  ];
}

/** The budget of a key's own limit; none where it has no limit. */
export function keyBudgets(key: {
  hash: string;
  limit_nano: number | null;
  limit_reset: Exclude<BudgetInterval, 'never'> | null;
  include_byok_in_limit: boolean;
}): SourcedBudget[] {
  if (key.limit_nano === null) return [];
  const subject = subjects.key(key.hash);
  const reset_interval = key.limit_reset ?? 'never';
  return [
    {
      id: `${subject}:${reset_interval}`,
      scope: 'key',
      subject,
      guardrail_id: null,
      label: 'the limit of this API key',
      reset_interval,
      limit_nano: key.limit_nano,
      include_byok: key.include_byok_in_limit,
    },
  ];
}

/** A budget for each whom a guardrail is assigned to; none where it limits no spending. */
export function guardrailBudgets(
  guardrail: {
    id: string;
    organization_id: string;
    name: string;
    limit_nano: number | null;
    reset_interval: Exclude<BudgetInterval, 'never'> | null;
  },
  assignees: { key_hashes: readonly string[]; user_ids: readonly string[] },
  include_byok: boolean,
): SourcedBudget[] {
  const { id, organization_id, name, limit_nano } = guardrail;
  if (limit_nano === null) return [];
  const reset_interval = guardrail.reset_interval ?? 'never';
  const budget = (subject: string, whom: string): SourcedBudget => ({
    id: `guardrail:${id}:${subject}:${reset_interval}`,
    scope: 'guardrail',
    subject,
    guardrail_id: id,
    label: `the limit of the guardrail "${name}" for ${whom}`,
    reset_interval,
    limit_nano,
    include_byok,
  });
  return [
    ...assignees.key_hashes.map((hash) => budget(subjects.key(hash), 'this API key')),
    ...assignees.user_ids.map((user_id) =>
      budget(subjects.user(organization_id, user_id), 'the owner of this API key'),
    ),
  ];
}

/** The budgets of a workspace, as they limit spending. */
export function workspaceBudgets(
  workspace: { id: string; slug: string; include_byok_in_budgets: boolean },
  budgets: readonly { reset_interval: WorkspaceInterval; limit_nano: number }[],
): SourcedBudget[] {
  const subject = subjects.workspace(workspace.id);
  return budgets.map(({ reset_interval: named, limit_nano }) => {
    const reset_interval = named === 'lifetime' ? 'never' : named;
    return {
      id: `${subject}:${reset_interval}`,
      scope: 'workspace',
      subject,
      guardrail_id: null,
      label: `the ${named} budget of the workspace "${workspace.slug}"`,
      reset_interval,
      limit_nano,
      include_byok: workspace.include_byok_in_budgets,
    };
  });
}

/** The budget of an organization that credits were granted to: never more than they are, over all time. */
export function creditBudget(organization_id: string, granted_nano: number): SourcedBudget {
  return {
    id: `credits:${organization_id}`,
    scope: 'organization',
    subject: subjects.organization(organization_id),
    guardrail_id: null,
    label: 'the credits of the organization',
    reset_interval: 'never',
    limit_nano: granted_nano,
    include_byok: false,
  };
}
