import Type, { type Static, type TSchema } from 'typebox';

const nullable = <T extends TSchema>(schema: T, description?: string) =>
  Type.Union([schema, Type.Null()], description === undefined ? {} : { description });

const limit = {
  scope: Type.Enum(['key', 'guardrail', 'workspace', 'organization'] as const, {
    description:
      'What sets the limit: the key, a guardrail, a budget of the workspace, or the credits of the organization.',
  }),
  guardrail_id: nullable(Type.String(), 'The guardrail that sets it.'),
  reset_interval: nullable(Type.Enum(['daily', 'weekly', 'monthly'] as const), 'null: it never resets.'),
  resets_at: nullable(Type.String({ format: 'date-time' }), 'When the current window ends; null: never.'),
  include_byok: Type.Boolean({ description: 'Whether usage of own provider accounts counts.' }),
};

const HELD =
  'Reserved: for running requests, and what other nodes keep ready for their next ones. USD. limit, less spent, less held, is left.';

/** The state of a limit in its current window. */
export const SpendingLimit = Type.Object(
  {
    ...limit,
    label: Type.String({ description: 'The limit as a refusal names it.' }),
    assignee: Type.Object(
      {
        type: Type.Enum(['key', 'member', 'workspace', 'organization'] as const),
        id: Type.String({ description: 'The hash of the key, or the id of the member, workspace or organization.' }),
        name: nullable(Type.String()),
      },
      { description: 'Whose calls count.' },
    ),
    guardrail_name: nullable(Type.String()),
    workspace_id: nullable(Type.String(), 'The workspace of the key, or the workspace itself.'),
    limit: Type.Number({ description: 'USD.' }),
    spent: Type.Number({ description: 'USD, in the current window.' }),
    held: Type.Number({ description: HELD }),
    left: Type.Number({ description: 'USD: what new requests can reserve.' }),
  },
  { title: 'SpendingLimit' },
);
export type SpendingLimit = Static<typeof SpendingLimit>;

const amount = (description: string) =>
  nullable(Type.Number(), `${description} null: a member may not read the amounts of this limit.`);

/** One limit that the calls of a key count against. */
const KeyPolicyLimit = Type.Object(
  {
    ...limit,
    label: SpendingLimit.properties.label,
    limit: amount('USD.'),
    spent: amount('USD, in the current window.'),
    held: amount(HELD),
    left: amount('USD: what new requests can reserve.'),
    refuses: Type.Boolean({
      description: 'Nothing is left of it now: calls that cost something are refused with 402.',
    }),
  },
  { title: 'KeyPolicyLimit' },
);

/** The rules that all guardrails of a key make together. */
const EffectivePolicy = Type.Object(
  {
    allowed_models: nullable(Type.Array(Type.String()), 'Canonical slugs that all guardrails allow; null: all models.'),
    ignored_models: Type.Array(Type.String(), { description: 'Canonical slugs that a guardrail excludes.' }),
    allowed_providers: nullable(Type.Array(Type.String()), 'Slugs that all guardrails allow; null: all providers.'),
    ignored_providers: Type.Array(Type.String(), { description: 'Slugs that a guardrail excludes.' }),
    zdr: Type.Object(
      {
        anthropic: Type.Boolean(),
        openai: Type.Boolean(),
        google: Type.Boolean(),
        xai: Type.Boolean(),
        other: Type.Boolean(),
      },
      { description: 'Whether zero data retention is enforced for the models of these authors.' },
    ),
    filters: Type.Array(
      Type.Object({
        filter: Type.String({ description: 'A builtin slug, or `custom`.' }),
        action: Type.Enum(['redact', 'block', 'flag'] as const),
        label: nullable(Type.String()),
        guardrail_id: Type.String(),
        filters_answers: Type.Boolean({ description: 'Whether it applies to answers too.' }),
        is_reversible: Type.Boolean({ description: "Whether redacted text is restored in the client's answer." }),
      }),
      { description: 'All of them apply. Patterns of custom filters are in the guardrail.' },
    ),
  },
  { title: 'EffectivePolicy' },
);
export type EffectivePolicy = Static<typeof EffectivePolicy>;

/** Everything that applies to the calls of a key. */
export const KeyPolicy = Type.Object(
  {
    key_hash: Type.String(),
    refusal: nullable(
      Type.Object({
        code: Type.Integer({ description: '401: the key is not accepted. 402: a limit is used up.' }),
        message: Type.String(),
        resets_at: nullable(Type.String({ format: 'date-time' }), 'When the limit that refuses resets.'),
      }),
      'Why a call that costs something would be refused now, whatever it asks for. null: it would not. Rate limits are not considered.',
    ),
    limits: Type.Array(KeyPolicyLimit, {
      description: 'All limits that its calls count against, those of keys that it was made with included.',
    }),
    guardrails: Type.Array(
      Type.Object({
        id: Type.String(),
        name: Type.String(),
        scopes: Type.Array(Type.Enum(['api-key', 'member', 'workspace'] as const), {
          description:
            'Why it applies: it is assigned to the key (or a key that it was made with) or to its owner, or it is the default of its workspace.',
        }),
      }),
    ),
    effective: EffectivePolicy,
  },
  { title: 'KeyPolicy' },
);
export type KeyPolicy = Static<typeof KeyPolicy>;
