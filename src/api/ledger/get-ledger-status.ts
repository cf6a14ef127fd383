import type { FastifyRequest } from 'fastify';
import Type, { type Static } from 'typebox';
import { GatewayError } from '../../errors.ts';
import type { Server } from '../../http/server.ts';
import { limits } from '../../limits.ts';
import { errors } from '../../schemas/error.ts';
import { LedgerStatus } from '../../schemas/ledger.ts';
import { toUsd } from '../../schemas/money.ts';
import type { LedgerNodeStatus } from '../../schemas/system.ts';
import type { Database } from '../../storage/database.ts';
import { type LedgerNode, ledgerOperations } from '../../storage/ledger-operations.ts';
import { principalOf } from '../change.ts';

const NODES_SHOWN_MAX = 200;
const DOUBTFUL_PAGE_MAX = 100;
const DOUBTFUL_PAGE_DEFAULT = 25;

/** Throws a 403 for callers of other organizations: what concerns the whole gateway is the operator's. */
export function requireHome(request: FastifyRequest, home: { organization_id: string }): void {
  if (principalOf(request).organization_id !== home.organization_id) {
    throw new GatewayError(403, 'This operation is for the organization that runs the gateway');
  }
}

export const isLostNode = ({ unseen_ms }: Pick<LedgerNode, 'unseen_ms'>) =>
  unseen_ms === undefined || unseen_ms > limits.node_lost_ms;

/** The public record of a node. */
export function describeNode(node: LedgerNode): Static<typeof LedgerNodeStatus> {
  const { id, unseen_ms, leased_nano, leases } = node;
  return {
    id,
    seconds_unseen: unseen_ms === undefined ? null : Math.max(0, unseen_ms / 1_000),
    is_lost: isLostNode(node),
    held: toUsd(leased_nano),
    windows: leases,
  };
}

export interface GetLedgerStatusDependencies {
  database: Database;
  home: { organization_id: string };
  now: () => number;
}

/** Serves `GET /ledger/status`: what `ledger status` prints, and the attempts whose cost is an estimate. */
export function getLedgerStatus(server: Server, { database, home, now }: GetLedgerStatusDependencies): void {
  server.route({
    method: 'GET',
    url: '/ledger/status',
    config: { access: 'management' },
    schema: {
      operationId: 'getLedgerStatus',
      tags: ['Ledger'],
      summary: 'Returns the reserved money of each node, and the generations whose cost is an estimate.',
      description:
        'The numbers of the command `ledger status`. Generations are charged by estimate if their end is not known, for example because a node was killed; ' +
        '`POST /ledger/resolve` corrects the cost of one. For management keys and administrators of the organization that runs the gateway.',
      querystring: Type.Object({
        limit: Type.Optional(
          Type.Integer({
            minimum: 1,
            maximum: DOUBTFUL_PAGE_MAX,
            description: `Estimated generations to return; default ${DOUBTFUL_PAGE_DEFAULT}.`,
          }),
        ),
        after: Type.Optional(
          Type.String({ maxLength: 200, description: 'Only estimated generations after the one with this id.' }),
        ),
      }),
      response: { 200: Type.Object({ data: LedgerStatus }), ...errors(400, 401, 403, 429, 500) },
    },
    handler: async (request) => {
      requireHome(request, home);
      const operations = ledgerOperations(database.queries, database.engine);
      const { limit = DOUBTFUL_PAGE_DEFAULT, after = '' } = request.query;
      const [nodes, presumed, estimated] = await Promise.all([
        operations.listNodes(now()),
        operations.sumPresumed(),
        operations.listEstimated({ after, limit: limit + 1 }),
      ]);
      const sum = (some: LedgerNode[]) => toUsd(some.reduce((total, { leased_nano }) => total + leased_nano, 0));
      const shown = estimated.slice(0, limit);
      return {
        data: {
          nodes: nodes.slice(0, NODES_SHOWN_MAX).map(describeNode),
          node_count: nodes.length,
          held: sum(nodes),
          in_doubt: sum(nodes.filter(isLostNode)),
          booked: toUsd(presumed.booked_nano),
          estimated: toUsd(presumed.estimated_nano),
          estimated_count: presumed.estimated,
          generations: shown.map(({ estimated_nano, cost_nano, ...generation }) => ({
            ...generation,
            cost: toUsd(cost_nano),
            estimated: toUsd(estimated_nano),
          })),
          next: estimated.length > limit ? (shown.at(-1)?.id ?? null) : null,
        },
      };
    },
  });
}
