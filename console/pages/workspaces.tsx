import type { OrganizationMember, Workspace } from '../api.gen.ts';
import { call } from '../api.ts';
import { time } from '../format.ts';
import { logsOf, usageOf } from '../links.tsx';
import { OFFERED_MAX } from '../pickers.tsx';
import { isAdmin, route, say, setQuery } from '../state.ts';
import { ChangeAndDelete, Empty, Heading, Pager, Show, useAction, useLoaded } from '../ui.tsx';
import { WorkspaceBudgets } from '../workspace-budgets.tsx';
import { DeleteWorkspace, EditWorkspace } from '../workspace-change.tsx';
import { People, WorkspaceMembers } from '../workspace-members.tsx';

const PAGE = 25;

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

/** The chosen workspace, which the shown part of the list may lack. */
function One({
  of: chosen,
  people,
  onChange,
}: {
  of: Workspace;
  people: readonly OrganizationMember[];
  onChange(): void;
}) {
  const isDefault = chosen.slug === 'default';
  return (
    <div class="card">
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
          {isAdmin.value && (
            <ChangeAndDelete
              change={(close) => (
                <EditWorkspace
                  of={chosen}
                  onClose={close}
                  onDone={() => {
                    close();
                    onChange();
                  }}
                />
              )}
              remove={
                isDefault
                  ? undefined
                  : (close) => (
                      <DeleteWorkspace
                        of={chosen}
                        onClose={close}
                        onDone={() => {
                          close();
                          setQuery({ id: undefined });
                          onChange();
                        }}
                      />
                    )
              }
            />
          )}
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
      {isAdmin.value && <Contents of={chosen} onChange={onChange} />}
      <WorkspaceMembers of={chosen} isDefault={isDefault} people={people} />
      {isAdmin.value && <WorkspaceBudgets of={chosen} />}
    </div>
  );
}

export default function Workspaces() {
  const { query } = route.value;
  const offset = Number(query.get('offset') ?? 0) || 0;
  const id = query.get('id') ?? '';
  const list = useLoaded(async (signal) => {
    const page = await call('listWorkspaces', { query: { limit: PAGE, offset } }, signal);
    // Links lead to workspaces that another part of the list holds.
    const chosen =
      page.data.find((one) => one.id === id) ??
      (id === '' ? page.data[0] : (await call('getWorkspace', { path: { id } }, signal)).data);
    return { ...page, chosen };
  }, `${offset} ${id}`);
  const people = useLoaded(async (signal) =>
    isAdmin.value ? (await call('listOrganizationMembers', { query: { limit: OFFERED_MAX } }, signal)).data : [],
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
        {({ data, total_count, chosen }) =>
          chosen === undefined ? (
            <Empty title="You belong to no workspace">
              <p>Ask an administrator to add you to one.</p>
            </Empty>
          ) : (
            <div class="split">
              <div>
                <ul class="choices" aria-label="Workspaces">
                  {data.map((one) => (
                    <li key={one.id}>
                      <a
                        href={`workspaces?${new URLSearchParams({ ...(offset > 0 && { offset: String(offset) }), id: one.id })}`}
                        data-page
                        aria-current={one.id === chosen.id ? 'true' : undefined}
                      >
                        <bdi>{one.name}</bdi> <code class="dim">{one.slug}</code>
                      </a>
                    </li>
                  ))}
                </ul>
                <Pager offset={offset} limit={PAGE} total={total_count} />
              </div>
              <One key={chosen.id} of={chosen} people={people.value ?? []} onChange={list.reload} />
            </div>
          )
        }
      </Show>
      {isAdmin.value && <People onChange={people.reload} />}
      {query.get('new') !== null && (
        <EditWorkspace
          onClose={() => setQuery({ new: undefined })}
          onDone={(made) => {
            list.reload();
            setQuery({ new: undefined, id: made });
          }}
        />
      )}
    </>
  );
}
