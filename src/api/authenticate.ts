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
import { type Answer, StoreMemory, type StoreMemoryOptions } from './store-memory.ts';

export interface AuthenticateOptions {
  findByHash(hash: string): Promise<StoredKey | undefined>;
  /** The keys by which a key was made, one with another, the nearest first. */
  findAncestors(hash: string): Promise<StoredKey[]>;
  /** The limits in force of these subjects (`subjectsOf`). */
  findBudgets(subjects: readonly string[]): Promise<readonly Budget[]>;
  /** What holds for a caller's requests. */
  findGuardrails(caller: Caller): Promise<readonly BoundGuardrail[]>;
  /** What a workspace says of its callers' requests; undefined where it is gone. */
  findWorkspace(name: { organization_id: string; id_or_slug: string }): Promise<WorkspaceFacts | undefined>;
  /** A management key of the environment, valid beside stored ones. */
  management_key: string | undefined;
  /** Where the environment's management key acts, and for whom: the owner, who may be another one later. */
  home: { organization_id: string; default_workspace_id: string };
  findOwner(organizationId: string): Promise<string | undefined>;
  /** By which keys expire: the store's. */
  clock: Pick<Clock, 'now_ms'>;
  memory: StoreMemoryOptions;
  /** Whether an operator has revoked a key on this node, whatever the store says of it. */
  isRevokedHere(key: Pick<StoredKey, 'hash' | 'label'>): boolean;
}

/** What of a workspace a call needs. */
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
  /** The key, its parent, and so on; none for the management key of the environment, which is valid as long as it is set. */
  lineage: readonly StoredKey[];
  principal: Principal;
}

type Caller = Omit<Principal, 'budgets' | 'guardrails' | 'defaults' | 'logging' | 'is_served_without_store'>;

/** The name by which `rate_limits.keys` finds a key: an application could choose that of another key. */
function rateName({ made_by, name }: StoredKey): string | undefined {
  return made_by === null ? name : undefined;
}

/** Who calls with a key that was made with the keys of `ancestors`, the nearest first. */
export function callerOf(key: StoredKey, ancestors: readonly StoredKey[] = []): Caller {
  // Management keys call no model: nothing limits them.
  const parents = ancestors
    .filter(({ is_management }) => !is_management)
    .map((one) => ({ key_hash: one.hash, key_id: one.id, rate_name: rateName(one) }));
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

/** Nothing where its workspace has no defaults, as most have none. */
function defaultsOf(workspace: Principal['defaults']): Pick<Principal, 'defaults'> {
  const { default_text_model = null, default_image_model = null, default_provider_sort = null } = workspace ?? {};
  if ((default_text_model ?? default_image_model ?? default_provider_sort) === null) return {};
  return { defaults: { default_text_model, default_image_model, default_provider_sort } };
}

/** Nothing where its workspace neither keeps requests nor tells of them. */
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

/**
 * Makes the check of secrets. A secret is looked up by its SHA-256, so comparing it takes the same time whatever it is.
 * Keys seen in the last seconds are answered from memory, with the budgets that they count against, while the feed is sure
 * to tell of changes; an expiry is checked every time, by the store's clock. A key that was disabled, deleted or changed is
 * never accepted as it was once the feed's `heard` has resolved, nor with a limit that was changed; unless the operator lets
 * keys be served without the store, on a node that does not reach it. The same holds for a change of a key that it was made
 * with.
 */
export function createAuthenticate(options: AuthenticateOptions): Authenticate {
  const { clock, home, memory } = options;
  const known = new StoreMemory<Remembered>(memory, {
    size_max: limits.key_cache_entries_max,
    sizeOf: () => 1,
    // A guardrail or a workspace limits many keys.
    nameOf: ({ topic, id }) => (topic === 'keys' ? id : 'everything'),
    dependsOn: ({ lineage }, name) => lineage.length > 1 && lineage.some((key) => key.hash === name),
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

  /** Its own, and those of the keys that its key was made with, in one order. */
  const budgetsOf = async (caller: Caller): Promise<readonly Budget[]> => {
    const { organization_id, parents } = caller;
    const own = await options.findBudgets(subjectsOf(caller));
    if (parents === undefined) return own;
    const subjects = parents.map(({ key_hash }) => subjectOf({ by: 'key_hash', id: key_hash, organization_id }));
    const inherited = (await options.findBudgets(subjects)).map(ofParentKey);
    return [...own, ...inherited].sort((a, b) => (a.id < b.id ? -1 : 1));
  };

  const isManagement = (hashed: string) => management !== undefined && timingSafeEqual(Buffer.from(hashed), management);

  const ask = async (hashed: string): Promise<Remembered | undefined> => {
    const key = isManagement(hashed) ? null : await options.findByHash(hashed);
    if (key === undefined) return undefined;
    const ancestors = key === null || key.parent_hash === null ? [] : await options.findAncestors(hashed);
    const caller = key === null ? await environmentCaller() : callerOf(key, ancestors);
    const { organization_id, workspace_id: idOrSlug } = caller;
    const [budgets, guardrails, workspace] = await Promise.all([
      budgetsOf(caller),
      options.findGuardrails(caller),
      options.findWorkspace({ organization_id, id_or_slug: idOrSlug }),
    ]);
    const told = { ...defaultsOf(workspace), ...loggingOf(caller, workspace) };
    const lineage = key === null ? [] : [key, ...ancestors];
    return { lineage, principal: { ...caller, budgets, guardrails, ...told } };
  };

  const admit = ({ value, is_served_without_store }: Answer<Remembered>): Principal => {
    if (value === undefined) throw new GatewayError(401, 'Invalid API key');
    const principal = accept(value);
    return is_served_without_store ? { ...principal, is_served_without_store } : principal;
  };

  return (secret, storeWait) => {
    const hashed = hash('sha256', secret);
    const found = known.find(hashed, () => ask(hashed), storeWait);
    return found instanceof Promise ? found.then(admit) : accept(found);
  };
}
