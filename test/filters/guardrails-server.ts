import { assignGuardrailKeys } from '../../src/api/guardrails/assign-guardrail-keys.ts';
import { assignGuardrailMembers } from '../../src/api/guardrails/assign-guardrail-members.ts';
import { createGuardrail } from '../../src/api/guardrails/create-guardrail.ts';
import { deleteGuardrail } from '../../src/api/guardrails/delete-guardrail.ts';
import { getGuardrail } from '../../src/api/guardrails/get-guardrail.ts';
import { listGuardrailKeys } from '../../src/api/guardrails/list-guardrail-keys.ts';
import { listGuardrailMembers } from '../../src/api/guardrails/list-guardrail-members.ts';
import { listGuardrails } from '../../src/api/guardrails/list-guardrails.ts';
import { listKeyAssignments } from '../../src/api/guardrails/list-key-assignments.ts';
import { listMemberAssignments } from '../../src/api/guardrails/list-member-assignments.ts';
import { unassignGuardrailKeys } from '../../src/api/guardrails/unassign-guardrail-keys.ts';
import { unassignGuardrailMembers } from '../../src/api/guardrails/unassign-guardrail-members.ts';
import { updateGuardrail } from '../../src/api/guardrails/update-guardrail.ts';
import { buildCatalog } from '../../src/catalog/catalog.ts';
import type { Database } from '../../src/storage/database.ts';
import { assignmentStore, guardrailStore } from '../../src/storage/guardrails.ts';
import { organizationStore } from '../../src/storage/organizations.ts';
import { managementServer } from '../http/management-server.ts';

const operations = [
  assignGuardrailKeys,
  assignGuardrailMembers,
  createGuardrail,
  deleteGuardrail,
  getGuardrail,
  listGuardrailKeys,
  listGuardrailMembers,
  listGuardrails,
  listKeyAssignments,
  listMemberAssignments,
  unassignGuardrailKeys,
  unassignGuardrailMembers,
  updateGuardrail,
];
const catalog = buildCatalog({
  bundled: { format: 1, models: [] },
  config: {
    bundled_catalog: false,
    models: [
      {
        id: 'acme/fast-1',
        canonical_slug: 'acme/fast-1-2026-01',
        endpoints: [{ provider: 'acme', upstream_model: 'fast-1' }],
      },
    ],
  },
  providers: [{ slug: 'acme', name: 'Acme AI', dialect: 'openai-chat', parameters: [], quirks: {} } as never],
  created_default: 0,
});

type Data = Record<string, unknown>;

/** The operations of guardrails over a fresh store. */
export async function guardrailsServer(database: Database, at: string) {
  const made = await managementServer(database, at);
  const shared = {
    change: made.change,
    guardrails: guardrailStore(database.queries),
    assignments: assignmentStore(database.queries),
    organizations: organizationStore(database.queries),
    wholeCatalog: () => catalog,
    providerSlug: (name: string) => ({ acme: 'acme', 'acme ai': 'acme' })[name.toLowerCase()],
  };
  for (const add of operations) add(made.server, shared);
  const create = async (body: object = {}) => {
    const { status, body: answer } = await made.call('POST', '/guardrails', { name: 'g', ...body });
    return { status, data: answer['data'] as unknown as Data, error: answer['error'] as unknown as Data };
  };
  const patch = async (id: unknown, body: object) => {
    const { status, body: answer } = await made.call('PATCH', `/guardrails/${id}`, body);
    return { status, data: answer['data'] as unknown as Data, error: answer['error'] as unknown as Data };
  };
  return { ...made, database, create, patch };
}
