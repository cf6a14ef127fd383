import Type, { type Static, type TSchema } from 'typebox';
import { limits } from '../limits.ts';

const WORKSPACE_NAME_CHARS_MAX = 100;
const WORKSPACE_SLUG_CHARS_MAX = 50;
const DESCRIPTION_CHARS_MAX = 500;

const nullable = <T extends TSchema>(schema: T, description?: string) =>
  Type.Union([schema, Type.Null()], description === undefined ? {} : { description });

/** Criteria by which a workspace can sort endpoints. */
const ProviderSort = Type.Enum(['price', 'throughput', 'latency', 'exacto'] as const);

/** The workspace record (specification, section Resources). */
export const Workspace = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    name: Type.String(),
    slug: Type.String({ description: 'Can be used instead of the id in paths.' }),
    description: nullable(Type.String()),
    created_at: Type.String({ format: 'date-time' }),
    created_by: nullable(Type.String(), 'The user whose key made it.'),
    updated_at: nullable(Type.String({ format: 'date-time' })),
    default_image_model: nullable(
      Type.String(),
      'The model of requests without a model whose `modalities` contain `image`.',
    ),
    default_text_model: nullable(Type.String(), 'The model of other requests without a model.'),
    default_provider_sort: nullable(ProviderSort, 'The sort order of endpoints if a request has none.'),
    io_logging_api_key_ids: nullable(Type.Array(Type.Integer()), 'The keys that are logged; null: all.'),
    io_logging_sampling_rate: Type.Number({ description: 'From 0.0001 to 1; 1: every request.' }),
    is_data_discount_logging_enabled: Type.Boolean({ description: 'Stored, but without effect.' }),
    is_observability_broadcast_enabled: Type.Boolean(),
    is_observability_io_logging_enabled: Type.Boolean(),
    default_guardrail_id: Type.String({
      description: 'The guardrail that applies to all requests of the workspace; empty: none.',
    }),
    include_byok_in_budgets: Type.Boolean({
      description: 'Whether usage of own provider accounts counts toward the budgets of the workspace.',
    }),
  },
  { title: 'Workspace' },
);
export type Workspace = Static<typeof Workspace>;

const name = Type.String({ minLength: 1, maxLength: WORKSPACE_NAME_CHARS_MAX });
const slug = Type.String({
  minLength: 1,
  maxLength: WORKSPACE_SLUG_CHARS_MAX,
  description:
    'Lower-case letters and digits in segments with single hyphens between them; unique in the organization.',
});
const model = Type.Optional(
  nullable(
    Type.String({ minLength: 1, maxLength: limits.model_name_chars_max }),
    'Stored unchecked: a model may become available later.',
  ),
);
const settings = {
  description: Type.Optional(nullable(Type.String({ maxLength: DESCRIPTION_CHARS_MAX }))),
  default_image_model: model,
  default_text_model: model,
  default_provider_sort: Type.Optional(nullable(ProviderSort)),
  io_logging_api_key_ids: Type.Optional(
    nullable(
      Type.Array(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }), {
        maxItems: limits.io_logging_keys_max,
      }),
      'The integer ids of keys of this organization; null: all keys are logged.',
    ),
  ),
  io_logging_sampling_rate: Type.Optional(
    Type.Number({ minimum: 0.0001, maximum: 1, description: 'Rounded to the nearest ten-thousandth.' }),
  ),
  include_byok_in_budgets: Type.Optional(
    Type.Boolean({
      description: 'Whether usage of own provider accounts counts toward the budgets of the workspace, all of them.',
    }),
  ),
  disabled_server_tools: Type.Optional(
    nullable(
      Type.Array(Type.String(), { maxItems: 0 }),
      'null, or an empty list: all are enabled. Others are refused: the operator enables server tools for all.',
    ),
  ),
  is_data_discount_logging_enabled: Type.Optional(Type.Boolean()),
  is_observability_broadcast_enabled: Type.Optional(Type.Boolean()),
  is_observability_io_logging_enabled: Type.Optional(Type.Boolean()),
  default_guardrail_id: Type.Optional(
    nullable(
      Type.String({ maxLength: 100 }),
      'A guardrail of this organization that applies to all requests of the workspace, in addition to those of keys and members; null or empty: none.',
    ),
  ),
};

/** Body of `POST /workspaces`. */
export const CreateWorkspaceBody = Type.Object(
  { name, slug, ...settings },
  { additionalProperties: false, examples: [{ name: 'Research', slug: 'research' }] },
);
export type CreateWorkspaceBody = Static<typeof CreateWorkspaceBody>;

/** Body of `PATCH /workspaces/{id}`. Omitted fields stay unchanged. */
export const UpdateWorkspaceBody = Type.Object(
  { name: Type.Optional(name), slug: Type.Optional(slug), ...settings },
  { additionalProperties: false },
);
export type UpdateWorkspaceBody = Static<typeof UpdateWorkspaceBody>;

/** The path of one workspace. */
export const WorkspaceParams = Type.Object({
  id: Type.String({ description: 'The id or the slug of the workspace.' }),
});

/** A membership of a workspace. */
export const WorkspaceMember = Type.Object(
  {
    id: Type.String({ format: 'uuid', description: 'Identity of the membership.' }),
    workspace_id: Type.String({ format: 'uuid' }),
    user_id: Type.String(),
    role: Type.Enum(['admin', 'member'] as const, { description: 'The role that the user holds in the organization.' }),
    created_at: Type.String({ format: 'date-time' }),
  },
  { title: 'WorkspaceMember' },
);
export type WorkspaceMember = Static<typeof WorkspaceMember>;

/** Body of the operations that add or remove members. */
export const MembersBody = Type.Object(
  {
    user_ids: Type.Array(Type.String({ minLength: 1 }), {
      minItems: 1,
      maxItems: limits.bulk_entries_max,
      description: 'Members of the organization. Either all are accepted, or none.',
    }),
  },
  { additionalProperties: false },
);

/** The intervals of workspace budgets, the longest first. */
export const budgetIntervals = ['lifetime', 'monthly', 'weekly', 'daily'] as const;
export type BudgetInterval = (typeof budgetIntervals)[number];

/** A budget of a workspace. */
export const WorkspaceBudget = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    workspace_id: Type.String({ format: 'uuid' }),
    limit_usd: Type.Number(),
    reset_interval: nullable(
      Type.Enum(['daily', 'weekly', 'monthly'] as const),
      'null: for the lifetime of the workspace.',
    ),
    created_at: Type.String({ format: 'date-time' }),
    updated_at: Type.String({ format: 'date-time', description: 'When its limit was last set.' }),
  },
  { title: 'WorkspaceBudget' },
);
export type WorkspaceBudget = Static<typeof WorkspaceBudget>;

/** The path of one budget. */
export const BudgetParams = Type.Object({
  id: Type.String({ description: 'The id or the slug of the workspace.' }),
  interval: Type.Enum(budgetIntervals),
});

/** Body of `PUT /workspaces/{id}/budgets/{interval}`. */
export const BudgetBody = Type.Object(
  {
    limit_usd: Type.Number({ exclusiveMinimum: 0, maximum: limits.usd_max }),
    include_byok_in_budgets: Type.Optional(
      Type.Boolean({
        description: 'Whether usage of own provider accounts counts toward the budgets of the workspace, all of them.',
      }),
    ),
  },
  { additionalProperties: false },
);
export type BudgetBody = Static<typeof BudgetBody>;

/** A field beside every budget: whether charges to own provider accounts count towards all budgets of the workspace. */
export const IncludeByokInBudgets = Type.Boolean({
  description: 'Whether usage of own provider accounts counts toward the budgets of the workspace.',
});

/** The answer with one budget. */
export const OneBudget = Type.Object({ data: WorkspaceBudget, include_byok_in_budgets: IncludeByokInBudgets });
