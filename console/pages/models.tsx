import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { call } from '../api.ts';
import { perMillion, tokens } from '../format.ts';
import { COMPARED_MAX, Comparison, modelsIn } from '../model-comparison.tsx';
import { Model } from '../model-page.tsx';
import { route, setQuery } from '../state.ts';
import { Empty, Heading, Pager, Show, Table, useLoaded } from '../ui.tsx';

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
  'pricing-high-to-low': 'Most expensive',
  'context-high-to-low': 'Longest context',
  'throughput-high-to-low': 'Fastest',
  'latency-low-to-high': 'Lowest latency',
} as const;

function Select({ label, name, options }: { label: string; name: string; options: Readonly<Record<string, string>> }) {
  return (
    <label class="labelled">
      <span>{label}</span>
      <select
        value={route.value.query.get(name) ?? ''}
        onChange={(event) => setQuery({ [name]: event.currentTarget.value, offset: undefined })}
      >
        {!('' in options) && <option value="">All</option>}
        {Object.entries(options).map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

/** The chosen models, which stay chosen while the person searches, and the way to their comparison. */
function Chosen({ ids }: { ids: readonly string[] }) {
  if (ids.length === 0)
    return <p class="dim">To compare models, choose 2 to {COMPARED_MAX} of them with their checkboxes.</p>;
  return (
    <section class="card chosen" aria-label="Chosen models">
      <ul class="chips">
        {ids.map((id) => (
          <li key={id}>
            <code>{id}</code>
            <button
              type="button"
              class="quiet"
              aria-label={`Remove ${id}`}
              onClick={() => setQuery({ chosen: ids.filter((one) => one !== id).join() })}
            >
              ✕
            </button>
          </li>
        ))}
      </ul>
      {ids.length === 1 ? (
        <span class="dim">Choose one more model to compare.</span>
      ) : (
        <a class="button primary" href={`models?${new URLSearchParams({ compare: ids.join() })}`} data-page>
          Compare {ids.length} models
        </a>
      )}
    </section>
  );
}

function List() {
  const { query } = route.value;
  const chosen = modelsIn('chosen');
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
    providers: query.get('provider') ?? undefined,
    sort: (query.get('sort') ?? undefined) as 'newest' | undefined,
    output_modalities: 'all',
  };
  const providers = useLoaded(async (signal) => {
    const { data } = await call('listProviders', {}, signal);
    return Object.fromEntries(data.map(({ slug, name }) => [slug, name]));
  });
  const filters = Object.fromEntries(Object.entries(parameters).filter(([, value]) => value !== undefined));
  const models = useLoaded(
    (signal) => call('listModels', { query: { ...filters, limit: PAGE, offset } }, signal),
    JSON.stringify([filters, offset]),
  );
  return (
    <>
      <Heading title="Models" />
      <search class="filters">
        <label class="labelled search">
          <span>Search models</span>
          <input
            type="search"
            placeholder="Name or id"
            value={text.value}
            onInput={(event) => {
              text.value = event.currentTarget.value;
            }}
          />
        </label>
        <Select label="Supports" name="with" options={PARAMETERS} />
        <Select label="Reads" name="input" options={INPUTS} />
        {providers.value && <Select label="Provider" name="provider" options={providers.value} />}
        <Select label="Order" name="sort" options={SORTS} />
      </search>
      <Chosen ids={chosen} />
      <Show of={models}>
        {({ data, total_count }) =>
          data.length === 0 ? (
            <Empty title="No model matches">
              <p>Change the search or the filters.</p>
              <button
                type="button"
                onClick={() => {
                  text.value = '';
                  setQuery({ q: '', with: '', input: '', provider: '', offset: '' });
                }}
              >
                Show all models
              </button>
            </Empty>
          ) : (
            <>
              <Table
                class="cards"
                caption="Models"
                head={['', 'Model', '>Context', '>Input / 1M', '>Output / 1M', 'Reads']}
              >
                {data.map((model) => (
                  <tr key={model.id}>
                    <td class="tick">
                      <input
                        type="checkbox"
                        aria-label={`Choose ${model.name} for a comparison`}
                        checked={chosen.includes(model.id)}
                        disabled={chosen.length >= COMPARED_MAX && !chosen.includes(model.id)}
                        onChange={(event) => {
                          const rest = chosen.filter((id) => id !== model.id);
                          setQuery({ chosen: (event.currentTarget.checked ? [...rest, model.id] : rest).join() });
                        }}
                      />
                    </td>
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
              </Table>
              <Pager offset={offset} limit={PAGE} total={total_count} />
            </>
          )
        }
      </Show>
    </>
  );
}

export default function Models() {
  const id = route.value.query.get('id');
  const compared = modelsIn('compare');
  if (compared.length > 1) return <Comparison ids={compared} />;
  return id === null ? <List /> : <Model key={id} id={id} />;
}
