import { home } from '../address.ts';
import type { AnalyticsQuery, FailingEndpoint, Setup, SpendingLimit } from '../api.gen.ts';
import { call } from '../api.ts';
import { Chart as Plot, SERIES_MAX, type Series } from '../chart.tsx';
import { Condition, failedCalls, failedText, failingText } from '../endpoint-state.tsx';
import { count, dayBefore, milliseconds, percent, time, usd } from '../format.ts';
import { callsOf, Link, Sum, usageOf } from '../links.tsx';
import { LimitBar, limitHref } from '../spending.tsx';
import { go, isAdmin } from '../state.ts';
import { Code, Empty, Heading, Show, Table, useLoaded } from '../ui.tsx';
import { Uptime } from '../uptime.tsx';

const DAYS = 30;
const HEALTH_MODELS_MAX = 6;
const MODELS_SHOWN = 8;
const LIMITS_SHOWN = 4;
const FAILING_SHOWN = 8;

type Row = Record<string, string | number | null>;

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
const dayOf = (date: string) => ({
  start: `${date}T00:00:00Z`,
  end: `${new Date(Date.parse(date) + 86_400_000).toISOString().slice(0, 10)}T00:00:00Z`,
});

const MODEL = 'model';
const DATE = 'date__day';

function Chart({ days, models, rows }: { days: readonly string[]; models: readonly string[]; rows: readonly Row[] }) {
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
      <Plot
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

function ByModel({ of, from }: { of: readonly (readonly [string, Sums])[]; from: string }) {
  return (
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
  );
}

/** The budgets of workspaces and the credits, with what is held now. */
function Limits({ of }: { of: readonly SpendingLimit[] }) {
  if (of.length === 0) return null;
  return (
    <section class="card">
      <header class="heading">
        <h2>Budgets</h2>
        <a href="budgets" data-page>
          All limits
        </a>
      </header>
      <ul class="rows limits">
        {of.map((limit) => (
          <li key={`${limit.assignee.id} ${limit.reset_interval}`}>
            <span>
              <bdi>{limit.assignee.type === 'organization' ? 'The organization' : limit.assignee.name}</bdi>
            </span>
            <LimitBar of={limit} href={limitHref(limit)} />
          </li>
        ))}
      </ul>
    </section>
  );
}

/** The endpoints of the models that were used most lately. */
function Endpoints({ models }: { models: string[] }) {
  const endpoints = useLoaded(
    async (signal) =>
      (
        await Promise.all(
          models.map(async (id) => {
            const slash = id.indexOf('/');
            const path = { author: id.slice(0, slash), slug: id.slice(slash + 1) };
            const { data } = await call('listModelEndpoints', { path }, signal);
            return data.endpoints.map((endpoint) => ({ model: id, endpoint }));
          }),
        )
      ).flat(),
    models.join(),
  );
  return (
    <Show of={endpoints}>
      {(rows) => {
        const measured = rows.filter(({ endpoint }) => endpoint.uptime_last_1d !== null);
        if (measured.length === 0)
          return <p class="dim">No endpoint has enough calls in the last day to be measured.</p>;
        return (
          <ul class="rows">
            {measured.map(({ model, endpoint }) => (
              <li key={`${model} ${endpoint.tag}`}>
                <span>
                  <a href={`models?${new URLSearchParams({ id: model })}`} data-page>
                    <bdi>{model}</bdi>
                  </a>{' '}
                  <span class="dim">
                    at <bdi>{endpoint.provider_name}</bdi>
                  </span>
                </span>
                <Uptime of={endpoint} />
              </li>
            ))}
          </ul>
        );
      }}
    </Show>
  );
}

/** Endpoints that fail now or failed in the last day. */
function Failing({ of, total }: { of: readonly FailingEndpoint[]; total: number }) {
  if (of.length === 0) return null;
  return (
    <section class="card">
      <h2>
        Failing endpoints <span class="dim">{count(total)}</span>
      </h2>
      <ul class="rows">
        {of.map((endpoint) => (
          <li key={`${endpoint.model_id} ${endpoint.tag}`}>
            <span>
              <Condition of={endpoint.condition} />{' '}
              <a href={`models?${new URLSearchParams({ id: endpoint.model_id })}`} data-page>
                <bdi>{endpoint.model_id}</bdi>
              </a>{' '}
              <span class="dim">
                at <bdi>{endpoint.provider_name}</bdi> ({endpoint.tag})
              </span>
              {failingText(endpoint) !== '' && (
                <>
                  <br />
                  <small>{failingText(endpoint)}</small>
                </>
              )}
            </span>
            <span>
              <small>
                30 min: {failedText(endpoint.last_30m)}
                <br />
                24 h: {failedText(endpoint.last_1d)}
              </small>
              <br />
              <a href={failedCalls(endpoint)} data-page>
                Failed calls<span class="hidden"> of {endpoint.endpoint_id}</span>
              </a>
            </span>
          </li>
        ))}
      </ul>
      {total > of.length && <p class="dim">And {count(total - of.length)} more: GET /api/v1/endpoints/failing.</p>}
    </section>
  );
}

/** The page where a person takes a first step. */
const STEP_PAGES: Record<string, [address: string, title: string]> = {
  provider: ['credentials?all=1', 'Provider credentials'],
  key: ['keys?new=1', 'New key'],
  first_call: ['playground', 'Playground'],
  limit: ['keys', 'Limits of keys'],
  console: ['workspaces', 'Workspaces and members'],
};

function Checklist({ steps }: { steps: Setup['steps'] }) {
  const left = steps.filter(({ is_done }) => !is_done).length;
  if (left === 0) return null;
  const next = steps.find(({ is_done }) => !is_done);
  return (
    <section class="card">
      <h2>
        First steps{' '}
        <span class="dim">
          {steps.length - left} of {steps.length} done
        </span>
      </h2>
      <ol class="steps">
        {steps.map(({ step, title, is_done, at, detail, command }) => (
          <li key={step} class={is_done ? 'done' : ''}>
            <details open={step === next?.step}>
              <summary>
                <span class="mark" aria-hidden="true">
                  {is_done ? '✓' : ''}
                </span>
                {title}
                <span class="hidden">{is_done ? ' (done)' : ' (to do)'}</span>
              </summary>
              <p>
                <bdi>{detail}</bdi> {at !== null && <span class="dim">{at.length > 10 ? time(at) : at}</span>}
              </p>
              <Code
                text={command.replaceAll(/https?:\/\/[^ ]+?(?=\/api\/v1)/g, home.replace(/\/$/, ''))}
                label={title}
              />
              {STEP_PAGES[step] && (
                <p>
                  In the console:{' '}
                  <a href={STEP_PAGES[step][0]} data-page>
                    {STEP_PAGES[step][1]}
                  </a>
                </p>
              )}
            </details>
          </li>
        ))}
      </ol>
    </section>
  );
}

function Warnings({ of }: { of: Setup['warnings'] }) {
  if (of.length === 0) return null;
  return (
    <section class="card">
      <h2>
        Warnings <span class="dim">{of.length}</span>
      </h2>
      <ul class="warnings">
        {of.map(({ message, command }) => (
          <li key={message}>
            <bdi>{message}</bdi>
            {command !== null && <Code text={command} label="What to set" />}
          </li>
        ))}
      </ul>
    </section>
  );
}

async function ask(body: AnalyticsQuery, signal: AbortSignal): Promise<Row[]> {
  const { data } = await call('queryAnalytics', { body }, signal);
  return data.data as Row[];
}

/** The last 24 hours, which begin at a whole hour. */
function lastDay() {
  const end = Math.ceil((Date.now() + 1) / 3_600_000) * 3_600_000;
  const text = (moment: number) => `${new Date(moment).toISOString().slice(0, 19)}Z`;
  return { start: text(end - 86_400_000), end: text(end) };
}

async function load(signal: AbortSignal) {
  const today = dayBefore(0);
  const range = lastDay();
  const budgets = (scope: 'workspace' | 'organization') =>
    isAdmin.value ? call('listBudgets', { query: { scope, limit: LIMITS_SHOWN } }, signal) : undefined;
  const [rows, recent, failing, credits, setup, ...limits] = await Promise.all([
    ask(
      {
        metrics: ['credits_usage', 'request_count', 'tokens_total'],
        dimensions: [MODEL],
        granularity: 'day',
        time_range: { start: `${dayBefore(DAYS)}T00:00:00Z`, end: dayOf(today).end },
        limit: 10_000,
      },
      signal,
    ),
    ask(
      {
        metrics: ['request_count', 'error_count', 'error_rate', 'p50_latency', 'p95_latency', 'p50_ttft', 'p95_ttft'],
        time_range: range,
      },
      signal,
    ),
    call('listFailingEndpoints', { query: { limit: FAILING_SHOWN } }, signal),
    isAdmin.value ? call('getCredits', {}, signal) : undefined,
    isAdmin.value ? call('getSetup', {}, signal) : undefined,
    budgets('organization'),
    budgets('workspace'),
  ]);
  return {
    today,
    rows,
    range,
    recent: recent[0] ?? {},
    failing,
    credits: credits?.data,
    setup: setup?.data,
    limits: limits.flatMap((list) => list?.data ?? []),
  };
}

/** The change of a day compared with the day before. */
function changeText(now: number, before: number): string {
  if (before === 0) return '';
  const share = (now / before - 1) * 100;
  return `${share < 0 ? '−' : '+'}${Math.abs(share).toFixed(0)} % on the day before`;
}

/** The speed and the errors of the last 24 hours. */
function Recent({ of, range }: { of: Row; range: ReturnType<typeof lastDay> }) {
  const number = (name: string) => (typeof of[name] === 'number' ? (of[name] as number) : null);
  const requests = number('request_count') ?? 0;
  if (requests === 0) return null;
  const rate = requests / 86_400;
  const href = (metric: string) => `usage?${new URLSearchParams({ metric, range: '24h', by: 'model' })}`;
  const both = (metric: string) => (
    <>
      <span class="line-part">
        <Link href={href(`p50_${metric}`)}>{milliseconds(number(`p50_${metric}`))}</Link>
        <span class="dim"> ·</span>
      </span>{' '}
      <span class="line-part">
        <Link href={href(`p95_${metric}`)}>{milliseconds(number(`p95_${metric}`))}</Link>
      </span>
    </>
  );
  return (
    <dl class="figures small-figures" aria-label="The last 24 hours">
      <div>
        <dt>Requests, 24 h</dt>
        <dd>
          <Link href={callsOf([], range)}>{count(requests)}</Link>{' '}
          <small class="dim">{rate >= 0.1 ? `${rate.toFixed(1)} / s` : `${(rate * 60).toFixed(1)} / min`}</small>
        </dd>
      </div>
      <div>
        <dt>Failed, 24 h</dt>
        <dd>
          <Link href={callsOf([], range, 'error_count')}>{count(number('error_count') ?? 0)}</Link>{' '}
          <small class="dim">{percent((number('error_rate') ?? 0) * 100)}</small>
        </dd>
      </div>
      <div>
        <dt>Duration, p50 · p95</dt>
        <dd>{both('latency')}</dd>
      </div>
      <div>
        <dt>First token, p50 · p95</dt>
        <dd>{both('ttft')}</dd>
      </div>
    </dl>
  );
}

export default function Overview() {
  const loaded = useLoaded(load);
  return (
    <>
      <Heading title="Overview" />
      <Show of={loaded}>
        {({ today, rows, range, recent, failing, credits, setup, limits }) => {
          const days = Array.from({ length: DAYS + 1 }, (_, index) => dayBefore(DAYS - index));
          const sumOf = (matches: (date: string) => boolean) =>
            rows.filter((row) => matches(String(row[DATE]))).reduce(add, nothing());
          const ofToday = sumOf((date) => date === today);
          const yesterday = dayBefore(1);
          const ofYesterday = sumOf((date) => date === yesterday);
          const ofDayBefore = sumOf((date) => date === dayBefore(2));
          const month = `${today.slice(0, 7)}-01`;
          const ofMonth = sumOf((date) => date >= month);
          const sums = new Map<string, Sums>();
          for (const row of rows) {
            const model = String(row[MODEL]);
            sums.set(model, add(sums.get(model) ?? nothing(), row));
          }
          const models = [...sums].sort(([, a], [, b]) => b.spent - a.spent || b.requests - a.requests);
          const used = rows
            .toSorted((a, b) => (String(a[DATE]) < String(b[DATE]) ? 1 : -1))
            .map((row) => String(row[MODEL]));
          const endpoints = (
            <section class="card">
              <h2>Endpoints in use</h2>
              <Endpoints models={[...new Set(used)].slice(0, HEALTH_MODELS_MAX)} />
            </section>
          );
          return (
            <>
              {setup && <Checklist steps={setup.steps} />}
              {setup && <Warnings of={setup.warnings} />}
              <dl class="figures">
                <div>
                  <dt>Spent today</dt>
                  <dd>
                    <Sum usd={ofToday.spent} href={callsOf([], dayOf(today))} />
                  </dd>
                </div>
                <div>
                  <dt>Spent yesterday</dt>
                  <dd>
                    <Sum
                      usd={ofYesterday.spent}
                      href={usageOf({ compare: 'on' }, { from: yesterday, to: yesterday })}
                    />{' '}
                    <small class="dim note">{changeText(ofYesterday.spent, ofDayBefore.spent)}</small>
                  </dd>
                </div>
                <div>
                  <dt>Spent this month</dt>
                  <dd>
                    <Sum usd={ofMonth.spent} href={usageOf({}, { from: month })} />
                  </dd>
                </div>
                <div>
                  <dt>Requests today</dt>
                  <dd class="number">
                    <Link href={callsOf([], dayOf(today))}>{count(ofToday.requests)}</Link>
                  </dd>
                </div>
                {credits !== undefined && (
                  <div>
                    <dt>Credits left</dt>
                    <dd>
                      {credits.total_credits === 0 ? (
                        <span class="small-text">no limit</span>
                      ) : (
                        <Sum usd={credits.total_credits - credits.total_usage} href="budgets" />
                      )}
                    </dd>
                  </div>
                )}
              </dl>
              <Recent of={recent} range={range} />
              <Failing of={failing.data} total={failing.total_count} />
              {rows.length === 0 ? (
                <Empty title="No request yet">
                  <p>Spending by day and model appears here with the first request.</p>
                  <a class="button primary" href="playground" data-page>
                    Try a model
                  </a>
                </Empty>
              ) : (
                <>
                  <section class="card">
                    <h2>Spend by model, last {DAYS} days</h2>
                    <Chart days={days} models={models.map(([model]) => model)} rows={rows} />
                  </section>
                  <div class="pair">
                    <div>
                      <section class="card">
                        <h2>By model, last {DAYS} days</h2>
                        <ByModel of={models} from={dayBefore(DAYS)} />
                        {models.length > MODELS_SHOWN && (
                          <p class="dim">
                            The largest {MODELS_SHOWN} of {count(models.length)}.{' '}
                            <a href={usageOf({}, { from: dayBefore(DAYS) })} data-page>
                              All models
                            </a>
                          </p>
                        )}
                      </section>
                      {limits.length > 0 && endpoints}
                    </div>
                    <div>
                      <Limits of={limits.slice(0, LIMITS_SHOWN)} />
                      {limits.length === 0 && endpoints}
                    </div>
                  </div>
                </>
              )}
            </>
          );
        }}
      </Show>
    </>
  );
}
