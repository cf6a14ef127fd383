import { useSignal } from '@preact/signals';
import type { Key, SpendingLimit } from '../api.gen.ts';
import { call } from '../api.ts';
import { ago, time, usd } from '../format.ts';
import { CreateKey, DeleteKey, EditKey, turnKey } from '../key-forms.tsx';
import { KeyPage } from '../key-page.tsx';
import { Secret } from '../key-secrets.tsx';
import { Sum, spentOf } from '../links.tsx';
import { OFFERED_MAX, useWorkspace, WorkspaceSelect } from '../pickers.tsx';
import { LimitBar, limitHref, WINDOWS } from '../spending.tsx';
import { isAdmin, route, setQuery } from '../state.ts';
import { Bar, Empty, Heading, Money, Pager, Show, Table, useLoaded } from '../ui.tsx';

const PAGE = 25;

/** What a key spent. `state` has what is held of its limit as well, which administrators see. */
function Spent({ of, state }: { of: Key; state: SpendingLimit | undefined }) {
  const { limit, limit_remaining: left, usage, limit_reset: reset } = of;
  if (state !== undefined) return <LimitBar of={state} href={limitHref(state)} />;
  if (limit === null || left === null) {
    return (
      <>
        <Sum usd={usage} href={spentOf({ api_key_id: of.hash }, { reset_interval: null })} />{' '}
        <span class="dim">spent, no limit</span>
      </>
    );
  }
  const spent = Math.max(0, limit - left);
  const text = `${usd(spent)} of ${usd(limit)} spent${reset === null ? '' : ` ${WINDOWS[reset]}`}, ${usd(Math.max(0, left))} left`;
  return (
    <>
      <Bar part={spent} whole={limit} label={text} />
      <small title={`${usd(spent, true)} of ${usd(limit, true)}`}>
        <Sum
          usd={spent}
          href={spentOf({ api_key_id: of.hash }, { reset_interval: reset, include_byok: of.include_byok_in_limit })}
        />{' '}
        of <Money usd={limit} />
        {reset !== null && ` ${WINDOWS[reset]}`}
      </small>
    </>
  );
}

function List() {
  const { query } = route.value;
  const workspace = useWorkspace('workspace');
  const { id, all } = workspace;
  const offset = Number(query.get('offset') ?? 0) || 0;
  const open = useSignal<{ kind: 'edit' | 'delete'; of: Key } | undefined>(undefined);
  const made = useSignal<{ name: string; secret: string } | undefined>(undefined);
  const keys = useLoaded(async (signal) => {
    if (id === undefined) return undefined;
    // One more than a page shows, to know whether there are more.
    const query = { include_disabled: 'true', limit: PAGE + 1, offset, workspace_id: id } as const;
    const ofKeys = { scope: 'key', workspace_id: id, limit: OFFERED_MAX } as const;
    const [list, limits] = await Promise.all([
      call('listKeys', { query }, signal),
      isAdmin.value ? call('listBudgets', { query: ofKeys }, signal) : { data: [] },
    ]);
    return { ...list, limits: new Map(limits.data.map((limit) => [limit.assignee.id, limit])) };
  }, `${id} ${offset}`);
  const close = () => {
    open.value = undefined;
  };
  const done = () => {
    close();
    keys.reload();
  };
  return (
    <>
      <Heading title="Keys">
        {all.length > 1 && (
          <WorkspaceSelect
            of={all}
            value={id ?? ''}
            onChoose={(next) => workspace.choose(next, { offset: undefined })}
          />
        )}
        <button type="button" class="primary" onClick={() => setQuery({ new: '1' })}>
          Create key
        </button>
      </Heading>
      <Show of={id === undefined ? { ...workspace.loaded, value: undefined } : keys}>
        {({ data, limits }) =>
          data.length === 0 && offset === 0 ? (
            <Empty title={all.length > 1 ? 'No key in this workspace' : 'No key yet'}>
              <p>A key calls models and has a limit of its own. Make one for each program.</p>
              <button type="button" class="primary" onClick={() => setQuery({ new: '1' })}>
                Create the first key
              </button>
            </Empty>
          ) : (
            <>
              <Table
                class="cards"
                caption={isAdmin.value ? 'API keys' : 'API keys of yours'}
                head={['Name', 'Spent', 'Last used', 'State', '.Actions']}
              >
                {data.slice(0, PAGE).map((key) => (
                  <tr key={key.hash} class={key.disabled ? 'off' : ''}>
                    <th scope="row">
                      <a href={`keys?${new URLSearchParams({ id: key.hash })}`} data-page>
                        <bdi>{key.name}</bdi>
                      </a>
                      <br />
                      <code class="dim">{key.label}</code>
                    </th>
                    <td data-label="Spent">
                      <Spent of={key} state={limits.get(key.hash)} />
                    </td>
                    <td data-label="Last used">
                      {key.last_used_at === null ? (
                        <span class="dim">never</span>
                      ) : (
                        <time dateTime={key.last_used_at} title={time(key.last_used_at)}>
                          {ago(key.last_used_at)}
                        </time>
                      )}
                    </td>
                    <td data-label="State">
                      {key.disabled ? <span class="tag bad">disabled</span> : <span class="tag good">in use</span>}
                      {key.expires_at !== null && <small> until {time(key.expires_at)}</small>}
                      {key.previous_secret_expires_at !== null && (
                        <small class="line">old secret until {time(key.previous_secret_expires_at)}</small>
                      )}
                    </td>
                    <td class="buttons">
                      <button
                        type="button"
                        class="small"
                        aria-label={`Change ${key.name}`}
                        onClick={() => {
                          open.value = { kind: 'edit', of: key };
                        }}
                      >
                        Change
                      </button>
                      <button
                        type="button"
                        class="small"
                        aria-label={`${key.disabled ? 'Enable' : 'Disable'} ${key.name}`}
                        onClick={() => void turnKey(key).then(keys.reload)}
                      >
                        {key.disabled ? 'Enable' : 'Disable'}
                      </button>
                      <button
                        type="button"
                        class="small danger"
                        aria-label={`Delete ${key.name}`}
                        onClick={() => {
                          open.value = { kind: 'delete', of: key };
                        }}
                      >
                        Delete
                      </button>
                    </td>
                  </tr>
                ))}
              </Table>
              {(offset > 0 || data.length > PAGE) && (
                <Pager offset={offset} limit={PAGE} total={offset + data.length} />
              )}
            </>
          )
        }
      </Show>
      {query.get('new') !== null && id !== undefined && (
        <CreateKey
          workspaces={all}
          workspace={id}
          onClose={() => setQuery({ new: undefined })}
          onMade={(next) => {
            setQuery({ new: undefined });
            made.value = next;
            keys.reload();
          }}
        />
      )}
      {made.value && (
        <Secret
          made={made.value}
          onClose={() => {
            made.value = undefined;
          }}
        />
      )}
      {open.value?.kind === 'edit' && <EditKey of={open.value.of} onClose={close} onDone={done} />}
      {open.value?.kind === 'delete' && <DeleteKey of={open.value.of} onClose={close} onDone={done} />}
    </>
  );
}

export default function Keys() {
  const id = route.value.query.get('id');
  return id === null ? <List /> : <KeyPage key={id} hash={id} />;
}
