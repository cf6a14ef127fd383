import { keyRefusal } from '../../accounts/delegation.ts';
import type { Principal } from '../../http/principal.ts';
import { budgetStore } from '../../storage/budgets.ts';
import type { Queries } from '../../storage/database.ts';
import { guardrailStore } from '../../storage/guardrails.ts';
import { keyStore } from '../../storage/keys.ts';
import type { OrganizationStore } from '../../storage/organizations.ts';
import { workspaceStore } from '../../storage/workspaces.ts';
import { callerOf, storedPrincipal } from '../authenticate.ts';
import { requireKey } from './require-key.ts';

export interface KeyCallerSources {
  queries: Queries;
  organizations: OrganizationStore;
  now: () => number;
}

/** A key as a caller, with all that applies to its calls. */
export interface KeyCaller {
  principal: Principal;
  /** Why the key is not accepted now; undefined if it is. */
  refusal: string | undefined;
}

/** The key that a path names, as the caller that it would be. Throws a 404 as `requireKey` does. */
export async function findKeyCaller(
  caller: Principal,
  hash: string,
  { queries, organizations, now }: KeyCallerSources,
): Promise<KeyCaller> {
  const keys = keyStore(queries);
  const find = ({ hash: which }: { hash: string }) => keys.findByHash(which);
  const key = await requireKey(caller, hash, { find, organizations });
  const ancestors = key.parent_hash === null ? [] : await keys.findAncestors(key.hash);
  const principal = await storedPrincipal(callerOf(key, ancestors), {
    findBudgets: budgetStore(queries).findBySubjects,
    findGuardrails: guardrailStore(queries).listHolding,
    findWorkspace: workspaceStore(queries).find,
  });
  return { principal, refusal: keyRefusal([key, ...ancestors], now()) };
}
