import Type from 'typebox';
import type { Server } from '../../http/server.ts';
import type { Recorder } from '../../ledger/recorder.ts';
import { limits } from '../../limits.ts';
import { errors } from '../../schemas/error.ts';
import { GenerationSession, NextCursor } from '../../schemas/generation-list.ts';
import { toUsd } from '../../schemas/money.ts';
import { isStorable } from '../../schemas/text.ts';
import type { GenerationSessions } from '../../storage/generation-sessions.ts';
import { principalOf } from '../change.ts';
import { recentOutcomes } from '../recent-outcomes.ts';
import { cursorOf, placeOf, rangeOf } from './cursor.ts';
import { visibleUser } from './list-generations.ts';

const SESSIONS_DEFAULT = 50;

const text = (description: string) => Type.Optional(Type.String({ minLength: 1, maxLength: 512, description }));

/** Serves `GET /generations/sessions`: the conversations and agent runs that clients name in `session_id`. */
export function listGenerationSessions(
  server: Server,
  { generationSessions, recorder }: { generationSessions: GenerationSessions; recorder: Pick<Recorder, 'flush'> },
): void {
  server.route({
    method: 'GET',
    url: '/generations/sessions',
    config: { access: 'management', forMembers: true },
    schema: {
      operationId: 'listGenerationSessions',
      tags: ['Generations'],
      summary: 'Lists the sessions of calls, the one with the latest call first.',
      description:
        'A session is the calls with the same `session_id`. `GET /generations?session_id=…&order=asc` lists its calls. The caller sees what `GET /generations` lists for it.',
      querystring: Type.Object({
        from: text('Only sessions whose last call was admitted at this time or later: ISO 8601, or a UTC day.'),
        to: text('Only sessions whose last call was admitted before this time.'),
        user_id: text("Only calls with this member's keys."),
        cursor: text('`next_cursor` of the page before, with the same filter.'),
        limit: Type.Optional(
          Type.Integer({
            minimum: 1,
            maximum: limits.page_records_max,
            description: `Sessions of a page; default ${SESSIONS_DEFAULT}.`,
          }),
        ),
      }),
      response: {
        200: Type.Object({ data: Type.Array(GenerationSession), next_cursor: NextCursor }),
        ...errors(400, 401, 403, 429, 500),
      },
    },
    handler: async (request) => {
      const principal = principalOf(request);
      const { query } = request;
      const userId = visibleUser(principal, query.user_id);
      const range = rangeOf(query);
      const after = placeOf(query.cursor);
      if (!isStorable(userId ?? '')) return { data: [], next_cursor: null };
      if (after === undefined) await recentOutcomes(recorder);
      const { sessions, next } = await generationSessions.list(
        { organization_id: principal.organization_id, user_id: userId, ...range },
        { limit: query.limit ?? SESSIONS_DEFAULT, after },
      );
      return {
        data: sessions.map(({ cost_nano, ...session }) => ({ ...session, total_cost: toUsd(cost_nano) })),
        next_cursor: cursorOf(next),
      };
    },
  });
}
