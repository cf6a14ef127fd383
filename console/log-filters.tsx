/** The filters of the logs, which are in the address of the page. */
import { useSignal } from '@preact/signals';
import { useId } from 'preact/hooks';
import { call } from './api.ts';
import { Moment } from './moment.tsx';
import type { useNames } from './names.ts';
import { suggestModels } from './pickers.tsx';
import { route, setQuery, zone } from './state.ts';
import { Field, useLoaded } from './ui.tsx';

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
export function filterOf(query: URLSearchParams): Record<string, string> {
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

/** Values that a field offers: those of the field itself are exact. */
const SUGGESTED: Partial<Record<string, (q: string, abort: AbortSignal) => Promise<readonly string[]>>> = {
  model: suggestModelIds,
  requested: suggestModelIds,
  provider: async (_, abort) => (await call('listProviders', {}, abort)).data.map(({ name }) => name),
};

async function suggestModelIds(q: string, abort: AbortSignal): Promise<string[]> {
  return (await suggestModels(q, abort)).map(({ value }) => value);
}

/** The values that a field offers, once a person is in it. */
function Suggestions({ id, name, text }: { id: string; name: string; text: string }) {
  const offered = useLoaded((abort) => SUGGESTED[name]?.(text, abort) ?? Promise.resolve([]), `${name} ${text}`);
  return (
    <datalist id={id}>
      {(offered.value ?? []).map((value) => (
        <option key={value} value={value} />
      ))}
    </datalist>
  );
}

/** A field that changes the address when the person leaves it. */
function Filter({ name, label }: { name: string; label: string }) {
  const id = useId();
  const text = useSignal<string | undefined>(undefined);
  const isNumber = name === 'cost' || name === 'latency';
  const list = name in SUGGESTED ? { list: id } : {};
  return (
    <>
      <Field label={label}>
        <input
          {...list}
          inputMode={isNumber ? 'decimal' : 'text'}
          autocomplete="off"
          value={route.value.query.get(name) ?? ''}
          onFocus={() => {
            text.value = '';
          }}
          onInput={(event) => {
            text.value = event.currentTarget.value.trim();
          }}
          onChange={(event) => setQuery({ [name]: event.currentTarget.value.trim() })}
        />
      </Field>
      {name in SUGGESTED && text.value !== undefined && <Suggestions id={id} name={name} text={text.value} />}
    </>
  );
}

/** Ranges of time that one press sets: their beginnings and their ends. */
const RANGES: readonly [label: string, range: () => { from: string; to?: string }][] = [
  ['Last hour', () => ({ from: new Date(Date.now() - 3_600_000).toISOString() })],
  ['Today', () => ({ from: midnight(0) })],
  ['Yesterday', () => ({ from: midnight(1), to: midnight(0) })],
  ['Last 7 days', () => ({ from: midnight(6) })],
  ['Last 30 days', () => ({ from: midnight(29) })],
];

/** The beginning of the day some days ago, in UTC or in local time, as the person chose. */
function midnight(days: number): string {
  const now = new Date();
  const at =
    zone.value === 'UTC'
      ? new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate() - days))
      : new Date(now.getFullYear(), now.getMonth(), now.getDate() - days);
  return at.toISOString();
}

function Ranges() {
  const { query } = route.value;
  const [from, to] = [query.get('from') ?? '', query.get('to') ?? ''];
  return (
    <fieldset class="actions ranges">
      <legend class="hidden">Range of time</legend>
      {RANGES.map(([label, range]) => {
        const { from: start, to: end = '' } = range();
        return (
          <button
            type="button"
            class="small"
            key={label}
            aria-pressed={from === start && to === end}
            onClick={() => setQuery({ from: start, to: end })}
          >
            {label}
          </button>
        );
      })}
      {(from !== '' || to !== '') && (
        <button type="button" class="small" onClick={() => setQuery({ from: undefined, to: undefined })}>
          Any time
        </button>
      )}
    </fieldset>
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

export function Filters({ names }: { names: ReturnType<typeof useNames> }) {
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
      <Ranges />
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
