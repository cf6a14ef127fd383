import type { SpendingLimit } from '../api.gen.ts';
import { call } from '../api.ts';
import { Blocks } from '../key-page.tsx';
import { logsOf, Sum } from '../links.tsx';
import { KeySelect, loadKeys, OFFERED_MAX, useWorkspace, WorkspaceSelect } from '../pickers.tsx';
import { LimitBar, limitHref } from '../spending.tsx';
import { isAdmin, route, setQuery } from '../state.ts';
import { Code, Empty, Field, Heading, Money, Pager, Show, Table, useLoaded } from '../ui.tsx';

const PAGE = 25;

const SCOPES = {
  key: 'Keys',
  guardrail: 'Guardrails',
  workspace: 'Workspaces',
  organization: 'Credits',
} as const;
type Scope = keyof typeof SCOPES;

/** The page of what a limit is set for. */
function Assignee({ of: { assignee, workspace_id } }: { of: SpendingLimit }) {
  const name = assignee.name ?? `${assignee.id.slice(0, 8)}…`;
  if (assignee.type === 'organization') return <>The organization</>;
  if (assignee.type === 'member') {
    return (
      <>
        Member <bdi>{name}</bdi>
      </>
    );
  }
  const href =
    assignee.type === 'key'
      ? `keys?${new URLSearchParams({ id: assignee.id })}`
      : `workspaces?${new URLSearchParams({ id: workspace_id ?? assignee.id })}`;
  return (
    <>
      {assignee.type === 'key' ? 'Key' : 'Workspace'}{' '}
      <a href={href} data-page>
        <bdi>{name}</bdi>
      </a>
    </>
  );
}

function Source({ of }: { of: SpendingLimit }) {
  if (of.scope === 'guardrail' && of.guardrail_id !== null) {
    return (
      <>
        guardrail{' '}
        <a href={`guardrails?${new URLSearchParams({ id: of.guardrail_id })}`} data-page>
          <bdi>{of.guardrail_name ?? of.guardrail_id}</bdi>
        </a>
      </>
    );
  }
  return { key: 'its own limit', workspace: 'its budget', organization: 'its credits', guardrail: 'a guardrail' }[
    of.scope
  ];
}

function Limits() {
  const { query } = route.value;
  const scope = (query.get('scope') ?? '') as Scope | '';
  const workspace = query.get('workspace') ?? '';
  const guardrail = query.get('guardrail') ?? '';
  const offset = Number(query.get('offset') ?? 0) || 0;
  const list = useLoaded(
    (signal) =>
      call(
        'listBudgets',
        {
          query: {
            limit: PAGE,
            offset,
            ...(scope === '' ? {} : { scope }),
            ...(workspace === '' ? {} : { workspace_id: workspace }),
            ...(guardrail === '' ? {} : { guardrail_id: guardrail }),
          },
        },
        signal,
      ),
    query.toString(),
  );
  const workspaces = useLoaded((signal) => call('listWorkspaces', { query: { limit: OFFERED_MAX } }, signal));
  return (
    <section class="card">
      <header class="heading">
        <h2>All limits</h2>
        <button type="button" class="small" onClick={list.reload}>
          Refresh
        </button>
      </header>
      <search class="filters">
        <select
          aria-label="Set by"
          value={scope}
          onChange={(event) => setQuery({ scope: event.currentTarget.value, offset: undefined })}
        >
          <option value="">Set by anything</option>
          {Object.entries(SCOPES).map(([value, title]) => (
            <option key={value} value={value}>
              {title}
            </option>
          ))}
        </select>
        <select
          aria-label="Workspace"
          value={workspace}
          onChange={(event) => setQuery({ workspace: event.currentTarget.value, offset: undefined })}
        >
          <option value="">All workspaces</option>
          {(workspaces.value?.data ?? []).map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </select>
        {guardrail !== '' && (
          <button type="button" onClick={() => setQuery({ guardrail: undefined, offset: undefined })}>
            One guardrail ✕
          </button>
        )}
      </search>
      <Show of={list}>
        {({ data, total_count }) =>
          data.length === 0 && offset === 0 ? (
            <Empty title="No limit here">
              <p>
                Set one for a{' '}
                <a href="keys" data-page>
                  key
                </a>
                , for a{' '}
                <a href="workspaces" data-page>
                  workspace
                </a>
                , or for teams and members with a{' '}
                <a href="guardrails" data-page>
                  guardrail
                </a>
                .
              </p>
            </Empty>
          ) : (
            <>
              <Table
                class="cards"
                caption="Spending limits in their current windows"
                head={['Whose calls', 'Set by', 'Spent, held and left']}
              >
                {data.map((limit) => (
                  <tr key={`${limit.scope} ${limit.guardrail_id} ${limit.assignee.id} ${limit.reset_interval}`}>
                    <th scope="row">
                      <Assignee of={limit} />
                    </th>
                    <td data-label="Set by">
                      <Source of={limit} />
                    </td>
                    <td data-label="Spent">
                      <LimitBar of={limit} href={limitHref(limit)} />
                      {limit.left === 0 && <span class="tag bad">refuses</span>}
                    </td>
                  </tr>
                ))}
              </Table>
              <Pager offset={offset} limit={PAGE} total={total_count} />
            </>
          )
        }
      </Show>
    </section>
  );
}

/** Why the calls of a key are refused now. */
function WhatBlocks() {
  const { query } = route.value;
  const workspace = useWorkspace('of');
  const hash = query.get('key') ?? '';
  const keys = useLoaded((signal) => loadKeys(workspace.id, signal), workspace.id);
  const policy = useLoaded(
    async (signal) => (hash === '' ? undefined : (await call('getKeyPolicy', { path: { hash } }, signal)).data),
    hash,
  );
  const { all } = workspace;
  return (
    <section class="card">
      <h2>What blocks this key now?</h2>
      <div class="inline">
        {all.length > 1 && (
          <Field label="Workspace">
            <WorkspaceSelect
              of={all}
              value={workspace.id ?? ''}
              onChoose={(id) => workspace.choose(id, { key: undefined })}
            />
          </Field>
        )}
        <Field label="Key">
          <KeySelect of={keys.value?.data ?? []} value={hash} onChoose={(next) => setQuery({ key: next })} />
        </Field>
        {hash !== '' && (
          <>
            <button type="button" onClick={policy.reload}>
              Check again
            </button>
            <a class="button" href={`keys?${new URLSearchParams({ id: hash })}`} data-page>
              The key
            </a>
          </>
        )}
      </div>
      {[workspace.loaded.error ?? keys.error, policy.error].map(
        (error, index) =>
          error !== undefined && (
            <p class="failure" role="alert" key={index}>
              {error}
            </p>
          ),
      )}
      {policy.value !== undefined && hash === policy.value.key_hash && <Blocks of={policy.value} />}
    </section>
  );
}

function Credits() {
  const credits = useLoaded((signal) => call('getCredits', {}, signal));
  return (
    <section class="card">
      <h2>Credits</h2>
      <Show of={credits}>
        {({ data: { total_credits: granted, total_usage: used } }) => (
          <>
            <dl class="figures">
              <div>
                <dt>Granted</dt>
                <dd>{granted === 0 ? <span class="small-text">none: no limit</span> : <Money usd={granted} />}</dd>
              </div>
              <div>
                <dt>Spent in all</dt>
                <dd>
                  <Sum usd={used} href={logsOf({})} />
                </dd>
              </div>
              {granted > 0 && (
                <div>
                  <dt>Left</dt>
                  <dd>
                    <Money usd={granted - used} />
                  </dd>
                </div>
              )}
            </dl>
            <details>
              <summary>Grant or revoke credits</summary>
              <p>
                Credits bound what the organization spends in all, everything that it ever spent included. They are
                granted on the machine of the gateway:
              </p>
              <Code text="model-gateway credits grant 500 --reason 'first quarter'" label="Grant credits" />
              <Code text="model-gateway credits revoke 100 --reason 'correction'" label="Revoke credits" />
            </details>
          </>
        )}
      </Show>
    </section>
  );
}

export default function Budgets() {
  return (
    <>
      <Heading title={isAdmin.value ? 'Budgets and credits' : 'Budgets'} />
      <WhatBlocks />
      {isAdmin.value && (
        <>
          <Credits />
          <Limits />
        </>
      )}
    </>
  );
}
