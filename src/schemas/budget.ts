/** How often a budget starts anew, at midnight UTC. */
export type BudgetInterval = 'daily' | 'weekly' | 'monthly' | 'never';

/** `strict`: true charges never pass the limit. `soft`: an estimate is set aside in place of the worst case. */
export type BudgetMode = 'strict' | 'soft';

/** A limit in force that a request counts against. */
export interface Budget {
  id: string;
  scope: 'key' | 'guardrail' | 'workspace' | 'organization';
  /** What it is called in a refusal: `limit of this API key`. */
  label: string;
  reset_interval: BudgetInterval;
  /** As last read; what is granted is decided by the store's own word. */
  limit_nano: number;
  /** Whether it counts what the organization's own provider accounts are charged. */
  include_byok: boolean;
}

export const DAY_MS = 86_400_000;

/** The first day (YYYY-MM-DD, UTC) of the window that a moment lies in; weeks begin on Monday; '' for one without end. */
export function windowStart(interval: BudgetInterval, now_ms: number): string {
  if (interval === 'never') return '';
  const day = new Date(now_ms).toISOString().slice(0, 10);
  if (interval === 'daily') return day;
  if (interval === 'monthly') return `${day.slice(0, 7)}-01`;
  const midnight = Date.parse(day);
  const days_since_monday = (new Date(midnight).getUTCDay() + 6) % 7;
  return new Date(midnight - days_since_monday * DAY_MS).toISOString().slice(0, 10);
}

/** When the window of a moment ends, in milliseconds since 1970; undefined where it never does. */
export function windowEnd(interval: BudgetInterval, now_ms: number): number | undefined {
  if (interval === 'never') return undefined;
  const start = new Date(windowStart(interval, now_ms));
  if (interval === 'monthly') return Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + 1, 1);
  return start.getTime() + (interval === 'weekly' ? 7 : 1) * DAY_MS;
}
