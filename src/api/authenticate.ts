import { hash, timingSafeEqual } from 'node:crypto';
import { ofParentKey, subjectOf, subjectsOf } from '../accounts/budget.ts';
import { keyRefusal, lineageBudgetMode } from '../accounts/delegation.ts';
import type { StoredKey } from '../accounts/key.ts';
import type { StoredWorkspace } from '../accounts/workspace.ts';
import { GatewayError } from '../errors.ts';
import type { Authenticate, Principal } from '../http/principal.ts';
import type { Clock } from '../inference/call.ts';
import { limits } from '../limits.ts';
import type { Budget } from '../schemas/budget.ts';
import type { BoundGuardrail } from '../schemas/guardrail.ts';
import { type Answer, madeName, StoreMemory, type StoreMemoryOptions } from './store-memory.ts';

export interface AuthenticateOptions {
  findByHash(hash: string): Promise<StoredKey | undefined>;
  /** The keys by which a key was made, each with the next one, the nearest first. */
  findAncestors(hash: string): Promise<StoredKey[]>;
  /** The budgets in force for these subjects (`subjectsOf`). */
  findBudgets(subjects: readonly string[]): Promise<readonly Budget[]>;
  /** The guardrails that apply to a caller's requests. */
  findGuardrails(caller: Caller): Promise<readonly BoundGuardrail[]>;
  /** The settings of a workspace that concern its callers' requests; undefined if the workspace was deleted. */
  findWorkspace(name: { organization_id: string; id_or_slug: string }): Promise<WorkspaceFacts | undefined>;
  /** A management key from the environment, valid in addition to stored ones. */
  management_key: string | undefined;
  /** The organization of the environment's management key. It acts for the current owner, who may change. */
  home: { organization_id: string; default_workspace_id: string };
  findOwner(organizationId: string): Promise<string | undefined>;
  /** The clock by which keys expire: that of the store. */
  clock: Pick<Clock, 'now_ms'>;
  memory: StoreMemoryOptions;
  /** Whether an operator revoked a key on this node, whatever the store contains. */
  isRevokedHere(key: Pick<StoredKey, 'hash' | 'label'>): boolean;
}

/** The part of a workspace that calls need. */
type WorkspaceFacts = NonNullable<Principal['defaults']> &
  Pick<
    StoredWorkspace,
    | 'slug'
    | 'io_logging_api_key_ids'
    | 'io_logging_sampling_rate_bp'
    | 'is_observability_io_logging_enabled'
    | 'is_observability_broadcast_enabled'
  >;

interface Remembered {
  /** The key, its parent, and so on. Empty for the management key of the environment, which is valid as long as it is configured. */
  lineage: readonly StoredKey[];
  principal: Principal;
  /** The ids of all that the principal was made of: a change of one makes it stale (`StoreMemory`). */
  names: readonly string[] | 'everything';
}

type Caller = Omit<Principal, 'budgets' | 'guardrails' | 'defaults' | 'logging' | 'is_served_without_store'>;

/** The name by which `rate_limits.keys` finds a key. An application or a member could choose the name of another key, so their names do not count. */
function rateName({ made_by, name }: StoredKey): string | undefined {
  return made_by === null ? name : undefined;
}

/** The caller of a key that was made with the keys of `ancestors`, the nearest first. */
export function callerOf(key: StoredKey, ancestors: readonly StoredKey[] = []): Caller {
  // Management keys call no model, so limits do not apply.
  const parents = ancestors
    .filter(({ is_management }) => !is_management)
    .map((parent) => ({ key_hash: parent.hash, key_id: parent.id, rate_name: rateName(parent) }));
  return {
    kind: key.is_management ? 'management' : 'key',
    key_hash: key.hash,
    key_id: key.id,
    key_name: key.name,
    rate_name: rateName(key),
    organization_id: key.organization_id,
    workspace_id: key.workspace_id,
    user_id: key.creator_user_id,
    budget_mode: lineageBudgetMode([key, ...ancestors.filter(({ is_management }) => !is_management)]),
    ...(parents.length === 0 ? {} : { parents }),
  };
}

/** The defaults of a workspace; nothing if it has none, as most. */
function defaultsOf(workspace: Principal['defaults']): Pick<Principal, 'defaults'> {
  const { default_text_model = null, default_image_model = null, default_provider_sort = null } = workspace ?? {};
  if ((default_text_model ?? default_image_model ?? default_provider_sort) === null) return {};
  return { defaults: { default_text_model, default_image_model, default_provider_sort } };
}

/** The logging of a workspace; nothing if it neither stores nor broadcasts requests. */
function loggingOf(
  { key_id, parents = [] }: Caller,
  workspace: WorkspaceFacts | undefined,
): Pick<Principal, 'logging'> {
  if (workspace === undefined) return {};
  const { io_logging_api_key_ids: ids, is_observability_broadcast_enabled: isBroadcast, slug } = workspace;
  const keyIds = [key_id, ...parents.map((parent) => parent.key_id)];
  const isKept =
    workspace.is_observability_io_logging_enabled &&
    (ids === null || keyIds.some((id) => id !== null && ids.includes(id)));
  if (!isKept && !isBroadcast) return {};
  const keptBp = isKept ? workspace.io_logging_sampling_rate_bp : undefined;
  return { logging: { kept_bp: keptBp, is_broadcast: isBroadcast, workspace_slug: slug } };
}

/** What the caller of a key is made of. */
export type PrincipalSources = Pick<AuthenticateOptions, 'findBudgets' | 'findGuardrails' | 'findWorkspace'>;

/** The budgets of the key and of its ancestors, in a fixed order. */
async function budgetsOf(caller: Caller, { findBudgets }: PrincipalSources): Promise<readonly Budget[]> {
  const { organization_id, parents } = caller;
  const own = await findBudgets(subjectsOf(caller));
  if (parents === undefined) return own;
  const subjects = parents.map(({ key_hash }) => subjectOf({ by: 'key_hash', id: key_hash, organization_id }));
  const inherited = (await findBudgets(subjects)).map(ofParentKey);
  return [...own, ...inherited].sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** A caller with its budgets, its guardrails and the settings of its workspace, as they are stored now. */
export async function storedPrincipal(caller: Caller, sources: PrincipalSources): Promise<Principal> {
  const { organization_id, workspace_id: idOrSlug } = caller;
  const [budgets, guardrails, workspace] = await Promise.all([
    budgetsOf(caller, sources),
    sources.findGuardrails(caller),
    sources.findWorkspace({ organization_id, id_or_slug: idOrSlug }),
  ]);
  return { ...caller, budgets, guardrails, ...defaultsOf(workspace), ...loggingOf(caller, workspace) };
}

/**
 * Makes the check of secrets. A secret is looked up by its SHA-256, so the comparison takes constant time. Keys that were used before,
 * with their budgets, are answered from memory while the change feed is connected; expiry is checked at every call, by the store's clock.
 * Once the feed's `deliver` has resolved, a changed, disabled or deleted key is never accepted in its old state, nor with an old limit, unless
 * the operator allows keys to be served without the store and the node cannot reach it. The same holds for the ancestors of a key.
 */
export function createAuthenticate(options: AuthenticateOptions): Authenticate {
  const { clock, home, memory } = options;
  const known = new StoreMemory<Remembered>(memory, {
    size_max: limits.key_cache_entries_max,
    sizeOf: () => 1,
    nameOf: ({ topic, id }) => (topic === 'key_made' ? madeName(id) : id),
    namesOf: ({ names }) => names,
  });
  const management =
    options.management_key === undefined ? undefined : Buffer.from(hash('sha256', options.management_key));
  const environmentCaller = async (): Promise<Caller> => ({
    kind: 'management',
    key_hash: null,
    key_id: null,
    organization_id: home.organization_id,
    workspace_id: home.default_workspace_id,
    user_id: (await options.findOwner(home.organization_id)) ?? null,
    budget_mode: null,
  });

  const accept = ({ lineage, principal }: Remembered): Principal => {
    if (lineage.some(options.isRevokedHere)) {
      throw new GatewayError(401, 'This API key is revoked on this node of the gateway');
    }
    const refusal = keyRefusal(lineage, clock.now_ms());
    if (refusal !== undefined) throw new GatewayError(401, refusal);
    return principal;
  };

  const isManagement = (hashed: string) => management !== undefined && timingSafeEqual(Buffer.from(hashed), management);

  const load = async (hashed: string): Promise<Remembered | undefined> => {
    const key = isManagement(hashed) ? null : await options.findByHash(hashed);
    if (key === undefined) return undefined;
    const ancestors = key === null || key.parent_hash === null ? [] : await options.findAncestors(hashed);
    const caller = key === null ? await environmentCaller() : callerOf(key, ancestors);
    const principal = await storedPrincipal(caller, options);
    // The owner of the organization, for whom the management key of the environment acts, may be another after any change.
    if (key === null) return { lineage: [], principal, names: 'everything' };
    const names = [
      ...ancestors.map((ancestor) => ancestor.hash),
      caller.organization_id,
      caller.workspace_id,
      ...(caller.user_id === null ? [] : [caller.user_id]),
      ...principal.guardrails.map((guardrail) => guardrail.id),
    ];
    return { lineage: [key, ...ancestors], principal, names };
  };

  const admit = ({ value, is_served_without_store }: Answer<Remembered>): Principal => {
    if (value === undefined) throw new GatewayError(401, 'Invalid API key');
    const principal = accept(value);
    return is_served_without_store ? { ...principal, is_served_without_store } : principal;
  };

  return (secret, storeWait) => {
    const hashed = hash('sha256', secret);
    const accepted = known.find(hashed, () => load(hashed), storeWait);
    return accepted instanceof Promise ? accepted.then(admit) : accept(accepted);
  };
}
