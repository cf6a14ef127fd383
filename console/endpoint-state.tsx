import type { FailingEndpoint } from './api.gen.ts';
import { failureText } from './failures.ts';
import { ago, count, percent, time } from './format.ts';

const DAY_MS = 86_400_000;

const CONDITIONS = {
  refused: ['tag bad', 'refused'],
  failing: ['tag bad', 'fails'],
  rate_limited: ['tag fair', 'rate-limited'],
  well: ['tag fair', 'failed lately'],
} as const;

/** The condition of an endpoint that fails, or failed lately. */
export function Condition({ of }: { of: FailingEndpoint['condition'] }) {
  const [tone, text] = CONDITIONS[of];
  return <span class={tone}>{text}</span>;
}

/** Since when it fails, why, and until when other endpoints are preferred. */
export function failingText(of: FailingEndpoint): string {
  const parts: string[] = [];
  if (of.last_failure !== null) parts.push(failureText(of.last_failure));
  if (of.failing_since !== null) parts.push(`since ${ago(of.failing_since)}`);
  if (of.cooling_down_until !== null) parts.push(`cools down until ${time(of.cooling_down_until)}`);
  return parts.join(', ');
}

/** How many calls failed in a window. */
export function failedText({ calls, errors, rate_limited: limited }: FailingEndpoint['last_1d']): string {
  const share = calls === 0 ? '' : ` (${percent((errors / calls) * 100)})`;
  return `${count(errors)} of ${count(calls)} failed${share}${limited === 0 ? '' : `, ${count(limited)} rate-limited`}`;
}

/** The calls of the last 24 hours that failed at an endpoint, whatever their outcome. */
export function failedCalls({ endpoint_id: endpoint }: FailingEndpoint): string {
  const from = `${new Date(Date.now() - DAY_MS).toISOString().slice(0, 19)}Z`;
  return `logs?${new URLSearchParams({ endpoint, from })}`;
}
