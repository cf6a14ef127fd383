import Type, { type Static } from 'typebox';
import { limits } from '../limits.ts';

/** Selects the logged requests that a guardrail is tested on. */
export const ReplaySelection = Type.Object(
  {
    workspace_id: Type.String({ minLength: 1, description: 'The id or the slug of a workspace that keeps requests.' }),
    since: Type.Optional(Type.String({ format: 'date-time', description: 'Default: all that are kept.' })),
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: limits.replay_requests_max,
        description: `The number of newest requests; default ${limits.replay_requests_default}.`,
      }),
    ),
  },
  { additionalProperties: false },
);
export type ReplaySelection = Static<typeof ReplaySelection>;

/** The effects that a guardrail would have had on logged requests. */
export const GuardrailReplay = Type.Object(
  {
    requests: Type.Integer({ description: 'The number of requests that were checked.' }),
    blocked: Type.Integer(),
    redacted: Type.Integer(),
    flagged: Type.Integer(),
    filters: Type.Array(
      Type.Object({
        filter: Type.String(),
        label: Type.String(),
        action: Type.String(),
        requests: Type.Integer(),
        findings: Type.Integer(),
      }),
      { description: 'The matches of each filter, even if another filter refused the request.' },
    ),
    examples: Type.Array(
      Type.Object({
        generation_id: Type.String(),
        action: Type.Enum(['blocked', 'redacted', 'flagged'] as const),
        filters: Type.Array(Type.String(), { description: 'By label.' }),
      }),
      { description: 'The newest requests with matches; never the matched text.' },
    ),
    is_complete: Type.Boolean({ description: 'False: it took too long, and older requests were not checked.' }),
  },
  { title: 'GuardrailReplay' },
);
export type GuardrailReplay = Static<typeof GuardrailReplay>;
