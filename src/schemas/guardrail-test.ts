import Type, { type Static, type TSchema } from 'typebox';
import { limits } from '../limits.ts';
import { DraftGuardrail } from './guardrail.ts';
import { GuardrailReplay, ReplaySelection } from './guardrail-replay.ts';
import { PipelineStage } from './routing-metadata.ts';

const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

/** Body of `POST /guardrails/test`: a guardrail or a draft of one, and the text or the requests to test it on. */
export const TestGuardrailBody = Type.Object(
  {
    guardrail_id: Type.Optional(Type.String({ description: 'A stored guardrail. Either this, or `guardrail`.' })),
    guardrail: Type.Optional(DraftGuardrail),
    text: Type.Optional(
      Type.String({ minLength: 1, maxLength: limits.tested_chars_max, description: 'Either this, or `request`.' }),
    ),
    request: Type.Optional(
      Type.Object({}, { additionalProperties: true, description: 'The body of a request that a client might send.' }),
    ),
    api: Type.Optional(
      Type.Enum(['chat', 'responses', 'messages', 'completions'] as const, {
        description: 'The operation whose body `request` is. Default: chat.',
      }),
    ),
    replay: Type.Optional(ReplaySelection),
  },
  { additionalProperties: false },
);
export type TestGuardrailBody = Static<typeof TestGuardrailBody>;

/** The effects that a guardrail would have. */
export const GuardrailTest = Type.Object(
  {
    verdict: Type.Enum(['passed', 'flagged', 'redacted', 'blocked'] as const, {
      description: 'The strictest action of all filters.',
    }),
    refusal: nullable(
      Type.Object(
        {
          status: Type.Integer(),
          message: Type.String(),
          metadata: Type.Object({}, { additionalProperties: true }),
        },
        { description: 'The error that the client would receive.' },
      ),
    ),
    findings: Type.Array(
      Type.Object({
        filter: Type.String({ description: 'A builtin slug, or `custom`.' }),
        pattern: nullable(
          Type.String({ description: 'The pattern of a custom filter; a family of prompt injection.' }),
        ),
        label: Type.String(),
        action: Type.Enum(['redact', 'block', 'flag'] as const),
        field: Type.String({ description: 'The field, named as in the API of the request.' }),
        start: Type.Integer({ description: 'UTF-16 offset in the text of the field.' }),
        end: Type.Integer({ description: 'Exclusive.' }),
        excerpt: Type.String({ description: 'Its first and its last character.' }),
      }),
      {
        description: `The first ${limits.findings_reported_max}. After a match that blocks, nothing more is searched.`,
      },
    ),
    findings_count: Type.Integer(),
    changes: Type.Array(Type.Object({ field: Type.String(), text: Type.String() }), {
      description: `The texts that would be changed; the first ${limits.findings_reported_max}.`,
    }),
    pipeline: Type.Array(PipelineStage),
    routing: nullable(
      Type.Object(
        {
          models: Type.Array(Type.String()),
          endpoints: Type.Array(Type.String(), { description: 'The endpoints that the request could use.' }),
          excluded: Type.Array(Type.Object({ endpoint_id: Type.String(), reason: Type.String() }), {
            description: 'The endpoints that the restrictions exclude.',
          }),
          error: nullable(Type.String({ description: 'The error that the client would receive if none is left.' })),
        },
        { description: 'The effect of the restrictions on a request; null for a text.' },
      ),
    ),
    replay: Type.Optional(GuardrailReplay),
  },
  { title: 'GuardrailTest' },
);

export type GuardrailTest = Static<typeof GuardrailTest>;
