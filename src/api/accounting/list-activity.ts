import Type, { type Static } from 'typebox';
import { GatewayError, invalidField } from '../../errors.ts';
import type { Server } from '../../http/server.ts';
import type { Recorder } from '../../ledger/recorder.ts';
import { DAY_MS } from '../../schemas/budget.ts';
import { errors } from '../../schemas/error.ts';
import { toUsd } from '../../schemas/money.ts';
import { isStorable } from '../../schemas/text.ts';
import type { ActivityRow, ActivityStore } from '../../storage/activity.ts';
import { ownUserOf, principalOf } from '../change.ts';
import { recentOutcomes } from '../recent-outcomes.ts';

/** The days that `GET /activity` covers. */
const ACTIVITY_DAYS_MAX = 30;

export interface ListActivityDependencies {
  activity: ActivityStore;
  now: () => number;
  recorder: Pick<Recorder, 'flush'>;
}

const ActivityItem = Type.Object(
  {
    date: Type.String({ description: 'The UTC day, YYYY-MM-DD.' }),
    model: Type.String(),
    model_permaslug: Type.String(),
    endpoint_id: Type.String(),
    provider_name: Type.String(),
    usage: Type.Number({ description: 'USD.' }),
    byok_usage_inference: Type.Number({ description: 'Charges of own provider accounts, USD.' }),
    requests: Type.Integer(),
    prompt_tokens: Type.Integer(),
    completion_tokens: Type.Integer(),
    reasoning_tokens: Type.Integer(),
    workspace_id: Type.Optional(Type.String({ description: 'With group_by=workspace.' })),
  },
  { title: 'ActivityItem' },
);

type ActivityItem = Static<typeof ActivityItem>;

const dayOf = (moment: number) => new Date(moment).toISOString().slice(0, 10);

/** The requested days: the last completed ones, or the named one, which may be the incomplete current day. */
function daysOf(date: string | undefined, now: number): { from: string; to: string } {
  const [from, yesterday, today] = [dayOf(now - ACTIVITY_DAYS_MAX * DAY_MS), dayOf(now - DAY_MS), dayOf(now)] as const;
  if (date === undefined) return { from, to: yesterday };
  const isDay = /^\d{4}-\d{2}-\d{2}$/.test(date) && !Number.isNaN(Date.parse(date)) && dayOf(Date.parse(date)) === date;
  if (!isDay) throw invalidField('date', 'must be a UTC day such as 2026-01-31');
  if (date < from || date > today) {
    throw invalidField('date', `must be one of the last ${ACTIVITY_DAYS_MAX} UTC days, ${from} to ${today}`);
  }
  return { from: date, to: date };
}

function describeRow(row: ActivityRow): ActivityItem {
  return {
    date: row.day,
    model: row.model,
    model_permaslug: row.model_permaslug,
    endpoint_id: row.endpoint_id,
    provider_name: row.provider_name,
    usage: toUsd(row.usage_nano),
    byok_usage_inference: toUsd(row.byok_usage_nano),
    requests: row.requests,
    prompt_tokens: row.prompt_tokens,
    completion_tokens: row.completion_tokens,
    reasoning_tokens: row.reasoning_tokens,
    ...(row.workspace_id === undefined ? {} : { workspace_id: row.workspace_id }),
  };
}

/** Serves `GET /activity`: usage by day, model and endpoint. */
export function listActivity(server: Server, { activity, now, recorder }: ListActivityDependencies): void {
  server.route({
    method: 'GET',
    url: '/activity',
    config: { access: 'management', forMembers: true },
    schema: {
      operationId: 'listActivity',
      tags: ['Accounting'],
      summary: 'Lists usage by day, model and endpoint.',
      querystring: Type.Object({
        date: Type.Optional(
          Type.String({
            description: `One UTC day of the last ${ACTIVITY_DAYS_MAX}, or today so far. Default: all ${ACTIVITY_DAYS_MAX} completed ones.`,
          }),
        ),
        api_key_hash: Type.Optional(Type.String({ description: 'Only what this key used.' })),
        user_id: Type.Optional(Type.String({ description: "Only what this member's keys used." })),
        workspace_id: Type.Optional(Type.String({ description: 'Only what keys of this workspace used.' })),
        group_by: Type.Optional(Type.Literal('workspace')),
      }),
      response: { 200: Type.Object({ data: Type.Array(ActivityItem) }), ...errors(400, 401, 403, 429, 500) },
    },
    handler: async (request) => {
      const caller = principalOf(request);
      const { organization_id } = caller;
      const { date, api_key_hash: keyHash, workspace_id, group_by } = request.query;
      const ownUser = ownUserOf(caller);
      const userId = request.query.user_id ?? ownUser;
      if (ownUser !== undefined && userId !== ownUser) {
        throw new GatewayError(403, 'Members see the usage of their own keys alone; leave user_id out');
      }
      const moment = now();
      const days = daysOf(date, moment);
      if (![keyHash, userId, workspace_id].every((text) => isStorable(text ?? ''))) return { data: [] };
      // Outcomes that are not stored yet may belong to the end of yesterday.
      if (date === undefined || date === dayOf(moment)) await recentOutcomes(recorder);
      const filter = { organization_id, ...days, key_hash: keyHash, user_id: userId, workspace_id };
      const rows = await activity.listBy(filter, { by_workspace: group_by === 'workspace' });
      return { data: rows.map(describeRow) };
    },
  });
}
