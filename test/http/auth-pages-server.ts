import { createSecret } from '../../src/accounts/key.ts';
import { type AuthPagesDependencies, authPages } from '../../src/api/auth/auth-pages.ts';
import { createAuthenticate } from '../../src/api/authenticate.ts';
import { createChange } from '../../src/api/change.ts';
import { createPreviousSecretUses } from '../../src/api/keys/previous-secret-uses.ts';
import { trustedProxies } from '../../src/http/trusted-proxies.ts';
import { createServices } from '../../src/providers/transport/services.ts';
import type { Database } from '../../src/storage/database.ts';
import { findKeyFacts } from '../../src/storage/key-facts.ts';
import { keyStore } from '../../src/storage/keys.ts';
import { managementServer } from './management-server.ts';
import { pageBrowser } from './page-browser.ts';

/** It leaves nothing open that would keep the test's process running. */
const issuerServices = createServices();

export const ENVIRONMENT_KEY = 'environment-management-key-0123456789';

/** The pages over a store with a fresh organization, on a clock that a test moves, with real keys. */
export async function authPagesServer(
  database: Database,
  at: string,
  options: Partial<
    Pick<AuthPagesDependencies, 'public_origin' | 'issuer' | 'secret' | 'management_key' | 'has_console'>
  > = {},
) {
  const made = await managementServer(database, at);
  let moment = Date.parse(at);
  const clock = { nowMs: () => moment, monotonicMs: () => moment };
  const keys = keyStore(database.queries);
  const managementKey = options.management_key ?? ENVIRONMENT_KEY;
  const { home, changes } = made;
  /** The hashes of keys that are revoked on this node. */
  const revoked = new Set<string>();
  const isRevokedHere = ({ hash }: { hash: string }) => revoked.has(hash);
  const change = createChange({ database, changes, now: clock.nowMs });
  const previousSecrets = createPreviousSecretUses({ keys, log: { warn: () => undefined } });
  const authenticate = createAuthenticate({
    findKey: (digest) => findKeyFacts(database.queries, digest),
    findOwner: async () => home.owner_user_id,
    findBudgets: async () => [],
    findGuardrails: async () => [],
    findWorkspace: async () => undefined,
    management_key: managementKey,
    home,
    clock,
    memory: { clock: { ...clock, is_sure: true }, changes, serve_without_store_ms: 0 },
    isRevokedHere,
    onPreviousSecret: previousSecrets.use,
  });
  const sessions = await authPages(made.server, {
    queries: database.queries,
    change,
    authenticate,
    secret: options.secret ?? 'secret-of-the-gateway-0123456789abcdef',
    management_key: managementKey,
    proxies: trustedProxies([]),
    public_origin: options.public_origin,
    has_console: options.has_console ?? false,
    issuer: options.issuer,
    sendToIssuer: issuerServices.ask,
    organization_id: home.organization_id,
    isRevokedHere,
    clock,
  });
  made.sessions.principal = sessions.principal;
  /** Stores a key of the organization's owner, and returns its secret. */
  const storeKey = async (kind: { is_management?: boolean; creator_user_id?: string | null } = {}) => {
    const { secret, hash, label } = createSecret();
    await keys.insert({
      hash,
      label,
      organization_id: home.organization_id,
      workspace_id: home.default_workspace_id,
      creator_user_id: home.owner_user_id,
      name: 'stored',
      is_management: true,
      disabled: false,
      limit_nano: null,
      limit_reset: null,
      include_byok_in_limit: false,
      expires_at: null,
      created_at: at,
      updated_at: null,
      ...kind,
    });
    return { secret, hash };
  };
  const browser = () => pageBrowser(made.server, options.public_origin);
  const audit = () =>
    database.queries
      .selectFrom('audit_events')
      .select(['action', 'resource_type', 'resource_id', 'actor', 'actor_key_hash', 'actor_user_id', 'state_after'])
      .orderBy('seq')
      .execute();
  const pass = (ms: number) => {
    moment += ms;
  };
  return { ...made, change, clock, authenticate, database, browser, storeKey, audit, pass, revoked, previousSecrets };
}
