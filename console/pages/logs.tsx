import { useSignal } from '@preact/signals';
import { type ComponentChildren, Fragment } from 'preact';
import { useEffect } from 'preact/hooks';
import { base } from '../address.ts';
import type { GenerationRow } from '../api.gen.ts';
import { call } from '../api.ts';
import { failureText } from '../failures.ts';
import { count, milliseconds, perSecond, time } from '../format.ts';
import { GenerationPanel, outcomeTag } from '../generation.tsx';
import { sumsOfLogs, usageOfLogs } from '../links.tsx';
import { Moment } from '../moment.tsx';
import { useNames } from '../names.ts';
import { go, route, setQuery, zone } from '../state.ts';
import { Empty, Field, Heading, Money, Show, Table, useAction, useLoaded, WideTable } from '../ui.tsx';

const PAGE = 50;
/** A page polls at most once in this time. */
const LIVE_MS = 5_000;

type Row = GenerationRow;

interface Column {
  name: string;
  title: string;
  /** The fields of the API that it shows. */
  fields: (keyof Row)[];
  right?: true;
  show(row: Row, names: (kind: 'key' | 'user', id: string) => string): ComponentChildren;
}

const tokens = (value: number | null | undefined) => (value === null || value === undefined ? '–' : count(value));

/** A model's name, which breaks after its author. Only long parts break elsewhere. */
function ModelName({ of }: { of: string }) {
  const at = of.indexOf('/') + 1;
  const parts = [of.slice(0, at), of.slice(at)].filter((part) => part !== '');
  return (
    <bdi>
      {parts.map((part, index) => (
        <Fragment key={index}>
          {index > 0 && <wbr />}
          <span class={part.length > 32 ? undefined : 'line-part'}>{part}</span>
        </Fragment>
      ))}
    </bdi>
  );
}

const COLUMNS: Column[] = [
  {
    name: 'key',
    title: 'Key',
    fields: ['api_key_hash'],
    show: (row, names) => <bdi>{names('key', row.api_key_hash ?? '')}</bdi>,
  },
  {
    name: 'user',
    title: 'User',
    fields: ['user_id'],
    show: (row, names) => <bdi>{row.user_id ? names('user', row.user_id) : '–'}</bdi>,
  },
  {
    name: 'session',
    title: 'Session',
    fields: ['session_id'],
    show: ({ session_id: id }) =>
      id ? (
        <a href={`sessions?${new URLSearchParams({ id })}`} data-page>
          <bdi>{id.slice(0, 40)}</bdi>
        </a>
      ) : (
        '–'
      ),
  },
  { name: 'tags', title: 'Tags', fields: ['tags'], show: (row) => <bdi>{row.tags?.join(', ') || '–'}</bdi> },
  { name: 'app', title: 'App', fields: ['app'], show: (row) => <bdi>{row.app ?? '–'}</bdi> },
  {
    name: 'model',
    title: 'Model',
    fields: ['requested_model', 'model'],
    show: ({ requested_model: requested, model }) => (
      <>
        {requested && requested !== model && (
          <>
            <bdi class="dim">{requested}</bdi> →{' '}
          </>
        )}
        <ModelName of={model ?? ''} />
      </>
    ),
  },
  {
    name: 'provider',
    title: 'Provider',
    fields: ['provider_name'],
    show: (row) => <bdi>{row.provider_name ?? '–'}</bdi>,
  },
  {
    name: 'status',
    title: 'Status',
    fields: ['outcome', 'status', 'failures'],
    show: ({ outcome = '', status, failures = [] }) => (
      <>
        <span class={outcomeTag(outcome)}>{outcome === 'completed' ? 'ok' : outcome}</span>{' '}
        {outcome !== 'completed' && status !== null && <span class="number">{status} </span>}
        {failures.length > 0 && (
          <small title={failures.map(failureText).join('; ')}>
            {outcome === 'completed' ? 'after ' : ''}
            <bdi>{failures.join(', ').replaceAll('_', ' ')}</bdi>
          </small>
        )}
      </>
    ),
  },
  {
    name: 'tokens',
    title: 'Tokens',
    fields: ['tokens_prompt', 'tokens_completion'],
    right: true,
    show: (row) => (
      <span class="number">
        {row.tokens_prompt == null && row.tokens_completion == null
          ? '–'
          : `${tokens(row.tokens_prompt)} → ${tokens(row.tokens_completion)}`}
      </span>
    ),
  },
  {
    name: 'cached',
    title: 'Cached',
    fields: ['tokens_cached'],
    right: true,
    show: (row) => <span class="number">{tokens(row.tokens_cached)}</span>,
  },
  {
    name: 'written',
    title: 'Cache written',
    fields: ['tokens_cache_write'],
    right: true,
    show: (row) => <span class="number">{tokens(row.tokens_cache_write)}</span>,
  },
  {
    name: 'reasoning',
    title: 'Reasoning',
    fields: ['tokens_reasoning'],
    right: true,
    show: (row) => <span class="number">{tokens(row.tokens_reasoning)}</span>,
  },
  {
    name: 'cost',
    title: 'Cost',
    fields: ['total_cost'],
    right: true,
    show: ({ total_cost: cost }) => (cost === null || cost === undefined ? 'not known' : <Money usd={cost} />),
  },
  {
    name: 'own',
    title: 'Own account',
    fields: ['upstream_inference_cost'],
    right: true,
    show: ({ upstream_inference_cost: cost }) => (cost === null || cost === undefined ? '–' : <Money usd={cost} />),
  },
  {
    name: 'first',
    title: 'First token',
    fields: ['latency'],
    right: true,
    show: (row) => <span class="number">{milliseconds(row.latency)}</span>,
  },
  {
    name: 'speed',
    title: 'Tokens/s',
    fields: ['tokens_per_second'],
    right: true,
    show: (row) => <span class="number">{perSecond(row.tokens_per_second)}</span>,
  },
  {
    name: 'guardrail',
    title: 'Guardrail',
    fields: ['guardrails'],
    show: (row) => <bdi>{row.guardrails?.join(', ') || '–'}</bdi>,
  },
  { name: 'finish', title: 'Finish', fields: ['finish_reason'], show: (row) => row.finish_reason ?? '–' },
];
const DEFAULT = 'key,model,provider,status,tokens,cost,first,speed';

const chosenColumns = (): Column[] => {
  const names = (route.value.query.get('columns') ?? DEFAULT).split(',');
  return COLUMNS.filter(({ name }) => names.includes(name));
};

/** The filters: their names in the address, those of the API, and their labels. */
const TEXTS = [
  ['model', 'model', 'Model served'],
  ['requested', 'requested_model', 'Model requested'],
  ['provider', 'provider', 'Provider'],
  ['session', 'session_id', 'Session'],
  ['app', 'app', 'App'],
  ['tag', 'tag', 'Tag'],
  ['external', 'external_user', 'User of the request'],
  ['failure', 'failure', 'Failure'],
  ['endpoint', 'failed_endpoint', 'Failed at endpoint'],
  ['finish', 'finish_reason', 'Finish reason'],
  ['operation', 'operation', 'Operation'],
  ['cost', 'min_cost', 'Cost from, USD'],
  ['latency', 'min_latency', 'First token from, ms'],
] as const;
const SELECTED = [
  ['key', 'api_key_hash'],
  ['user', 'user_id'],
  ['workspace', 'workspace_id'],
  ['guardrail', 'guardrail_id'],
] as const;
/** Filters that other pages lead to; here they can be removed. */
const WITHOUT: Record<string, string> = {
  user: 'a user',
  provider: 'a provider',
  app: 'an app',
  tag: 'a tag',
  external_user: 'a user of the request',
  finish_reason: 'a finish reason',
  guardrail: 'a guardrail',
};

const RESULTS: Record<string, [label: string, query: Record<string, string>]> = {
  '': ['All', {}],
  completed: ['Completed', { outcome: 'completed' }],
  problems: ['Failed, or fell back', { fell_back: 'true' }],
  error: ['Failed, or unknown end', { error: 'true' }],
  failed: ['Failed', { outcome: 'failed' }],
  rescued: ['Fell back, and answered', { fell_back: 'true', outcome: 'completed' }],
  cancelled: ['Cancelled', { outcome: 'cancelled' }],
  unknown: ['Unknown end', { outcome: 'unknown' }],
  guardrail: ['A guardrail acted', { guardrail: 'true' }],
};

/** The query of the API for the filters in the address. */
function filterOf(query: URLSearchParams): Record<string, string> {
  const filter: Record<string, string> = { ...RESULTS[query.get('result') ?? '']?.[1] };
  for (const [name, field] of [
    ...TEXTS,
    ...SELECTED,
    ['without', 'without'],
    ['from', 'from'],
    ['to', 'to'],
  ] as const) {
    const value = query.get(name);
    if (value) filter[field] = value;
  }
  return filter;
}

/** A field that changes the address when the person leaves it. */
function Filter({ name, label }: { name: string; label: string }) {
  const isNumber = name === 'cost' || name === 'latency';
  return (
    <Field label={label}>
      <input
        inputMode={isNumber ? 'decimal' : 'text'}
        value={route.value.query.get(name) ?? ''}
        onChange={(event) => setQuery({ [name]: event.currentTarget.value.trim() })}
      />
    </Field>
  );
}

/** The filters that are set under "More filters" or by other pages; each can be removed. */
function Chips({ names }: { names: ReturnType<typeof useNames> }) {
  const { query } = route.value;
  const shown: [name: string, text: string, rest?: string][] = [];
  for (const [name, , label] of TEXTS.slice(1)) {
    const value = query.get(name);
    if (value) shown.push([name, `${label}: ${value}`]);
  }
  for (const [name] of SELECTED) {
    const value = query.get(name);
    if (!value) continue;
    if (name === 'guardrail') shown.push([name, `Guardrail: ${value.slice(0, 8)}…`]);
    else if (name === 'workspace')
      shown.push([
        name,
        `Workspace: ${names.workspaces.find(({ id }) => id === value)?.name ?? `${value.slice(0, 8)}…`}`,
      ]);
    else shown.push([name, `${name === 'key' ? 'Key' : 'User'}: ${names.of(name, value)}`]);
  }
  const without = (query.get('without') ?? '').split(',').filter((name) => name !== '');
  for (const name of without) {
    shown.push(['without', `Without ${WITHOUT[name] ?? name}`, without.filter((one) => one !== name).join(',')]);
  }
  if (shown.length === 0) return null;
  return (
    <p class="actions">
      {shown.map(([name, text, rest]) => (
        <button type="button" class="small chip" key={text} onClick={() => setQuery({ [name]: rest })}>
          <bdi>{text}</bdi> ✕<span class="hidden"> (remove this filter)</span>
        </button>
      ))}
    </p>
  );
}

function Filters({ names }: { names: ReturnType<typeof useNames> }) {
  const { query } = route.value;
  return (
    <div class="card log-filters">
      <div class="filter-grid">
        <Field label="Result">
          <select
            value={query.get('result') ?? ''}
            onChange={(event) => setQuery({ result: event.currentTarget.value })}
          >
            {Object.entries(RESULTS).map(([value, [label]]) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
          </select>
        </Field>
        <Moment name="from" label="From" />
        <Moment name="to" label="Before" />
        <Filter name="model" label="Model served" />
      </div>
      <details>
        <summary>More filters</summary>
        <div class="filter-grid">
          <Field label="Key">
            <select value={query.get('key') ?? ''} onChange={(event) => setQuery({ key: event.currentTarget.value })}>
              <option value="">All</option>
              {names.options('key', query.get('key')).map(([hash, name]) => (
                <option key={hash} value={hash}>
                  {name}
                </option>
              ))}
            </select>
          </Field>
          {names.hasUsers && (
            <Field label="User">
              <select
                value={query.get('user') ?? ''}
                onChange={(event) => setQuery({ user: event.currentTarget.value })}
              >
                <option value="">All</option>
                {names.options('user', query.get('user')).map(([id, name]) => (
                  <option key={id} value={id}>
                    {name}
                  </option>
                ))}
              </select>
            </Field>
          )}
          {names.workspaces.length > 1 && (
            <Field label="Workspace">
              <select
                value={query.get('workspace') ?? ''}
                onChange={(event) => setQuery({ workspace: event.currentTarget.value })}
              >
                <option value="">All</option>
                {names.workspaces.map(({ id, name }) => (
                  <option key={id} value={id}>
                    {name}
                  </option>
                ))}
              </select>
            </Field>
          )}
          {TEXTS.slice(1).map(([name, , label]) => (
            <Filter key={name} name={name} label={label} />
          ))}
        </div>
      </details>
      <Chips names={names} />
    </div>
  );
}

function Columns() {
  const chosen = chosenColumns().map(({ name }) => name);
  return (
    <details class="columns">
      <summary class="button">Columns</summary>
      <fieldset>
        <legend class="hidden">Columns</legend>
        {COLUMNS.map(({ name, title }) => (
          <label key={name}>
            <input
              type="checkbox"
              checked={chosen.includes(name)}
              onChange={(event) => {
                const next = event.currentTarget.checked ? [...chosen, name] : chosen.filter((one) => one !== name);
                setQuery({ columns: next.join(',') });
              }}
            />{' '}
            {title}
          </label>
        ))}
      </fieldset>
    </details>
  );
}

/** Saves the rows that are shown, with the fields that are shown. */
function saveJson(rows: readonly Row[], fields: readonly string[]): void {
  const shown = rows.map((row) => Object.fromEntries(fields.map((field) => [field, row[field as keyof Row]])));
  const address = URL.createObjectURL(new Blob([JSON.stringify(shown, null, 2)], { type: 'application/json' }));
  const link = document.createElement('a');
  link.href = address;
  link.download = 'generations.json';
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1_000);
}

/** Opens a call without losing the filters. */
const openCall = (id: string | undefined) => {
  const next = new URLSearchParams(route.value.query);
  if (id === undefined) next.delete('id');
  else next.set('id', id);
  go(`logs${next.size === 0 ? '' : `?${next}`}`, { replace: id === undefined });
};

function Calls({
  rows,
  columns,
  names,
}: {
  rows: readonly Row[];
  columns: Column[];
  names: ReturnType<typeof useNames>;
}) {
  return (
    <WideTable label="Calls">
      <Table
        class="cards logs"
        caption="Calls, newest first"
        head={[
          `Time (${zone.value === 'UTC' ? 'UTC' : 'local'})`,
          ...columns.map(({ title, right }) => `${right ? '>' : ''}${title}`),
        ]}
      >
        {rows.map((row) => (
          <tr key={row.id}>
            <th scope="row">
              <button type="button" class="link number" onClick={() => openCall(row.id)}>
                {time(row.created_at ?? '', false)}
              </button>
            </th>
            {columns.map(({ name, title, right, show }) => (
              <td key={name} data-label={title} class={right ? 'right' : undefined}>
                <span>{show(row, names.of)}</span>
              </td>
            ))}
          </tr>
        ))}
      </Table>
    </WideTable>
  );
}

export default function Logs() {
  const { query } = route.value;
  const columns = chosenColumns();
  const names = useNames();
  const filter = filterOf(query);
  const fields = ['id', 'created_at', ...columns.flatMap((column) => column.fields)];
  const key = JSON.stringify([filter, fields]);
  const isLive = query.get('live') === '1';
  const older = useSignal<{ of: string; rows: Row[]; next: string | null }>({ of: key, rows: [], next: null });
  const request = { ...filter, fields: fields.join(','), limit: PAGE };
  const page = useLoaded(async (abort) => {
    const list = await call('listGenerations', { query: { ...request, totals: 'true' } }, abort);
    const body = list.totals?.is_complete === false && !isLive ? sumsOfLogs(query) : undefined;
    if (body === undefined) return list;
    const { data } = await call('queryAnalytics', { body }, abort);
    const [sums] = data.data;
    const totals = {
      count: Number(sums?.['request_count'] ?? 0),
      total_cost: Number(sums?.['credits_usage'] ?? 0),
      is_complete: true,
    };
    return { ...list, totals };
  }, key);
  const more = older.value.of === key ? older.value : undefined;
  const loadOlder = useAction(async () => {
    const cursor = more?.next ?? page.value?.next_cursor;
    if (!cursor) return;
    const { data, next_cursor } = await call('listGenerations', { query: { ...request, cursor } });
    older.value = { of: key, rows: [...(more?.rows ?? []), ...data], next: next_cursor };
  });
  useEffect(() => {
    if (!isLive) return;
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') page.reload();
    }, LIVE_MS);
    return () => clearInterval(timer);
  }, [isLive, key]);
  const opened = query.get('id');
  return (
    <>
      <Heading title="Logs">
        <button type="button" aria-pressed={isLive} onClick={() => setQuery({ live: isLive ? undefined : '1' })}>
          Live
        </button>
        <Columns />
      </Heading>
      <Filters names={names} />
      <Show of={page}>
        {({ data, next_cursor: nextOfFirst, totals }) => {
          const rows = [...data, ...(more?.rows.filter(({ id }) => !data.some((one) => one.id === id)) ?? [])];
          const next = more === undefined ? nextOfFirst : more.next;
          const csv = new URLSearchParams({
            ...filter,
            fields: fields.join(','),
            format: 'csv',
            limit: String(rows.length),
          });
          return (
            <>
              <div class="log-bar">
                <p class="dim">
                  {totals !== undefined && (
                    <>
                      {totals.is_complete ? '' : 'The newest '}
                      {count(totals.count)} call{totals.count === 1 ? '' : 's'}, <Money usd={totals.total_cost} />
                      {' · '}
                      <a href={usageOfLogs(query)} data-page>
                        {totals.is_complete ? 'Usage' : 'All of them in Usage'}
                      </a>
                      {isLive && ' · refreshed every 5 s'}
                    </>
                  )}
                </p>
                {rows.length > 0 && (
                  <div class="actions">
                    <a class="button small" href={`${base}api/v1/generations?${csv}`} download="generations.csv">
                      CSV
                    </a>
                    <button type="button" class="small" onClick={() => saveJson(rows, fields)}>
                      JSON
                    </button>
                  </div>
                )}
              </div>
              {rows.length > 0 ? (
                <Calls rows={rows} columns={columns} names={names} />
              ) : (
                <Empty title={Object.keys(filter).length === 0 ? 'No call yet' : 'No call matches'}>
                  {Object.keys(filter).length === 0 ? (
                    <p>
                      Send one from the{' '}
                      <a href="playground" data-page>
                        playground
                      </a>
                      , or with a{' '}
                      <a href="keys" data-page>
                        key
                      </a>
                      .
                    </p>
                  ) : (
                    <p>
                      <button type="button" class="link" onClick={() => go('logs', { replace: true })}>
                        Remove the filters
                      </button>
                    </p>
                  )}
                </Empty>
              )}
              {next !== null && (
                <p>
                  <button type="button" disabled={loadOlder.isRunning} onClick={loadOlder.start}>
                    {rows.length === 0 ? 'Search further back' : 'Older calls'}
                  </button>
                </p>
              )}
              {loadOlder.failure}
            </>
          );
        }}
      </Show>
      {opened !== null && (
        <GenerationPanel
          key={opened}
          id={opened}
          keyName={(hash) => names.of('key', hash)}
          onClose={() => {
            // The panel also closes if a link in it opened another page.
            if (route.peek().query.get('id') === opened) openCall(undefined);
          }}
        />
      )}
    </>
  );
}
