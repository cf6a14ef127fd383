import Type, { type Static, type TSchema } from 'typebox';
import { limits } from '../limits.ts';

const GUARDRAIL_NAME_CHARS_MAX = 200;
const GUARDRAIL_DESCRIPTION_CHARS_MAX = 1_000;
const FILTER_LABEL_CHARS_MAX = 100;
/** One pattern of a guardrail. */
const FILTER_PATTERN_CHARS_MAX = 100_000;

/** The built-in filters (specification, section Guardrail record). */
const builtinFilterSlugs = [
  'email',
  'phone',
  'ssn',
  'credit-card',
  'ip-address',
  'person-name',
  'address',
  'regex-prompt-injection',
] as const;

/** An entry of `content_filter_builtins`. */
export const BuiltinFilter = Type.Object(
  {
    slug: Type.Enum(builtinFilterSlugs),
    action: Type.Enum(['redact', 'block', 'flag'] as const),
    label: Type.Optional(
      Type.String({ maxLength: FILTER_LABEL_CHARS_MAX, description: 'The name in redaction placeholders.' }),
    ),
    scan_scope: Type.Optional(
      Type.Literal('all_messages', { description: 'All messages are scanned; a narrower scope is refused.' }),
    ),
  },
  { additionalProperties: false, title: 'BuiltinFilter' },
);
export type BuiltinFilter = Static<typeof BuiltinFilter>;

/** An entry of `content_filters`: a pattern in RE2 syntax. */
export const CustomFilter = Type.Object(
  {
    pattern: Type.String({ minLength: 1, maxLength: FILTER_PATTERN_CHARS_MAX }),
    action: Type.Enum(['redact', 'block'] as const),
    label: Type.Optional(
      Type.Union([Type.String({ maxLength: FILTER_LABEL_CHARS_MAX }), Type.Null()], {
        description: 'The name in placeholders and error messages.',
      }),
    ),
  },
  { additionalProperties: false, title: 'CustomFilter' },
);
export type CustomFilter = Static<typeof CustomFilter>;

/** A guardrail that applies to a caller, and the assignment that makes it apply. */
export interface BoundGuardrail {
  id: string;
  /** Assigned to the key, to the member who owns the key, or to the workspace. */
  scope: 'api-key' | 'member' | 'workspace';
  allowed_models: string[] | null;
  ignored_models: string[] | null;
  allowed_providers: string[] | null;
  ignored_providers: string[] | null;
  enforce_zdr: boolean | null;
  enforce_zdr_anthropic: boolean | null;
  enforce_zdr_openai: boolean | null;
  enforce_zdr_google: boolean | null;
  enforce_zdr_other: boolean | null;
  /** Null if the value of `enforce_zdr_other` applies. */
  enforce_zdr_xai: boolean | null;
  content_filter_builtins: BuiltinFilter[] | null;
  content_filters: CustomFilter[] | null;
  /** Whether its filters also apply to answers. */
  content_filter_output: boolean | null;
  /** Whether redacted text is restored in the answer to the client. */
  content_filter_reversible: boolean | null;
}

const nullable = <T extends TSchema>(schema: T, description?: string) =>
  Type.Union([schema, Type.Null()], description === undefined ? {} : { description });

/** The interval of a spending limit, which is reset at midnight UTC. */
const ResetInterval = Type.Enum(['daily', 'weekly', 'monthly'] as const);

const zdr = (description: string) => nullable(Type.Boolean(), description);
const zdrFields = {
  enforce_zdr: zdr('Deprecated: the value of every field below that the request leaves out.'),
  enforce_zdr_vendor_a: zdr('Zero data retention for models of Anthropic.'),
  enforce_zdr_vendor_b: zdr('Zero data retention for models of OpenAI.'),
  enforce_zdr_vendor_c: zdr('Zero data retention for models of Google.'),
  enforce_zdr_anthropic: zdr('The same as enforce_zdr_vendor_a.'),
  enforce_zdr_openai: zdr('The same as enforce_zdr_vendor_b.'),
  enforce_zdr_google: zdr('The same as enforce_zdr_vendor_c.'),
  enforce_zdr_xai: zdr('Zero data retention for models of xAI; null: as enforce_zdr_other.'),
  enforce_zdr_other: zdr('Zero data retention for models of all other authors.'),
};

/** The guardrail record (specification, section Resources). */
export const Guardrail = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    name: Type.String(),
    workspace_id: Type.String(),
    created_at: Type.String({ format: 'date-time' }),
    updated_at: nullable(Type.String({ format: 'date-time' })),
    description: nullable(Type.String()),
    allowed_models: nullable(Type.Array(Type.String()), 'Canonical slugs; null: all.'),
    ignored_models: nullable(Type.Array(Type.String()), 'Canonical slugs of excluded models.'),
    allowed_providers: nullable(Type.Array(Type.String()), 'Provider slugs; null: all.'),
    ignored_providers: nullable(Type.Array(Type.String()), 'Slugs of excluded providers.'),
    limit_usd: nullable(Type.Number(), 'Spending limit of each assignee, USD; null: none.'),
    reset_interval: Type.Optional(ResetInterval),
    include_byok_in_budgets: Type.Boolean({
      description:
        'Whether usage of own provider accounts counts toward limit_usd; it also does if the workspace counts it.',
    }),
    ...zdrFields,
    content_filter_builtins: nullable(Type.Array(BuiltinFilter)),
    content_filters: nullable(Type.Array(CustomFilter)),
    content_filter_output: nullable(
      Type.Boolean(),
      'Whether the filters apply to answers too; null: to requests only.',
    ),
    content_filter_reversible: nullable(
      Type.Boolean(),
      "Whether redacted text is restored in the client's answer, so that only the model does not see it; null: it is not.",
    ),
  },
  { title: 'Guardrail' },
);
export type Guardrail = Static<typeof Guardrail>;

const names = (description: string) =>
  Type.Optional(
    nullable(
      Type.Array(Type.String({ minLength: 1, maxLength: limits.model_name_chars_max }), {
        minItems: 1,
        maxItems: limits.guardrail_entries_max,
      }),
      description,
    ),
  );
/** A permission of the public service that cannot be withdrawn here. Other values are refused, since they would have no effect. */
const allowed = (what: string) =>
  Type.Optional(
    Type.Union([Type.Literal(true), Type.Null()], {
      description: `true or null: no restriction. false (no ${what}) is refused, because guardrails cannot enforce it; use provider.data_collection, or allowed_providers.`,
    }),
  );
const name = Type.String({ minLength: 1, maxLength: GUARDRAIL_NAME_CHARS_MAX });
const settings = {
  description: Type.Optional(nullable(Type.String({ maxLength: GUARDRAIL_DESCRIPTION_CHARS_MAX }))),
  limit_usd: Type.Optional(
    nullable(Type.Number({ minimum: 0, maximum: limits.usd_max }), 'Spending limit of each assignee, USD; null: none.'),
  ),
  reset_interval: Type.Optional(nullable(ResetInterval, 'When the limit resets, at midnight UTC; null: never.')),
  allowed_models: names('Ids or canonical slugs of models; null: all.'),
  ignored_models: names('Ids or canonical slugs of models to exclude.'),
  allowed_providers: names('Slugs or display names of providers; null: all.'),
  ignored_providers: names('Slugs or display names of providers to exclude.'),
  enforce_zdr: Type.Optional(zdrFields.enforce_zdr),
  enforce_zdr_vendor_a: Type.Optional(zdrFields.enforce_zdr_vendor_a),
  enforce_zdr_vendor_b: Type.Optional(zdrFields.enforce_zdr_vendor_b),
  enforce_zdr_vendor_c: Type.Optional(zdrFields.enforce_zdr_vendor_c),
  enforce_zdr_anthropic: Type.Optional(zdrFields.enforce_zdr_anthropic),
  enforce_zdr_openai: Type.Optional(zdrFields.enforce_zdr_openai),
  enforce_zdr_google: Type.Optional(zdrFields.enforce_zdr_google),
  enforce_zdr_xai: Type.Optional(zdrFields.enforce_zdr_xai),
  enforce_zdr_other: Type.Optional(zdrFields.enforce_zdr_other),
  include_byok_in_budgets: Type.Optional(
    Type.Boolean({
      description:
        'Whether usage of own provider accounts counts toward limit_usd. It always does if the workspace counts it toward its budgets. Default: false.',
    }),
  ),
  enable_free_model_training: allowed('training by models that cost nothing'),
  enable_paid_model_training: allowed('training by models that cost something'),
  enable_free_model_publication: allowed('publication by models that cost nothing'),
  allowed_data_regions: Type.Optional(
    Type.Null({
      description:
        'Always null: regions cannot be restricted. A list is refused, because the gateway does not know regions.',
    }),
  ),
  content_filter_builtins: Type.Optional(
    nullable(
      Type.Array(BuiltinFilter, { maxItems: limits.guardrail_filters_max }),
      'Built-in filters; null removes all.',
    ),
  ),
  content_filters: Type.Optional(
    nullable(
      Type.Array(CustomFilter, { maxItems: limits.guardrail_filters_max }),
      'Your own patterns; null removes all.',
    ),
  ),
  content_filter_output: Type.Optional(nullable(Type.Boolean(), 'Whether the filters apply to answers too.')),
  content_filter_reversible: Type.Optional(
    nullable(Type.Boolean(), "Whether redacted text is restored in the client's answer."),
  ),
};

/** Body of `POST /guardrails`. */
export const CreateGuardrailBody = Type.Object(
  { name, workspace_id: Type.Optional(Type.String({ description: 'Default: the default workspace.' })), ...settings },
  { additionalProperties: false },
);
export type CreateGuardrailBody = Static<typeof CreateGuardrailBody>;

/** A guardrail that is not stored: the body of `POST /guardrails`, with an optional name. */
export const DraftGuardrail = Type.Object(
  { name: Type.Optional(name), workspace_id: Type.Optional(Type.String()), ...settings },
  { additionalProperties: false, title: 'DraftGuardrail', description: 'Either this, or `guardrail_id`.' },
);

/** Body of `PATCH /guardrails/{id}`. Omitted fields stay unchanged; lists are replaced. */
export const UpdateGuardrailBody = Type.Object(
  { name: Type.Optional(name), ...settings },
  { additionalProperties: false },
);
export type UpdateGuardrailBody = Static<typeof UpdateGuardrailBody>;

/** The path of one guardrail. */
export const GuardrailParams = Type.Object({ id: Type.String({ description: 'Identity of the guardrail.' }) });

const assignment = {
  id: Type.String({ format: 'uuid' }),
  guardrail_id: Type.String({ format: 'uuid' }),
};
const assigned = {
  assigned_by: nullable(Type.String(), 'The user who assigned it.'),
  created_at: Type.String({ format: 'date-time' }),
};

/** The assignment of a guardrail to a member of the organization. */
export const MemberAssignment = Type.Object(
  { ...assignment, organization_id: Type.String(), user_id: Type.String(), ...assigned },
  { title: 'MemberAssignment' },
);
export type MemberAssignment = Static<typeof MemberAssignment>;

/** The assignment of a guardrail to an API key. */
export const KeyAssignment = Type.Object(
  { ...assignment, key_hash: Type.String(), key_name: Type.String(), key_label: Type.String(), ...assigned },
  { title: 'KeyAssignment' },
);
export type KeyAssignment = Static<typeof KeyAssignment>;

const bulk = (description: string) =>
  Type.Array(Type.String({ minLength: 1 }), { minItems: 1, maxItems: limits.bulk_entries_max, description });

/** Body of the operations that assign a guardrail to keys, or unassign it. */
export const KeysBody = Type.Object(
  { key_hashes: bulk('Hashes of keys of the organization. Either all are accepted, or none.') },
  { additionalProperties: false },
);

/** Body of the operations that assign a guardrail to members, or unassign it. */
export const AssignedMembersBody = Type.Object(
  { member_user_ids: bulk('Members of the organization. Either all are accepted, or none.') },
  { additionalProperties: false },
);
