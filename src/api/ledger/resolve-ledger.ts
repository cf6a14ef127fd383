import Type from 'typebox';
import { GatewayError } from '../../errors.ts';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';
import { LedgerResolution, LedgerResolveRequest } from '../../schemas/ledger.ts';
import { toNano, toUsd } from '../../schemas/money.ts';
import { checkStorable } from '../../schemas/text.ts';
import type { Database } from '../../storage/database.ts';
import { actorOf, type Change } from '../change.ts';
import { requireHome } from './get-ledger-status.ts';
import { resolveGeneration } from './resolve-generation.ts';

export interface ResolveLedgerOptions {
  database: Database;
  change: Change;
  home: { organization_id: string };
}

/** Serves `POST /ledger/resolve`. */
export function resolveLedger(server: Server, { database, change, home }: ResolveLedgerOptions): void {
  server.route({
    method: 'POST',
    url: '/ledger/resolve',
    config: { access: 'management' },
    schema: {
      operationId: 'resolveLedger',
      tags: ['Ledger'],
      summary: 'Corrects, once, the cost of a generation whose end is not known.',
      description:
        'The same as the command `ledger resolve`: the sums of keys, days and limits follow. ' +
        'For management keys and administrators of the organization that runs the gateway.',
      body: LedgerResolveRequest,
      response: {
        200: Type.Object({ data: LedgerResolution }),
        ...errors(400, 401, 403, 404, 409, 429, 500),
      },
    },
    handler: async (request) => {
      requireHome(request, home);
      const { generation_id: id, cost, reason = 'resolved by an operator' } = request.body;
      checkStorable({ generation_id: id, reason });
      const resolution = await resolveGeneration(
        database,
        { change, actor: actorOf(request) },
        { id, cost_nano: toNano(cost), reason },
      );
      if (!('why' in resolution)) {
        const { generation } = resolution;
        const before = toUsd(generation.cost_nano);
        return { data: { generation_id: id, before, cost, windows: generation.windows.length } };
      }
      if (resolution.why === 'unknown') throw new GatewayError(404, `The store has no generation ${id}`);
      throw new GatewayError(
        409,
        resolution.why === 'resolved'
          ? `${id} is already resolved`
          : `The cost of ${id} is known: ${toUsd(resolution.cost_nano)} USD`,
      );
    },
  });
}
