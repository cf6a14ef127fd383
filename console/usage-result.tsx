import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { home } from './address.ts';
import type { AnalyticsMeta } from './api.gen.ts';
import { Chart, type Series } from './chart.tsx';
import { csvOf, download } from './csv.ts';
import { count, momentText, usd } from './format.ts';
import { Link } from './links.tsx';
import { go, route, setQuery } from './state.ts';
import { Copy, Empty, Show, Table, useLoaded } from './ui.tsx';
import {
  beforeOf,
  callsIn,
  capital,
  DAY_MS,
  day,
  formatOf,
  type Granularity,
  iso,
  keyOf,
  load,
  type Metric,
  NAMES,
  type Row,
  type readState,
  seriesOf,
  shortId,
  timeName,
  timesOf,
} from './usage-data.ts';

/** Rows of the tables; the file for download has all of them. */
const TABLE_ROWS = 100;

/** A value of a metric; the exact amount of money is in its title. */
function Amount({ of, metric }: { of: number | null; metric: Metric }): ComponentChildren {
  const text = formatOf(metric)(of);
  return metric.display_format === 'currency' && of !== null ? <span title={usd(of, true)}>{text}</span> : text;
}

/** The change since the period before: as an amount, if values can be subtracted, and as a share. */
function change(
  now: number | null,
  before: number | null | undefined,
  format?: (value: number) => string,
): ComponentChildren {
  const share =
    before === undefined || before === null || now === null || before === 0 ? undefined : (now / before - 1) * 100;
  const sign = (value: number) => (value > 0 ? '+' : value < 0 ? '−' : '');
  const percentage =
    share === undefined ? '' : share >= 1_000 ? '> +1,000 %' : `${sign(share)}${Math.abs(share).toFixed(1)} %`;
  if (format === undefined) return percentage === '' ? '–' : percentage;
  const difference = (now ?? 0) - (before ?? 0);
  // A sign and its amount stay on one line.
  const amount = (
    <span class="line-part">
      {sign(difference)}
      {format(Math.abs(difference))}
    </span>
  );
  const part = <span class="line-part">({percentage === '' ? 'new' : percentage})</span>;
  if (difference === 0) return '–';
  return (
    <>
      {amount} {part}
    </>
  );
}

/** The groups of both periods, with the largest changes first. */
function byChange(now: Row[], before: Row[], { by, metric }: { by: string[]; metric: Metric }): Row[] {
  const value = (row: Row | undefined) => Number(row?.[metric.name] ?? 0);
  const former = new Map(before.map((row) => [keyOf(row, by), row]));
  const known = new Set(now.map((row) => keyOf(row, by)));
  const ended = before.filter((row) => !known.has(keyOf(row, by))).map((row) => ({ ...row, [metric.name]: 0 }));
  const rows = [...now, ...(metric.is_rate ? [] : ended)];
  const changeOf = (row: Row) => Math.abs(value(row) - value(former.get(keyOf(row, by))));
  return rows.sort((a, b) => changeOf(b) - changeOf(a));
}

/** The usage that the filters select: its sums, its chart, its table by group, and its values by time. */
export function UsageResult({ state: wanted, meta }: { state: ReturnType<typeof readState>; meta: AnalyticsMeta }) {
  const all = useSignal(false);
  const loaded = useLoaded(
    async (signal) => ({ state: wanted, answers: await load(wanted, signal) }),
    route.value.query.toString(),
  );
  const label = (name: string) => meta.dimensions.find((one) => one.name === name)?.display_label ?? name;
  return (
    <Show of={loaded}>
      {({ state, answers: [rows, groups, total, before, totalBefore] }) => {
        // The previous answer stays while the next one loads, with all that it was the answer to.
        const { metric, by, granularity, compares } = state;
        if (metric === undefined) return null;
        const format = formatOf(metric);
        const value = (row: Row | undefined) =>
          typeof row?.[metric.name] === 'number' ? (row[metric.name] as number) : null;
        if (groups.rows.length === 0) {
          return (
            <Empty title="No calls in this range">
              <p>
                Choose a longer range or remove a filter, or send the first call from the{' '}
                <a href="playground" data-page>
                  playground
                </a>
                .
              </p>
            </Empty>
          );
        }
        const times = timesOf(state.times, granularity);
        const series = seriesOf(rows.rows, groups.rows, state, times);
        const former = new Map(before.rows.map((row) => [keyOf(row, by), value(row)]));
        const table = compares ? byChange(groups.rows, before.rows, { by, metric }) : groups.rows;
        const header = [
          timeName(granularity),
          ...by.flatMap((name) => [name, ...(NAMES[name] ? [NAMES[name]] : [])]),
          metric.name,
        ];
        const save = () => {
          const cells = rows.rows.map((row) =>
            header.map((name) => {
              const one = row[name] ?? null;
              return name === metric.name && metric.display_format === 'currency' && typeof one === 'number'
                ? Number(one.toFixed(9))
                : one;
            }),
          );
          download(`usage-${metric.name}-${day(state.times.start)}.csv`, csvOf(header, cells));
        };
        const notes = [
          ...rows.warnings,
          ...(by.includes('tag') || by.includes('guardrail')
            ? [
                'A call with several tags or guardrails counts for each of them, so that the rows may add up to more than the total.',
              ]
            : []),
          ...(rows.truncated
            ? ['The range has more rows than one answer holds; the chart and the file lack some. Use a longer step.']
            : []),
        ];
        return (
          <>
            {notes.map((note) => (
              <p key={note} class="dim">
                {note}
              </p>
            ))}
            <dl class={compares ? 'figures small-figures' : 'figures'}>
              <div>
                <dt>{metric.display_label}</dt>
                <dd class="number">
                  <Link href={callsIn({ ...state, by: [] }, {})}>
                    <Amount of={value(total.rows[0])} metric={metric} />
                  </Link>
                </dd>
              </div>
              {compares && (
                <>
                  <div>
                    <dt>In the period before</dt>
                    <dd class="number">
                      <Link href={callsIn({ ...state, by: [], times: beforeOf(state.times) }, {})}>
                        <Amount of={value(totalBefore.rows[0])} metric={metric} />
                      </Link>
                    </dd>
                  </div>
                  <div>
                    <dt>Change</dt>
                    <dd class="number">
                      {change(value(total.rows[0]), value(totalBefore.rows[0]), metric.is_rate ? undefined : format)}
                    </dd>
                  </div>
                </>
              )}
            </dl>
            <section class="card">
              <Chart
                times={times}
                series={series}
                isStacked={!metric.is_rate}
                format={format}
                onOpen={go}
                label={`${metric.display_label} by ${granularity}; the tables below have the numbers`}
              />
            </section>
            <section class="card">
              <Table
                class="cards"
                caption={`${metric.display_label} of the whole range`}
                head={[
                  ...(by.length === 0 ? ['Calls'] : by.map(label)),
                  `>${metric.display_label}`,
                  ...(compares ? ['>Before', '>Change'] : []),
                ]}
              >
                {table.slice(0, TABLE_ROWS).map((row) => (
                  <tr key={keyOf(row, by)}>
                    {by.length === 0 && <th scope="row">All</th>}
                    {by.map((name) => (
                      <Cell key={name} name={name} row={row} label={label(name)} />
                    ))}
                    <td data-label={metric.display_label} class="right number">
                      <Link href={callsIn(state, row)}>
                        <Amount of={value(row)} metric={metric} />
                      </Link>
                    </td>
                    {compares && (
                      <>
                        <td data-label="Before" class="right number">
                          {former.has(keyOf(row, by)) ? (
                            <Link href={callsIn({ ...state, times: beforeOf(state.times) }, row)}>
                              <Amount of={former.get(keyOf(row, by)) ?? null} metric={metric} />
                            </Link>
                          ) : (
                            '–'
                          )}
                        </td>
                        <td data-label="Change" class="right number">
                          <span>
                            {change(value(row), former.get(keyOf(row, by)), metric.is_rate ? undefined : format)}
                          </span>
                        </td>
                      </>
                    )}
                  </tr>
                ))}
              </Table>
              {table.length > TABLE_ROWS && (
                <p class="dim">
                  The largest {TABLE_ROWS} of {count(table.length)}. The file has all of them.
                </p>
              )}
            </section>
            <div class="actions">
              <button type="button" onClick={save}>
                Download CSV
              </button>
              <Copy text={permanentLink(state)} label="Copy link" hint="A link to these dates, also tomorrow" />
              <button
                type="button"
                aria-expanded={all.value}
                onClick={() => {
                  all.value = !all.value;
                }}
              >
                Values by {granularity}
              </button>
            </div>
            {all.value && <Values times={times} series={series} metric={metric} granularity={granularity} />}
          </>
        );
      }}
    </Show>
  );
}

/** The address of what is shown: with its dates in place of a range that moves. */
function permanentLink({ times: { start, end } }: ReturnType<typeof readState>): string {
  const query = new URLSearchParams(route.value.query);
  const isDays = start % DAY_MS === 0 && end % DAY_MS === 0;
  query.set('range', 'custom');
  query.set('from', isDays ? day(start) : iso(start));
  query.set('to', isDays ? day(end - DAY_MS) : iso(end));
  return `${home}usage?${query}`;
}

/** The value of a dimension, which leads to the usage of it alone. */
function Cell({ name, row, label }: { name: string; row: Row; label: string }) {
  const value = row[name] ?? null;
  const shown = String(row[NAMES[name] ?? name] ?? shortId(value));
  return (
    <td data-label={label}>
      {value === null ? (
        <span class="dim">(none)</span>
      ) : (
        <button
          type="button"
          class="link"
          title={`Only ${label} ${shown}`}
          onClick={() => setQuery({ [name]: String(value) })}
        >
          <bdi>{shown}</bdi>
        </button>
      )}
    </td>
  );
}

function Values({
  times,
  series,
  metric,
  granularity,
}: {
  times: string[];
  series: Series[];
  metric: Metric;
  granularity: Granularity;
}) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a wide table scrolls, also by keyboard.
    <section class="card scroll" tabIndex={0} aria-label={`Values by ${granularity}`}>
      <Table
        caption={`Values by ${granularity}`}
        head={[capital(granularity), ...series.map(({ name }) => `>${name}`)]}
      >
        {times.map((time, index) => (
          <tr key={time}>
            <th scope="row" class="number">
              {momentText(time)}
            </th>
            {series.map(({ name, values, hrefs }) => {
              const amount = <Amount of={values[index] ?? null} metric={metric} />;
              const href = hrefs?.[index];
              return (
                <td key={name} class="right number">
                  {href === undefined || (values[index] ?? null) === null ? amount : <Link href={href}>{amount}</Link>}
                </td>
              );
            })}
          </tr>
        ))}
      </Table>
    </section>
  );
}
