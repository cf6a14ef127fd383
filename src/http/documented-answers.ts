import { lookupTable } from '../schemas/lookup-table.ts';
import { runsModels } from './metered.ts';

export type Json = string | number | boolean | null | Json[] | { [key: string]: Json };

/** The part of an operation in the OpenAPI document that this file reads and completes. */
export interface Operation {
  tags?: string[];
  parameters?: Json[];
  responses: Record<string, { description: string; content?: Json; headers?: Json }>;
}

/** Default descriptions of statuses. */
const MEANINGS: Readonly<Record<string, string>> = lookupTable({
  200: 'The answer.',
  201: 'The new record.',
  400: 'The request is wrong: the message names the field, and what is expected there.',
  401: 'The request has no valid credential.',
  402: 'A limit or the credits do not pay for the request. With `Retry-After` it can succeed later: running requests have reserved what is left, or the interval of the limit ends then.',
  403: 'The credential does not allow this, or a guardrail or content filter blocked it.',
  404: 'Not found. For a call: no endpoint can serve it; `error.metadata` has the `routing_funnel`, the `failed_routing_step` and the `constraint` to change.',
  408: 'The request did not arrive, or the provider did not answer, in time.',
  409: 'The change conflicts with an existing record.',
  413: 'The request is too large.',
  422: 'The provider cannot process the request.',
  429: 'A rate limit is reached, here or at every provider that can serve the request.',
  431: 'The request line and the headers are too large together; the connection is closed.',
  500: 'A fault of the gateway.',
  502: 'The provider failed, or its answer is not valid.',
  503: 'No provider can serve the request at the moment, the store does not answer, or the gateway has no free memory.',
});

const header = (description: string, type = 'string'): Json => ({ description, schema: { type } });

/** Headers of answers, by the name under which the document refers to them. */
export const documentedHeaders: Readonly<Record<string, Json>> = lookupTable({
  'X-Generation-Id': header(
    'The id of the call for `GET /generation`, also for calls that fail after they were accepted.',
  ),
  'Retry-After': header('Seconds after which to try again, if known.', 'integer'),
  'X-Should-Retry': header('`true`: the same request can succeed later; official SDKs then try again.'),
  'X-RateLimit-Limit': header('The limit, if it is one of the gateway.', 'integer'),
  'X-RateLimit-Remaining': header('What is left of the limit.', 'integer'),
  'X-RateLimit-Reset': header('When the limit resets, in milliseconds since 1970.', 'integer'),
  ETag: header('Identifies this version of the answer; send it back as `If-None-Match`.'),
  'Cache-Control': header('How long the answer may be cached.'),
});

const refs = (...names: string[]): Json =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));

const requestHeader = (name: string, description: string, schema: Json): Json => ({
  in: 'header',
  name,
  required: false,
  description,
  schema,
});

const errorBody: Json = { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } };

/** Statuses that any operation may answer with before it runs: invalid HTTP or path (400), incomplete in time (408), too large (413, 431). */
function statusesOfEdge(method: string): string[] {
  return ['400', '408', ...(method === 'GET' ? [] : ['413']), '431'];
}

/** Completes an operation of the document in place: the statuses of the edge, descriptions, and headers of requests and answers. */
export function documentAnswers(method: string, operation: Operation): void {
  const { responses } = operation;
  for (const status of statusesOfEdge(method)) {
    responses[status] ??= { description: MEANINGS[status] ?? '', content: errorBody };
  }
  const isInference = runsModels(method, operation.tags);
  const isCached = '304' in responses;
  for (const [status, response] of Object.entries(responses)) {
    if (response.description === 'Default Response') response.description = MEANINGS[status] ?? response.description;
    const names = [
      ...(isInference && status === '200' ? ['X-Generation-Id'] : []),
      ...(isCached && (status === '200' || status === '304') ? ['ETag', 'Cache-Control'] : []),
      ...(status === '402' || status === '429' || status === '503' ? ['Retry-After'] : []),
      ...(status === '402' ? ['X-Should-Retry'] : []),
      ...(status === '429' ? ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'] : []),
    ];
    if (names.length > 0) response.headers = refs(...names);
  }
  const parameters = [
    ...(isInference
      ? [
          requestHeader(
            'X-Gateway-Experimental-Metadata',
            '`enabled`: adds `gateway_metadata` with the routing to the answer.',
            {
              type: 'string',
              enum: ['enabled', 'disabled'],
              default: 'disabled',
            },
          ),
        ]
      : []),
    ...(isCached
      ? [requestHeader('If-None-Match', 'The `ETag` of an answer that the client has.', { type: 'string' })]
      : []),
  ];
  if (parameters.length > 0) operation.parameters = [...(operation.parameters ?? []), ...parameters];
}
