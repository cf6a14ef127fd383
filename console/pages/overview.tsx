import { home } from '../address.ts';
import type { ActivityItem, Setup } from '../api.gen.ts';
import { call } from '../api.ts';
import { count, dayBefore, time, usd } from '../format.ts';
import { isAdmin } from '../state.ts';
import { Code, Empty, Heading, Money, Show, useLoaded } from '../ui.tsx';
import { Uptime } from './models.tsx';

const DAYS = 30;
const HEALTH_MODELS_MAX = 6;

/** The days up to today, the oldest first, each with its rows. */
function daysOf(rows: readonly ActivityItem[]) {
  const days = Array.from({ length: DAYS + 1 }, (_, index) => ({
    date: dayBefore(DAYS - index),
    spent: 0,
    requests: 0,
  }));
  const byDate = new Map(days.map((day) => [day.date, day]));
  for (const { date, usage, requests } of rows) {
    const day = byDate.get(date);
    if (day === undefined) continue;
    day.spent += usage;
    day.requests += requests;
  }
  return days;
}

function Chart({ days }: { days: ReturnType<typeof daysOf> }) {
  const most = Math.max(...days.map(({ spent }) => spent));
  return (
    <figure>
      <div class="chart" aria-hidden="true">
        {days.map(({ date, spent, requests }) => (
          <span key={date} title={`${date}: ${usd(spent)}, ${count(requests)} requests`}>
            <i style={{ height: `${most === 0 ? 0 : Math.max(spent > 0 ? 2 : 0, (spent / most) * 100)}%` }} />
          </span>
        ))}
      </div>
      <figcaption class="dim">
        <span>{days[0]?.date}</span>
        <span>
          Spend by UTC day, at most <Money usd={most} />
        </span>
        <span>today</span>
      </figcaption>
      <details>
        <summary>As a table</summary>
        <table>
          <caption class="hidden">Spend by UTC day</caption>
          <thead>
            <tr>
              <th scope="col">Day</th>
              <th scope="col" class="right">
                Spent
              </th>
              <th scope="col" class="right">
                Requests
              </th>
            </tr>
          </thead>
          <tbody>
            {days
              .toReversed()
              .filter(({ requests }) => requests > 0)
              .map(({ date, spent, requests }) => (
                <tr key={date}>
                  <th scope="row">{date}</th>
                  <td class="right">
                    <Money usd={spent} />
                  </td>
                  <td class="right number">{count(requests)}</td>
                </tr>
              ))}
          </tbody>
        </table>
      </details>
    </figure>
  );
}

function ByModel({ rows }: { rows: readonly ActivityItem[] }) {
  const models = new Map<string, { spent: number; requests: number; tokens: number }>();
  for (const row of rows) {
    const sum = models.get(row.model) ?? { spent: 0, requests: 0, tokens: 0 };
    models.set(row.model, {
      spent: sum.spent + row.usage,
      requests: sum.requests + row.requests,
      tokens: sum.tokens + row.prompt_tokens + row.completion_tokens,
    });
  }
  const sorted = [...models].sort(([, a], [, b]) => b.spent - a.spent || b.requests - a.requests).slice(0, 8);
  return (
    <table>
      <caption class="hidden">Spend by model</caption>
      <thead>
        <tr>
          <th scope="col">Model</th>
          <th scope="col" class="right">
            Requests
          </th>
          <th scope="col" class="right">
            Tokens
          </th>
          <th scope="col" class="right">
            Spent
          </th>
        </tr>
      </thead>
      <tbody>
        {sorted.map(([model, { spent, requests, tokens }]) => (
          <tr key={model}>
            <th scope="row">
              <a href={`models?${new URLSearchParams({ id: model })}`} data-page>
                <bdi>{model}</bdi>
              </a>
            </th>
            <td class="right number">{count(requests)}</td>
            <td class="right number">{count(tokens)}</td>
            <td class="right">
              <Money usd={spent} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
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
                  <bdi>{model}</bdi>{' '}
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

function Checklist({ steps }: { steps: Setup['steps'] }) {
  const left = steps.filter(({ is_done }) => !is_done).length;
  if (left === 0) return null;
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
            <details open={false}>
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
        Look at this <span class="dim">{of.length}</span>
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

async function load(signal: AbortSignal) {
  const today = dayBefore(0);
  const [past, now, credits, setup] = await Promise.all([
    call('listActivity', {}, signal),
    call('listActivity', { query: { date: today } }, signal),
    isAdmin.value ? call('getCredits', {}, signal) : undefined,
    isAdmin.value ? call('getSetup', {}, signal) : undefined,
  ]);
  return {
    rows: [...past.data, ...now.data],
    today: now.data,
    credits: credits?.data,
    setup: setup?.data,
  };
}

export default function Overview() {
  const loaded = useLoaded(load);
  return (
    <>
      <Heading title="Overview" />
      <Show of={loaded}>
        {({ rows, today, credits, setup }) => {
          const sum = (of: readonly ActivityItem[]) => of.reduce((all, { usage }) => all + usage, 0);
          const requests = today.reduce((all, row) => all + row.requests, 0);
          const month = rows.filter(({ date }) => date.startsWith(dayBefore(0).slice(0, 7)));
          const days = daysOf(rows);
          const recent = [
            ...new Set(rows.toSorted((a, b) => (a.date < b.date ? 1 : -1)).map(({ model }) => model)),
          ].slice(0, HEALTH_MODELS_MAX);
          return (
            <>
              {setup && <Checklist steps={setup.steps} />}
              {setup && <Warnings of={setup.warnings} />}
              <dl class="figures">
                <div>
                  <dt>Spent today</dt>
                  <dd>
                    <Money usd={sum(today)} />
                  </dd>
                </div>
                <div>
                  <dt>Spent this month</dt>
                  <dd>
                    <Money usd={sum(month)} />
                  </dd>
                </div>
                <div>
                  <dt>Requests today</dt>
                  <dd class="number">{count(requests)}</dd>
                </div>
                {credits !== undefined && (
                  <div>
                    <dt>Credits left</dt>
                    <dd>
                      {credits.total_credits === 0 ? (
                        <span class="small-text">none granted: no limit</span>
                      ) : (
                        <Money usd={credits.total_credits - credits.total_usage} />
                      )}
                    </dd>
                  </div>
                )}
              </dl>
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
                    <h2>Spend, last {DAYS} days</h2>
                    <Chart days={days} />
                  </section>
                  <div class="pair">
                    <section class="card">
                      <h2>By model, last {DAYS} days</h2>
                      <ByModel rows={rows} />
                    </section>
                    <section class="card">
                      <h2>Endpoints in use</h2>
                      <Endpoints models={recent} />
                    </section>
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
