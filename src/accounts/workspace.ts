import { GatewayError, invalidField } from '../errors.ts';
import { toNano, toUsd } from '../schemas/money.ts';
import { checkStorable } from '../schemas/text.ts';
import {
  type BudgetInterval,
  budgetIntervals,
  type UpdateWorkspaceBody,
  type Workspace,
  type WorkspaceBudget,
} from '../schemas/workspace.ts';

/** A stored workspace. */
export interface StoredWorkspace extends Omit<Workspace, 'io_logging_sampling_rate' | 'default_guardrail_id'> {
  organization_id: string;
  is_default: boolean;
  /** In ten-thousandths. */
  io_logging_sampling_rate_bp: number;
  default_guardrail_id: string | null;
  seq: number;
  version: number;
}

/** A stored budget. */
export interface StoredBudget {
  id: string;
  workspace_id: string;
  reset_interval: BudgetInterval;
  limit_nano: number;
  created_at: string;
  updated_at: string | null;
}

const RATE_UNITS = 10_000;
const SLUG = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** The settings of a request body in their stored form. A setting that the body omits is not set. */
export type WorkspaceSettings = Omit<UpdateWorkspaceBody, 'io_logging_sampling_rate' | 'disabled_server_tools'> & {
  io_logging_sampling_rate_bp?: number;
};

/** Validates what schemas cannot express: the slug's form, storable texts, each logged key once. Throws a 400. */
export function workspaceSettings(body: UpdateWorkspaceBody): WorkspaceSettings {
  const { io_logging_sampling_rate: rate, disabled_server_tools: _, ...settings } = body;
  const { name, description, default_image_model, default_text_model } = settings;
  checkStorable({ name, description, default_image_model, default_text_model });
  if (settings.slug !== undefined) checkSlug(settings.slug);
  const ids = settings.io_logging_api_key_ids;
  return {
    ...settings,
    // Clients that know only strings send '' for none.
    ...(settings.default_guardrail_id === '' ? { default_guardrail_id: null } : {}),
    ...(ids ? { io_logging_api_key_ids: [...new Set(ids)] } : {}),
    ...(rate === undefined ? {} : { io_logging_sampling_rate_bp: Math.max(1, Math.round(rate * RATE_UNITS)) }),
  };
}

function checkSlug(slug: string): void {
  if (!SLUG.test(slug)) {
    throw invalidField('slug', 'must be lower-case letters and digits in segments with single hyphens between them');
  }
  if (UUID.test(slug)) throw invalidField('slug', 'must not have the form of a workspace id');
}

/** The public record. */
export function describeWorkspace(stored: StoredWorkspace): Workspace {
  return {
    id: stored.id,
    name: stored.name,
    slug: stored.slug,
    description: stored.description,
    created_at: stored.created_at,
    created_by: stored.created_by,
    updated_at: stored.updated_at,
    default_image_model: stored.default_image_model,
    default_text_model: stored.default_text_model,
    default_provider_sort: stored.default_provider_sort,
    io_logging_api_key_ids: stored.io_logging_api_key_ids,
    io_logging_sampling_rate: stored.io_logging_sampling_rate_bp / RATE_UNITS,
    is_data_discount_logging_enabled: stored.is_data_discount_logging_enabled,
    is_observability_broadcast_enabled: stored.is_observability_broadcast_enabled,
    is_observability_io_logging_enabled: stored.is_observability_io_logging_enabled,
    // Clients of the public service expect a string: there every workspace has a guardrail.
    default_guardrail_id: stored.default_guardrail_id ?? '',
    include_byok_in_budgets: stored.include_byok_in_budgets,
  };
}

/** The public record of a budget. */
export function describeBudget(stored: StoredBudget): WorkspaceBudget {
  return {
    id: stored.id,
    workspace_id: stored.workspace_id,
    limit_usd: toUsd(stored.limit_nano),
    reset_interval: stored.reset_interval === 'lifetime' ? null : stored.reset_interval,
    created_at: stored.created_at,
    updated_at: stored.updated_at ?? stored.created_at,
  };
}

/**
 * Validates a budget against the others of its workspace: limits must fall strictly as the interval narrows. Returns the limit
 * in nano-USD. Throws a 400.
 */
export function checkBudget(
  budgets: readonly StoredBudget[],
  { interval, limit_usd }: { interval: BudgetInterval; limit_usd: number },
): number {
  const limitNano = toNano(limit_usd);
  if (limitNano === 0) throw invalidField('limit_usd', 'must be at least 0.000000001');
  const width = (name: BudgetInterval) => budgetIntervals.length - budgetIntervals.indexOf(name);
  for (const other of budgets) {
    const narrower = width(interval) < width(other.reset_interval);
    const fits = narrower ? limitNano < other.limit_nano : limitNano > other.limit_nano;
    if (other.reset_interval === interval || fits) continue;
    throw new GatewayError(
      400,
      `limit_usd: the ${interval} budget ($${toUsd(limitNano)}) must be ${narrower ? 'less' : 'more'} than the ` +
        `${other.reset_interval} budget ($${toUsd(other.limit_nano)})`,
    );
  }
  return limitNano;
}
