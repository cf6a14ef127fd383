import Type from 'typebox';
import { isShared } from '../../accounts/budget.ts';
import type { GatewayError } from '../../errors.ts';
import { effectivePolicy } from '../../guardrails/policy/effective-policy.ts';
import type { Server } from '../../http/server.ts';
import type { Recorder } from '../../ledger/recorder.ts';
import { errors } from '../../schemas/error.ts';
import type { BoundGuardrail } from '../../schemas/guardrail.ts';
import { KeyPolicy } from '../../schemas/key-policy.ts';
import type { GuardrailStore } from '../../storage/guardrails.ts';
import { previewLimits } from '../accounting/preview-limits.ts';
import { ownUserOf, principalOf } from '../change.ts';
import { findKeyCaller, type KeyCallerSources } from './find-key-caller.ts';
import { KeyParams } from './require-key.ts';

export interface GetKeyPolicyDependencies extends KeyCallerSources {
  guardrails: Pick<GuardrailStore, 'find'>;
  recorder: Pick<Recorder, 'flush' | 'preview'>;
}

type Limit = KeyPolicy['limits'][number];

/** The id of a guardrail's budget is `guardrail:<guardrail>:<assignee>:<interval>`. */
function guardrailOf({ id, scope }: { id: string; scope: string }): string | null {
  return scope === 'guardrail' ? (id.split(':')[1] ?? null) : null;
}

function scopesOf(bound: readonly BoundGuardrail[]): Map<string, BoundGuardrail['scope'][]> {
  const scopes = Map.groupBy(bound, ({ id }) => id);
  return new Map([...scopes].map(([id, all]) => [id, [...new Set(all.map(({ scope }) => scope))]]));
}

/** The refusal of the next call: of the key itself, else of a limit. The message is the one that the call would receive. */
function describeRefusal(ofKey: string | undefined, ofLimit: GatewayError | undefined): KeyPolicy['refusal'] {
  if (ofKey !== undefined) return { code: 401, message: ofKey, resets_at: null };
  if (ofLimit === undefined) return null;
  const resetsAt = ofLimit.metadata?.['resets_at'];
  return {
    code: ofLimit.status,
    message: ofLimit.message,
    resets_at: typeof resetsAt === 'string' ? resetsAt : null,
  };
}

/** Serves `GET /keys/{hash}/policy`: the limits and the guardrails of a key, and why it would be refused now. Reserves nothing. */
export function getKeyPolicy(server: Server, dependencies: GetKeyPolicyDependencies): void {
  const { guardrails, recorder } = dependencies;
  server.route({
    method: 'GET',
    url: '/keys/:hash/policy',
    config: { access: 'management', forMembers: true },
    schema: {
      operationId: 'getKeyPolicy',
      tags: ['API keys'],
      summary:
        'Returns everything that applies to the calls of a key: limits with spent, held and left, and guardrails.',
      description: 'Nothing is reserved. `refusal` says what blocks the key now.',
      params: KeyParams,
      response: { 200: Type.Object({ data: KeyPolicy }), ...errors(401, 403, 404, 429, 500, 503) },
    },
    handler: async (request) => {
      const caller = principalOf(request);
      const { principal, refusal } = await findKeyCaller(caller, request.params.hash, dependencies);
      const preview = await previewLimits(recorder, principal.budgets);
      const isMember = ownUserOf(caller) !== undefined;
      const limits = principal.budgets.flatMap((budget): Limit[] => {
        const amounts = preview.amounts.get(budget.id);
        if (amounts === undefined) return [];
        const { resets_at, ...usd } = amounts;
        const isHidden = isMember && isShared(budget);
        const { scope, label, reset_interval, include_byok } = budget;
        return [
          {
            scope,
            label,
            guardrail_id: guardrailOf(budget),
            reset_interval: reset_interval === 'never' ? null : reset_interval,
            resets_at,
            include_byok,
            ...(isHidden ? { limit: null, spent: null, held: null, left: null } : usd),
            refuses: usd.left === 0,
          },
        ];
      });
      const scopes = scopesOf(principal.guardrails);
      const { organization_id } = caller;
      const named = await Promise.all(
        [...scopes].map(async ([id, all]) => {
          const stored = await guardrails.find({ organization_id, id });
          return { id, name: stored?.name ?? id, scopes: all };
        }),
      );
      return {
        data: {
          key_hash: request.params.hash,
          refusal: describeRefusal(refusal, preview.refusal),
          limits,
          guardrails: named,
          effective: effectivePolicy(principal.guardrails),
        },
      };
    },
  });
}
