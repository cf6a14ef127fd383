import Type from 'typebox';
import { GatewayError } from '../../errors.ts';
import type { Server } from '../../http/server.ts';
import type { Clock } from '../../inference/call.ts';
import { errors } from '../../schemas/error.ts';
import { LedgerRelease, LedgerReleaseRequest } from '../../schemas/ledger.ts';
import { toUsd } from '../../schemas/money.ts';
import { checkStorable } from '../../schemas/text.ts';
import type { Database } from '../../storage/database.ts';
import { actorOf, type Change, principalOf } from '../change.ts';
import { liveNode, releaseNode } from './release-node.ts';

export interface ReleaseLedgerOptions {
  database: Database;
  change: Change;
  clock: Pick<Clock, 'nowMs'>;
  /** The organization that runs the gateway. */
  home: { organization_id: string };
}

/** Serves `POST /ledger/release`. */
export function releaseLedger(server: Server, { database, change, clock, home }: ReleaseLedgerOptions): void {
  server.route({
    method: 'POST',
    url: '/ledger/release',
    config: { access: 'management' },
    schema: {
      operationId: 'releaseLedger',
      tags: ['Ledger'],
      summary: 'Frees the money that a lost node has reserved.',
      description:
        'The same as the command `ledger release`. If the node did spend the money, limits are exceeded by that amount. ' +
        'For management keys of the organization that runs the gateway.',
      body: LedgerReleaseRequest,
      response: {
        200: Type.Object({ data: LedgerRelease }),
        ...errors(400, 401, 403, 404, 409, 429, 500),
      },
    },
    handler: async (request) => {
      if (principalOf(request).organization_id !== home.organization_id) {
        throw new GatewayError(403, 'Only the organization that runs the gateway may release its nodes');
      }
      const { node_id } = request.body;
      checkStorable({ node_id });
      const release = await change(actorOf(request), (work) =>
        releaseNode(work, { engine: database.engine, node: node_id, at: clock.nowMs() }),
      );
      if ('why' in release) {
        throw release.why === 'live'
          ? new GatewayError(409, liveNode(node_id))
          : new GatewayError(404, `There is no node ${node_id}`);
      }
      const { leased_nano, leases, booked_nano } = release;
      return { data: { node_id, released: toUsd(leased_nano), windows: leases, booked: toUsd(booked_nano) } };
    },
  });
}
