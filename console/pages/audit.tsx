import { useSignal } from '@preact/signals';
import type { AuditEvent } from '../api.gen.ts';
import { call } from '../api.ts';
import { time, usd } from '../format.ts';
import { route, session, setQuery } from '../state.ts';
import { Empty, Heading, Show, Table, useAction, useLoaded } from '../ui.tsx';

const PAGE = 50;

const TYPES = [
  'api_key',
  'workspace',
  'workspace_member',
  'workspace_budget',
  'guardrail',
  'guardrail_assignment',
  'byok_credential',
  'credits',
  'session',
  'user',
  'authorization_code',
  'ledger_node',
  'provider',
  'generation',
  'retention',
] as const;

const ACTORS = {
  key: 'a management key',
  environment: 'GATEWAY_MANAGEMENT_KEY',
  command: 'a command',
  page: 'the console or a page',
  callback: 'a code exchange',
} as const;

/** The fields that differ between two states. */
function changesOf({ before, after }: AuditEvent): [name: string, before: unknown, after: unknown][] {
  const [old, now] = [before ?? {}, after ?? {}] as Record<string, unknown>[];
  const names = [...new Set([...Object.keys(old ?? {}), ...Object.keys(now ?? {})])];
  return names.flatMap((name) => {
    const [was, is] = [old?.[name], now?.[name]];
    return JSON.stringify(was) === JSON.stringify(is) ? [] : [[name, was, is]];
  });
}

/** A type of resource in words. */
const typeText = (type: string) =>
  type
    .replaceAll('_', ' ')
    .replace(/^api /, 'API ')
    .replace(/^byok /, 'own ');

/** Ids are shown by their beginning; the whole one is inside. */
const short = (id: string) => (/^[0-9a-f-]{36,}$/.test(id) ? `${id.slice(0, 8)}…` : id);

const shown = (value: unknown) =>
  value === undefined ? '–' : typeof value === 'string' ? value : JSON.stringify(value);

/** What a resource is called: by its name, or a budget by its limit. */
function nameOf(of: AuditEvent): string | undefined {
  const { name, limit_usd, reset_interval } = (of.after ?? of.before ?? {}) as Record<string, unknown>;
  if (typeof name === 'string') return name;
  if (of.resource_type !== 'workspace_budget' || typeof limit_usd !== 'number') return undefined;
  return `${usd(limit_usd)} ${typeof reset_interval === 'string' ? reset_interval : 'in all'}`;
}

function Event({ of, names }: { of: AuditEvent; names: Map<string, string> }) {
  const named = nameOf(of);
  const who = of.actor_user_id === null ? undefined : (names.get(of.actor_user_id) ?? short(of.actor_user_id));
  return (
    <li>
      <details>
        <summary>
          <time dateTime={of.created_at} class="number">
            {time(of.created_at)}
          </time>
          <span class="tag">{of.action}</span>
          <span>
            {typeText(of.resource_type)} <bdi>{named ?? short(of.resource_id)}</bdi>
          </span>
          <span class="dim">by {who === undefined ? ACTORS[of.actor] : <bdi>{who}</bdi>}</span>
        </summary>
        <dl>
          <div>
            <dt>Resource</dt>
            <dd>
              <code>{of.resource_id}</code>{' '}
              <a href={`audit?${new URLSearchParams({ type: of.resource_type, id: of.resource_id })}`} data-page>
                All its events
              </a>
            </dd>
          </div>
          <div>
            <dt>Through</dt>
            <dd>
              {ACTORS[of.actor]}
              {of.actor_key_hash !== null && (
                <>
                  {' '}
                  <code>{of.actor_key_hash.slice(0, 12)}</code>
                </>
              )}
            </dd>
          </div>
          <div>
            <dt>Request</dt>
            <dd>
              <code>{of.request_id ?? '–'}</code>
            </dd>
          </div>
        </dl>
        <Table class="cards" caption="Changed fields" head={['Field', 'Before', 'After']}>
          {changesOf(of).map(([name, before, after]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td data-label="Before">
                <bdi>{shown(before)}</bdi>
              </td>
              <td data-label="After">
                <bdi>{shown(after)}</bdi>
              </td>
            </tr>
          ))}
        </Table>
      </details>
    </li>
  );
}

export default function Audit() {
  const { query } = route.value;
  const type = query.get('type') ?? '';
  const id = query.get('id') ?? '';
  const actor = query.get('by') ?? '';
  const key = JSON.stringify([type, id, actor]);
  const isFiltered = type !== '' || id !== '' || actor !== '';
  const older = useSignal<{ of: string; events: AuditEvent[]; isAll: boolean }>({ of: key, events: [], isAll: false });
  const more = older.value.of === key ? older.value : { of: key, events: [], isAll: false };
  const filter = {
    ...(type === '' ? {} : { resource_type: type as AuditEvent['resource_type'] }),
    ...(id === '' ? {} : { resource_id: id }),
    ...(actor === '' ? {} : { actor_user_id: actor }),
  };
  const members = useLoaded((signal) => call('listOrganizationMembers', { query: { limit: 100 } }, signal));
  const names = new Map(
    (members.value?.data ?? []).flatMap(({ id, email, first_name, last_name }) => {
      const name = email || [first_name, last_name].filter(Boolean).join(' ');
      return name === '' ? [] : [[id, name] as const];
    }),
  );
  const { user_id, user_name } = session.value ?? {};
  if (user_id !== undefined && user_name !== undefined && !names.has(user_id)) names.set(user_id, user_name);
  const events = useLoaded((signal) => call('listAudit', { query: { ...filter, limit: PAGE } }, signal), key);
  const last = [...(events.value?.data ?? []), ...more.events].at(-1);
  const next = useAction(async () => {
    if (last === undefined) return;
    const { data } = await call('listAudit', { query: { ...filter, limit: PAGE, before: last.id } });
    older.value = { of: key, events: [...more.events, ...data], isAll: data.length < PAGE };
  });
  return (
    <>
      <Heading title="Audit">
        {id !== '' && (
          <button type="button" onClick={() => setQuery({ id: undefined })}>
            One resource ✕
          </button>
        )}
        <select aria-label="By" value={actor} onChange={(event) => setQuery({ by: event.currentTarget.value })}>
          <option value="">By anybody</option>
          {[...names].map(([user, name]) => (
            <option key={user} value={user}>
              {name}
            </option>
          ))}
        </select>
        <select
          aria-label="Resource"
          value={type}
          onChange={(event) => setQuery({ type: event.currentTarget.value, id: undefined })}
        >
          <option value="">All resources</option>
          {TYPES.map((one) => (
            <option key={one} value={one}>
              {typeText(one)}
            </option>
          ))}
        </select>
      </Heading>
      <Show of={events}>
        {({ data }) => {
          const all = [...data, ...more.events];
          return all.length === 0 && isFiltered ? (
            <Empty title="No event matches">
              <button type="button" onClick={() => setQuery({ type: undefined, id: undefined, by: undefined })}>
                Show all events
              </button>
            </Empty>
          ) : all.length === 0 ? (
            <Empty title="Nothing was changed yet">
              <p>Every change and every sign-in is listed here, with the values before and after.</p>
            </Empty>
          ) : (
            <>
              <ol class="events">
                {all.map((event) => (
                  <Event key={event.id} of={event} names={names} />
                ))}
              </ol>
              {!more.isAll && data.length === PAGE && (
                <button type="button" disabled={next.isRunning} onClick={next.start}>
                  Older events
                </button>
              )}
              {next.failure}
            </>
          );
        }}
      </Show>
    </>
  );
}
