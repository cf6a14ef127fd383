import { useSignal } from '@preact/signals';
import type { EffectiveSetting, RetentionStatus } from '../api.gen.ts';
import { call } from '../api.ts';
import { count, counted, time } from '../format.ts';
import { route, setQuery } from '../state.ts';
import { Empty, Heading, Money, Show, Table, useLoaded } from '../ui.tsx';

const SOURCES = { default: 'default', file: 'gateway.yaml', environment: 'environment' } as const;

/** How long ago a node was last seen. */
export function Unseen({ seconds, isLost }: { seconds: number | null; isLost: boolean }) {
  const text =
    seconds === null ? 'never' : seconds < 120 ? `${Math.round(seconds)} s ago` : `${count(seconds / 60)} min ago`;
  return <span class={`tag ${isLost ? 'bad' : 'good'}`}>{isLost ? `lost, ${text}` : text}</span>;
}

function Settings({ of }: { of: readonly EffectiveSetting[] }) {
  const { query } = route.value;
  const text = useSignal(query.get('q') ?? '');
  const source = query.get('source') ?? 'set';
  const words = text.value.trim().toLowerCase();
  const rows = of.filter(
    ({ name, meaning, source: from }) =>
      (source === 'all' || (source === 'set' ? from !== 'default' : from === source)) &&
      `${name} ${meaning}`.toLowerCase().includes(words),
  );
  return (
    <section>
      <h2>Settings in force</h2>
      <search class="filters">
        <input
          type="search"
          aria-label="Search settings"
          placeholder="Search settings"
          value={text.value}
          onInput={(event) => {
            text.value = event.currentTarget.value;
          }}
        />
        <select
          aria-label="Source"
          value={source}
          onChange={(event) => setQuery({ source: event.currentTarget.value })}
        >
          <option value="set">Changed from the default</option>
          <option value="all">All settings</option>
          <option value="environment">Environment</option>
          <option value="file">gateway.yaml</option>
          <option value="default">Default</option>
        </select>
      </search>
      {rows.length === 0 ? (
        <Empty title="No setting matches">
          <p>
            {source === 'set' && words === '' ? 'Every setting has its default.' : 'Change the search or the source.'}
          </p>
          <button
            type="button"
            onClick={() => {
              text.value = '';
              setQuery({ source: 'all' });
            }}
          >
            Show all settings
          </button>
        </Empty>
      ) : (
        <Table class="cards" caption="Settings" head={['Setting', 'Value', 'Source', 'A change applies']}>
          {rows.map(({ name, value, source: from, takes_effect, meaning }) => (
            <tr key={name}>
              <th scope="row">
                <code>{name}</code>
                <br />
                <small>{meaning.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll('`', '')}</small>
              </th>
              <td data-label="Value">{value.replaceAll('`', '')}</td>
              <td data-label="Source" class="whole-words">
                {SOURCES[from]}
              </td>
              <td data-label="A change applies">{takes_effect}</td>
            </tr>
          ))}
        </Table>
      )}
      <p class="dim">
        Texts, addresses, headers and secrets are never shown: of those, only whether they are set. On the machine of
        the gateway <code>model-gateway doctor</code> checks them.
      </p>
    </section>
  );
}

const KINDS: Record<RetentionStatus['kind'], string> = {
  generations: 'Calls',
  audit: 'Audit records',
  closed_windows: 'Ended windows of limits',
};

/** The data that settings delete. */
function Retention({ of }: { of: readonly RetentionStatus[] }) {
  const isAllKept = of.every(({ days, deleted }) => days === null && deleted === 0);
  return (
    <section class="card">
      <h2>Old data</h2>
      {isAllKept ? (
        <p>
          Everything is kept. <code>retention</code> in <code>gateway.yaml</code> deletes old calls, audit records and
          ended windows of limits.
        </p>
      ) : (
        <Table
          class="cards"
          caption="What is deleted by the settings of retention"
          head={['Data', 'Kept', 'Deleted before', '>Rows deleted']}
        >
          {of.map(({ kind, days, deleted, deleted_before, ended_at }) => (
            <tr key={kind}>
              <th scope="row">{KINDS[kind]}</th>
              <td data-label="Kept">{days === null ? 'for ever' : `for ${counted(days, 'day')}`}</td>
              <td data-label="Deleted before" class="number">
                {deleted_before === null ? '–' : time(deleted_before)}
                {deleted_before !== null && ended_at === null && <span class="tag">in progress</span>}
              </td>
              <td data-label="Rows deleted" class="right number">
                {count(deleted)}
              </td>
            </tr>
          ))}
        </Table>
      )}
      <p class="dim">
        Sums of usage and the ledger keep counting deleted calls. <code>logging.retention_days</code> says how long
        prompts and answers are kept.
      </p>
    </section>
  );
}

export default function SystemPage() {
  const system = useLoaded((signal) => call('getSystem', {}, signal));
  return (
    <>
      <Heading title="System">
        <button type="button" onClick={system.reload}>
          Refresh
        </button>
      </Heading>
      <Show of={system}>
        {({ data }) => (
          <>
            <dl class="figures">
              <div>
                <dt>Version</dt>
                <dd class="number">{data.version}</dd>
              </div>
              <div>
                <dt>Node.js</dt>
                <dd class="number">{data.runtime.replace(/^v/, '')}</dd>
              </div>
              <div>
                <dt>Store</dt>
                <dd>{data.store === 'postgres' ? 'PostgreSQL' : 'SQLite'}</dd>
              </div>
              <div>
                <dt>Started</dt>
                <dd class="small-text">{time(data.started_at)}</dd>
              </div>
            </dl>
            <section class="card">
              <h2>
                Nodes <span class="dim">{count(data.node_count)}</span>
              </h2>
              <Table class="cards" caption="Nodes" head={['Node', 'Seen', '>Money held']}>
                {data.nodes.map(({ id, seconds_unseen, is_lost, held }) => (
                  <tr key={id}>
                    <th scope="row">
                      <code>{id}</code> {id === data.node && <span class="tag">answers you</span>}
                    </th>
                    <td data-label="Seen">
                      {id === data.node ? (
                        <span class="tag good">now</span>
                      ) : (
                        <Unseen seconds={seconds_unseen} isLost={is_lost} />
                      )}
                    </td>
                    <td data-label="Money held" class="right">
                      <a href="ledger" data-page>
                        <Money usd={held} />
                      </a>
                    </td>
                  </tr>
                ))}
              </Table>
            </section>
            <Retention of={data.retention} />
            <Settings of={data.settings} />
            <details class="card">
              <summary>
                {data.migrations.length} migrations, the last {data.migrations[0]?.name ?? 'none'}
              </summary>
              <Table caption="Migrations of the store" head={['Migration', 'Applied']}>
                {data.migrations.map(({ name, applied_at }) => (
                  <tr key={name}>
                    <th scope="row">
                      <code>{name}</code>
                    </th>
                    <td class="number">{time(applied_at)}</td>
                  </tr>
                ))}
              </Table>
            </details>
          </>
        )}
      </Show>
    </>
  );
}
