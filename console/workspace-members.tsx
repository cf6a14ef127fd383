import { type Signal, useSignal } from '@preact/signals';
import type { OrganizationMember, Workspace } from './api.gen.ts';
import { call } from './api.ts';
import { counted } from './format.ts';
import { usageOf } from './links.tsx';
import { OFFERED_MAX, personName } from './pickers.tsx';
import { isAdmin, say, session } from './state.ts';
import {
  bind,
  Code,
  Confirm,
  Field,
  FormDialog,
  type Loaded,
  Pager,
  Show,
  useAction,
  useLoaded,
  VerbAndName,
} from './ui.tsx';

const PAGE = 25;

interface Row {
  id: string;
  name: string;
  /** The full name, if `name` is another one. */
  fullName?: string;
  isAdmin: boolean;
  /** Its usage. */
  href: string;
  /** Not set if the person cannot be removed. */
  remove?: (() => void) | undefined;
}

/** One part of a list of people, and the buttons for the other parts. */
function PeopleList<T>({
  of,
  offset,
  place,
  rowOf,
}: {
  of: Loaded<{ data: readonly T[]; total_count: number }>;
  offset: Signal<number>;
  /** Where people are members. */
  place: 'workspace' | 'organization';
  rowOf(of: T): Row;
}) {
  const usage = place === 'workspace' ? 'Usage in this workspace' : 'Usage in all workspaces';
  const move = (next: number) => {
    offset.value = next;
  };
  return (
    <Show of={of}>
      {({ data, total_count }) => (
        <>
          <ul class="rows">
            {data.map(rowOf).map(({ id, name, fullName, isAdmin, href, remove }) => (
              <li key={id}>
                <span>
                  <a href={href} data-page title={usage}>
                    <bdi>{name}</bdi>
                  </a>{' '}
                  {fullName !== undefined && <bdi class="dim">{fullName} </bdi>}
                  <span class="tag">{isAdmin ? 'administrator' : 'member'}</span>
                </span>
                {remove !== undefined && (
                  <button
                    type="button"
                    class="small danger"
                    aria-label={`Remove ${name} from the ${place}`}
                    onClick={remove}
                  >
                    Remove
                  </button>
                )}
              </li>
            ))}
          </ul>
          {total_count > PAGE && <Pager offset={offset.value} limit={PAGE} total={total_count} onMove={move} />}
        </>
      )}
    </Show>
  );
}

/** The members of a workspace; administrators add and remove them. */
export function WorkspaceMembers({
  of,
  isDefault,
  people,
}: {
  of: Workspace;
  isDefault: boolean;
  people: readonly OrganizationMember[];
}) {
  const offset = useSignal(0);
  const members = useLoaded(
    (signal) =>
      call('listWorkspaceMembers', { path: { id: of.id }, query: { limit: PAGE, offset: offset.value } }, signal),
    `${of.id} ${offset.value}`,
  );
  const chosen = useSignal('');
  const inside = new Set(members.value?.data.map(({ user_id }) => user_id));
  const others = people.filter(({ id }) => !inside.has(id));
  const add = useAction(async () => {
    await call('addWorkspaceMembers', { path: { id: of.id }, body: { user_ids: [chosen.value] } });
    chosen.value = '';
    members.reload();
  });
  const removed = useSignal<string | undefined>(undefined);
  const choose = (userId: string | undefined) => {
    removed.value = userId;
  };
  const close = () => choose(undefined);
  const remove = async (userId: string) => {
    await call('removeWorkspaceMembers', { path: { id: of.id }, body: { user_ids: [userId] } });
    close();
    members.reload();
  };
  const named = (userId: string) => {
    const person = people.find(({ id }) => id === userId);
    if (userId === session.value?.user_id) return `${session.value.user_name} (you)`;
    return person === undefined ? `${userId.slice(0, 8)}…` : personName(person);
  };
  return (
    <section>
      <h2>Members</h2>
      {removed.value !== undefined && (
        <Confirm
          title="Remove this member?"
          verb="Remove"
          name={named(removed.value)}
          run={() => remove(removed.value ?? '')}
          onClose={close}
        >
          <p>
            <bdi>{named(removed.value)}</bdi> no longer belongs to the workspace <bdi>{of.name}</bdi>. Nothing else is
            deleted.
          </p>
        </Confirm>
      )}
      {isDefault && <p class="dim">The default workspace has all members of the organization.</p>}
      <PeopleList
        of={members}
        offset={offset}
        place="workspace"
        rowOf={({ id, user_id, role }) => ({
          id,
          name: named(user_id),
          isAdmin: role === 'admin',
          href: usageOf({ workspace: of.id, user: user_id }),
          remove: isAdmin.value && !isDefault ? () => choose(user_id) : undefined,
        })}
      />
      {isAdmin.value && !isDefault && others.length > 0 && (
        <form class="inline" onSubmit={add.start}>
          <Field label="Person">
            <select required {...bind(chosen)}>
              <option value="">Choose …</option>
              {others.map((person) => (
                <option key={person.id} value={person.id}>
                  {personName(person)}
                </option>
              ))}
            </select>
          </Field>
          <button type="submit" disabled={add.isRunning}>
            Add member
          </button>
        </form>
      )}
      {add.failure}
    </section>
  );
}

/** Removes a person from the organization; another one may take over the keys. */
function RemovePerson({
  of,
  others,
  onClose,
  onDone,
}: {
  of: OrganizationMember;
  others: readonly OrganizationMember[];
  onClose(): void;
  onDone(): void;
}) {
  const heir = useSignal('');
  const name = personName(of);
  const remove = async () => {
    const query = heir.value === '' ? {} : { hand_keys_to: heir.value };
    const done = await call('deleteOrganizationMember', { path: { id: of.id }, query });
    const keys = [
      ...(done.keys_disabled > 0 ? [`${counted(done.keys_disabled, 'key')} disabled`] : []),
      ...(done.keys_handed_over > 0 ? [`${counted(done.keys_handed_over, 'key')} handed over`] : []),
    ];
    say(['Removed', ...keys].join(', ').concat('.'));
    onDone();
  };
  return (
    <FormDialog
      title="Remove this person?"
      submit={<VerbAndName verb="Remove" name={name} />}
      cancel="Keep them"
      run={remove}
      onClose={onClose}
    >
      <p>
        <strong>
          <bdi>{name}</bdi>
        </strong>{' '}
        is signed out everywhere, belongs to no workspace any more, and cannot sign in again before an administrator
        adds them. Their calls stay in the accounts. This cannot be undone.
      </p>
      <Field label="Their keys" hint="Whoever knows the secret of a key can use it until it is disabled">
        <select {...bind(heir)}>
          <option value="">are disabled at once</option>
          {others.map((person) => (
            <option key={person.id} value={person.id}>
              {`stay enabled and belong to ${personName(person)}`}
            </option>
          ))}
        </select>
      </Field>
    </FormDialog>
  );
}

/** The row of a person of the organization. Nobody removes themselves. */
function rowOf(person: OrganizationMember, remove: () => void): Row {
  const { id, role } = person;
  const row = { id, isAdmin: role === 'org:admin', href: usageOf({ user: id }) };
  if (id === session.value?.user_id) return { ...row, name: `${session.value.user_name} (you)` };
  const name = personName(person);
  const fullName = [person.first_name, person.last_name].filter(Boolean).join(' ');
  return { ...row, name, remove, ...(fullName === '' || fullName === name ? {} : { fullName }) };
}

/** The people of the organization, for administrators. */
export function People({ onChange }: { onChange(): void }) {
  const offset = useSignal(0);
  const removed = useSignal<OrganizationMember | undefined>(undefined);
  const people = useLoaded(
    (signal) => call('listOrganizationMembers', { query: { limit: PAGE, offset: offset.value } }, signal),
    String(offset.value),
  );
  const offered = useLoaded(
    async (signal) =>
      removed.value === undefined
        ? undefined
        : (await call('listOrganizationMembers', { query: { limit: OFFERED_MAX } }, signal)).data,
    removed.value?.id,
  );
  const choose = (person: OrganizationMember | undefined) => {
    removed.value = person;
  };
  const close = () => choose(undefined);
  return (
    <section class="card">
      <h2>People of the organization</h2>
      <PeopleList of={people} offset={offset} place="organization" rowOf={(one) => rowOf(one, () => choose(one))} />
      <details>
        <summary>Add a person or change a role</summary>
        <p>
          With OpenID Connect, <code>oidc.provision</code> says who is added at the first sign-in. Others are added on
          the machine of the gateway:
        </p>
        <Code text="model-gateway users add --email ada@example.com --role member" label="Add a person" />
        <Code text="model-gateway users set ada@example.com --role admin" label="Change a role" />
      </details>
      {removed.value !== undefined && (
        <RemovePerson
          of={removed.value}
          others={(offered.value ?? []).filter(({ id }) => id !== removed.value?.id)}
          onClose={close}
          onDone={() => {
            close();
            people.reload();
            onChange();
          }}
        />
      )}
    </section>
  );
}
