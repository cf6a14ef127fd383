import type { Preview } from '../../ledger/leases/hold.ts';
import type { Recorder } from '../../ledger/recorder.ts';
import type { Budget } from '../../schemas/budget.ts';
import { toUsd } from '../../schemas/money.ts';
import { recentOutcomes } from '../recent-outcomes.ts';

/** The amounts of a limit, USD, and when its window ends. */
export interface LimitAmounts {
  limit: number;
  spent: number;
  held: number;
  left: number;
  resets_at: string | null;
}

/** The smallest amount: a call that costs anything costs at least that. */
const LEAST_NANO = 1;

/** The state of limits by the id of their budgets, and what would refuse a call that counts against all of them. Reserves nothing. */
export async function previewLimits(
  recorder: Pick<Recorder, 'flush' | 'preview'>,
  budgets: readonly Budget[],
): Promise<{ amounts: Map<string, LimitAmounts>; refusal: Preview['refusal'] }> {
  if (budgets.length === 0) return { amounts: new Map(), refusal: undefined };
  await recentOutcomes(recorder);
  const request = { id: '', budgets, is_byok: false, full_nano: LEAST_NANO, least_nano: LEAST_NANO };
  const { lines, refusal } = await recorder.preview(request);
  const amounts = lines.map(({ budget, spent_nano, available_nano, resets_at }): [string, LimitAmounts] => [
    budget.id,
    {
      limit: toUsd(budget.limit_nano),
      spent: toUsd(spent_nano),
      held: toUsd(Math.max(0, budget.limit_nano - spent_nano - available_nano)),
      left: toUsd(available_nano),
      resets_at: resets_at === undefined ? null : new Date(resets_at).toISOString(),
    },
  ]);
  return { amounts: new Map(amounts), refusal };
}
