import Type from 'typebox';
import { invalidField } from '../../errors.ts';
import { claimOf } from '../../http/bounded-bodies.ts';
import type { Principal } from '../../http/principal.ts';
import type { Server } from '../../http/server.ts';
import { limits } from '../../limits.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { responsesErrors } from '../../schemas/responses-answer.ts';
import { responsesError } from './errors.ts';
import { notStored, ResponseParams, type StoredResponses } from './stored-responses.ts';

const InputItem = Type.Object(
  { id: Type.String(), type: Type.String() },
  { title: 'ListedInputItem', additionalProperties: true },
);

const InputItems = Type.Object(
  {
    object: Type.Literal('list'),
    data: Type.Array(InputItem),
    first_id: Type.Union([Type.String(), Type.Null()]),
    last_id: Type.Union([Type.String(), Type.Null()]),
    has_more: Type.Boolean(),
  },
  { title: 'ListedInputItems' },
);

/** The items, each with a type and a unique id. Items without one get an id by their position, the same in every listing. */
function listed(responseId: string, input: readonly JsonObject[]): (JsonObject & { id: string; type: string })[] {
  const stem = responseId.replace(/^gen-/, '').replaceAll('-', '');
  const ids = new Set<string>();
  return input.map((item, at) => {
    const { id: ownId, type = 'message', role, content } = item;
    const id = typeof ownId === 'string' && ownId !== '' && !ids.has(ownId) ? ownId : `in_${stem}${at}`;
    ids.add(id);
    const listedItem = { ...item, id, type: String(type) };
    if (type !== 'message' || typeof content !== 'string') return listedItem;
    const part = { type: role === 'assistant' ? 'output_text' : 'input_text', text: content };
    return { ...listedItem, content: [part] };
  });
}

/** Serves `GET /responses/{id}/input_items`: the input of a stored response, including the conversation before it. */
export function listInputItems(server: Server, { stored }: { stored: StoredResponses | undefined }): void {
  server.route({
    method: 'GET',
    url: '/responses/:id/input_items',
    config: { access: 'any', errorFormat: responsesError },
    schema: {
      operationId: 'listInputItems',
      tags: ['Responses'],
      summary: 'Lists the input items of a stored response.',
      params: ResponseParams,
      querystring: Type.Object({
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: limits.page_records_max, default: 20 })),
        order: Type.Optional(Type.Enum(['asc', 'desc'], { description: 'Default: newest first.' })),
        after: Type.Optional(Type.String({ description: 'Id of the item after which the page begins.' })),
      }),
      response: { 200: InputItems, ...responsesErrors(400, 401, 404, 429, 500, 503) },
    },
    handler: async (request) => {
      const { id } = request.params;
      const { limit = 20, order = 'desc', after } = request.query;
      const match = await stored?.find(id, request.principal as Principal, claimOf(request), request.store_wait);
      if (match === undefined) throw notStored();
      const items = listed(id, match.input);
      if (order === 'desc') items.reverse();
      const from = after === undefined ? 0 : items.findIndex((item) => item.id === after) + 1;
      if (after !== undefined && from === 0) throw invalidField('after', 'must be the id of an item of this response');
      const data = items.slice(from, from + limit);
      return {
        object: 'list' as const,
        data,
        first_id: data[0]?.id ?? null,
        last_id: data.at(-1)?.id ?? null,
        has_more: from + limit < items.length,
      };
    },
  });
}
