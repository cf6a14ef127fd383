import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { base } from '../address.ts';
import type { GenerationRow } from '../api.gen.ts';
import { call } from '../api.ts';
import { csvOf, download } from '../csv.ts';
import { counted, time } from '../format.ts';
import { GenerationPanel } from '../generation.tsx';
import { sumsOfLogs, usageOfLogs } from '../links.tsx';
import { COLUMNS, type Column, chosenColumns } from '../log-columns.tsx';
import { Filters, filterOf } from '../log-filters.tsx';
import { useNames } from '../names.ts';
import { go, route, setQuery, zone } from '../state.ts';
import { Empty, Heading, Money, Show, Table, useAction, useLoaded, WideTable } from '../ui.tsx';

const PAGE = 50;
/** A page polls at most once in this time. */
const LIVE_MS = 5_000;

type Row = GenerationRow;

function Columns() {
  const chosen = chosenColumns().map(({ name }) => name);
  const menu = useRef<HTMLDetailsElement>(null);
  const close = () => menu.current?.removeAttribute('open');
  useEffect(() => {
    const onPress = ({ target }: Event) => {
      if (!menu.current?.contains(target as Node)) close();
    };
    addEventListener('pointerdown', onPress);
    return () => removeEventListener('pointerdown', onPress);
  }, []);
  return (
    <details
      class="columns"
      ref={menu}
      onKeyDown={({ key }) => {
        if (key !== 'Escape') return;
        close();
        menu.current?.querySelector('summary')?.focus();
      }}
    >
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
        {route.value.query.has('columns') && (
          <button type="button" class="small" onClick={() => setQuery({ columns: undefined })}>
            Usual columns
          </button>
        )}
      </fieldset>
    </details>
  );
}

/** Saves the rows and the fields that are shown. */
function save(format: 'csv' | 'json', rows: readonly Row[], fields: readonly string[]): void {
  const values = rows.map((row) => fields.map((field) => row[field as keyof Row] ?? null));
  if (format === 'csv') {
    const cells = values.map((row) =>
      row.map((value) => (Array.isArray(value) ? value.join(' ') : typeof value === 'boolean' ? String(value) : value)),
    );
    download('generations.csv', csvOf(fields, cells));
    return;
  }
  const shown = values.map((row) => Object.fromEntries(row.map((value, index) => [fields[index], value])));
  download('generations.json', JSON.stringify(shown, null, 2), 'application/json');
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
          <tr
            key={row.id}
            onClick={(event) => {
              if ((event.target as Element).closest('a, button') === null && getSelection()?.isCollapsed !== false)
                openCall(row.id);
            }}
          >
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
  const older = useSignal<{ of: string; rows: Row[]; next: string | null } | undefined>(undefined);
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
  const more = older.value?.of === key ? older.value : undefined;
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
  const first = page.value?.data ?? [];
  const known = new Set(first.map(({ id }) => id));
  const rows = [...first, ...(more?.rows.filter(({ id }) => !known.has(id)) ?? [])];
  const at = rows.findIndex(({ id }) => id === opened);
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
        {({ next_cursor: nextOfFirst, totals }) => {
          const next = more === undefined ? nextOfFirst : more.next;
          const csv = new URLSearchParams({ ...filter, fields: fields.join(','), format: 'csv' });
          return (
            <>
              <div class="log-bar">
                <p class="dim">
                  {totals !== undefined && (
                    <>
                      {totals.is_complete ? '' : 'The newest '}
                      {counted(totals.count, 'call')}, <Money usd={totals.total_cost} />
                      {' · '}
                      <a href={usageOfLogs(query)} data-page>
                        {totals.is_complete ? 'Usage' : 'The sum of all in Usage'}
                      </a>
                      {isLive && ' · refreshed every 5 s'}
                    </>
                  )}
                </p>
                {rows.length > 0 && (
                  <div class="actions">
                    <button type="button" class="small" onClick={() => save('csv', rows, fields)}>
                      CSV
                    </button>
                    <button type="button" class="small" onClick={() => save('json', rows, fields)}>
                      JSON
                    </button>
                    {next !== null && (
                      <a class="button small" href={`${base}api/v1/generations?${csv}`} download="generations.csv">
                        All as CSV
                      </a>
                    )}
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
          id={opened}
          names={names}
          newer={rows[at - 1]?.id}
          older={at < 0 ? undefined : rows[at + 1]?.id}
          onMove={(id) => setQuery({ id })}
          onClose={() => {
            // The panel also closes if a link in it opened another page.
            if (route.peek().query.get('id') !== null) openCall(undefined);
          }}
        />
      )}
    </>
  );
}
