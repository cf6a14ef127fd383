import type { EndpointHealth, PublicEndpoint } from './api.gen.ts';
import { count, counted, dayBefore, percent } from './format.ts';
import { Table } from './ui.tsx';

/** The uptime of three windows as a strip of bars, with the numbers beside it. */
export function Uptime({ of }: { of: Pick<PublicEndpoint, 'uptime_last_5m' | 'uptime_last_30m' | 'uptime_last_1d'> }) {
  const windows = [
    ['1 d', of.uptime_last_1d],
    ['30 min', of.uptime_last_30m],
    ['5 min', of.uptime_last_5m],
  ] as const;
  if (windows.every(([, value]) => value === null)) return <span class="dim">too few calls to measure</span>;
  return (
    <span class="uptime">
      {windows.map(([label, value]) => (
        <span key={label} class={value === null ? 'none' : value >= 99 ? 'good' : value >= 90 ? 'fair' : 'bad'}>
          <i aria-hidden="true" /> {percent(value)} <small>{label}</small>
        </span>
      ))}
    </span>
  );
}

/** Days of the history of uptimes. */
export const HISTORY_DAYS = 30;
const toneOf = (uptime: number | null) =>
  uptime === null ? '' : uptime >= 99 ? 'good' : uptime >= 90 ? 'fair' : 'bad';

/** The uptime of an endpoint on each of the last 30 UTC days, with a table beside it. */
export function History({ of }: { of: EndpointHealth | undefined }) {
  if (of === undefined || of.days.length === 0) return <span class="dim">no call in {HISTORY_DAYS} days</span>;
  const byDate = new Map(of.days.map((day) => [day.date, day]));
  const days = Array.from({ length: HISTORY_DAYS }, (_, index) => dayBefore(HISTORY_DAYS - 1 - index));
  const sum = of.days.reduce((all, { calls }) => all + calls, 0);
  const failed = of.days.reduce((all, { errors }) => all + errors, 0);
  return (
    <>
      <span class="strip" aria-hidden="true">
        {days.map((date) => {
          const day = byDate.get(date);
          const text = day === undefined ? 'no call' : `${percent(day.uptime)} of ${counted(day.calls, 'call')}`;
          return <i key={date} class={toneOf(day?.uptime ?? null)} title={`${date}: ${text}`} />;
        })}
      </span>
      <details>
        <summary>
          <small>
            {sum === 0
              ? 'only rate-limited calls'
              : `${percent(((sum - failed) / sum) * 100)} of ${counted(sum, 'call')}`}
          </small>
        </summary>
        <Table
          caption={`Uptime of ${of.tag} by UTC day`}
          head={['Day', '>Uptime', '>Calls', '>Failed', '>Rate-limited']}
        >
          {of.days.toReversed().map(({ date, uptime, calls, errors, rate_limited }) => (
            <tr key={date}>
              <th scope="row" class="number">
                {date}
              </th>
              <td class="right number">{percent(uptime)}</td>
              <td class="right number">{count(calls)}</td>
              <td class="right number">{count(errors)}</td>
              <td class="right number">{count(rate_limited)}</td>
            </tr>
          ))}
        </Table>
      </details>
    </>
  );
}
