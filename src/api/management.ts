import { createVault } from '../accounts/vault.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { createRateLimit, limitClients } from '../http/rate-limit.ts';
import type { Server } from '../http/server.ts';
import type { TrustedProxies } from '../http/trusted-proxies.ts';
import type { Clock } from '../inference/call.ts';
import type { Recorder } from '../ledger/recorder.ts';
import { limits } from '../limits.ts';
import { activityStore } from '../storage/activity.ts';
import { analyticsStore } from '../storage/analytics.ts';
import { auditStore } from '../storage/audit.ts';
import { byokStore } from '../storage/byok.ts';
import { creditStore } from '../storage/credits.ts';
import type { Database } from '../storage/database.ts';
import { generationLists } from '../storage/generation-lists.ts';
import { generationSessions } from '../storage/generation-sessions.ts';
import { assignmentStore, guardrailStore } from '../storage/guardrails.ts';
import { keyStore } from '../storage/keys.ts';
import { memberStore } from '../storage/members.ts';
import type { Home } from '../storage/organizations.ts';
import { organizationStore } from '../storage/organizations.ts';
import { workspaceStore } from '../storage/workspaces.ts';
import { getCredits } from './accounting/get-credits.ts';
import { listActivity } from './accounting/list-activity.ts';
import { listBudgets } from './accounting/list-budgets.ts';
import { getAnalyticsMeta } from './analytics/get-analytics-meta.ts';
import { queryAnalytics } from './analytics/query-analytics.ts';
import { listAudit } from './audit/list-audit.ts';
import { createAuthorizationCode } from './auth/create-authorization-code.ts';
import { exchangeAuthorizationCode } from './auth/exchange-authorization-code.ts';
import { createByok } from './byok/create-byok.ts';
import { deleteByok } from './byok/delete-byok.ts';
import { getByok } from './byok/get-byok.ts';
import { listByok } from './byok/list-byok.ts';
import { updateByok } from './byok/update-byok.ts';
import { listProviders } from './catalog/list-providers.ts';
import type { Change } from './change.ts';
import {
  type ListProviderCredentialsDependencies,
  listProviderCredentials,
} from './credentials/list-provider-credentials.ts';
import { type TestCredentialsDependencies, testCredentials } from './credentials/test-credentials.ts';
import { listGenerationSessions } from './generations/list-generation-sessions.ts';
import { listGenerations } from './generations/list-generations.ts';
import { assignGuardrailKeys } from './guardrails/assign-guardrail-keys.ts';
import { assignGuardrailMembers } from './guardrails/assign-guardrail-members.ts';
import { createGuardrail } from './guardrails/create-guardrail.ts';
import { deleteGuardrail } from './guardrails/delete-guardrail.ts';
import { getGuardrail } from './guardrails/get-guardrail.ts';
import { listGuardrailKeys } from './guardrails/list-guardrail-keys.ts';
import { listGuardrailMembers } from './guardrails/list-guardrail-members.ts';
import { listGuardrails } from './guardrails/list-guardrails.ts';
import { listKeyAssignments } from './guardrails/list-key-assignments.ts';
import { listMemberAssignments } from './guardrails/list-member-assignments.ts';
import { type TestGuardrailOptions, testGuardrail } from './guardrails/test-guardrail.ts';
import { unassignGuardrailKeys } from './guardrails/unassign-guardrail-keys.ts';
import { unassignGuardrailMembers } from './guardrails/unassign-guardrail-members.ts';
import { updateGuardrail } from './guardrails/update-guardrail.ts';
import { createKey } from './keys/create-key.ts';
import { deleteKey } from './keys/delete-key.ts';
import { deletePreviousSecret } from './keys/delete-previous-secret.ts';
import { getCurrentKey } from './keys/get-current-key.ts';
import { getKey } from './keys/get-key.ts';
import { getKeyPolicy } from './keys/get-key-policy.ts';
import { listKeys } from './keys/list-keys.ts';
import { rotateKey } from './keys/rotate-key.ts';
import { updateKey } from './keys/update-key.ts';
import { getLedgerStatus } from './ledger/get-ledger-status.ts';
import { releaseLedger } from './ledger/release-ledger.ts';
import { resolveLedger } from './ledger/resolve-ledger.ts';
import { type VerifyLedgerOptions, verifyLedgerNow } from './ledger/verify-ledger.ts';
import { deleteOrganizationMember } from './organization/delete-organization-member.ts';
import { listOrganizationMembers } from './organization/list-organization-members.ts';
import { type ExplainKeyRouteDependencies, explainKeyRoute } from './routing/explain-key-route.ts';
import { getSetup } from './system/get-setup.ts';
import { getSystem } from './system/get-system.ts';
import type { SystemFacts } from './system/system-facts.ts';
import { addWorkspaceMembers } from './workspaces/add-workspace-members.ts';
import { createWorkspace } from './workspaces/create-workspace.ts';
import { deleteWorkspace } from './workspaces/delete-workspace.ts';
import { deleteWorkspaceBudget } from './workspaces/delete-workspace-budget.ts';
import { getWorkspace } from './workspaces/get-workspace.ts';
import { getWorkspaceBudget } from './workspaces/get-workspace-budget.ts';
import { listWorkspaceBudgets } from './workspaces/list-workspace-budgets.ts';
import { listWorkspaceMembers } from './workspaces/list-workspace-members.ts';
import { listWorkspaces } from './workspaces/list-workspaces.ts';
import { putWorkspaceBudget } from './workspaces/put-workspace-budget.ts';
import { removeWorkspaceMembers } from './workspaces/remove-workspace-members.ts';
import { updateWorkspace } from './workspaces/update-workspace.ts';

/** A provider with its names, enabled or not. */
interface NamedProvider {
  slug: string;
  name: string;
}

/** Dependencies of the management operations. */
export interface ManagementDependencies {
  /** Called for each lookup, since a reload may change the providers. */
  providers: () => readonly NamedProvider[];
  database: Database;
  change: Change;
  catalog: () => Catalog;
  /** Includes models of providers that are enabled only for callers with their own credential. */
  wholeCatalog: () => Catalog;
  recorder: Recorder;
  clock: Clock;
  proxies: TrustedProxies;
  /** The secret that stored credentials are encrypted with. */
  secret: string;
  /** Whether API keys may make authorization codes. */
  mayKeysMakeCodes: () => boolean;
  /** The organization that runs the gateway. */
  home: Pick<Home, 'organization_id'>;
  /** How chat requests that turn a sampler off are treated. */
  samplerOffValues: ExplainKeyRouteDependencies['samplerOffValues'];
  /** Called for each answer, since a reload may change it. */
  system: () => SystemFacts;
  verify: VerifyLedgerOptions['verify'];
  configured: ListProviderCredentialsDependencies['configured'];
  isRefused: ListProviderCredentialsDependencies['isRefused'];
  services: TestCredentialsDependencies['services'];
  /** Dependencies of testing guardrails. */
  dryRuns: Pick<
    TestGuardrailOptions,
    'inference' | 'envelopes' | 'analyzer' | 'timeoutMs' | 'phoneRegions' | 'contents'
  >;
}

/** All operations except inference and the catalog of models, in the order of the documentation. */
const operations = [
  listProviders,
  getCredits,
  listActivity,
  listBudgets,
  listGenerations,
  listGenerationSessions,
  getAnalyticsMeta,
  queryAnalytics,
  listAudit,
  listByok,
  getByok,
  createByok,
  updateByok,
  deleteByok,
  listProviderCredentials,
  testCredentials,
  listOrganizationMembers,
  deleteOrganizationMember,
  getSetup,
  getSystem,
  getLedgerStatus,
  releaseLedger,
  resolveLedger,
  verifyLedgerNow,
  listWorkspaces,
  createWorkspace,
  getWorkspace,
  updateWorkspace,
  deleteWorkspace,
  listWorkspaceMembers,
  addWorkspaceMembers,
  removeWorkspaceMembers,
  listWorkspaceBudgets,
  getWorkspaceBudget,
  putWorkspaceBudget,
  deleteWorkspaceBudget,
  listGuardrails,
  createGuardrail,
  listKeyAssignments,
  listMemberAssignments,
  getGuardrail,
  updateGuardrail,
  deleteGuardrail,
  listGuardrailKeys,
  listGuardrailMembers,
  assignGuardrailKeys,
  assignGuardrailMembers,
  unassignGuardrailKeys,
  unassignGuardrailMembers,
  testGuardrail,
  createKey,
  getKey,
  getKeyPolicy,
  explainKeyRoute,
  listKeys,
  updateKey,
  rotateKey,
  deletePreviousSecret,
  deleteKey,
  getCurrentKey,
  createAuthorizationCode,
  exchangeAuthorizationCode,
] as const;

/** Registers the management operations. Each takes what it needs from the same dependencies. */
export function serveManagement(server: Server, dependencies: ManagementDependencies): void {
  const {
    providers,
    database,
    change,
    catalog,
    wholeCatalog,
    recorder,
    clock,
    secret,
    home,
    dryRuns,
    mayKeysMakeCodes,
    samplerOffValues,
    system,
    verify,
    configured,
    isRefused,
    services,
  } = dependencies;
  const { queries } = database;
  /** The slug of a provider, by slug or else by display name. */
  const providerSlug = (slugOrName: string): string | undefined => {
    const wanted = slugOrName.toLowerCase();
    const known = providers();
    const match =
      known.find(({ slug }) => slug.toLowerCase() === wanted) ??
      known.find(({ name }) => name.toLowerCase() === wanted);
    return match?.slug;
  };
  const shared = {
    database,
    home,
    queries,
    change,
    catalog,
    wholeCatalog,
    recorder,
    ...dryRuns,
    clock,
    now: clock.nowMs,
    providerSlug,
    vault: createVault(secret),
    secret,
    mayKeysMakeCodes,
    samplerOffValues,
    system,
    verify,
    configured,
    isRefused,
    services,
    limitExchanges: limitClients(
      createRateLimit(limits.exchanges_per_minute, clock, 'exchanges of codes'),
      dependencies.proxies,
    ),
    activity: activityStore(queries),
    analytics: analyticsStore(queries),
    assignments: assignmentStore(queries),
    audit: auditStore(queries),
    byok: byokStore(queries),
    credits: creditStore(queries),
    generationLists: generationLists(queries),
    generationSessions: generationSessions(queries),
    guardrails: guardrailStore(queries),
    keys: keyStore(queries),
    members: memberStore(queries),
    organizations: organizationStore(queries),
    workspaces: workspaceStore(queries),
  };
  for (const serve of operations) serve(server, shared);
}
