import { keyRefusal } from '../../accounts/delegation.ts';
import { GatewayError } from '../../errors.ts';
import type { Principal } from '../../http/principal.ts';
import type { Queries } from '../../storage/database.ts';
import { findKeyFacts } from '../../storage/key-facts.ts';
import { keyStore } from '../../storage/keys.ts';
import type { OrganizationStore } from '../../storage/organizations.ts';
import { keyPrincipal } from '../authenticate.ts';
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
  const find = ({ hash: which }: { hash: string }) => keyStore(queries).findByHash(which);
  await requireKey(caller, hash, { find, organizations });
  const facts = await findKeyFacts(queries, hash);
  if (facts === undefined) throw new GatewayError(404, 'API key not found');
  return { principal: keyPrincipal(facts), refusal: keyRefusal(facts.lineage, now()) };
}
