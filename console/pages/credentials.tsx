import { useSignal } from '@preact/signals';
import type { AuditEvent, ByokCredential, CredentialCheck, ProviderCredential } from '../api.gen.ts';
import { call } from '../api.ts';
import { ago, count, counted } from '../format.ts';
import { OFFERED_MAX } from '../pickers.tsx';
import { route, say, setQuery } from '../state.ts';
import {
  bind,
  bindCheck,
  Check,
  Confirm,
  Empty,
  Field,
  FormDialog,
  Heading,
  messageOf,
  Pager,
  Show,
  Table,
  useAction,
  useLoaded,
} from '../ui.tsx';

const PAGE = 25;

const RESULTS: Record<CredentialCheck['result'], [text: string, tone: string]> = {
  works: ['works', 'good'],
  refused: ['refused', 'bad'],
  limited: ['limited', 'bad'],
  unreachable: ['unreachable', 'bad'],
  unknown: ['not known', ''],
};

const STATES: Record<ProviderCredential['state'], [text: string, tone: string]> = {
  on: ['on', 'good'],
  refused: ['credential refused', 'bad'],
  own_only: ['own credentials only', ''],
  off: ['off', ''],
};

type Tested = Pick<CredentialCheck, 'result' | 'message'> & { at?: string };

/** The last test of each resource, from the audit. */
function lastTests(events: readonly AuditEvent[]): Map<string, Tested> {
  const tests = new Map<string, Tested>();
  for (const { action, resource_id, created_at, after } of events) {
    if (action !== 'test' || tests.has(resource_id)) continue;
    const { result, message } = (after ?? {}) as { result?: CredentialCheck['result']; message?: string };
    if (result !== undefined && result in RESULTS)
      tests.set(resource_id, { result, message: message ?? '', at: created_at });
  }
  return tests;
}

function Test({ last, run, name }: { last: Tested | undefined; run(): Promise<CredentialCheck>; name: string }) {
  const now = useSignal<Tested | undefined>(undefined);
  const { start, failure, isRunning } = useAction(async () => {
    now.value = await run();
  });
  const shown = now.value ?? last;
  const [text, tone] = shown === undefined ? ['', ''] : RESULTS[shown.result];
  return (
    <>
      <button type="button" class="small" disabled={isRunning} aria-label={`Test ${name}`} onClick={start}>
        {isRunning ? 'Testing …' : 'Test'}
      </button>{' '}
      <span role="status">
        {shown !== undefined && (
          <>
            <span class={`tag ${tone}`}>{text}</span>{' '}
            <small>
              {shown.message} {shown.at !== undefined && ago(shown.at)}
            </small>
          </>
        )}
      </span>
      {failure}
    </>
  );
}

function Operators() {
  const showAll = route.value.query.get('all') === '1';
  const loaded = useLoaded(async (signal) => {
    const [providers, audit] = await Promise.all([
      call('listProviderCredentials', {}, signal),
      call('listAudit', { query: { resource_type: 'provider', limit: 100 } }, signal),
    ]);
    return { providers: providers.data, tests: lastTests(audit.data) };
  });
  return (
    <section class="part">
      <h2>Credentials of the operator</h2>
      <Show of={loaded}>
        {({ providers, tests }) => {
          const used = providers.filter(({ state }) => state === 'on' || state === 'refused');
          const shown = showAll ? providers : used;
          return (
            <>
              {(showAll || used.every(({ is_sandbox }) => is_sandbox)) && (
                <p>
                  {used.every(({ is_sandbox }) => is_sandbox) ? 'Only the sandbox answers. To' : 'To'} add a provider,
                  start the gateway with the key of a provider, such as <code>OPENAI_API_KEY=sk-… npm start</code>. Each
                  line below says what its provider needs. For a team that pays a provider itself, add a credential of
                  its own account further down.
                </p>
              )}
              <Table class="cards" caption="Credentials of the operator" head={['Provider', 'State', 'Test']}>
                {shown.map((provider) => {
                  const { slug, name, state, reason, endpoints, refused_endpoints, has_credential, is_sandbox } =
                    provider;
                  const [text, tone] = STATES[state];
                  return (
                    <tr key={slug}>
                      <th scope="row">
                        <bdi>{name}</bdi> <code class="dim">{slug}</code>
                      </th>
                      <td data-label="State">
                        <span class={`tag ${tone}`}>{text}</span>{' '}
                        <small>
                          {reason ??
                            (refused_endpoints > 0
                              ? `${count(refused_endpoints)} of ${count(endpoints)} endpoints refuse the credential`
                              : `${counted(endpoints, 'endpoint')}${has_credential ? '' : is_sandbox ? ', simulated' : ', no credential needed'}`)}
                        </small>
                      </td>
                      <td data-label="Test">
                        {(state === 'on' || state === 'refused') && (
                          <Test
                            name={name}
                            last={tests.get(slug)}
                            run={async () => (await call('testProviderCredential', { path: { slug } })).data}
                          />
                        )}
                      </td>
                    </tr>
                  );
                })}
              </Table>
              {providers.length > used.length && (
                <p>
                  <button type="button" onClick={() => setQuery({ all: showAll ? undefined : '1' })}>
                    {showAll
                      ? 'Show only providers that are on'
                      : `Add a provider (${count(providers.length - used.length)} are off)`}
                  </button>
                </p>
              )}
            </>
          );
        }}
      </Show>
    </section>
  );
}

function Edit({
  of,
  providers,
  onClose,
  onDone,
}: {
  of: ByokCredential | undefined;
  providers: readonly ProviderCredential[];
  onClose(): void;
  onDone(): void;
}) {
  const provider = useSignal(of?.provider ?? providers[0]?.slug ?? '');
  const key = useSignal('');
  const name = useSignal(of?.name ?? '');
  const shares = useSignal(of?.allow_shared_fallback ?? false);
  const workspace = useSignal('');
  const workspaces = useLoaded((signal) => call('listWorkspaces', { query: { limit: OFFERED_MAX } }, signal));
  const save = async () => {
    const settings = { name: name.value.trim() || null, allow_shared_fallback: shares.value };
    const secret = key.value === '' ? {} : { key: key.value };
    if (of === undefined) {
      const id = workspace.value || workspaces.value?.data[0]?.id;
      const where = id === undefined ? {} : { workspace_id: id };
      await call('createByok', { body: { provider: provider.value, key: key.value, ...where, ...settings } });
    } else await call('updateByok', { path: { id: of.id }, body: { ...secret, ...settings } });
    key.value = '';
    say(of === undefined ? 'Stored.' : 'Changed.');
    onDone();
  };
  return (
    <FormDialog
      title={of === undefined ? 'Add a credential of your own' : 'Change this credential'}
      submit={of === undefined ? 'Store the credential' : 'Save'}
      run={save}
      onClose={onClose}
    >
      {of === undefined && (
        <>
          <Field label="Provider">
            <select {...bind(provider)}>
              {providers.map(({ slug, name: title }) => (
                <option key={slug} value={slug}>
                  {title}
                </option>
              ))}
            </select>
          </Field>
          <Field label="Workspace" hint="Calls of its keys use the credential">
            <select {...bind(workspace)}>
              {(workspaces.value?.data ?? []).map(({ id, name: title }) => (
                <option key={id} value={id}>
                  {title}
                </option>
              ))}
            </select>
          </Field>
        </>
      )}
      <Field
        label={of === undefined ? 'Credential' : 'New credential'}
        hint={of === undefined ? 'Stored encrypted, and never shown again' : `Leave empty to keep ${of.label}`}
      >
        <input type="password" required={of === undefined} autocomplete="off" autofocus {...bind(key)} />
      </Field>
      <Field label="Name">
        <input type="text" maxLength={255} autocomplete="off" {...bind(name)} />
      </Field>
      <Check {...bindCheck(shares)}>Calls that it cannot serve may use the operator’s account</Check>
    </FormDialog>
  );
}

function Delete({ of, onClose, onDone }: { of: ByokCredential; onClose(): void; onDone(): void }) {
  const title = of.name ?? of.label;
  const run = async () => {
    await call('deleteByok', { path: { id: of.id } });
    say('Deleted.');
    onDone();
  };
  return (
    <Confirm title="Delete this credential?" name={title} run={run} onClose={onClose}>
      <p>
        Calls of its workspace no longer use <bdi>{title}</bdi> at <bdi>{of.provider}</bdi>. The secret is deleted and
        cannot be restored.
      </p>
    </Confirm>
  );
}

function Own() {
  const offset = Number(route.value.query.get('offset') ?? 0) || 0;
  const loaded = useLoaded(async (signal) => {
    const [own, audit, providers, workspaces] = await Promise.all([
      call('listByok', { query: { limit: PAGE, offset } }, signal),
      call('listAudit', { query: { resource_type: 'byok_credential', limit: 100 } }, signal),
      call('listProviderCredentials', {}, signal),
      call('listWorkspaces', { query: { limit: OFFERED_MAX } }, signal),
    ]);
    const teams = new Map(workspaces.data.map(({ id, name }) => [id, name]));
    return { ...own, tests: lastTests(audit.data), providers: providers.data, teams };
  }, String(offset));
  const open = useSignal<{ action: 'add' | 'change' | 'delete'; of?: ByokCredential } | undefined>(undefined);
  const close = () => {
    open.value = undefined;
  };
  const done = () => {
    close();
    loaded.reload();
  };
  const turn = async ({ id, disabled }: ByokCredential) => {
    try {
      await call('updateByok', { path: { id }, body: { disabled: !disabled } });
    } catch (error) {
      say(messageOf(error));
    }
    loaded.reload();
  };
  const add = (
    <button
      type="button"
      class="primary"
      onClick={() => {
        open.value = { action: 'add' };
      }}
    >
      Add a credential
    </button>
  );
  return (
    <section class="part">
      <h2>Credentials of your own accounts</h2>
      <Show of={loaded}>
        {({ data, total_count, tests, providers, teams }) => (
          <>
            {data.length === 0 ? (
              <Empty title="No credential of your own">
                <p>With a credential of your own account, the provider bills your team directly.</p>
                {add}
              </Empty>
            ) : (
              <>
                <Table
                  class="cards"
                  caption="Credentials of own accounts"
                  head={['Credential', 'Workspace', 'State', 'Test', '.Actions']}
                >
                  {data.map((one) => (
                    <tr key={one.id} class={one.disabled ? 'off' : ''}>
                      <th scope="row">
                        <bdi>{one.name ?? one.label}</bdi>
                        <br />
                        <small>
                          {one.provider} <code>{one.label}</code>
                        </small>
                      </th>
                      <td data-label="Workspace">
                        <a href={`workspaces?${new URLSearchParams({ id: one.workspace_id })}`} data-page>
                          <bdi>{teams.get(one.workspace_id) ?? `${one.workspace_id.slice(0, 8)}…`}</bdi>
                        </a>
                      </td>
                      <td data-label="State">
                        <span class={`tag ${one.disabled ? '' : 'good'}`}>{one.disabled ? 'disabled' : 'in use'}</span>
                      </td>
                      <td data-label="Test">
                        <Test
                          name={one.name ?? one.label}
                          last={tests.get(one.id)}
                          run={async () => (await call('testByok', { path: { id: one.id } })).data}
                        />
                      </td>
                      <td class="buttons">
                        <button
                          type="button"
                          class="small"
                          aria-label={`Change ${one.name ?? one.label}`}
                          onClick={() => {
                            open.value = { action: 'change', of: one };
                          }}
                        >
                          Change
                        </button>
                        <button
                          type="button"
                          class="small"
                          aria-label={`${one.disabled ? 'Enable' : 'Disable'} ${one.name ?? one.label}`}
                          onClick={() => void turn(one)}
                        >
                          {one.disabled ? 'Enable' : 'Disable'}
                        </button>
                        <button
                          type="button"
                          class="small danger"
                          aria-label={`Delete ${one.name ?? one.label}`}
                          onClick={() => {
                            open.value = { action: 'delete', of: one };
                          }}
                        >
                          Delete
                        </button>
                      </td>
                    </tr>
                  ))}
                </Table>
                <Pager offset={offset} limit={PAGE} total={total_count} />
                {add}
              </>
            )}
            {open.value?.action === 'delete' && open.value.of && (
              <Delete of={open.value.of} onClose={close} onDone={done} />
            )}
            {open.value !== undefined && open.value.action !== 'delete' && (
              <Edit of={open.value.of} providers={providers} onClose={close} onDone={done} />
            )}
          </>
        )}
      </Show>
    </section>
  );
}

export default function Credentials() {
  return (
    <>
      <Heading title="Provider credentials" />
      <Operators />
      <Own />
    </>
  );
}
