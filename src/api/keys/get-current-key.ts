import Type from 'typebox';
import { type BudgetState, describeKeyBudget, inOrderOfScope, isShared } from '../../accounts/budget.ts';
import { describeCurrentKey, UNUSED, windowStarts } from '../../accounts/key.ts';
import { GatewayError } from '../../errors.ts';
import type { Principal } from '../../http/principal.ts';
import type { Server } from '../../http/server.ts';
import type { Recorder } from '../../ledger/recorder.ts';
import { errors } from '../../schemas/error.ts';
import { CurrentKey } from '../../schemas/key.ts';
import { budgetStore } from '../../storage/budgets.ts';
import type { Queries } from '../../storage/database.ts';
import type { KeyStore } from '../../storage/keys.ts';
import { principalOf } from '../change.ts';
import { recentOutcomes } from '../recent-outcomes.ts';

export interface GetCurrentKeyDependencies {
  keys: KeyStore;
  queries: Queries;
  recorder: Pick<Recorder, 'flush'>;
  now: () => number;
}

/** Describes the management key of the environment, which has no record, by its organization. */
function environmentKey({ organization_id, workspace_id, user_id }: Principal): CurrentKey {
  const unlimited = { limit_nano: null, limit_reset: null, include_byok_in_limit: false };
  const whose = { organization_id, workspace_id, creator_user_id: user_id };
  const key = { label: 'GATEWAY_MANAGEMENT_KEY', ...whose, expires_at: null };
  return describeCurrentKey({ ...key, ...unlimited, is_management: true }, UNUSED, { budgets: [] });
}

const OWN_SCOPES = ['key', 'guardrail'] as const;
const ALL_SCOPES = [...OWN_SCOPES, 'workspace', 'organization'] as const;

/** Whether a budget is specific to the key or a guardrail, and not shared by its workspace or organization. */
const isOwn = ({ scope }: BudgetState) => scope === 'key' || scope === 'guardrail';

/** Serves `GET /key`, and `GET /auth/key`, its former path at the public service. */
export function getCurrentKey(server: Server, { keys, queries, recorder, now }: GetCurrentKeyDependencies): void {
  const currentKey = async (principal: Principal): Promise<CurrentKey> => {
    const { key_hash, session } = principal;
    if (session !== undefined) throw new GatewayError(403, 'A session has no key; GET /session describes it');
    if (key_hash === null) return environmentKey(principal);
    const key = await keys.findByHash(key_hash);
    // The key was deleted after authentication.
    if (key === undefined) throw new GatewayError(401, 'Invalid API key');
    await recentOutcomes(recorder);
    const at = now();
    // An application or a member must not see the spending of the organization.
    const scopes = key.made_by === null ? ALL_SCOPES : OWN_SCOPES;
    // Management keys call no model, so limits do not apply.
    const all = key.is_management ? [] : await budgetStore(queries).findStates(principal, scopes, at);
    const states = all.filter((state) => key.made_by === null || !isShared(state));
    const describe = (state: BudgetState) => describeKeyBudget(state, at);
    const budgets = inOrderOfScope(states.filter(isOwn).map(describe));
    const others = states.filter((state) => !isOwn(state)).map(describe);
    return describeCurrentKey(key, await keys.findUsage(key_hash, windowStarts(at)), { budgets, others });
  };
  for (const url of ['/key', '/auth/key']) {
    server.route({
      method: 'GET',
      url,
      config: { access: 'any' },
      schema: {
        // Without an id the operation is not documented.
        ...(url === '/key' ? { operationId: 'getCurrentKey' } : {}),
        tags: ['API keys'],
        summary: 'Returns the limit and the usage of the calling key.',
        response: { 200: Type.Object({ data: CurrentKey }), ...errors(401, 500) },
      },
      handler: async (request, reply) => {
        // Set before anything can fail: every answer about a key is private.
        reply.header('cache-control', 'private, no-store');
        return { data: await currentKey(principalOf(request)) };
      },
    });
  }
}
