import { createHash, randomBytes } from 'node:crypto';
import { invalidField } from '../errors.ts';
import { type BudgetMode, windowStart } from '../schemas/budget.ts';
import type { CurrentKey, Key, KeyBudget, LimitReset } from '../schemas/key.ts';
import { toUsd } from '../schemas/money.ts';
import { type KeySecrets, previousSecret } from './key-secrets.ts';

/** A stored API key: everything but the secrets. */
export interface StoredKey extends KeySecrets {
  id: number;
  organization_id: string;
  workspace_id: string;
  creator_user_id: string | null;
  name: string;
  is_management: boolean;
  disabled: boolean;
  limit_nano: number | null;
  limit_reset: LimitReset | null;
  include_byok_in_limit: boolean;
  expires_at: string | null;
  created_at: string;
  updated_at: string | null;
  /** Incremented by every change. */
  version: number;
  /** How strictly its budgets are enforced; null: as in the gateway's settings. */
  budget_mode: BudgetMode | null;
  /** The key that its authorization code was made with; null: none. It expires with that key, and counts against its limits. */
  parent_hash: string | null;
  /** Who made it: an application by an API key, a member by its session (for itself or an application), an application before this was recorded; null: an administrator. */
  made_by: 'key' | 'session' | 'unknown' | null;
  /** The end user of the owner that it is for; null: not set. */
  external_user: string | null;
}

/** Nano-USD over the four periods of the key record. */
interface PeriodSums {
  total: number;
  daily: number;
  weekly: number;
  monthly: number;
}

/** The spending of a key: on the gateway's accounts, and on the organization's own provider accounts. */
export interface KeyUsage {
  usage: PeriodSums;
  byok_usage: PeriodSums;
  /** The spending that its limit counts in the current window, as for admission. Not set if nothing was counted in it. */
  counted?: number;
  /** The part of that window that is leased to lost nodes: nobody can spend it. */
  stuck?: number;
  /** When its last call was admitted. Not set if none is known. */
  last_used_at?: string;
}

/** The usage of a key without spending. */
export const UNUSED: KeyUsage = {
  usage: { total: 0, daily: 0, weekly: 0, monthly: 0 },
  byok_usage: { total: 0, daily: 0, weekly: 0, monthly: 0 },
};

/** The first days (YYYY-MM-DD, UTC) of the windows that contain a moment. */
export interface WindowStarts {
  daily: string;
  weekly: string;
  monthly: string;
  /** The moment itself, milliseconds since 1970. */
  at: number;
}

const PREFIX = 'sk-gw-v1-';

/** The lower-case hex SHA-256 of a whole secret, by which a key is looked up. */
export function hashSecret(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}

/** The displayable part of a secret: `sk-gw-v1-au7...890`. */
function labelOf(secret: string): string {
  return `${secret.slice(0, PREFIX.length + 3)}...${secret.slice(-3)}`;
}

/** Creates a secret; the only place that does. It is shown once; hash and label are stored. */
export function createSecret(): { secret: string; hash: string; label: string } {
  const secret = PREFIX + randomBytes(32).toString('hex');
  return { secret, hash: hashSecret(secret), label: labelOf(secret) };
}

/** The windows of a moment: UTC days, weeks from Monday, calendar months. */
export function windowStarts(now: number): WindowStarts {
  return {
    daily: windowStart('daily', now),
    weekly: windowStart('weekly', now),
    monthly: windowStart('monthly', now),
    at: now,
  };
}

/** The spending of a key in the window of its limit, nano-USD. */
function countedUsage(key: Limited, { usage, byok_usage, counted }: KeyUsage): number {
  if (counted !== undefined) return counted;
  const period = key.limit_reset ?? 'total';
  return usage[period] + (key.include_byok_in_limit ? byok_usage[period] : 0);
}

/** The same with `stuck`: the rest of the limit can still be spent. */
function takenUsage(key: Limited, usage: KeyUsage): number {
  return countedUsage(key, usage) + (usage.stuck ?? 0);
}

/** The state of a key in the audit log: everything that management can set. */
export function keyState(key: StoredKey): Record<string, unknown> {
  const { name, label, disabled, workspace_id, creator_user_id, limit_nano, limit_reset, include_byok_in_limit } = key;
  return {
    name,
    label,
    disabled,
    workspace_id,
    creator_user_id,
    limit: limit_nano === null ? null : toUsd(limit_nano),
    limit_reset,
    include_byok_in_limit,
    budget_mode: key.budget_mode,
    expires_at: key.expires_at,
    parent_hash: key.parent_hash,
    external_user: key.external_user,
    rotated_at: key.rotated_at,
    previous_label: key.previous_label,
    previous_secret_expires_at: key.previous_secret_expires_at,
  };
}

type Limited = Pick<StoredKey, 'limit_nano' | 'limit_reset' | 'include_byok_in_limit'>;

/** Limit and usage, as in every public record of a key. */
function describeSpending(key: Limited, spent: KeyUsage) {
  const { usage, byok_usage } = spent;
  return {
    limit: key.limit_nano === null ? null : toUsd(key.limit_nano),
    limit_remaining: key.limit_nano === null ? null : toUsd(Math.max(0, key.limit_nano - takenUsage(key, spent))),
    limit_reset: key.limit_reset,
    include_byok_in_limit: key.include_byok_in_limit,
    usage: toUsd(usage.total),
    usage_daily: toUsd(usage.daily),
    usage_weekly: toUsd(usage.weekly),
    usage_monthly: toUsd(usage.monthly),
    byok_usage: toUsd(byok_usage.total),
    byok_usage_daily: toUsd(byok_usage.daily),
    byok_usage_weekly: toUsd(byok_usage.weekly),
    byok_usage_monthly: toUsd(byok_usage.monthly),
  };
}

/** A key's own limit and its spending, as the credits of its owner; without a limit, 0 and its total usage. */
export function keyCredits(key: Limited, spent: KeyUsage): { total_credits: number; total_usage: number } {
  if (key.limit_nano === null) return { total_credits: 0, total_usage: toUsd(spent.usage.total) };
  const taken = Math.min(key.limit_nano, takenUsage(key, spent));
  return { total_credits: toUsd(key.limit_nano), total_usage: toUsd(taken) };
}

/** The public record of a key at a moment. */
export function describeKey(key: StoredKey, spent: KeyUsage, now: number): Key {
  const previous = previousSecret(key, now);
  return {
    hash: key.hash,
    id: key.id,
    name: key.name,
    label: key.label,
    disabled: key.disabled,
    created_at: key.created_at,
    updated_at: key.updated_at,
    expires_at: key.expires_at,
    creator_user_id: key.creator_user_id,
    workspace_id: key.workspace_id,
    ...describeSpending(key, spent),
    budget_mode: key.budget_mode,
    parent_hash: key.parent_hash,
    external_user: key.external_user,
    last_used_at: spent.last_used_at ?? null,
    rotated_at: key.rotated_at,
    previous_label: previous?.label ?? null,
    previous_secret_expires_at: previous?.expires_at ?? null,
    previous_secret_last_used_at: previous?.used_at ?? null,
  };
}

/** The largest 32-bit integer, which every client can read. */
const NO_QUOTA = 2_147_483_647;

/** The budget that refuses first: the one with the least left. */
function tightest(budgets: readonly KeyBudget[]): KeyBudget | null {
  return budgets.reduce<KeyBudget | null>(
    (least, budget) => (least === null || budget.remaining_usd < least.remaining_usd ? budget : least),
    null,
  );
}

/** The limits that a key's calls count against: its own and its guardrails', and those of its workspace and organization that it may see. */
interface KeyBudgets {
  budgets: readonly KeyBudget[];
  others?: readonly KeyBudget[];
}

/** The public record of the calling key. */
export function describeCurrentKey(
  key: Limited &
    Pick<StoredKey, 'label' | 'organization_id' | 'workspace_id' | 'creator_user_id' | 'expires_at' | 'is_management'>,
  spent: KeyUsage,
  { budgets, others = [] }: KeyBudgets,
): CurrentKey {
  return {
    label: key.label,
    workspace_id: key.workspace_id,
    creator_user_id: key.creator_user_id,
    expires_at: key.expires_at,
    ...describeSpending(key, spent),
    organization_id: key.organization_id,
    budgets: [...budgets],
    effective_budget: tightest([...budgets, ...others]),
    allowed_data_regions: ['global'],
    free_model_daily_requests: { limit: NO_QUOTA, used: 0, remaining: NO_QUOTA },
    is_free_tier: false,
    is_management_key: key.is_management,
    is_provisioning_key: key.is_management,
    // As the public service returns it.
    rate_limit: { requests: -1, interval: '10s', note: 'This field is deprecated and safe to ignore.' },
  };
}

/** Whether a key is accepted at a moment. */
export function isUsable(key: Pick<StoredKey, 'disabled' | 'expires_at'>, now: number): boolean {
  return !key.disabled && (key.expires_at === null || Date.parse(key.expires_at) > now);
}

// RFC 3339 section 5.6, with the offset as a group of its own.
const TIMESTAMP = /^(\d{4}-\d{2}-\d{2})[Tt](\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?)([Zz]|[+-]\d{2}:\d{2})$/;

/** Parses `expires_at`: a moment in the future. Returns it in UTC. Throws a 400, also for other time zones (specification). */
export function parseExpiry(text: string, now: number): string {
  const [, date, time, offset] = TIMESTAMP.exec(text) ?? [];
  const moment = Date.parse(`${date}T${time}Z`);
  // A day that the calendar lacks (30 February) is parsed as another one.
  if (Number.isNaN(moment) || new Date(moment).toISOString().slice(0, 10) !== date) {
    throw invalidField('expires_at', 'must be an ISO 8601 date and time in UTC, such as 2027-01-31T00:00:00Z');
  }
  if (offset !== 'Z' && offset !== 'z' && offset !== '+00:00') {
    throw invalidField('expires_at', `must be in UTC (Z or +00:00), not ${offset}`);
  }
  if (moment <= now) throw invalidField('expires_at', 'must be in the future');
  return new Date(moment).toISOString();
}
