import Type from 'typebox';
import type { Server } from '../../http/server.ts';
import type { Recorder } from '../../ledger/recorder.ts';
import { errors } from '../../schemas/error.ts';
import { System } from '../../schemas/system.ts';
import type { Database } from '../../storage/database.ts';
import { ledgerOperations } from '../../storage/ledger-operations.ts';
import { setupStore } from '../../storage/setup.ts';
import { describeNode, requireHome } from '../ledger/get-ledger-status.ts';
import { describeRetention } from './retention-sweeps.ts';
import type { SystemFacts } from './system-facts.ts';

const NODES_SHOWN_MAX = 200;

export interface GetSystemDependencies {
  database: Database;
  recorder: Pick<Recorder, 'state'>;
  home: { organization_id: string };
  now: () => number;
  system: () => SystemFacts;
}

/** Serves `GET /system`. The settings are those of `effectiveSettings`, which shows numbers and choices alone. */
export function getSystem(server: Server, { database, recorder, home, now, system }: GetSystemDependencies): void {
  server.route({
    method: 'GET',
    url: '/system',
    config: { access: 'management' },
    schema: {
      operationId: 'getSystem',
      tags: ['System'],
      summary: 'Returns the version, the nodes, the migrations and the settings in force, with the source of each.',
      description:
        'The answer contains no secret, no address and no other text of the configuration, only whether each is set. ' +
        'For management keys and administrators of the organization that runs the gateway.',
      response: { 200: Type.Object({ data: System }), ...errors(401, 403, 429, 500) },
    },
    handler: async (request) => {
      requireHome(request, home);
      const { version, runtime, started_at, settings, retention: days } = system();
      const [nodes, migrations, retention] = await Promise.all([
        ledgerOperations(database.queries, database.engine).listNodes(now()),
        setupStore(database.queries).migrations(),
        describeRetention(database, days),
      ]);
      return {
        data: {
          version,
          runtime,
          started_at: new Date(started_at * 1000).toISOString(),
          node: recorder.state().node,
          store: database.engine,
          nodes: nodes.slice(0, NODES_SHOWN_MAX).map(describeNode),
          node_count: nodes.length,
          migrations,
          settings: [...settings],
          retention,
        },
      };
    },
  });
}
