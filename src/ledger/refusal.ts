import { GatewayError } from '../errors.ts';
import type { Budget } from '../schemas/budget.ts';
import { toUsd } from '../schemas/money.ts';

const WINDOW = { daily: 'a day', weekly: 'a week', monthly: 'a month', never: 'in all' };

/** Exact, with two decimals at least. */
function usd(nano: number): string {
  const text = toUsd(Math.max(0, nano))
    .toFixed(9)
    .replace(/0{1,7}$/, '');
  return `$${text}`;
}

/** The 402 of a request that a budget does not cover: names the budget, the amounts and when it resets. */
export function budgetRefusal(facts: {
  budget: Budget;
  spent_nano: number;
  /** What the request may cost at least. */
  needed_nano: number;
  /** Milliseconds since 1970; undefined: it never resets. */
  resets_at: number | undefined;
  now: number;
}): GatewayError {
  const { budget, spent_nano, needed_nano, resets_at, now } = facts;
  const leftNano = Math.max(0, budget.limit_nano - spent_nano);
  const reset = resets_at === undefined ? null : new Date(resets_at).toISOString();
  const limit = `${budget.label} (${usd(budget.limit_nano)} ${WINDOW[budget.reset_interval]})`;
  const renewed = reset === null ? 'It does not reset.' : `It resets at ${reset}.`;
  const inFlight = leftNano >= needed_nano;
  const reason = inFlight
    ? `the rest (${usd(leftNano)}) is reserved for running requests; try again soon`
    : `${usd(leftNano)} of it is left, and this request may cost ${usd(needed_nano)} or more`;
  return new GatewayError(402, `Insufficient budget: ${limit}: ${reason}. ${renewed}`, {
    metadata: {
      budget: budget.scope,
      limit: toUsd(budget.limit_nano),
      limit_remaining: toUsd(leftNano),
      required: toUsd(needed_nano),
      resets_at: reset,
      in_flight: inFlight,
    },
    ...retryHeaders(inFlight ? now : budget.limit_nano >= needed_nano ? resets_at : undefined, now),
  });
}

/** Headers that say when the same request may succeed; none if it will not by itself. */
function retryHeaders(passesAt: number | undefined, now: number): { headers?: Record<string, string> } {
  if (passesAt === undefined) return {};
  const waitS = Math.max(1, Math.ceil((passesAt - now) / 1000));
  return { headers: { 'retry-after': String(waitS), 'x-should-retry': 'true' } };
}

/** The 503 of a request whose money could not be reserved because the store does not answer; never a 402. */
export function storeRefusal(): GatewayError {
  return new GatewayError(503, 'The gateway cannot reserve money for requests at the moment; try again soon', {
    headers: { 'retry-after': '1' },
  });
}
