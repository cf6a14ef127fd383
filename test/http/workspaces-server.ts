import { randomUUID } from 'node:crypto';
import { createKey } from '../../src/api/keys/create-key.ts';
import { addWorkspaceMembers } from '../../src/api/workspaces/add-workspace-members.ts';
import { createWorkspace } from '../../src/api/workspaces/create-workspace.ts';
import { deleteWorkspace } from '../../src/api/workspaces/delete-workspace.ts';
import { deleteWorkspaceBudget } from '../../src/api/workspaces/delete-workspace-budget.ts';
import { getWorkspace } from '../../src/api/workspaces/get-workspace.ts';
import { getWorkspaceBudget } from '../../src/api/workspaces/get-workspace-budget.ts';
import { listWorkspaceBudgets } from '../../src/api/workspaces/list-workspace-budgets.ts';
import { listWorkspaceMembers } from '../../src/api/workspaces/list-workspace-members.ts';
import { listWorkspaces } from '../../src/api/workspaces/list-workspaces.ts';
import { putWorkspaceBudget } from '../../src/api/workspaces/put-workspace-budget.ts';
import { removeWorkspaceMembers } from '../../src/api/workspaces/remove-workspace-members.ts';
import { updateWorkspace } from '../../src/api/workspaces/update-workspace.ts';
import type { Database, Queries } from '../../src/storage/database.ts';
import { memberStore } from '../../src/storage/members.ts';
import { organizationStore } from '../../src/storage/organizations.ts';
import { nextNumber } from '../../src/storage/sequence.ts';
import { workspaceStore } from '../../src/storage/workspaces.ts';
import { managementServer } from './management-server.ts';

type Data = Record<string, unknown>;

/** The operations of workspaces, and the one that makes keys, over a fresh store. */
export async function workspacesServer(database: Database, at: string, limitManagement?: (caller: string) => void) {
  const made = await managementServer(database, at, limitManagement);
  const shared = {
    change: made.change,
    secret: 'secret',
    workspaces: workspaceStore(database.queries),
    organizations: organizationStore(database.queries),
    members: memberStore(database.queries),
  };
  const operations = [
    addWorkspaceMembers,
    createKey,
    createWorkspace,
    deleteWorkspace,
    deleteWorkspaceBudget,
    getWorkspace,
    getWorkspaceBudget,
    listWorkspaceBudgets,
    listWorkspaceMembers,
    listWorkspaces,
    putWorkspaceBudget,
    removeWorkspaceMembers,
    updateWorkspace,
  ];
  for (const add of operations) add(made.server, shared);
  const ask = async (method: Parameters<typeof made.call>[0], url: string, body?: unknown) => {
    const { status, body: answer } = await made.call(method, url, body);
    const { data, error, ...rest } = answer as unknown as { data: Data; error: { message: string } } & Data;
    return { status, data, message: error?.message, ...(rest as Data) } as { status: number; data: Data } & Data;
  };
  const create = (over: object = {}) => ask('POST', '/workspaces', { name: 'Research', slug: 'research', ...over });
  const addUser = async (role: 'admin' | 'member', organizationId = made.home.organization_id) => {
    const user = { first_name: null, last_name: null, issuer: null, subject: null, email: null };
    const id = randomUUID();
    await database.queries
      .insertInto('users')
      .values({ id, name: 'u', created_at: at, ...user })
      .execute();
    const seq = await nextNumber(database.queries, 'organization_members');
    const member = { id: randomUUID(), organization_id: organizationId, user_id: id, role, created_at: at, seq };
    await database.queries.insertInto('organization_members').values(member).execute();
    return id;
  };
  const addKey = (workspaceId: unknown, over: Parameters<typeof made.addKey>[0] = {}, queries?: Queries) =>
    made.addKey({ workspace_id: String(workspaceId), ...over }, queries);
  return { ...made, database, ask, create, addUser, addKey };
}
