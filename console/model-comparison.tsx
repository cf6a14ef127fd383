import type { ComponentChildren } from 'preact';
import type { EndpointHealth, FailingEndpoint, ModelEndpoints, PublicEndpoint } from './api.gen.ts';
import { call } from './api.ts';
import { count, counted, percent, tokens } from './format.ts';
import { callsOf, Link } from './links.tsx';
import {
  FIGURE_DAYS,
  type Figures,
  figureRange,
  loadFigures,
  MEASURES,
  measures,
  modelPath,
  SHARES,
} from './model-figures.ts';
import { measured } from './model-page.tsx';
import { PRICE_CLASSES, type PriceClass, priceClasses, priceOf } from './prices.tsx';
import { route, setQuery } from './state.ts';
import { Check, Empty, Heading, Show, Table, useLoaded, WideTable } from './ui.tsx';
import { HISTORY_DAYS } from './uptime.tsx';

/** Models that are compared at once. */
export const COMPARED_MAX = 4;

/** The models in a filter of the address, without repetitions. */
export const modelsIn = (name: string): string[] =>
  [...new Set((route.value.query.get(name) ?? '').split(',').filter((id) => id !== ''))].slice(0, COMPARED_MAX);

interface Compared {
  model: ModelEndpoints;
  /** Without those of service tiers. */
  endpoints: PublicEndpoint[];
  health: EndpointHealth[];
  figures: Figures | undefined;
  failing: FailingEndpoint[];
}

interface Row {
  label: string;
  /** The compared values, which are shown unless `shown` is set. */
  values: string[];
  shown?: ComponentChildren[];
}

/** The lowest price of a class among the endpoints. */
function lowest(endpoints: readonly PublicEndpoint[], name: PriceClass): string {
  const priced = endpoints.filter(({ pricing }) => pricing[name] !== undefined && Number(pricing[name]) >= 0);
  const best = priced.toSorted((a, b) => Number(a.pricing[name]) - Number(b.pricing[name]))[0];
  return best === undefined ? '–' : priceOf(best.pricing, name);
}

const most = (values: readonly (number | null)[]): number | null =>
  values.reduce((top, value) => (value !== null && value > (top ?? 0) ? value : top), null);

function uptimeOf(health: readonly EndpointHealth[]): string {
  const days = health.flatMap((endpoint) => endpoint.days);
  const calls = days.reduce((sum, day) => sum + day.calls, 0);
  const failed = days.reduce((sum, day) => sum + day.errors, 0);
  return calls === 0 ? 'no call' : `${percent(((calls - failed) / calls) * 100)} of ${counted(calls, 'call')}`;
}

function groupsOf(models: readonly Compared[]): [title: string, rows: Row[]][] {
  const row = (label: string, value: (of: Compared) => string): Row => ({ label, values: models.map(value) });
  const range = figureRange();
  const parameters = [
    ...new Set(models.flatMap(({ endpoints }) => endpoints.flatMap((one) => one.supported_parameters))),
  ].sort();
  const calls = (of: Compared) => count(Number(of.figures?.['request_count'] ?? 0));
  return [
    [
      'Price / 1M tokens, the lowest of its endpoints',
      priceClasses
        .map((name) => row(PRICE_CLASSES[name][0], ({ endpoints }) => lowest(endpoints, name)))
        .filter(({ values }) => values.some((value) => value !== '–')),
    ],
    [
      'Limits',
      [
        row('Context', ({ endpoints }) => tokens(most(endpoints.map((one) => one.context_length)))),
        row('Longest answer', ({ endpoints }) => tokens(most(endpoints.map((one) => one.max_completion_tokens)))),
        row('Reads', ({ model }) => model.architecture.input_modalities.join(', ')),
        row('Writes', ({ model }) => model.architecture.output_modalities.join(', ')),
      ],
    ],
    [
      'Endpoints',
      [
        row('Endpoints', ({ endpoints }) => count(endpoints.length)),
        row('Providers', ({ endpoints }) => [...new Set(endpoints.map((one) => one.provider_name))].join(', ') || '–'),
        row(`Uptime, ${HISTORY_DAYS} days`, ({ health }) => uptimeOf(health)),
        row('Fail now or lately', ({ failing }) => failing.map(({ tag }) => tag).join(', ') || 'none'),
      ],
    ],
    [
      `Speed, last ${FIGURE_DAYS} days`,
      [
        {
          ...row('Calls', calls),
          shown: models.map((of) => (
            <Link key={of.model.id} href={callsOf([['model', of.model.id]], range)}>
              {calls(of)}
            </Link>
          )),
        },
        ...measures.flatMap((measure) =>
          SHARES.map((share) =>
            row(`${MEASURES[measure]}, ${share}`, ({ figures }) => measured(figures?.[`${share}_${measure}`], measure)),
          ),
        ),
      ],
    ],
    [
      'Parameters',
      parameters.map((name) =>
        row(name, ({ endpoints }) => (endpoints.some((one) => one.supported_parameters.includes(name)) ? 'yes' : 'no')),
      ),
    ],
  ];
}

const differs = ({ values }: Row): boolean => new Set(values).size > 1;

async function load(ids: readonly string[], signal: AbortSignal): Promise<Compared[]> {
  const [figures, failing, ...models] = await Promise.all([
    loadFigures(ids, 'model', signal),
    call('listFailingEndpoints', { query: { limit: 100 } }, signal),
    ...ids.map(async (id) => {
      const path = modelPath(id);
      const [endpoints, health] = await Promise.all([
        call('listModelEndpoints', { path }, signal),
        call('listEndpointHealth', { path }, signal),
      ]);
      return { id, model: endpoints.data, health: health.data };
    }),
  ]);
  return models.map(({ id, model, health }) => ({
    model,
    health,
    endpoints: model.endpoints.filter(({ service_tier: tier }) => tier === null),
    figures: figures.find((row) => row['model'] === id),
    failing: failing.data.filter(({ model_id: of }) => of === id),
  }));
}

/** The heading of a model's column, with a button that removes it if more than two are left. */
function ModelHead({ of: { id, name }, ids }: { of: ModelEndpoints; ids: readonly string[] }) {
  return (
    <>
      <a href={`models?${new URLSearchParams({ id })}`} data-page>
        <bdi>{name}</bdi>
      </a>
      <br />
      <code>{id}</code>
      {ids.length > 2 && (
        <>
          <br />
          <button
            type="button"
            class="link"
            onClick={() => setQuery({ compare: ids.filter((one) => one !== id).join() })}
          >
            Remove<span class="hidden"> {name}</span>
          </button>
        </>
      )}
    </>
  );
}

/** Two to four models side by side. */
export function Comparison({ ids }: { ids: readonly string[] }) {
  const compared = useLoaded((signal) => load(ids, signal), ids.join());
  const onlyDifferences = route.value.query.get('only') === 'differences';
  return (
    <>
      <Heading title="Compare models">
        <Check
          checked={onlyDifferences}
          onChange={(isChecked) => setQuery({ only: isChecked ? 'differences' : undefined })}
        >
          Only differences
        </Check>
        <a class="button" href={`models?${new URLSearchParams({ chosen: ids.join() })}`} data-page>
          Choose other models
        </a>
        <a class="button primary" href={`playground?${new URLSearchParams({ models: ids.join() })}`} data-page>
          Try them
        </a>
      </Heading>
      <Show of={compared}>
        {(models) => {
          const groups = groupsOf(models)
            .map(([title, rows]) => [title, onlyDifferences ? rows.filter(differs) : rows] as const)
            .filter(([, rows]) => rows.length > 0);
          return (
            <>
              <p class="dim">Rows with a mark ≠ differ. The address of this page is a permanent link.</p>
              <WideTable label="Comparison">
                <Table
                  class="boxed comparison"
                  caption={models.map(({ model }) => model.name).join(', ')}
                  head={['', ...models.map(({ model }) => <ModelHead key={model.id} of={model} ids={ids} />)]}
                  isGrouped
                >
                  {groups.map(([title, rows]) => (
                    <tbody key={title}>
                      <tr class="group">
                        <th scope="rowgroup" colSpan={models.length + 1}>
                          <span>{title}</span>
                        </th>
                      </tr>
                      {rows.map((row) => (
                        <tr key={row.label} class={differs(row) ? 'differs' : ''}>
                          <th scope="row">
                            {row.label}
                            {differs(row) && (
                              <>
                                {' '}
                                <span class="dim" aria-hidden="true">
                                  ≠
                                </span>
                                <span class="hidden"> (differs)</span>
                              </>
                            )}
                          </th>
                          {row.values.map((value, index) => (
                            <td key={models[index]?.model.id} class={/^[\d$–]/.test(value) ? 'number' : undefined}>
                              {row.shown?.[index] ?? value}
                            </td>
                          ))}
                        </tr>
                      ))}
                    </tbody>
                  ))}
                </Table>
              </WideTable>
              {groups.length === 0 && (
                <Empty title="No difference">
                  <p>Show all rows: these models are equal in everything that is compared.</p>
                </Empty>
              )}
            </>
          );
        }}
      </Show>
    </>
  );
}
