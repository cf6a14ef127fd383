import Type from 'typebox';
import { describeKey, UNUSED, windowStarts } from '../../accounts/key.ts';
import type { Server } from '../../http/server.ts';
import type { Recorder } from '../../ledger/recorder.ts';
import { errors } from '../../schemas/error.ts';
import { Key } from '../../schemas/key.ts';
import { PageQuery, pageOf } from '../../schemas/page.ts';
import type { KeyStore } from '../../storage/keys.ts';
import type { OrganizationStore } from '../../storage/organizations.ts';
import { ownUserOf, principalOf } from '../change.ts';
import { recentOutcomes } from '../recent-outcomes.ts';
import { queriedWorkspace } from '../workspaces/require-workspace.ts';

export interface ListKeysDependencies {
  keys: KeyStore;
  organizations: OrganizationStore;
  recorder: Pick<Recorder, 'flush'>;
  now: () => number;
}

/** Values that mean no. The public service takes any other text for yes; its clients also send `false`. */
const NO = ['', 'false', '0', 'no', 'off'];

/** Serves `GET /keys`: the ordinary keys of one workspace, in order of creation. Management keys are not listed. */
export function listKeys(server: Server, { keys, organizations, recorder, now }: ListKeysDependencies): void {
  server.route({
    method: 'GET',
    url: '/keys',
    config: { access: 'management', forMembers: true },
    schema: {
      operationId: 'listKeys',
      tags: ['API keys'],
      summary: 'Lists the API keys of a workspace.',
      querystring: Type.Object({
        ...PageQuery,
        include_disabled: Type.Optional(
          Type.String({
            description:
              'Any value except false, 0, no and off: include disabled keys. Default: only keys that are not disabled.',
          }),
        ),
        workspace_id: Type.Optional(Type.String({ description: 'Default: the default workspace.' })),
      }),
      response: { 200: Type.Object({ data: Type.Array(Key) }), ...errors(400, 401, 403, 404, 429, 500) },
    },
    handler: async (request) => {
      const caller = principalOf(request);
      const { organization_id } = caller;
      const { include_disabled = '', workspace_id } = request.query;
      const stored = await keys.listBy(
        {
          organization_id,
          workspace_id: await queriedWorkspace(organizations, caller, workspace_id),
          creator_user_id: ownUserOf(caller),
          is_management: false,
          disabled: NO.includes(include_disabled.toLowerCase()) ? false : undefined,
        },
        pageOf(request.query),
      );
      await recentOutcomes(recorder);
      const at = now();
      const usages = await keys.findUsages(
        stored.map(({ hash }) => hash),
        windowStarts(at),
      );
      return { data: stored.map((key) => describeKey(key, usages.get(key.hash) ?? UNUSED, at)) };
    },
  });
}
