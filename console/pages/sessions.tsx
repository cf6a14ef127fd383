import { useSignal } from '@preact/signals';
import type { GenerationRow, GenerationSession } from '../api.gen.ts';
import { call } from '../api.ts';
import { ago, count, counted, milliseconds, time } from '../format.ts';
import { GenerationPanel, outcomeTag } from '../generation.tsx';
import { Link, logsOf, Sum } from '../links.tsx';
import { Moment } from '../moment.tsx';
import { useNames } from '../names.ts';
import { go, route, setQuery } from '../state.ts';
import { Empty, Field, Heading, Money, Show, Table, useAction, useLoaded, WideTable } from '../ui.tsx';

const PAGE = 50;
const CALLS = 100;

const sessionAt = (id: string) => `sessions?${new URLSearchParams({ id })}`;

function SessionTable({ sessions }: { sessions: readonly GenerationSession[] }) {
  return (
    <Table
      class="cards"
      caption="Sessions, the latest call first"
      head={['Session', 'Last call', '>Calls', 'Models', '>Cost']}
    >
      {sessions.map((one) => (
        <tr key={one.session_id}>
          <th scope="row">
            <a href={sessionAt(one.session_id)} data-page>
              <bdi>{one.session_id}</bdi>
            </a>
          </th>
          <td data-label="Last call">
            <time dateTime={one.last_at} title={time(one.last_at)}>
              {ago(one.last_at)}
            </time>
          </td>
          <td data-label="Calls" class="right">
            {one.failed > 0 && <span class="tag bad">{count(one.failed)} not completed</span>}{' '}
            <a href={logsOf({ session: one.session_id })} data-page>
              {count(one.count)}
            </a>
          </td>
          <td data-label="Models">
            <bdi>
              {one.models.slice(0, 3).join(', ')}
              {one.models.length > 3 && ` and ${one.models.length - 3} more`}
            </bdi>
          </td>
          <td data-label="Cost" class="right">
            <Sum usd={one.total_cost} href={logsOf({ session: one.session_id })} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

function Sessions() {
  const { query } = route.value;
  const names = useNames();
  const [from, to, user] = [query.get('from'), query.get('to'), query.get('user')];
  const filter = {
    ...(from === null ? {} : { from }),
    ...(to === null ? {} : { to }),
    ...(user === null ? {} : { user_id: user }),
  };
  const key = JSON.stringify(filter);
  const isFiltered = key !== '{}';
  const loadedOlder = useSignal<{ of: string; sessions: GenerationSession[]; next: string | null } | undefined>(
    undefined,
  );
  const older = { value: loadedOlder.value?.of === key ? loadedOlder.value : undefined };
  const page = useLoaded((abort) => call('listGenerationSessions', { query: { ...filter, limit: PAGE } }, abort), key);
  const loadOlder = useAction(async () => {
    const cursor = older.value?.next ?? page.value?.next_cursor;
    if (!cursor) return;
    const { data, next_cursor } = await call('listGenerationSessions', { query: { ...filter, limit: PAGE, cursor } });
    loadedOlder.value = { of: key, sessions: [...(older.value?.sessions ?? []), ...data], next: next_cursor };
  });
  return (
    <>
      <Heading title="Sessions" />
      <div class="card log-filters">
        <div class="filter-grid">
          <Moment name="from" label="Last call from" />
          <Moment name="to" label="Last call before" />
          {names.hasUsers && (
            <Field label="User">
              <select value={user ?? ''} onChange={(event) => setQuery({ user: event.currentTarget.value })}>
                <option value="">All</option>
                {names.options('user', user).map(([id, name]) => (
                  <option key={id} value={id}>
                    {name}
                  </option>
                ))}
              </select>
            </Field>
          )}
          <form
            onSubmit={(event) => {
              event.preventDefault();
              const id = new FormData(event.currentTarget).get('id');
              if (typeof id === 'string' && id.trim() !== '') go(sessionAt(id.trim()));
            }}
          >
            <Field label="Session id" hint="Enter opens it">
              <input name="id" autocomplete="off" />
            </Field>
          </form>
        </div>
      </div>
      <Show of={page}>
        {({ data, next_cursor }) => {
          const sessions = [...data, ...(older.value?.sessions ?? [])];
          const next = older.value === undefined ? next_cursor : older.value.next;
          return (
            <>
              {sessions.length === 0 ? (
                <Empty title={isFiltered ? 'No session matches' : 'No session yet'}>
                  {isFiltered ? (
                    <p>
                      <button type="button" class="link" onClick={() => go('sessions', { replace: true })}>
                        Remove the filters
                      </button>
                    </p>
                  ) : (
                    <p>
                      Send <code>session_id</code> with the requests of a conversation or an agent run, and they are
                      listed here together.
                    </p>
                  )}
                </Empty>
              ) : (
                <SessionTable sessions={sessions} />
              )}
              {next !== null && (
                <p>
                  <button type="button" disabled={loadOlder.isRunning} onClick={loadOlder.start}>
                    Older sessions
                  </button>
                </p>
              )}
              {loadOlder.failure}
            </>
          );
        }}
      </Show>
    </>
  );
}

const FIELDS =
  'id,created_at,model,requested_model,provider_name,outcome,failures,latency,generation_time,total_cost,tokens_prompt,tokens_completion,api_key_hash';

/** The calls of a session on a line of time, with the total so far. */
function Timeline({ calls, names }: { calls: readonly GenerationRow[]; names: ReturnType<typeof useNames> }) {
  const opened = useSignal<string | undefined>(undefined);
  const start = Date.parse(calls[0]?.created_at ?? '');
  const endOf = (row: GenerationRow) => Date.parse(row.created_at ?? '') + (row.generation_time ?? row.latency ?? 0);
  const whole = Math.max(1, ...calls.map((row) => endOf(row) - start));
  let sum = 0;
  return (
    <>
      <WideTable label="Calls">
        <Table
          class="cards"
          caption="Calls of the session, the first one first"
          head={['Time', 'When and how long', 'Model', '>Tokens', '>Cost', '>Total so far']}
        >
          {calls.map((row) => {
            // Exact in nano-dollars: sums of decimals would drift.
            sum += Math.round((row.total_cost ?? 0) * 1e9);
            const left = ((Date.parse(row.created_at ?? '') - start) / whole) * 100;
            const width = ((endOf(row) - Date.parse(row.created_at ?? '')) / whole) * 100;
            return (
              <tr key={row.id}>
                <th scope="row">
                  <button
                    type="button"
                    class="link number"
                    onClick={() => {
                      opened.value = row.id;
                    }}
                  >
                    {time(row.created_at ?? '')}
                  </button>
                </th>
                <td data-label="Took">
                  <span>
                    <span class="waterfall" aria-hidden="true">
                      <i
                        class={row.outcome === 'completed' ? '' : 'failed'}
                        style={{ left: `${left}%`, width: `${width}%` }}
                      />
                    </span>
                    <small>{milliseconds(row.generation_time ?? row.latency)}</small>{' '}
                    {row.outcome !== 'completed' && <span class={outcomeTag(row.outcome ?? '')}>{row.outcome}</span>}
                    {row.outcome === 'completed' && (row.failures?.length ?? 0) > 0 && <small>fell back</small>}
                  </span>
                </td>
                <td data-label="Model">
                  <bdi>{row.model}</bdi>
                </td>
                <td data-label="Tokens" class="right number">
                  <span>
                    {row.tokens_prompt == null ? '–' : count(row.tokens_prompt)} →{' '}
                    {row.tokens_completion == null ? '–' : count(row.tokens_completion)}
                  </span>
                </td>
                <td data-label="Cost" class="right">
                  {row.total_cost === null || row.total_cost === undefined ? (
                    'not known'
                  ) : (
                    <Money usd={row.total_cost} />
                  )}
                </td>
                <td data-label="Total so far" class="right">
                  <Money usd={sum / 1e9} />
                </td>
              </tr>
            );
          })}
        </Table>
      </WideTable>
      {opened.value !== undefined && (
        <GenerationPanel
          id={opened.value}
          names={names}
          onClose={() => {
            opened.value = undefined;
          }}
        />
      )}
    </>
  );
}

function OneSession({ id }: { id: string }) {
  const names = useNames();
  const more = useSignal<{ rows: GenerationRow[]; next: string | null } | undefined>(undefined);
  const query = { session_id: id, order: 'asc', limit: CALLS, fields: FIELDS } as const;
  const page = useLoaded((abort) => call('listGenerations', { query: { ...query, totals: 'true' } }, abort), id);
  const load = useAction(async () => {
    const cursor = more.value?.next ?? page.value?.next_cursor;
    if (!cursor) return;
    const { data, next_cursor } = await call('listGenerations', { query: { ...query, cursor } });
    more.value = { rows: [...(more.value?.rows ?? []), ...data], next: next_cursor };
  });
  return (
    <>
      <p>
        <a href="sessions" data-page>
          All sessions
        </a>
      </p>
      <Heading title={id}>
        <a class="button" href={logsOf({ session: id })} data-page>
          Its logs
        </a>
      </Heading>
      <Show of={page}>
        {({ data, next_cursor, totals }) => {
          const calls = [...data, ...(more.value?.rows ?? [])];
          const next = more.value === undefined ? next_cursor : more.value.next;
          return calls.length === 0 ? (
            <Empty title="No call has this session">
              <p>
                <button type="button" class="link" onClick={() => go('sessions')}>
                  See all sessions
                </button>
              </p>
            </Empty>
          ) : (
            <>
              {totals !== undefined && (
                <p class="dim">
                  {totals.is_complete ? '' : 'The newest '}
                  <Link href={logsOf({ session: id })}>{counted(totals.count, 'call')}</Link>,{' '}
                  <Sum usd={totals.total_cost} href={logsOf({ session: id })} />
                </p>
              )}
              <Timeline calls={calls} names={names} />
              {next !== null && (
                <p>
                  <button type="button" disabled={load.isRunning} onClick={load.start}>
                    Later calls
                  </button>
                </p>
              )}
              {load.failure}
            </>
          );
        }}
      </Show>
    </>
  );
}

export default function SessionsPage() {
  const id = route.value.query.get('id');
  return id === null ? <Sessions /> : <OneSession key={id} id={id} />;
}
