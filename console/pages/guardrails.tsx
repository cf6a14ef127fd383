import { useSignal } from '@preact/signals';
import type { Guardrail, Operations, Workspace } from '../api.gen.ts';
import { call } from '../api.ts';
import { count, time } from '../format.ts';
import { BUILTINS, EditGuardrail } from '../guardrail-editor.tsx';
import { TestBench } from '../guardrail-test.tsx';
import { KeySelect, loadKeys, OFFERED_MAX, personName, useWorkspace, WorkspaceSelect } from '../pickers.tsx';
import { isAdmin, route, say, setQuery } from '../state.ts';
import {
  bind,
  ChangeAndDelete,
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
const ZDR = {
  enforce_zdr_anthropic: 'Anthropic',
  enforce_zdr_openai: 'OpenAI',
  enforce_zdr_google: 'Google',
  enforce_zdr_xai: 'xAI',
  enforce_zdr_other: 'all other authors',
} as const;

/** The rules of a guardrail, each with its values. */
function rulesOf(of: Guardrail): { rule: string; values: string[] }[] {
  const zdr = (Object.keys(ZDR) as (keyof typeof ZDR)[]).filter((field) => of[field] === true).map((one) => ZDR[one]);
  const filters = [
    ...(of.content_filter_builtins ?? []).map(({ slug, action }) => `${action}: ${BUILTINS[slug].toLowerCase()}`),
    ...(of.content_filters ?? []).map(({ pattern, action, label }) => `${action}: ${label || pattern}`),
  ];
  const where = of.content_filter_output === true ? 'Filters requests and answers' : 'Filters requests';
  return [
    { rule: 'Forbids models', values: of.ignored_models ?? [] },
    { rule: 'Allows only models', values: of.allowed_models ?? [] },
    { rule: 'Forbids providers', values: of.ignored_providers ?? [] },
    { rule: 'Allows only providers', values: of.allowed_providers ?? [] },
    { rule: 'Requires zero data retention of', values: zdr },
    { rule: of.content_filter_reversible === true ? `${where}, reversibly` : where, values: filters },
  ].filter(({ values }) => values.length > 0);
}

function Limit({ of }: { of: Guardrail }) {
  if (of.limit_usd === null) return null;
  return (
    <>
      Limits each assignee to <Money usd={of.limit_usd} />{' '}
      {of.reset_interval === undefined ? 'in all' : RESETS[of.reset_interval]}
      {of.include_byok_in_budgets && ', own provider accounts included'}
    </>
  );
}

function Rules({ of }: { of: Guardrail }) {
  const rules = rulesOf(of);
  if (rules.length === 0 && of.limit_usd === null) return <p class="dim">No rule yet: it changes nothing.</p>;
  return (
    <ul class="rules">
      {rules.map(({ rule, values }) => (
        <li key={rule}>
          {rule}: <bdi>{values.join(', ')}</bdi>
        </li>
      ))}
      {of.limit_usd !== null && (
        <li>
          <Limit of={of} />
        </li>
      )}
    </ul>
  );
}

/** The keys and members that a guardrail is assigned to, and the workspaces whose default it is. */
async function loadAssignees(id: string, signal: AbortSignal) {
  const path = { id };
  const query = { limit: OFFERED_MAX };
  const [keys, members, people, workspaces] = await Promise.all([
    call('listGuardrailKeys', { path, query }, signal),
    call('listGuardrailMembers', { path, query }, signal),
    call('listOrganizationMembers', { query: { limit: OFFERED_MAX } }, signal),
    call('listWorkspaces', { query: { limit: OFFERED_MAX } }, signal),
  ]);
  const names = new Map(people.data.map((person) => [person.id, personName(person)]));
  return {
    keys,
    members: {
      ...members,
      data: members.data.map(({ user_id }) => ({ id: user_id, name: names.get(user_id) ?? `${user_id.slice(0, 8)}…` })),
    },
    people: people.data,
    workspaces: workspaces.data.filter((one) => one.default_guardrail_id === id),
    all: workspaces.data,
  };
}
type Assignees = Awaited<ReturnType<typeof loadAssignees>>;

function Row({ name, note, remove, label }: { name: string; note: string; remove(): void; label: string }) {
  return (
    <li>
      <span>
        <bdi>{name}</bdi> <span class="dim">{note}</span>
      </span>
      <button type="button" class="small" aria-label={label} onClick={remove}>
        Remove
      </button>
    </li>
  );
}

function Assignments({ of, loaded, reload }: { of: Guardrail; loaded: Assignees; reload(): void }) {
  const workspace = useSignal(loaded.all[0]?.id ?? '');
  const key = useSignal('');
  const member = useSignal('');
  // The page of a workspace links here to create a guardrail for it.
  const team = useSignal(route.peek().query.get('for') ?? '');
  const keys = useLoaded((signal) => loadKeys(workspace.value, signal), workspace.value);
  const path = { id: of.id };
  const removed = useSignal<{ name: string; whose: string; run(): Promise<unknown> } | undefined>(undefined);
  const close = () => {
    removed.value = undefined;
  };
  const ask = (name: string, whose: string, run: () => Promise<unknown>) => {
    removed.value = { name, whose, run };
  };
  const addKey = useAction(async () => {
    await call('assignGuardrailKeys', { path, body: { key_hashes: [key.value] } });
    key.value = '';
    say('Assigned to the key.');
    reload();
  });
  const addMember = useAction(async () => {
    await call('assignGuardrailMembers', { path, body: { member_user_ids: [member.value] } });
    member.value = '';
    say('Assigned to the member.');
    reload();
  });
  const addTeam = useAction(async () => {
    await call('updateWorkspace', { path: { id: team.value }, body: { default_guardrail_id: of.id } });
    team.value = '';
    say('In force for the workspace.');
    reload();
  });
  const total = loaded.keys.total_count + loaded.members.total_count + loaded.workspaces.length;
  const others = loaded.all.filter((one) => one.default_guardrail_id !== of.id);
  const taken = loaded.all.find(({ id }) => id === team.value);
  return (
    <section class="card" aria-label="Assignments">
      <h2>Applies to</h2>
      {total === 0 ? (
        <p>Nobody yet. Choose whom it applies to: a workspace, a member, or a key.</p>
      ) : (
        <ul class="rows">
          {loaded.workspaces.map(({ id, name }) => (
            <Row
              key={id}
              name={name}
              note="all requests of this workspace"
              label={`Remove from the workspace ${name}`}
              remove={() =>
                ask(name, 'All requests of the workspace', () =>
                  call('updateWorkspace', { path: { id }, body: { default_guardrail_id: null } }),
                )
              }
            />
          ))}
          {loaded.members.data.map(({ id, name }) => (
            <Row
              key={id}
              name={name}
              note="all keys of this member"
              label={`Remove from the member ${name}`}
              remove={() =>
                ask(name, 'All keys of the member', () =>
                  call('unassignGuardrailMembers', { path, body: { member_user_ids: [id] } }),
                )
              }
            />
          ))}
          {loaded.keys.data.map(({ key_hash, key_name, key_label }) => (
            <Row
              key={key_hash}
              name={key_name}
              note={`key ${key_label}`}
              label={`Remove from the key ${key_name}`}
              remove={() =>
                ask(key_name, 'The key', () =>
                  call('unassignGuardrailKeys', { path, body: { key_hashes: [key_hash] } }),
                )
              }
            />
          ))}
        </ul>
      )}
      {removed.value !== undefined && (
        <Confirm
          title="Remove the guardrail from it?"
          verb="Remove from"
          name={removed.value.name}
          run={async () => {
            await removed.value?.run();
            close();
            reload();
          }}
          onClose={close}
        >
          <p>
            {removed.value.whose} <bdi>{removed.value.name}</bdi> {removed.value.whose.startsWith('All') ? 'are' : 'is'}{' '}
            no longer under the rules of <bdi>{of.name}</bdi>, at once and on every node. The guardrail itself stays.
          </p>
        </Confirm>
      )}
      {Math.max(loaded.keys.total_count, loaded.members.total_count) > OFFERED_MAX && (
        <p class="dim">
          The first {OFFERED_MAX} of {count(loaded.keys.total_count)} keys and {count(loaded.members.total_count)}{' '}
          members.
        </p>
      )}
      <form class="inline" onSubmit={addTeam.start}>
        <Field label="A workspace (team)" hint="All requests of its keys. It replaces the default guardrail there">
          <select required {...bind(team)}>
            <option value="">Choose a workspace</option>
            {others.map(({ id, name }) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
          </select>
        </Field>
        <button type="submit" disabled={addTeam.isRunning}>
          Apply to workspace
        </button>
      </form>
      {taken?.default_guardrail_id && <p>This workspace has another default guardrail now; it will be replaced.</p>}
      {addTeam.failure}
      <form class="inline" onSubmit={addMember.start}>
        <Field label="A member" hint="All keys of the member. A member has one guardrail at most">
          <select required {...bind(member)}>
            <option value="">Choose a member</option>
            {loaded.people.map((person) => (
              <option key={person.id} value={person.id}>
                {personName(person)}
              </option>
            ))}
          </select>
        </Field>
        <button type="submit" disabled={addMember.isRunning}>
          Assign to member
        </button>
      </form>
      {addMember.failure}
      <form class="inline" onSubmit={addKey.start}>
        <Field label="A key" hint="A key has one guardrail of its own at most">
          <KeySelect
            of={keys.value?.data ?? []}
            value={key.value}
            onChoose={(hash) => {
              key.value = hash;
            }}
          />
        </Field>
        {loaded.all.length > 1 && (
          <Field label="in the workspace">
            <WorkspaceSelect
              of={loaded.all}
              value={workspace.value}
              label="in the workspace"
              onChoose={(id) => {
                workspace.value = id;
                key.value = '';
              }}
            />
          </Field>
        )}
        <button type="submit" disabled={addKey.isRunning || key.value === ''}>
          Assign to key
        </button>
      </form>
      {addKey.failure}
    </section>
  );
}

function DeleteGuardrail({
  of,
  loaded,
  onClose,
  onDone,
}: {
  of: Guardrail;
  loaded: Assignees;
  onClose(): void;
  onDone(): void;
}) {
  const run = async () => {
    await call('deleteGuardrail', { path: { id: of.id } });
    say('Deleted.');
    onDone();
  };
  const names = [
    ...loaded.workspaces.map(({ name }) => `the workspace ${name}`),
    ...loaded.members.data.map(({ name }) => `the member ${name}`),
    ...loaded.keys.data.map(({ key_name }) => `the key ${key_name}`),
  ];
  const total = loaded.keys.total_count + loaded.members.total_count + loaded.workspaces.length;
  return (
    <Confirm title="Delete this guardrail?" name={of.name} run={run} onClose={onClose}>
      <p>
        The rules of{' '}
        <strong>
          <bdi>{of.name}</bdi>
        </strong>{' '}
        end at once, on every node. This cannot be undone.
      </p>
      {total === 0 ? (
        <p>It applies to nobody.</p>
      ) : (
        <>
          <p>It no longer protects:</p>
          <ul>
            {names.slice(0, 10).map((name) => (
              <li key={name}>
                <bdi>{name}</bdi>
              </li>
            ))}
            {total > 10 && <li>and {count(total - 10)} more</li>}
          </ul>
        </>
      )}
    </Confirm>
  );
}

type Tested = Operations['testGuardrail']['body']['guardrail'];

function One({ id, workspaces }: { id: string; workspaces: Workspace[] }) {
  const loaded = useLoaded((signal) => call('getGuardrail', { path: { id } }, signal), id);
  const assignees = useLoaded((signal) => loadAssignees(id, signal), id);
  const guardrail = loaded.value?.data;
  const assigned = assignees.value;
  const draft = useSignal<Tested>(undefined);
  const closeTest = () => {
    draft.value = undefined;
  };
  return (
    <>
      <Heading title={loaded.value?.data.name ?? 'Guardrail'}>
        <a class="button" href="guardrails" data-page>
          All guardrails
        </a>
        {guardrail !== undefined && (
          <ChangeAndDelete
            change={(close) => (
              <EditGuardrail
                of={guardrail}
                workspace=""
                onClose={close}
                onTest={(next) => {
                  draft.value = next;
                }}
                onSaved={() => {
                  close();
                  loaded.reload();
                }}
              />
            )}
            remove={
              assigned === undefined
                ? null
                : (close) => (
                    <DeleteGuardrail
                      of={guardrail}
                      loaded={assigned}
                      onClose={close}
                      onDone={() => setQuery({ id: undefined })}
                    />
                  )
            }
          />
        )}
      </Heading>
      <Show of={loaded}>
        {({ data }) => (
          <>
            {data.description && <p class="prose">{data.description}</p>}
            <p class="dim">
              Created {time(data.created_at)}
              {data.updated_at !== null && `, changed ${time(data.updated_at)}`}
            </p>
            <div class="pair">
              <div>
                <section class="card">
                  <h2>Rules</h2>
                  <Rules of={data} />
                  {data.limit_usd !== null && (
                    <p>
                      <a href={`budgets?${new URLSearchParams({ guardrail: id })}`} data-page>
                        Spent, held and left of each limit
                      </a>
                    </p>
                  )}
                </section>
                <Show of={assignees}>
                  {(value) => <Assignments of={data} loaded={value} reload={assignees.reload} />}
                </Show>
              </div>
              <section class="card">
                <h2>Test bench</h2>
                <TestBench of={{ guardrail_id: id }} workspaces={workspaces} />
              </section>
            </div>
          </>
        )}
      </Show>
      {draft.value && <TestDraft of={draft.value} workspaces={workspaces} onClose={closeTest} />}
    </>
  );
}

function TestDraft({ of, workspaces, onClose }: { of: Tested; workspaces: Workspace[]; onClose(): void }) {
  return (
    <Dialog title="Test the draft" onClose={onClose} isWide>
      <TestBench of={{ guardrail: of }} workspaces={workspaces} />
    </Dialog>
  );
}

function List({ workspaces }: { workspaces: Workspace[] }) {
  const { query } = route.value;
  const workspace = useWorkspace('workspace');
  const { id } = workspace;
  const offset = Number(query.get('offset') ?? 0) || 0;
  const draft = useSignal<Tested>(undefined);
  const closeTest = () => {
    draft.value = undefined;
  };
  const list = useLoaded(
    async (signal) =>
      id === undefined
        ? undefined
        : call('listGuardrails', { query: { limit: PAGE, offset, workspace_id: id } }, signal),
    `${id} ${offset}`,
  );
  const create = () => setQuery({ new: '1' });
  return (
    <>
      <Heading title="Guardrails">
        {workspaces.length > 1 && (
          <WorkspaceSelect
            of={workspaces}
            value={id ?? ''}
            onChoose={(next) => workspace.choose(next, { offset: undefined })}
          />
        )}
        {isAdmin.value && (
          <button type="button" class="primary" onClick={create}>
            Create guardrail
          </button>
        )}
      </Heading>
      <Show of={id === undefined ? { ...workspace.loaded, value: undefined } : list}>
        {({ data, total_count }) =>
          data.length === 0 && offset === 0 ? (
            <Empty title="No guardrail in this workspace">
              <p>
                A guardrail forbids models or providers, limits spending, demands zero data retention, or filters
                content, for a workspace, a member or a key.
              </p>
              <button type="button" class="primary" onClick={create}>
                Create the first guardrail
              </button>
            </Empty>
          ) : (
            <>
              <Table class="cards" caption="Guardrails" head={['Name', 'Rules']}>
                {data.map((one) => (
                  <tr key={one.id}>
                    <th scope="row">
                      <a href={`guardrails?${new URLSearchParams({ id: one.id })}`} data-page>
                        <bdi>{one.name}</bdi>
                      </a>
                      {one.description !== null && (
                        <>
                          <br />
                          <small>
                            <bdi>{one.description}</bdi>
                          </small>
                        </>
                      )}
                    </th>
                    <td data-label="Rules">
                      <Rules of={one} />
                    </td>
                  </tr>
                ))}
              </Table>
              <Pager offset={offset} limit={PAGE} total={total_count} />
            </>
          )
        }
      </Show>
      <p class="dim">
        The page of a key shows all guardrails that apply to it together: open a key under{' '}
        <a href="keys" data-page>
          Keys
        </a>
        .
      </p>
      {query.get('new') !== null && (
        <EditGuardrail
          workspace={id ?? ''}
          onClose={() => setQuery({ new: undefined })}
          onTest={(next) => {
            draft.value = next;
          }}
          onSaved={(made) => setQuery({ new: undefined, offset: undefined, id: made })}
        />
      )}
      {draft.value && <TestDraft of={draft.value} workspaces={workspaces} onClose={closeTest} />}
    </>
  );
}

export default function Guardrails() {
  const id = route.value.query.get('id');
  const workspaces = useLoaded((signal) => call('listWorkspaces', { query: { limit: OFFERED_MAX } }, signal));
  const all = workspaces.value?.data;
  if (all === undefined) {
    return (
      <>
        <Heading title="Guardrails" />
        <Show of={workspaces}>{() => null}</Show>
      </>
    );
  }
  return id === null ? <List workspaces={all} /> : <One key={id} id={id} workspaces={all} />;
}
