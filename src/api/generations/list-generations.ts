import { Readable } from 'node:stream';
import Type, { type Static } from 'typebox';
import { GatewayError, invalidField } from '../../errors.ts';
import { inCallerTurn } from '../../http/caller-turns.ts';
import type { Principal } from '../../http/principal.ts';
import type { HttpRequest } from '../../http/request.ts';
import type { Server } from '../../http/server.ts';
import type { Recorder } from '../../ledger/recorder.ts';
import { limits } from '../../limits.ts';
import { errors } from '../../schemas/error.ts';
import {
  type GenerationField,
  GenerationRow,
  GenerationTotals,
  generationFields,
  NextCursor,
} from '../../schemas/generation-list.ts';
import { lookupTable } from '../../schemas/lookup-table.ts';
import { toNano, toUsd } from '../../schemas/money.ts';
import { isStorable } from '../../schemas/text.ts';
import type { SeriesColumn } from '../../storage/analytics.ts';
import type { GenerationFilter, GenerationLists, GenerationPlace } from '../../storage/generation-lists.ts';
import { ownUserOf, principalOf } from '../change.ts';
import { recentOutcomes } from '../recent-outcomes.ts';
import { csvHead, csvLines } from './csv.ts';
import { cursorOf, placeOf, rangeOf } from './cursor.ts';
import { describeRow } from './describe-row.ts';

const ROWS_DEFAULT = 50;
/** Rows of one table, and rows that are read for it at once. */
const CSV_ROWS_MAX = 100_000;
const CSV_PORTION_ROWS = 200;

export interface ListGenerationsDependencies {
  generationLists: GenerationLists;
  recorder: Pick<Recorder, 'flush'>;
}

const name = (description: string) => Type.Optional(Type.String({ minLength: 1, maxLength: 512, description }));
const flag = (description: string) => Type.Optional(Type.Enum(['true', 'false'] as const, { description }));

/** The dimensions of analytics of which a call may have no value, with their columns. */
const UNSET = lookupTable<SeriesColumn>({
  user: 'user_id',
  provider: 'provider_name',
  app: 'app',
  tag: 'tags',
  external_user: 'external_user',
  finish_reason: 'finish_reason',
  guardrail: 'guardrails',
});

const Query = Type.Object({
  from: name('Only calls admitted at this time or later: ISO 8601, or a UTC day.'),
  to: name('Only calls admitted before this time.'),
  api_key_hash: name('Only calls with this key.'),
  user_id: name("Only calls with this member's keys."),
  workspace_id: name('Only calls with keys of this workspace.'),
  model: name('Only calls that this model served.'),
  requested_model: name('Only calls that named this model.'),
  provider: name('Only calls that the provider with this name served, such as `OpenAI`.'),
  outcome: Type.Optional(Type.Enum(['completed', 'failed', 'cancelled', 'unknown'] as const)),
  error: flag(
    'true: only calls that failed, or whose end is unknown, as `error_count` of analytics; false: only others.',
  ),
  failure: name(
    'Only calls with an attempt that failed for this reason, such as `rate_limited`; `failures` of a record has the names.',
  ),
  fell_back: flag('true: only calls with an attempt that failed, whatever their outcome; false: only others.'),
  failed_endpoint: name(
    'Only calls with a failed attempt at the endpoint with this id, whatever their outcome: `endpoint_id` of `GET /endpoints/failing`.',
  ),
  guardrail: flag('true: only calls in which a guardrail or filter acted; false: only others.'),
  finish_reason: name('Only answers with this finish reason.'),
  session_id: name('Only calls with this session id.'),
  app: name(
    'Only calls of this application: its title, or its address if it has none; `other`: those of the applications that analytics sums as `other`.',
  ),
  tag: name('Only calls with this tag; `other`: those whose tags analytics sums as `other`.'),
  external_user: name(
    'Only calls with this `user` of the request, as analytics sums them: `other` from the hundred-and-first value in an hour on.',
  ),
  guardrail_id: name('Only calls in which this guardrail acted.'),
  operation: name('Only calls of this operation, as `api_type` of a record.'),
  without: name(
    `Only calls without a value of these dimensions, with commas between them: ${Object.keys(UNSET).join(', ')}.`,
  ),
  streamed: flag('true: only streamed answers; false: only whole ones.'),
  min_cost: Type.Optional(Type.Number({ minimum: 0, maximum: limits.usd_max, description: 'USD.' })),
  min_latency: Type.Optional(
    Type.Number({ minimum: 0, maximum: 1e9, description: 'Milliseconds to the first token.' }),
  ),
  order: Type.Optional(Type.Enum(['desc', 'asc'] as const, { description: 'Default: the newest first.' })),
  fields: name('The fields of each record, separated by commas, in the order of the columns of CSV. Default: all.'),
  totals: flag('true: with the number and the cost of the calls that the filter matches, as far as they are summed.'),
  format: Type.Optional(
    Type.Enum(['json', 'csv'] as const, { description: 'Default: as `Accept` says, JSON if it says nothing.' }),
  ),
  cursor: name('`next_cursor` of the page before, with the same filter and order.'),
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: CSV_ROWS_MAX,
      description: `Records of a page: default ${ROWS_DEFAULT}, at most ${limits.page_records_max}; as CSV at most ${CSV_ROWS_MAX}, which is the default.`,
    }),
  ),
});
type Query = Static<typeof Query>;

const flagOf = (value: 'true' | 'false' | undefined) => (value === undefined ? undefined : value === 'true');

/** The named fields; a 400 for one that does not exist. */
function fieldsOf(text: string | undefined): readonly GenerationField[] {
  const known = Object.keys(generationFields) as GenerationField[];
  if (text === undefined) return known;
  return [...new Set(text.split(','))].map((part) => {
    const field = known.find((one) => one === part.trim());
    if (field === undefined)
      throw invalidField('fields', `has no field ${part.trim()}; fields are ${known.join(', ')}`);
    return field;
  });
}

/** The columns of the dimensions that `without` names; a 400 for one that does not exist. */
function unsetOf(text: string | undefined): SeriesColumn[] | undefined {
  return text?.split(',').map((part) => {
    const column = UNSET[part.trim()];
    if (column === undefined)
      throw invalidField('without', `has no dimension ${part.trim()}; dimensions are ${Object.keys(UNSET).join(', ')}`);
    return column;
  });
}

/** The member whose generations alone a caller sees, if any; a 403 for those of others. */
export function visibleUser(principal: Principal, requested: string | undefined): string | undefined {
  const ownUser = ownUserOf(principal);
  if (ownUser !== undefined && requested !== undefined && requested !== ownUser) {
    throw new GatewayError(403, 'Members see the calls of their own keys alone; leave user_id out');
  }
  return ownUser ?? requested;
}

function filterOf(principal: Principal, query: Query): GenerationFilter {
  return {
    organization_id: principal.organization_id,
    user_id: visibleUser(principal, query.user_id),
    ...rangeOf(query),
    key_hash: query.api_key_hash,
    workspace_id: query.workspace_id,
    model: query.model,
    requested_model: query.requested_model,
    provider_name: query.provider,
    outcome: query.outcome,
    is_error: flagOf(query.error),
    failure: query.failure,
    has_failures: query.failed_endpoint === undefined || query.fell_back === 'false' ? flagOf(query.fell_back) : true,
    failed_endpoint: query.failed_endpoint,
    has_guardrails: flagOf(query.guardrail),
    finish_reason: query.finish_reason,
    session_id: query.session_id,
    app: query.app,
    tag: query.tag,
    external_user: query.external_user,
    guardrail_id: query.guardrail_id,
    operation: query.operation,
    unset: unsetOf(query.without),
    streamed: flagOf(query.streamed),
    min_cost_nano: query.min_cost === undefined ? undefined : toNano(query.min_cost),
    min_latency_ms: query.min_latency,
  };
}

/** Serves `GET /generations`: the finished calls of the organization, or of a member. */
export function listGenerations(server: Server, { generationLists, recorder }: ListGenerationsDependencies): void {
  /** The lines of a table, a portion at a time: the next one is read when the client has taken the last. */
  async function* table(
    filter: GenerationFilter,
    fields: readonly GenerationField[],
    {
      request,
      order,
      rows_max,
      after,
    }: { request: HttpRequest; order: 'asc' | 'desc'; rows_max: number; after: GenerationPlace | undefined },
  ): AsyncGenerator<string, void, undefined> {
    yield csvHead(fields);
    let next = after;
    for (let left = rows_max; left > 0; ) {
      const limit = Math.min(left, CSV_PORTION_ROWS);
      const from = next;
      const page = await inCallerTurn(request, async () => {
        const { records, next } = await generationLists.list(filter, { limit, order, after: from });
        return { rows: records.length, lines: csvLines(records.map(describeRow), fields), next };
      });
      if (page.rows > 0) yield page.lines;
      left -= page.rows;
      next = page.next;
      if (next === undefined) return;
    }
  }

  server.route({
    method: 'GET',
    url: '/generations',
    config: { access: 'management', forMembers: true },
    schema: {
      operationId: 'listGenerations',
      tags: ['Generations'],
      summary: 'Lists finished calls, newest first.',
      description:
        'A management key and an administrator see the calls of the organization, a member those of its own keys. API keys cannot list calls: they read a call by its id, with `GET /generation`. ' +
        'Cells of CSV that a spreadsheet would run as formulas begin with an apostrophe.',
      querystring: Query,
      response: {
        200: {
          description: 'A page of the calls, or a table of them.',
          content: {
            'application/json': {
              schema: Type.Object({
                data: Type.Array(GenerationRow),
                next_cursor: NextCursor,
                totals: Type.Optional(GenerationTotals),
              }),
            },
            'text/csv': { schema: Type.String() },
          },
        },
        ...errors(400, 401, 403, 429, 500),
      },
    },
    handler: async (request, reply) => {
      const { query } = request;
      const filter = filterOf(principalOf(request), query);
      const fields = fieldsOf(query.fields);
      const after = placeOf(query.cursor);
      const { order = 'desc' } = query;
      const isCsv = (query.format ?? (/^text\/csv\b/.test(request.headers.accept ?? '') ? 'csv' : 'json')) === 'csv';
      const isPossible = Object.values(filter).every((value) => typeof value !== 'string' || isStorable(value));
      if (!isCsv && query.limit !== undefined && query.limit > limits.page_records_max) {
        throw invalidField('limit', `must be at most ${limits.page_records_max}, or ${CSV_ROWS_MAX} with format=csv`);
      }
      // What this node has just answered is listed.
      if (after === undefined) await recentOutcomes(recorder);
      if (isCsv) {
        const lines = isPossible
          ? table(filter, fields, { request, order, rows_max: query.limit ?? CSV_ROWS_MAX, after })
          : [csvHead(fields)];
        reply.header('content-type', 'text/csv; charset=utf-8');
        reply.header('content-disposition', 'attachment; filename="generations.csv"');
        return reply.send(Readable.from(lines) as unknown as string);
      }
      const page = isPossible
        ? await generationLists.list(filter, { limit: query.limit ?? ROWS_DEFAULT, order, after })
        : { records: [], next: undefined };
      const data = page.records.map(describeRow);
      const totals = query.totals === 'true' && isPossible ? await generationLists.sum(filter) : undefined;
      return {
        data:
          query.fields === undefined
            ? data
            : data.map((row): Partial<GenerationRow> => Object.fromEntries(fields.map((field) => [field, row[field]]))),
        next_cursor: cursorOf(page.next),
        ...(totals && {
          totals: { count: totals.count, total_cost: toUsd(totals.cost_nano), is_complete: totals.is_complete },
        }),
      };
    },
  });
}
