import { Chart, SERIES_MAX, type Series } from './chart.tsx';
import { count, dayBefore, usd } from './format.ts';
import { callsOf, Link, Sum, usageOf } from './links.tsx';
import { go } from './state.ts';
import { Table } from './ui.tsx';

/** How many models the table shows. */
const MODELS_SHOWN = 8;
/** The field with the model of a row. */
const MODEL = 'model';
/** The field with the UTC day of a row. */
const DATE = 'date__day';

/** A row of usage by model and day. */
export type Row = Record<string, string | number | null>;

/** Usage, added up. */
interface Sums {
  spent: number;
  requests: number;
  tokens: number;
}

const nothing = (): Sums => ({ spent: 0, requests: 0, tokens: 0 });

/** Adds a row of usage; amounts are added in nano-dollars, since decimals would drift. */
function add(to: Sums, row: Row): Sums {
  to.spent = (Math.round(to.spent * 1e9) + Math.round(Number(row['credits_usage']) * 1e9)) / 1e9;
  to.requests += Number(row['request_count']);
  to.tokens += Number(row['tokens_total']);
  return to;
}

/** The calls of one UTC day. */
export const dayOf = (date: string) => ({
  start: `${date}T00:00:00Z`,
  end: `${new Date(Date.parse(date) + 86_400_000).toISOString().slice(0, 10)}T00:00:00Z`,
});

/** The sums of rows by day and by model. */
export function spendOf(rows: readonly Row[]) {
  const sums = new Map<string, Sums>();
  for (const row of rows) {
    const model = String(row[MODEL]);
    sums.set(model, add(sums.get(model) ?? nothing(), row));
  }
  const latest = rows.toSorted((a, b) => (String(a[DATE]) < String(b[DATE]) ? 1 : -1));
  return {
    /** The sums of the UTC days that match. */
    on: (matches: (date: string) => boolean): Sums =>
      rows.filter((row) => matches(String(row[DATE]))).reduce(add, nothing()),
    /** Every model with its sums, the largest first. */
    models: [...sums].sort(([, a], [, b]) => b.spent - a.spent || b.requests - a.requests),
    /** Every model, the latest used first. */
    latest_models: [...new Set(latest.map((row) => String(row[MODEL])))],
  };
}

/** The spend of each day by model, as a chart and as a table. */
export function SpendChart({
  days,
  models,
  rows,
}: {
  days: readonly string[];
  models: readonly string[];
  rows: readonly Row[];
}) {
  const shown = models.slice(0, models.length > SERIES_MAX ? SERIES_MAX - 1 : SERIES_MAX);
  const places = new Map(days.map((date, index) => [date, index]));
  const empty = () => days.map((): number | null => null);
  const series = new Map<string, Series>(
    shown.map((model) => [
      model,
      { name: model, values: empty(), hrefs: days.map((date) => callsOf([[MODEL, model]], dayOf(date))) },
    ]),
  );
  const others: Series = { name: 'All others', values: empty() };
  const perDay = new Map<string, Sums>();
  for (const row of rows) {
    const date = String(row[DATE]);
    const index = places.get(date);
    if (index === undefined) continue;
    perDay.set(date, add(perDay.get(date) ?? nothing(), row));
    const { values } = series.get(String(row[MODEL])) ?? others;
    values[index] = (values[index] ?? 0) + Number(row['credits_usage']);
  }
  return (
    <>
      <Chart
        times={days}
        series={[...series.values(), ...(models.length > shown.length ? [others] : [])]}
        isStacked
        format={usd}
        label="Spend by UTC day and model; the tables have the numbers"
        onOpen={go}
      />
      <details>
        <summary>As a table</summary>
        <Table caption="Spend by UTC day" head={['Day', '>Spent', '>Requests']}>
          {[...perDay]
            .sort(([a], [b]) => (a < b ? 1 : -1))
            .map(([date, { spent, requests }]) => (
              <tr key={date}>
                <th scope="row">
                  <a href={usageOf({ compare: 'on' }, { from: date, to: date })} data-page>
                    {date}
                  </a>
                </th>
                <td class="right">
                  <Sum usd={spent} href={callsOf([], dayOf(date))} />
                </td>
                <td class="right number">
                  <Link href={callsOf([], dayOf(date))}>{count(requests)}</Link>
                </td>
              </tr>
            ))}
        </Table>
      </details>
    </>
  );
}

/** The largest models of the range with their sums. */
export function ByModel({ of, from }: { of: readonly (readonly [string, Sums])[]; from: string }) {
  return (
    <>
      <Table class="cards" caption="Spend by model" head={['Model', '>Requests', '>Tokens', '>Spent']}>
        {of.slice(0, MODELS_SHOWN).map(([model, { spent, requests, tokens }]) => (
          <tr key={model}>
            <th scope="row">
              <a href={`models?${new URLSearchParams({ id: model })}`} data-page>
                <bdi>{model}</bdi>
              </a>
            </th>
            <td data-label="Requests" class="right number">
              <Link href={callsOf([[MODEL, model]], { start: dayOf(from).start, end: dayOf(dayBefore(0)).end })}>
                {count(requests)}
              </Link>
            </td>
            <td data-label="Tokens" class="right number">
              <Link href={usageOf({ model, metric: 'tokens_total' }, { from })}>{count(tokens)}</Link>
            </td>
            <td data-label="Spent" class="right">
              <Sum usd={spent} href={usageOf({ model }, { from })} />
            </td>
          </tr>
        ))}
      </Table>
      {of.length > MODELS_SHOWN && (
        <p class="dim">
          The largest {MODELS_SHOWN} of {count(of.length)}.{' '}
          <a href={usageOf({}, { from })} data-page>
            All models
          </a>
        </p>
      )}
    </>
  );
}
