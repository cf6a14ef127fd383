import { useSignal } from '@preact/signals';
import type { Key, Workspace } from '../api.gen.ts';
import { call } from '../api.ts';
import { ago, time, usd } from '../format.ts';
import { KeyPage } from '../key-page.tsx';
import { Secret } from '../key-secrets.tsx';
import { Sum, spentOf } from '../links.tsx';
import { useWorkspace, WorkspaceSelect } from '../pickers.tsx';
import { isAdmin, route, say, setQuery } from '../state.ts';
import {
  Bar,
  bind,
  Confirm,
  Dialog,
  Empty,
  Field,
  Heading,
  Money,
  Pager,
  Show,
  Table,
  useAction,
  useLoaded,
} from '../ui.tsx';

const PAGE = 25;

const RESETS = { daily: 'a day', weekly: 'a week', monthly: 'a month' } as const;
type Reset = keyof typeof RESETS;

function Spent({ of }: { of: Key }) {
  const { limit, limit_remaining: left, usage, limit_reset: reset } = of;
  if (limit === null || left === null) {
    return (
      <>
        <Sum usd={usage} href={spentOf({ api_key_id: of.hash }, { reset_interval: null })} />{' '}
        <span class="dim">spent, no limit</span>
      </>
    );
  }
  const spent = Math.max(0, limit - left);
  const text = `${usd(spent)} of ${usd(limit)} spent${reset === null ? '' : ` ${RESETS[reset]}`}, ${usd(Math.max(0, left))} left`;
  return (
    <>
      <Bar part={spent} whole={limit} label={text} />
      <small title={`${usd(spent, true)} of ${usd(limit, true)}`}>
        <Sum
          usd={spent}
          href={spentOf({ api_key_id: of.hash }, { reset_interval: reset, include_byok: of.include_byok_in_limit })}
        />{' '}
        of <Money usd={limit} />
        {reset !== null && ` ${RESETS[reset]}`}
      </small>
    </>
  );
}

function LimitFields({ limit, reset }: { limit: { value: string }; reset: { value: string } }) {
  return (
    <div class="row limit-fields">
      <Field label="Limit in USD" hint="Empty: no limit of its own">
        <input type="number" min="0" step="any" inputMode="decimal" {...bind(limit as never)} />
      </Field>
      <Field label="Reset">
        <select
          value={reset.value}
          onChange={(event) => {
            reset.value = event.currentTarget.value;
          }}
        >
          <option value="">never</option>
          <option value="daily">daily</option>
          <option value="weekly">weekly</option>
          <option value="monthly">monthly</option>
        </select>
      </Field>
      <p class="dim">
        {limit.value.trim() === '' ? (
          'It may spend what its workspace, its guardrails and the credits allow.'
        ) : (
          <>
            It may spend at most <Money usd={Number(limit.value)} />{' '}
            {reset.value === '' ? 'in all' : `${RESETS[reset.value as Reset]}, from midnight UTC`}.
          </>
        )}
      </p>
    </div>
  );
}

const limitOf = (text: string) => (text.trim() === '' ? null : Number(text));
const resetOf = (text: string) => (text === '' ? null : (text as Reset));

function CreateKey({
  workspaces,
  workspace: initial,
  onClose,
  onMade,
}: {
  workspaces: Workspace[];
  workspace: string;
  onClose(): void;
  onMade(made: { name: string; secret: string }): void;
}) {
  const name = useSignal('');
  const limit = useSignal('');
  const reset = useSignal('');
  const expires = useSignal('');
  const workspace = useSignal(initial);
  const { start, failure, isRunning } = useAction(async () => {
    const made = await call('createKey', {
      body: {
        name: name.value,
        limit: limitOf(limit.value),
        limit_reset: resetOf(reset.value),
        ...(expires.value === '' ? {} : { expires_at: new Date(expires.value).toISOString() }),
        ...(workspace.value === '' ? {} : { workspace_id: workspace.value }),
      },
    });
    onMade({ name: made.data.name, secret: made.key });
  });
  return (
    <Dialog title="Create a key" onClose={onClose}>
      <form onSubmit={start}>
        <Field label="Name" hint="What will use the key, such as “laptop” or “nightly job”">
          <input type="text" required maxLength={200} autofocus autocomplete="off" {...bind(name)} />
        </Field>
        <LimitFields limit={limit} reset={reset} />
        <Field label="Expires" hint="Your local time; empty: never">
          <input type="datetime-local" {...bind(expires)} />
        </Field>
        {workspaces.length > 1 && (
          <Field label="Workspace">
            <WorkspaceSelect
              of={workspaces}
              value={workspace.value}
              onChoose={(id) => {
                workspace.value = id;
              }}
            />
          </Field>
        )}
        {failure}
        <div class="actions">
          <button type="submit" class="primary" disabled={isRunning}>
            Create key
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function EditKey({ of, onClose, onDone }: { of: Key; onClose(): void; onDone(): void }) {
  const name = useSignal(of.name);
  const limit = useSignal(of.limit === null ? '' : String(of.limit));
  const reset = useSignal<string>(of.limit_reset ?? '');
  const { start, failure, isRunning } = useAction(async () => {
    await call('updateKey', {
      path: { hash: of.hash },
      body: { name: name.value, limit: limitOf(limit.value), limit_reset: resetOf(reset.value) },
    });
    say('Saved.');
    onDone();
  });
  return (
    <Dialog title="Change the key" onClose={onClose}>
      <form onSubmit={start}>
        <Field label="Name">
          <input type="text" required maxLength={200} autocomplete="off" {...bind(name)} />
        </Field>
        <LimitFields limit={limit} reset={reset} />
        {failure}
        <div class="actions">
          <button type="submit" class="primary" disabled={isRunning}>
            Save
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function DeleteKey({ of, onClose, onDone }: { of: Key; onClose(): void; onDone(): void }) {
  const run = async () => {
    await call('deleteKey', { path: { hash: of.hash } });
    say('Deleted.');
    onDone();
  };
  return (
    <Confirm title="Delete this key?" name={of.name} run={run} onClose={onClose}>
      <p>
        <strong>
          <bdi>{of.name}</bdi>
        </strong>{' '}
        (<code>{of.label}</code>) stops working at once, on every node. So do all keys that applications made with it.
        This cannot be undone.
      </p>
      <p>
        Its usage of <Money usd={of.usage} /> stays in the accounts
        {of.last_used_at === null ? '. It was never used.' : <>. It was last used {ago(of.last_used_at)}.</>}
      </p>
    </Confirm>
  );
}

function List() {
  const { query } = route.value;
  const workspace = useWorkspace('workspace');
  const { id, all } = workspace;
  const offset = Number(query.get('offset') ?? 0) || 0;
  const open = useSignal<{ kind: 'edit' | 'delete'; of: Key } | undefined>(undefined);
  const made = useSignal<{ name: string; secret: string } | undefined>(undefined);
  const keys = useLoaded(
    // One more than a page shows, to know whether there are more.
    async (signal) =>
      id === undefined
        ? undefined
        : call('listKeys', { query: { include_disabled: 'true', limit: PAGE + 1, offset, workspace_id: id } }, signal),
    `${id} ${offset}`,
  );
  const setDisabled = async (of: Key) => {
    await call('updateKey', { path: { hash: of.hash }, body: { disabled: !of.disabled } }).catch((error: unknown) =>
      say(error instanceof Error ? error.message : String(error)),
    );
    keys.reload();
  };
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
      {workspace.loaded.error !== undefined && <Show of={workspace.loaded}>{() => null}</Show>}
      <Show of={keys}>
        {({ data }) =>
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
                      <Spent of={key} />
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
                        onClick={() => void setDisabled(key)}
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
