import { useSignal } from '@preact/signals';
import type { EndpointPrice, FailingEndpoint, PublicEndpoint } from './api.gen.ts';
import { call } from './api.ts';
import { Condition, failedCalls, failedText, failingText } from './endpoint-state.tsx';
import { count, milliseconds, perSecond, time, tokens } from './format.ts';
import { callsOf, Link } from './links.tsx';
import {
  FIGURE_DAYS,
  type Figures,
  figureRange,
  loadFigures,
  MEASURES,
  type Measure,
  measures,
  modelPath,
  SHARES,
} from './model-figures.ts';
import { changeText, Prices, priceClasses } from './prices.tsx';
import { isAdmin } from './state.ts';
import { Copy, Empty, Heading, messageOf, Show, Table, useLoaded, WideTable } from './ui.tsx';
import { HISTORY_DAYS, History, Uptime } from './uptime.tsx';

const PRICES_PAGE = 20;

/** A measured value; throughput is in tokens per second. */
export function measured(value: string | number | null | undefined, measure: Measure): string {
  if (typeof value !== 'number') return '–';
  return measure === 'throughput' ? perSecond(value) : milliseconds(value);
}

/** Whether an endpoint answers now; otherwise since when and why it fails. */
function State({ of }: { of: FailingEndpoint | undefined }) {
  if (of === undefined) return <span class="tag good">no failures now</span>;
  return (
    <>
      <Condition of={of.condition} /> {failingText(of)}
      <br />
      <small>
        24 h: {failedText(of.last_1d)}.{' '}
        <a href={failedCalls(of)} data-page>
          Their calls
        </a>
      </small>
    </>
  );
}

function Percentiles({ of, unit }: { of: PublicEndpoint['latency_last_30m']; unit: string }) {
  if (of === null) return <>–</>;
  return (
    <ul class="prices">
      {(['p50', 'p75', 'p90', 'p99'] as const).map((share) => (
        <li key={share}>
          <span class="dim">{share}</span>{' '}
          <span class="number">{unit === 'ms' ? milliseconds(of[share]) : `${perSecond(of[share])} ${unit}`}</span>
        </li>
      ))}
    </ul>
  );
}

/** The speed of the last days by provider: one row for each measure. */
function Speed({ id }: { id: string }) {
  const figures = useLoaded((signal) => loadFigures([id], 'provider', signal), id);
  const range = figureRange();
  const calls = (row: Figures) =>
    callsOf(
      [
        ['model', id],
        ['provider', row['provider'] ?? null],
      ],
      range,
    );
  return (
    <section class="part">
      <h2>
        Speed, last {FIGURE_DAYS} days <span class="dim">{isAdmin.value ? '' : 'of your calls'}</span>
      </h2>
      <Show of={figures}>
        {(rows) =>
          rows.length === 0 ? (
            <p class="dim">No call of this model in {FIGURE_DAYS} days.</p>
          ) : (
            <WideTable label="Speed">
              <Table
                class="boxed speed"
                caption="Percentiles by provider"
                head={['Provider', 'Measure', ...SHARES.map((share) => `>${share}`)]}
                isGrouped
              >
                {rows.map((row) => (
                  <tbody key={String(row['provider'])}>
                    {measures.map((measure, index) => (
                      <tr key={measure}>
                        {index === 0 && (
                          <th scope="rowgroup" rowSpan={measures.length}>
                            <bdi>{row['provider'] ?? 'none'}</bdi>
                            <br />
                            <small>
                              <Link href={calls(row)}>{count(Number(row['request_count']))}</Link> calls
                            </small>
                          </th>
                        )}
                        <th scope="row">{MEASURES[measure]}</th>
                        {SHARES.map((share) => (
                          <td key={share} class="right number">
                            {measured(row[`${share}_${measure}`], measure)}
                          </td>
                        ))}
                      </tr>
                    ))}
                  </tbody>
                ))}
              </Table>
            </WideTable>
          )
        }
      </Show>
    </section>
  );
}

/** The recorded prices of all endpoints, the newest first, in portions. */
function PriceHistory({ id }: { id: string }) {
  const older = useSignal<{ rows: EndpointPrice[]; next: string | null } | undefined>(undefined);
  const failure = useSignal('');
  const load = (cursor: string | undefined, signal?: AbortSignal) =>
    call(
      'listEndpointPrices',
      { path: modelPath(id), query: { limit: PRICES_PAGE, ...(cursor === undefined ? {} : { cursor }) } },
      signal,
    );
  const first = useLoaded((signal) => load(undefined, signal), id);
  return (
    <section class="part">
      <h2>Prices over time</h2>
      <Show of={first}>
        {({ data, next_cursor }) => {
          const rows = [...data, ...(older.value?.rows ?? [])];
          const next = older.value === undefined ? next_cursor : older.value.next;
          const showOlder = async () => {
            try {
              const page = await load(next ?? undefined);
              older.value = { rows: [...(older.value?.rows ?? []), ...page.data], next: page.next_cursor };
              failure.value = '';
            } catch (error) {
              failure.value = messageOf(error);
            }
          };
          if (rows.length === 0)
            return <p class="dim">No price is recorded yet: the gateway records them from its start on.</p>;
          return (
            <>
              <Table
                class="cards price-times"
                caption="Prices of the endpoints, the newest first"
                head={['From', 'To', 'Endpoint', 'Price / 1M tokens', 'What changed']}
              >
                {rows.map((row) => (
                  <tr key={`${row.tag} ${row.from} ${row.until}`}>
                    <th scope="row" class="number">
                      {time(row.from)}
                    </th>
                    <td data-label="To">
                      {row.until === null ? (
                        <span class="tag good">in force</span>
                      ) : (
                        <span class="number">{time(row.until)}</span>
                      )}
                    </td>
                    <td data-label="Endpoint">
                      <span>
                        <bdi>{row.provider_name}</bdi> <code class="dim">{row.tag}</code>
                      </span>
                    </td>
                    <td data-label="Price / 1M">
                      {priceClasses.some((name) => row.pricing[name] !== undefined) ? <Prices of={row.pricing} /> : '–'}
                    </td>
                    <td data-label="Changed">
                      <span>
                        {row.changed === null ? (
                          <span class="dim">first record</span>
                        ) : (
                          row.changed.map(changeText).join(', ') || '–'
                        )}
                      </span>
                    </td>
                  </tr>
                ))}
              </Table>
              {failure.value !== '' && (
                <p class="failure" role="alert">
                  {failure.value}
                </p>
              )}
              {next !== null && (
                <button type="button" onClick={() => void showOlder()}>
                  Show older prices
                </button>
              )}
            </>
          );
        }}
      </Show>
    </section>
  );
}

/** A model: its endpoints with prices, speed and uptime, what fails now, and its prices over time. */
export function Model({ id }: { id: string }) {
  const path = modelPath(id);
  const model = useLoaded((signal) => call('listModelEndpoints', { path }, signal), id);
  const health = useLoaded((signal) => call('listEndpointHealth', { path }, signal), id);
  const failing = useLoaded((signal) => call('listFailingEndpoints', { query: { model: id, limit: 100 } }, signal), id);
  return (
    <>
      <Heading title={model.value?.data.name ?? id}>
        <a class="button" href="models" data-page>
          All models
        </a>
        {model.error === undefined && (
          <>
            <a class="button" href={`models?${new URLSearchParams({ chosen: id })}`} data-page>
              Compare
            </a>
            <a class="button primary" href={`playground?${new URLSearchParams({ models: id })}`} data-page>
              Try it
            </a>
          </>
        )}
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
                      <dt>State</dt>
                      <dd>
                        {failing.error ??
                          (failing.value && <State of={failing.value.data.find(({ tag }) => tag === endpoint.tag)} />)}
                      </dd>
                    </div>
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
                      <dd>
                        <Percentiles of={endpoint.latency_last_30m} unit="ms" />
                      </dd>
                    </div>
                    <div>
                      <dt>Throughput, 30 min</dt>
                      <dd>
                        <Percentiles of={endpoint.throughput_last_30m} unit="tokens/s" />
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
            <Speed id={id} />
            <PriceHistory id={id} />
          </>
        )}
      </Show>
    </>
  );
}
