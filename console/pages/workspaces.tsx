import { useSignal } from '@preact/signals';
import type { OrganizationMember, Workspace, WorkspaceBudget } from '../api.gen.ts';
import { call } from '../api.ts';
import { time, usd } from '../format.ts';
import { logsOf, usageOf } from '../links.tsx';
import { isAdmin, route, say, session, setQuery } from '../state.ts';
import { bind, Confirm, Dialog, Empty, Field, Heading, Money, Pager, Show, useAction, useLoaded } from '../ui.tsx';

const PAGE = 25;
const INTERVALS = ['daily', 'weekly', 'monthly', 'lifetime'] as const;

const nameOf = ({ email, first_name, last_name, id }: OrganizationMember) =>
  email || [first_name, last_name].filter(Boolean).join(' ') || `${id.slice(0, 8)}…`;

function CreateWorkspace({ onClose, onMade }: { onClose(): void; onMade(id: string): void }) {
  const name = useSignal('');
  const slug = useSignal('');
  const { start, failure, isRunning } = useAction(async () => {
    const { data } = await call('createWorkspace', { body: { name: name.value, slug: slug.value } });
    say('Created.');
    onMade(data.id);
  });
  return (
    <Dialog title="Create a workspace" onClose={onClose}>
      <form onSubmit={start}>
        <Field label="Name">
          <input
            type="text"
            required
            maxLength={100}
            autocomplete="off"
            autofocus
            value={name.value}
            onInput={(event) => {
              const made = (text: string) =>
                text
                  .toLowerCase()
                  .replace(/[^a-z0-9]+/g, '-')
                  .replace(/^-|-$/g, '');
              if (slug.value === made(name.value)) slug.value = made(event.currentTarget.value);
              name.value = event.currentTarget.value;
            }}
          />
        </Field>
        <Field label="Slug" hint="Its name in paths of the API">
          <input type="text" required autocomplete="off" {...bind(slug)} />
        </Field>
        {failure}
        <div class="actions">
          <button type="submit" class="primary" disabled={isRunning}>
            Create workspace
          </button>
        </div>
      </form>
    </Dialog>
  );
}

/** Whether prompts and answers of the calls of a workspace are kept. */
function Contents({ of, onChange }: { of: Workspace; onChange(): void }) {
  const { is_observability_io_logging_enabled: isKept } = of;
  const { start, failure, isRunning } = useAction(async () => {
    await call('updateWorkspace', {
      path: { id: of.id },
      body: { is_observability_io_logging_enabled: !isKept },
    });
    say(isKept ? 'New prompts and answers are not kept.' : 'New prompts and answers are kept.');
    onChange();
  });
  return (
    <>
      <p>
        {isKept ? 'Prompts and answers are kept.' : 'Prompts and answers are not kept.'}{' '}
        <button type="button" class="small" disabled={isRunning} onClick={start}>
          {isKept ? 'Stop keeping them' : 'Keep them'}
        </button>
      </p>
      {failure}
    </>
  );
}

function Budgets({ of }: { of: Workspace }) {
  const budgets = useLoaded((signal) => call('listWorkspaceBudgets', { path: { id: of.id } }, signal), of.id);
  const interval = useSignal<(typeof INTERVALS)[number]>('monthly');
  const limit = useSignal('');
  const set = useAction(async () => {
    await call('putWorkspaceBudget', {
      path: { id: of.id, interval: interval.value },
      body: { limit_usd: Number(limit.value) },
    });
    limit.value = '';
    say('Set.');
    budgets.reload();
  });
  const removed = useSignal<WorkspaceBudget | undefined>(undefined);
  const close = () => {
    removed.value = undefined;
  };
  const remove = async ({ reset_interval }: WorkspaceBudget) => {
    await call('deleteWorkspaceBudget', { path: { id: of.id, interval: reset_interval ?? 'lifetime' } });
    close();
    budgets.reload();
  };
  return (
    <section>
      <h2>Budgets</h2>
      {removed.value && (
        <Confirm
          title="Remove this budget?"
          verb="Remove"
          name={`${usd(removed.value.limit_usd)} ${removed.value.reset_interval ?? 'in all'}`}
          run={() => remove(removed.value as WorkspaceBudget)}
          onClose={close}
        >
          <p>
            The spending of <bdi>{of.name}</bdi> is no longer bounded by it, at once and on every node.
          </p>
        </Confirm>
      )}
      <Show of={budgets}>
        {({ data }) =>
          data.length === 0 ? (
            <p class="dim">No budget: only the limits of keys and credits bound its spending.</p>
          ) : (
            <ul class="rows">
              {data.map((budget) => (
                <li key={budget.id}>
                  <span>
                    <Money usd={budget.limit_usd} /> {budget.reset_interval === null ? 'in all' : budget.reset_interval}
                  </span>
                  <button
                    type="button"
                    class="small danger"
                    aria-label={`Remove the ${budget.reset_interval ?? 'lifetime'} budget`}
                    onClick={() => {
                      removed.value = budget;
                    }}
                  >
                    Remove
                  </button>
                </li>
              ))}
            </ul>
          )
        }
      </Show>
      <form class="inline" onSubmit={set.start}>
        <Field label="Limit in USD">
          <input type="number" min="0" step="any" required {...bind(limit)} />
        </Field>
        <Field label="Window">
          <select
            value={interval.value}
            onChange={(event) => {
              interval.value = event.currentTarget.value as typeof interval.value;
            }}
          >
            {INTERVALS.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </Field>
        <button type="submit" disabled={set.isRunning}>
          Set budget
        </button>
      </form>
      {set.failure}
    </section>
  );
}

function Members({ of, isDefault, people }: { of: Workspace; isDefault: boolean; people: OrganizationMember[] }) {
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
  const close = () => {
    removed.value = undefined;
  };
  const remove = async (userId: string) => {
    await call('removeWorkspaceMembers', { path: { id: of.id }, body: { user_ids: [userId] } });
    close();
    members.reload();
  };
  const named = (userId: string) => {
    const person = people.find(({ id }) => id === userId);
    if (userId === session.value?.user_id) return `${session.value.user_name} (you)`;
    return person === undefined ? `${userId.slice(0, 8)}…` : nameOf(person);
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
      <Show of={members}>
        {({ data, total_count }) => (
          <>
            <ul class="rows">
              {data.map(({ id, user_id, role }) => (
                <li key={id}>
                  <span>
                    <a href={usageOf({ workspace: of.id, user: user_id })} data-page title="Usage in this workspace">
                      <bdi>{named(user_id)}</bdi>
                    </a>{' '}
                    <span class="tag">{role === 'admin' ? 'administrator' : 'member'}</span>
                  </span>
                  {isAdmin.value && !isDefault && (
                    <button
                      type="button"
                      class="small danger"
                      aria-label={`Remove ${named(user_id)} from the workspace`}
                      onClick={() => {
                        removed.value = user_id;
                      }}
                    >
                      Remove
                    </button>
                  )}
                </li>
              ))}
            </ul>
            {total_count > PAGE && (
              <Pager
                offset={offset.value}
                limit={PAGE}
                total={total_count}
                onMove={(next) => {
                  offset.value = next;
                }}
              />
            )}
          </>
        )}
      </Show>
      {isAdmin.value && !isDefault && others.length > 0 && (
        <form class="inline" onSubmit={add.start}>
          <Field label="Person">
            <select
              required
              value={chosen.value}
              onChange={(event) => {
                chosen.value = event.currentTarget.value;
              }}
            >
              <option value="">Choose …</option>
              {others.map((person) => (
                <option key={person.id} value={person.id}>
                  {nameOf(person)}
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

export default function Workspaces() {
  const { query } = route.value;
  const offset = Number(query.get('offset') ?? 0) || 0;
  const list = useLoaded(
    (signal) => call('listWorkspaces', { query: { limit: PAGE, offset } }, signal),
    String(offset),
  );
  const people = useLoaded(async (signal) =>
    isAdmin.value ? (await call('listOrganizationMembers', { query: { limit: 100 } }, signal)).data : [],
  );
  return (
    <>
      <Heading title="Workspaces and members">
        {isAdmin.value && (
          <button type="button" class="primary" onClick={() => setQuery({ new: '1' })}>
            Create workspace
          </button>
        )}
      </Heading>
      <Show of={list}>
        {({ data, total_count }) => {
          const chosen = data.find(({ id }) => id === query.get('id')) ?? data[0];
          if (chosen === undefined)
            return (
              <Empty title="You belong to no workspace">
                <p>Ask an administrator to add you to one.</p>
              </Empty>
            );
          const isDefault = chosen.slug === 'default';
          return (
            <div class="split">
              <div>
                <ul class="choices" aria-label="Workspaces">
                  {data.map(({ id, name, slug }) => (
                    <li key={id}>
                      <a
                        href={`workspaces?${new URLSearchParams({ id })}`}
                        data-page
                        aria-current={id === chosen.id ? 'true' : undefined}
                      >
                        <bdi>{name}</bdi> <code class="dim">{slug}</code>
                      </a>
                    </li>
                  ))}
                </ul>
                <Pager offset={offset} limit={PAGE} total={total_count} />
              </div>
              <div class="card" key={chosen.id}>
                <header class="heading">
                  <h2>
                    <bdi>{chosen.name}</bdi>
                  </h2>
                  <div class="actions">
                    <a class="button" data-page href={logsOf({ workspace: chosen.id })}>
                      Its calls
                    </a>
                    <a class="button" data-page href={usageOf({ workspace: chosen.id })}>
                      Its usage
                    </a>
                    <a class="button" data-page href={`keys?${new URLSearchParams({ workspace: chosen.id })}`}>
                      Its keys
                    </a>
                  </div>
                </header>
                {chosen.description && <p>{chosen.description}</p>}
                <p class="dim">
                  Created {time(chosen.created_at)}
                  {chosen.default_text_model !== null && (
                    <>
                      ; default model <code>{chosen.default_text_model}</code>
                    </>
                  )}
                </p>
                {isAdmin.value && (
                  <p>
                    {chosen.default_guardrail_id === '' ? (
                      <>
                        No guardrail for all its requests.{' '}
                        <a data-page href={`guardrails?${new URLSearchParams({ new: '1', for: chosen.id })}`}>
                          Forbid models, filter content or limit members
                        </a>
                      </>
                    ) : (
                      <>
                        All its requests are under{' '}
                        <a data-page href={`guardrails?${new URLSearchParams({ id: chosen.default_guardrail_id })}`}>
                          a guardrail
                        </a>
                        .
                      </>
                    )}
                  </p>
                )}
                {isAdmin.value && <Contents of={chosen} onChange={list.reload} />}
                <Members of={chosen} isDefault={isDefault} people={people.value ?? []} />
                {isAdmin.value && <Budgets of={chosen} />}
              </div>
            </div>
          );
        }}
      </Show>
      {query.get('new') !== null && (
        <CreateWorkspace
          onClose={() => setQuery({ new: undefined })}
          onMade={(id) => {
            list.reload();
            setQuery({ new: undefined, id });
          }}
        />
      )}
    </>
  );
}
