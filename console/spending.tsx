import type { SpendingLimit } from './api.gen.ts';
import { time, usd } from './format.ts';
import { Sum, spentOf } from './links.tsx';
import { Money } from './ui.tsx';

export const WINDOWS = { daily: 'a day', weekly: 'a week', monthly: 'a month' } as const;

/** A limit with the state of its window, USD. */
export interface LimitState {
  limit: number;
  spent: number;
  held: number;
  left: number;
  reset_interval: keyof typeof WINDOWS | null;
  resets_at: string | null;
}

/** The usage that counts against a limit. */
export function limitHref({ assignee, reset_interval, include_byok }: SpendingLimit): string {
  const dimension = { key: 'api_key_id', member: 'user', workspace: 'workspace', organization: undefined }[
    assignee.type
  ];
  return spentOf(dimension === undefined ? {} : { [dimension]: assignee.id }, { reset_interval, include_byok });
}

/** A limit as a bar of spent and held, with the amounts in words. */
export function LimitBar({ of, href }: { of: LimitState; href?: string | undefined }) {
  const { limit, spent, held, left, reset_interval, resets_at } = of;
  // Keeps every amount above zero visible.
  const share = (amount: number) =>
    limit <= 0 || amount <= 0 ? 0 : Math.min(100, Math.max(1, (amount / limit) * 100));
  const spentShare = limit <= 0 ? 100 : share(spent);
  const heldShare = Math.min(100 - spentShare, share(held));
  const window = reset_interval === null ? 'in all' : WINDOWS[reset_interval];
  const text = `${usd(spent)} spent, ${usd(held)} held, ${usd(left)} left of ${usd(limit)} ${window}`;
  return (
    <span class="limit">
      <span class={`bar stacked${left <= limit / 10 ? ' high' : ''}`} role="img" aria-label={text}>
        <span style={{ width: `${spentShare}%` }} />
        <i style={{ width: `${heldShare}%` }} />
      </span>
      <small>
        <Sum usd={spent} href={href} /> spent, <Money usd={held} /> held, <Money usd={left} /> left of{' '}
        <Money usd={limit} /> {window}
        {resets_at !== null && (
          <>
            ; <span class="line-part">resets {time(resets_at).replace(' 00:00:00 UTC', ' UTC')}</span>
          </>
        )}
      </small>
    </span>
  );
}
