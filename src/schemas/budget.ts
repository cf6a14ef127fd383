/** The interval after which a budget is reset, at midnight UTC. */
export type BudgetInterval = 'daily' | 'weekly' | 'monthly' | 'never';

/** `strict`: true charges never exceed the limit. `soft`: an estimate is held instead of the worst case. */
export type BudgetMode = 'strict' | 'soft';

/** A limit that requests count against. */
export interface Budget {
  id: string;
  scope: 'key' | 'guardrail' | 'workspace' | 'organization';
  /** Names the limit in a refusal: `limit of this API key`. */
  label: string;
  reset_interval: BudgetInterval;
  /** The limit as last read. Grants are decided by the store. */
  limit_nano: number;
  /** Whether charges to the organization's own provider accounts count. */
  include_byok: boolean;
}

export const DAY_MS = 86_400_000;

/** The first day (YYYY-MM-DD, UTC) of the window that contains a moment. Weeks begin on Monday. Empty for `never`. */
export function windowStart(interval: BudgetInterval, nowMs: number): string {
  if (interval === 'never') return '';
  const day = new Date(nowMs).toISOString().slice(0, 10);
  if (interval === 'daily') return day;
  if (interval === 'monthly') return `${day.slice(0, 7)}-01`;
  const midnight = Date.parse(day);
  const daysSinceMonday = (new Date(midnight).getUTCDay() + 6) % 7;
  return new Date(midnight - daysSinceMonday * DAY_MS).toISOString().slice(0, 10);
}

/** The end of the window that contains a moment, in milliseconds since 1970; undefined for `never`. */
export function windowEnd(interval: BudgetInterval, nowMs: number): number | undefined {
  if (interval === 'never') return undefined;
  const start = new Date(windowStart(interval, nowMs));
  if (interval === 'monthly') return Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + 1, 1);
  return start.getTime() + (interval === 'weekly' ? 7 : 1) * DAY_MS;
}
