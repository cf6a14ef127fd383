import type { AnalyticsQuery, SpendingLimit } from '../api.gen.ts';
import { call } from '../api.ts';
import { Endpoints, Failing } from '../endpoint-lists.tsx';
import { count, dayBefore, milliseconds, percent } from '../format.ts';
import { callsOf, Link, Sum, usageOf } from '../links.tsx';
import { Checklist, Warnings } from '../setup-steps.tsx';
import { ByModel, dayOf, type Row, SpendChart, spendOf } from '../spend-by-model.tsx';
import { LimitBar, limitHref } from '../spending.tsx';
import { isAdmin } from '../state.ts';
import { Empty, Heading, Show, useLoaded } from '../ui.tsx';

const DAYS = 30;
const HEALTH_MODELS_MAX = 6;
const LIMITS_SHOWN = 4;
const FAILING_SHOWN = 8;

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
        dimensions: ['model'],
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
          const spend = spendOf(rows);
          const yesterday = dayBefore(1);
          const month = `${today.slice(0, 7)}-01`;
          const ofToday = spend.on((date) => date === today);
          const ofYesterday = spend.on((date) => date === yesterday);
          const ofDayBefore = spend.on((date) => date === dayBefore(2));
          const ofMonth = spend.on((date) => date >= month);
          const endpoints = (
            <section class="card">
              <h2>Endpoints in use</h2>
              <Endpoints models={spend.latest_models.slice(0, HEALTH_MODELS_MAX)} />
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
                    <SpendChart days={days} models={spend.models.map(([model]) => model)} rows={rows} />
                  </section>
                  <div class="pair">
                    <div>
                      <section class="card">
                        <h2>By model, last {DAYS} days</h2>
                        <ByModel of={spend.models} from={dayBefore(DAYS)} />
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
