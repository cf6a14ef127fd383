import { runsModels } from './metered.ts';

export type Json = string | number | boolean | null | Json[] | { [key: string]: Json };

/** What the document says of an operation, as far as this file reads and completes it. */
export interface Operation {
  tags?: string[];
  parameters?: Json[];
  responses: Record<string, { description: string; content?: Json; headers?: Json }>;
}

/** What a status says where its operation says nothing of its own. */
const MEANINGS: Readonly<Record<string, string>> = {
  200: 'The answer.',
  201: 'What was made.',
  400: 'The request is wrong: the message names the field, and what is expected there.',
  401: 'No valid credential came with the request.',
  402: 'A limit or the credits do not pay for the request; with `Retry-After`: requests under way hold what is left, or the limit starts anew then.',
  403: 'The credential may not do this, or a guardrail or content filter stands against it.',
  404: 'There is nothing of this name. Of a call: no endpoint may serve it; `error.metadata` has the `routing_funnel`, the `failed_routing_step` and the `constraint` to change.',
  408: 'The request did not come, or the provider did not answer, in time.',
  409: 'It is in conflict with what is there.',
  413: 'The request is too large.',
  422: 'The provider cannot process the request.',
  429: 'A rate limit is reached, here or at every provider that may serve the request.',
  431: 'The request line and the headers are too large together; the connection ends.',
  500: 'A fault of the gateway.',
  502: 'The provider failed, or its answer was none.',
  503: 'No provider serves the request at the moment, or the store or the memory of the gateway does not.',
};

const header = (description: string, type = 'string'): Json => ({ description, schema: { type } });

/** Headers of answers, by the name under which the document refers to them. */
export const documented_headers: Readonly<Record<string, Json>> = {
  'X-Generation-Id': header(
    'What `GET /generation` knows the call by; also of calls that fail after they were taken up.',
  ),
  'Retry-After': header('Seconds after which it is worth trying again, where that is known.', 'integer'),
  'X-Should-Retry': header('`true`: the same request may pass later; official SDKs then try again.'),
  'X-RateLimit-Limit': header("Of a limit of the gateway's own: what it allows.", 'integer'),
  'X-RateLimit-Remaining': header('What is left of it.', 'integer'),
  'X-RateLimit-Reset': header('When it starts anew, in milliseconds since 1970.', 'integer'),
  ETag: header('Another one for any other answer; sent back as `If-None-Match`.'),
  'Cache-Control': header('How long the answer may be kept.'),
};

const refs = (...names: string[]): Json =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));

const requestHeader = (name: string, description: string, schema: Json): Json => ({
  in: 'header',
  name,
  required: false,
  description,
  schema,
});

const error_body: Json = { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } };

/** What is answered in place of any operation: to what is no HTTP, or no path (400), did not come whole in time (408) or is too large. */
function edgeStatuses(method: string): string[] {
  return ['400', '408', ...(method === 'GET' ? [] : ['413']), '431'];
}

/** Completes what the document says of an operation: what else may be answered, what its statuses mean, and the headers that go with them. */
export function documentAnswers(method: string, operation: Operation): void {
  const { responses } = operation;
  for (const status of edgeStatuses(method)) {
    responses[status] ??= { description: MEANINGS[status] ?? '', content: error_body };
  }
  const runs_models = runsModels(method, operation.tags);
  const is_cached = '304' in responses;
  for (const [status, response] of Object.entries(responses)) {
    if (response.description === 'Default Response') response.description = MEANINGS[status] ?? response.description;
    const names = [
      ...(runs_models && status === '200' ? ['X-Generation-Id'] : []),
      ...(is_cached && (status === '200' || status === '304') ? ['ETag', 'Cache-Control'] : []),
      ...(status === '402' || status === '429' || status === '503' ? ['Retry-After'] : []),
      ...(status === '402' ? ['X-Should-Retry'] : []),
      ...(status === '429' ? ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'] : []),
    ];
    if (names.length > 0) response.headers = refs(...names);
  }
  const parameters = [
    ...(runs_models
      ? [
          requestHeader(
            'X-Gateway-Experimental-Metadata',
            '`enabled`: the answer tells its routing in `gateway_metadata`.',
            {
              type: 'string',
              enum: ['enabled', 'disabled'],
              default: 'disabled',
            },
          ),
        ]
      : []),
    ...(is_cached
      ? [requestHeader('If-None-Match', 'The `ETag` of an answer that is there already.', { type: 'string' })]
      : []),
  ];
  if (parameters.length > 0) operation.parameters = [...(operation.parameters ?? []), ...parameters];
}
