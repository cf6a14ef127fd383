import { hash, timingSafeEqual } from 'node:crypto';
import { ofParentKey, subjectsOf } from '../accounts/budget.ts';
import { type CheckedKey, keyRefusal, lineageBudgetMode } from '../accounts/delegation.ts';
import type { StoredKey } from '../accounts/key.ts';
import { secretEnd } from '../accounts/key-secrets.ts';
import type { StoredWorkspace } from '../accounts/workspace.ts';
import { GatewayError } from '../errors.ts';
import type { Authenticate, Principal } from '../http/principal.ts';
import type { Clock } from '../inference/call.ts';
import { limits } from '../limits.ts';
import type { Budget } from '../schemas/budget.ts';
import type { BoundGuardrail } from '../schemas/guardrail.ts';
import type { KeyFacts } from '../storage/key-facts.ts';
import { type Answer, madeName, StoreMemory, type StoreMemoryOptions } from './store-memory.ts';

export interface AuthenticateOptions {
  /** A key with all that belongs to it, in one read, by the SHA-256 of a secret that it has or had. */
  findKey(digest: string): Promise<KeyFacts | undefined>;
  /** For the management key of the environment: the budgets in force for these subjects (`subjectsOf`). */
  findBudgets(subjects: readonly string[]): Promise<readonly Budget[]>;
  /** For that key: the guardrails that apply to its requests. */
  findGuardrails(caller: Caller): Promise<readonly BoundGuardrail[]>;
  /** For that key: its workspace; undefined if it was deleted. */
  findWorkspace(name: { organization_id: string; id_or_slug: string }): Promise<StoredWorkspace | undefined>;
  /** A management key from the environment, valid in addition to stored ones. */
  management_key: string | undefined;
  /** The organization of the environment's management key. It acts for the current owner, who may change. */
  home: { organization_id: string; default_workspace_id: string };
  findOwner(organizationId: string): Promise<string | undefined>;
  /** The clock by which keys expire: that of the store. */
  clock: Pick<Clock, 'nowMs'>;
  memory: StoreMemoryOptions;
  /** Whether an operator revoked a key on this node, whatever the store contains. */
  isRevokedHere(key: Pick<StoredKey, 'hash' | 'label' | 'previous_label'>): boolean;
  /** Called for each request that is accepted with the previous secret of a key, by its SHA-256. */
  onPreviousSecret(digest: string, at: number): void;
}

interface Remembered {
  /** The key, its parent, and so on. Empty for the management key of the environment, which is valid as long as it is configured. */
  lineage: readonly (StoredKey & CheckedKey)[];
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
function defaultsOf(workspace: StoredWorkspace | undefined): Pick<Principal, 'defaults'> {
  const { default_text_model = null, default_image_model = null, default_provider_sort = null } = workspace ?? {};
  if ((default_text_model ?? default_image_model ?? default_provider_sort) === null) return {};
  return { defaults: { default_text_model, default_image_model, default_provider_sort } };
}

/** The logging of a workspace; nothing if it neither stores nor broadcasts requests. */
function loggingOf(
  { key_id, parents = [] }: Caller,
  workspace: StoredWorkspace | undefined,
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

function principalOf(
  caller: Caller,
  { budgets, guardrails, workspace }: Pick<Principal, 'budgets' | 'guardrails'> & Pick<KeyFacts, 'workspace'>,
): Principal {
  return { ...caller, budgets, guardrails, ...defaultsOf(workspace), ...loggingOf(caller, workspace) };
}

/** The caller of a key, with its budgets and those of the keys that it was made with, its guardrails and the settings of its workspace. */
export function keyPrincipal({ lineage, budgets, guardrails, workspace }: KeyFacts): Principal {
  const [key, ...ancestors] = lineage;
  const caller = callerOf(key, ancestors);
  const own = new Set(subjectsOf(caller));
  const counted = budgets.map(({ subject, ...budget }) => (own.has(subject) ? budget : ofParentKey(budget)));
  return principalOf(caller, { budgets: counted, guardrails, workspace });
}

/**
 * The lineage as a secret of the key may use it: the previous secret of a rotated key expires by itself. Undefined if the secret is not
 * valid any more.
 */
function lineageOf({ lineage }: KeyFacts, digest: string): Remembered['lineage'] | undefined {
  const [key, ...ancestors] = lineage;
  const end = secretEnd(key, digest);
  if (end === undefined || end === null) return end === null ? lineage : undefined;
  return [{ ...key, expires_at: end, secret_end: end }, ...ancestors];
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
    const now = clock.nowMs();
    const refusal = keyRefusal(lineage, now);
    if (refusal !== undefined) throw new GatewayError(401, refusal);
    const [key] = lineage;
    if (key?.secret_end !== undefined && key.previous_secret_hash !== null) {
      options.onPreviousSecret(key.previous_secret_hash, now);
    }
    return principal;
  };

  const isManagement = (hashed: string) => management !== undefined && timingSafeEqual(Buffer.from(hashed), management);

  // The owner of the organization, for which the management key of the environment acts, may be another after any change.
  const loadEnvironment = async (): Promise<Remembered> => {
    const caller = await environmentCaller();
    const { organization_id, workspace_id: idOrSlug } = caller;
    const [budgets, guardrails, workspace] = await Promise.all([
      options.findBudgets(subjectsOf(caller)),
      options.findGuardrails(caller),
      options.findWorkspace({ organization_id, id_or_slug: idOrSlug }),
    ]);
    return { lineage: [], principal: principalOf(caller, { budgets, guardrails, workspace }), names: 'everything' };
  };

  const load = async (hashed: string): Promise<Remembered | undefined> => {
    if (isManagement(hashed)) return loadEnvironment();
    const facts = await options.findKey(hashed);
    if (facts === undefined) return undefined;
    const lineage = lineageOf(facts, hashed);
    if (lineage === undefined) return undefined;
    const principal = { ...keyPrincipal(facts), secret_hash: hashed };
    const names = [
      // A secret that a rotation made is remembered under another name than its key.
      ...lineage.map((key) => key.hash).filter((name) => name !== hashed),
      principal.organization_id,
      principal.workspace_id,
      ...(principal.user_id === null ? [] : [principal.user_id]),
      ...principal.guardrails.map((guardrail) => guardrail.id),
    ];
    return { lineage, principal, names };
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
