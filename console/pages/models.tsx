import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { EndpointHealth, PublicEndpoint, RetrievedModel } from '../api.gen.ts';
import { call } from '../api.ts';
import { count, dayBefore, percent, perMillion, tokens } from '../format.ts';
import { route, setQuery } from '../state.ts';
import { Copy, Empty, Heading, Pager, Show, useLoaded } from '../ui.tsx';

const PAGE = 25;

const PARAMETERS = {
  tools: 'Tools',
  structured_outputs: 'JSON schema',
  reasoning: 'Reasoning',
  web_search_options: 'Web search',
};
const INPUTS = { image: 'Images', file: 'Files', audio: 'Audio' };
const SORTS = {
  '': 'Name',
  newest: 'Newest',
  'pricing-low-to-high': 'Cheapest',
  'context-high-to-low': 'Longest context',
  'throughput-high-to-low': 'Fastest',
  'latency-low-to-high': 'Lowest latency',
} as const;

function Select({ label, name, options }: { label: string; name: string; options: Readonly<Record<string, string>> }) {
  return (
    <select
      aria-label={label}
      value={route.value.query.get(name) ?? ''}
      onChange={(event) => setQuery({ [name]: event.currentTarget.value, offset: undefined })}
    >
      {!('' in options) && <option value="">{label}</option>}
      {Object.entries(options).map(([value, text]) => (
        <option key={value} value={value}>
          {text}
        </option>
      ))}
    </select>
  );
}

function List() {
  const { query } = route.value;
  const q = query.get('q') ?? '';
  const text = useSignal(q);
  useEffect(() => {
    const wait = setTimeout(() => {
      if (text.value.trim() !== q) setQuery({ q: text.value.trim(), offset: undefined });
    }, 200);
    return () => clearTimeout(wait);
  }, [text.value, q]);
  const offset = Number(query.get('offset') ?? 0) || 0;
  const parameters = {
    q: q === '' ? undefined : q,
    supported_parameters: query.get('with') ?? undefined,
    input_modalities: query.get('input') ?? undefined,
    sort: (query.get('sort') ?? undefined) as 'newest' | undefined,
    output_modalities: 'all',
  };
  const filters = Object.fromEntries(Object.entries(parameters).filter(([, value]) => value !== undefined));
  const models = useLoaded(
    (signal) => call('listModels', { query: { ...filters, limit: PAGE, offset } }, signal),
    query.toString(),
  );
  return (
    <>
      <Heading title="Models" />
      <search class="filters">
        <input
          type="search"
          aria-label="Search models"
          placeholder="Search models"
          value={text.value}
          onInput={(event) => {
            text.value = event.currentTarget.value;
          }}
        />
        <Select label="Supports" name="with" options={PARAMETERS} />
        <Select label="Reads" name="input" options={INPUTS} />
        <Select label="Order" name="sort" options={SORTS} />
      </search>
      <Show of={models}>
        {({ data, total_count }) =>
          data.length === 0 ? (
            <Empty title="No model matches">
              <p>Change the search or the filters.</p>
              <button
                type="button"
                onClick={() => {
                  text.value = '';
                  setQuery({ q: '', with: '', input: '', offset: '' });
                }}
              >
                Show all models
              </button>
            </Empty>
          ) : (
            <>
              <table class="cards">
                <caption class="hidden">Models</caption>
                <thead>
                  <tr>
                    <th scope="col">Model</th>
                    <th scope="col" class="right">
                      Context
                    </th>
                    <th scope="col" class="right">
                      Input / 1M
                    </th>
                    <th scope="col" class="right">
                      Output / 1M
                    </th>
                    <th scope="col">Reads</th>
                  </tr>
                </thead>
                <tbody>
                  {data.map((model) => (
                    <tr key={model.id}>
                      <th scope="row">
                        <a href={`models?${new URLSearchParams({ id: model.id })}`} data-page>
                          <bdi>{model.name}</bdi>
                        </a>
                        <br />
                        <code class="dim">{model.id}</code>
                      </th>
                      <td data-label="Context" class="right number">
                        {tokens(model.context_length)}
                      </td>
                      <td data-label="Input / 1M" class="right number">
                        {perMillion(model.pricing.prompt)}
                      </td>
                      <td data-label="Output / 1M" class="right number">
                        {perMillion(model.pricing.completion)}
                      </td>
                      <td data-label="Reads">{model.architecture.input_modalities.join(', ')}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
              <Pager offset={offset} limit={PAGE} total={total_count} />
            </>
          )
        }
      </Show>
    </>
  );
}

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

const HISTORY_DAYS = 30;
const toneOf = (uptime: number | null) =>
  uptime === null ? '' : uptime >= 99 ? 'good' : uptime >= 90 ? 'fair' : 'bad';

/** The uptime of an endpoint on each of the last 30 UTC days, with a table beside it. */
function History({ of }: { of: EndpointHealth | undefined }) {
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
          const text = day === undefined ? 'no call' : `${percent(day.uptime)} of ${count(day.calls)} calls`;
          return <i key={date} class={toneOf(day?.uptime ?? null)} title={`${date}: ${text}`} />;
        })}
      </span>
      <details>
        <summary>
          <small>
            {sum === 0 ? 'only rate-limited calls' : `${percent(((sum - failed) / sum) * 100)} of ${count(sum)} calls`}
          </small>
        </summary>
        <table>
          <caption class="hidden">Uptime of {of.tag} by UTC day</caption>
          <thead>
            <tr>
              <th scope="col">Day</th>
              <th scope="col" class="right">
                Uptime
              </th>
              <th scope="col" class="right">
                Calls
              </th>
              <th scope="col" class="right">
                Failed
              </th>
              <th scope="col" class="right">
                Rate-limited
              </th>
            </tr>
          </thead>
          <tbody>
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
          </tbody>
        </table>
      </details>
    </>
  );
}

function Prices({ of }: { of: RetrievedModel['pricing'] }) {
  const rows = [
    ['Input', of.prompt],
    ['Output', of.completion],
    ['Cache read', of.input_cache_read],
    ['Cache write', of.input_cache_write],
    ['Reasoning', of.internal_reasoning],
  ] as const;
  return (
    <ul class="prices">
      {rows.flatMap(([label, price]) =>
        price === undefined
          ? []
          : [
              <li key={label}>
                <span class="dim">{label}</span> <span class="number">{perMillion(price)}</span>
              </li>,
            ],
      )}
    </ul>
  );
}

function Model({ id }: { id: string }) {
  const slash = id.indexOf('/');
  const model = useLoaded(
    (signal) => call('listModelEndpoints', { path: { author: id.slice(0, slash), slug: id.slice(slash + 1) } }, signal),
    id,
  );
  const health = useLoaded(
    (signal) => call('listEndpointHealth', { path: { author: id.slice(0, slash), slug: id.slice(slash + 1) } }, signal),
    id,
  );
  return (
    <>
      <Heading title={model.value?.data.name ?? id}>
        <a class="button" href="models" data-page>
          All models
        </a>
        <a class="button primary" href={`playground?${new URLSearchParams({ models: id })}`} data-page>
          Try it
        </a>
      </Heading>
      <p>
        <code>{id}</code> <Copy text={id} label="Copy id" />
      </p>
      <Show of={model}>
        {({ data }) => (
          <>
            <p class="prose">{data.description}</p>
            <p class="dim">
              Reads {data.architecture.input_modalities.join(', ')}; writes{' '}
              {data.architecture.output_modalities.join(', ')}
            </p>
            <h2>Endpoints</h2>
            {data.endpoints.length === 0 && (
              <Empty title="No endpoint serves this model">
                <p>Set the credential of a provider that has it, and start the gateway again.</p>
              </Empty>
            )}
            <div class="endpoints">
              {data.endpoints.map((endpoint) => (
                <section key={`${endpoint.tag} ${endpoint.name}`} class="card">
                  <h3>
                    <bdi>{endpoint.provider_name}</bdi> <code class="dim">{endpoint.tag}</code>
                  </h3>
                  <dl>
                    <div>
                      <dt>Price / 1M tokens</dt>
                      <dd>
                        <Prices of={endpoint.pricing} />
                      </dd>
                    </div>
                    <div>
                      <dt>Context</dt>
                      <dd class="number">{tokens(endpoint.context_length)}</dd>
                    </div>
                    <div>
                      <dt>Longest answer</dt>
                      <dd class="number">{tokens(endpoint.max_completion_tokens)}</dd>
                    </div>
                    <div>
                      <dt>First token, 30 min</dt>
                      <dd class="number">
                        {endpoint.latency_last_30m === null
                          ? '–'
                          : `p50 ${Math.round(endpoint.latency_last_30m.p50)} ms, p99 ${Math.round(endpoint.latency_last_30m.p99)} ms`}
                      </dd>
                    </div>
                    <div>
                      <dt>Throughput, 30 min</dt>
                      <dd class="number">
                        {endpoint.throughput_last_30m === null
                          ? '–'
                          : `p50 ${Math.round(endpoint.throughput_last_30m.p50)} tokens/s`}
                      </dd>
                    </div>
                    <div>
                      <dt>Uptime</dt>
                      <dd>
                        <Uptime of={endpoint} />
                      </dd>
                    </div>
                    <div>
                      <dt>Last {HISTORY_DAYS} days</dt>
                      <dd>
                        {health.error ?? <History of={health.value?.data.find(({ tag }) => tag === endpoint.tag)} />}
                      </dd>
                    </div>
                  </dl>
                </section>
              ))}
            </div>
          </>
        )}
      </Show>
    </>
  );
}

export default function Models() {
  const id = route.value.query.get('id');
  return id === null ? <List /> : <Model key={id} id={id} />;
}
