import { createHash, randomBytes } from 'node:crypto';
import { invalidField } from '../errors.ts';
import { type BudgetMode, windowStart } from '../schemas/budget.ts';
import type { CurrentKey, Key, KeyBudget, LimitReset } from '../schemas/key.ts';
import { toUsd } from '../schemas/money.ts';

/** An API key as it is stored: everything but the secret. */
export interface StoredKey {
  id: number;
  hash: string;
  organization_id: string;
  workspace_id: string;
  creator_user_id: string | null;
  name: string;
  label: string;
  is_management: boolean;
  disabled: boolean;
  limit_nano: number | null;
  limit_reset: LimitReset | null;
  include_byok_in_limit: boolean;
  expires_at: string | null;
  created_at: string;
  updated_at: string | null;
  /** Rises with every change. */
  version: number;
  /** How strictly its budgets are kept; null: as the gateway's settings say. */
  budget_mode: BudgetMode | null;
  /** The key that its authorization code was made with; null: none. It ends with that key, and counts against its limits. */
  parent_hash: string | null;
  /** How an application got it: by an API key, a member's session, or before this was recorded; null: an administrator made it. */
  made_by: 'key' | 'session' | 'unknown' | null;
  /** The end user of its owner's that it is for; null: not told. */
  external_user: string | null;
}

/** Nano-USD over the four periods that the key record shows. */
interface PeriodSums {
  total: number;
  daily: number;
  weekly: number;
  monthly: number;
}

/** What a key has spent: on the gateway's account, and on the organization's own provider accounts. */
export interface KeyUsage {
  usage: PeriodSums;
  byok_usage: PeriodSums;
  /** What its limit counts in the window that runs, as requests are admitted by; absent where nothing was counted in it. */
  counted?: number;
  /** Of that window, what nodes have set aside that were not heard of for long: nobody can spend it. */
  stuck?: number;
  /** When its last call was admitted; absent: none is known. */
  last_used_at?: string;
}

/** Nothing spent yet. */
export const UNUSED: KeyUsage = {
  usage: { total: 0, daily: 0, weekly: 0, monthly: 0 },
  byok_usage: { total: 0, daily: 0, weekly: 0, monthly: 0 },
};

/** First day (YYYY-MM-DD, UTC) of the windows that a moment lies in. */
export interface WindowStarts {
  daily: string;
  weekly: string;
  monthly: string;
  /** The moment itself, milliseconds since 1970. */
  at: number;
}

const PREFIX = 'sk-gw-v1-';

/** The identity of a key: lower-case hex SHA-256 of its whole secret. */
export function hashSecret(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}

/** What may be shown of a secret: `sk-gw-v1-au7...890`. */
function labelOf(secret: string): string {
  return `${secret.slice(0, PREFIX.length + 3)}...${secret.slice(-3)}`;
}

/** Makes a new secret, the only place that does. It is shown once; hash and label are what is kept. */
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

/** What a key has spent in the window that its limit speaks of, nano-USD. */
function countedUsage(key: Limited, { usage, byok_usage, counted }: KeyUsage): number {
  if (counted !== undefined) return counted;
  const period = key.limit_reset ?? 'total';
  return usage[period] + (key.include_byok_in_limit ? byok_usage[period] : 0);
}

/** The same with what is stuck: the rest is what can still be spent. */
function takenUsage(key: Limited, usage: KeyUsage): number {
  return countedUsage(key, usage) + (usage.stuck ?? 0);
}

/** What the audit keeps of a key: everything that management may set. */
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
  };
}

type Limited = Pick<StoredKey, 'limit_nano' | 'limit_reset' | 'include_byok_in_limit'>;

/** Limit and usage, which every face of a key shows. */
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

/** A key's own limit and what is taken of it, as the credits of its owner; where it has none, 0 and all that it spent. */
export function keyCredits(key: Limited, spent: KeyUsage): { total_credits: number; total_usage: number } {
  if (key.limit_nano === null) return { total_credits: 0, total_usage: toUsd(spent.usage.total) };
  const taken = Math.min(key.limit_nano, takenUsage(key, spent));
  return { total_credits: toUsd(key.limit_nano), total_usage: toUsd(taken) };
}

/** The public record of a key. */
export function describeKey(key: StoredKey, spent: KeyUsage): Key {
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
  };
}

/** The largest number of 32 bits, which every client reads. */
const NO_QUOTA = 2_147_483_647;

/** The budget that refuses first: of those with the least left, the first. */
function tightest(budgets: readonly KeyBudget[]): KeyBudget | null {
  return budgets.reduce<KeyBudget | null>(
    (least, budget) => (least === null || budget.remaining_usd < least.remaining_usd ? budget : least),
    null,
  );
}

/** The limits that a key's calls count against: its own and its guardrails', and those of its workspace and organization that it may know of. */
interface KeyBudgets {
  budgets: readonly KeyBudget[];
  others?: readonly KeyBudget[];
}

/** What a key is told about itself. */
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
    // As the public service answers it.
    rate_limit: { requests: -1, interval: '10s', note: 'This field is deprecated and safe to ignore.' },
  };
}

/** Whether a key opens the door at a moment. */
export function isUsable(key: Pick<StoredKey, 'disabled' | 'expires_at'>, now: number): boolean {
  return !key.disabled && (key.expires_at === null || Date.parse(key.expires_at) > now);
}

// RFC 3339 section 5.6, with the offset kept apart.
const TIMESTAMP = /^(\d{4}-\d{2}-\d{2})[Tt](\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?)([Zz]|[+-]\d{2}:\d{2})$/;

/** Reads `expires_at`: a moment to come, told in UTC. The specification rejects other time zones. */
export function parseExpiry(text: string, now: number): string {
  const [, date, time, offset] = TIMESTAMP.exec(text) ?? [];
  const moment = Date.parse(`${date}T${time}Z`);
  // A day that the calendar lacks (30 February) parses as another one.
  if (Number.isNaN(moment) || new Date(moment).toISOString().slice(0, 10) !== date) {
    throw invalidField('expires_at', 'must be an ISO 8601 date and time in UTC, such as 2027-01-31T00:00:00Z');
  }
  if (offset !== 'Z' && offset !== 'z' && offset !== '+00:00') {
    throw invalidField('expires_at', `must be in UTC (Z or +00:00), not ${offset}`);
  }
  if (moment <= now) throw invalidField('expires_at', 'must be in the future');
  return new Date(moment).toISOString();
}
