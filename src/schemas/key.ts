import Type, { type Static } from 'typebox';
import { limits } from '../limits.ts';

/** The end user that a key is for. */
const KEY_EXTERNAL_USER_CHARS_MAX = 256;

const Nullable = <T extends Parameters<typeof Type.Union>[0][number]>(schema: T, description: string) =>
  Type.Union([schema, Type.Null()], { description });
const Usd = (description: string) => Type.Number({ description: `${description}, USD.` });

/** The interval of a spending limit, which is reset at midnight UTC. */
export const LimitReset = Type.Union([Type.Literal('daily'), Type.Literal('weekly'), Type.Literal('monthly')]);
export type LimitReset = Static<typeof LimitReset>;

/** A field of this gateway that the specification's record does not have. */
const BudgetMode = Type.Enum(['strict', 'soft'] as const);

/** The API key record (specification, section Resources), and the integer by which logs name the key. */
export const Key = Type.Object(
  {
    hash: Type.String({ description: 'Identity of the key in paths: the SHA-256 of its first secret, in hex.' }),
    id: Type.Integer({ description: 'The number that io_logging_api_key_ids of a workspace refers to.' }),
    name: Type.String(),
    label: Type.String({ description: 'The current secret, masked.' }),
    disabled: Type.Boolean(),
    created_at: Type.String({ format: 'date-time' }),
    updated_at: Nullable(Type.String({ format: 'date-time' }), 'When the key was last changed.'),
    expires_at: Nullable(Type.String({ format: 'date-time' }), 'UTC; null: never.'),
    creator_user_id: Nullable(Type.String(), 'The member who made the key.'),
    workspace_id: Type.String(),
    limit: Nullable(Type.Number(), 'Spending limit, USD; null: none.'),
    limit_remaining: Nullable(Type.Number(), 'What is left of the limit in the current window, USD.'),
    limit_reset: Nullable(LimitReset, 'null: the limit never resets.'),
    include_byok_in_limit: Type.Boolean({
      description: 'Whether usage of your own provider accounts counts toward the limit.',
    }),
    usage: Usd('All usage'),
    usage_daily: Usd('Usage of the current UTC day'),
    usage_weekly: Usd('Usage of the current UTC week, Monday to Sunday'),
    usage_monthly: Usd('Usage of the current UTC month'),
    byok_usage: Usd('All usage of your own provider accounts'),
    byok_usage_daily: Usd('The same, current UTC day'),
    byok_usage_weekly: Usd('The same, current UTC week'),
    byok_usage_monthly: Usd('The same, current UTC month'),
    budget_mode: Nullable(BudgetMode, 'How strictly budgets apply to this key; null: the setting of the gateway.'),
    parent_hash: Nullable(
      Type.String(),
      'The key that made this one by an authorization code; null: none. A key is refused while its parent is disabled or ' +
        'expired, is deleted with it, and its calls count against the limits, rates and guardrails of the parent too.',
    ),
    external_user: Nullable(Type.String(), 'The end user of the key, from `external.user`; null if it was not set.'),
    last_used_at: Nullable(
      Type.String({ format: 'date-time' }),
      'When its last settled call was admitted; null: there is none, or none since this is recorded.',
    ),
    rotated_at: Nullable(Type.String({ format: 'date-time' }), 'When its secret was last replaced; null: never.'),
    previous_label: Nullable(
      Type.String(),
      'The previous secret, masked, as long as it is valid besides the current one; null: only the current secret is valid.',
    ),
    previous_secret_expires_at: Nullable(
      Type.String({ format: 'date-time' }),
      'Until when the previous secret is valid; null: it is not.',
    ),
    previous_secret_last_used_at: Nullable(
      Type.String({ format: 'date-time' }),
      'When a request last used the previous secret since the rotation, as long as it is valid, half a minute late at most; null: none did.',
    ),
  },
  { title: 'Key' },
);
export type Key = Static<typeof Key>;

/** One limit that the calls of a key count against, in `GET /key` (public service's API). */
const KeyBudget = Type.Object(
  {
    scope: Type.Enum(
      ['workspace_default_key', 'member', 'api_key', 'key_limit', 'workspace', 'organization'] as const,
      {
        description:
          'The source: the default guardrail of the workspace, a guardrail of the member or of the key, the limit of the key itself, a budget of the workspace, or the credits of the organization. The last two only as `effective_budget`.',
      },
    ),
    guardrail_id: Nullable(Type.String(), 'The guardrail with the limit.'),
    budget_id: Type.Null({ description: 'Always null: a budget is known by its scope and its interval.' }),
    limit_usd: Type.Number(),
    spend_usd: Type.Number({ description: 'The usage that counts in the current window.' }),
    remaining_usd: Type.Number(),
    include_byok: Type.Boolean({ description: 'Whether usage of your own provider accounts counts.' }),
    reset_interval: Nullable(LimitReset, 'null: never.'),
    resets_at: Nullable(Type.String({ format: 'date-time' }), 'When the window ends; null: never.'),
  },
  { title: 'KeyBudget' },
);
export type KeyBudget = Static<typeof KeyBudget>;

/** The answer of `GET /key`: a caller's own key (the public service's fields, and the workspace). */
export const CurrentKey = Type.Object(
  {
    label: Type.String({ description: 'The current secret, masked.' }),
    workspace_id: Type.String(),
    creator_user_id: Key.properties.creator_user_id,
    expires_at: Key.properties.expires_at,
    limit: Key.properties.limit,
    limit_remaining: Key.properties.limit_remaining,
    limit_reset: Key.properties.limit_reset,
    include_byok_in_limit: Key.properties.include_byok_in_limit,
    usage: Key.properties.usage,
    usage_daily: Key.properties.usage_daily,
    usage_weekly: Key.properties.usage_weekly,
    usage_monthly: Key.properties.usage_monthly,
    byok_usage: Key.properties.byok_usage,
    byok_usage_daily: Key.properties.byok_usage_daily,
    byok_usage_weekly: Key.properties.byok_usage_weekly,
    byok_usage_monthly: Key.properties.byok_usage_monthly,
    organization_id: Type.String(),
    budgets: Type.Array(KeyBudget, {
      description:
        'The limits of the key and of its guardrails. Its calls also count against budgets of the workspace, credits of the organization and the limits of keys that it was made with, which are not listed here.',
    }),
    effective_budget: Nullable(
      KeyBudget,
      'The limit with the least left, which is reached first: of `budgets`, the budgets of the workspace and the credits of the organization. Of a key that an application obtained by an authorization code: of `budgets` alone. null: there is none.',
    ),
    allowed_data_regions: Type.Array(Type.Literal('global'), { description: 'Always `global`: there are no regions.' }),
    free_model_daily_requests: Type.Object(
      { limit: Type.Integer(), used: Type.Integer(), remaining: Type.Integer() },
      { description: 'This quota does not exist: the limit is the largest number that all clients can read.' },
    ),
    is_free_tier: Type.Boolean({ description: 'Always false: the gateway has no paid tiers.' }),
    is_management_key: Type.Boolean(),
    is_provisioning_key: Type.Boolean({ description: 'The former name of is_management_key.', deprecated: true }),
    rate_limit: Type.Object(
      { requests: Type.Integer(), interval: Type.String(), note: Type.String() },
      { description: 'Without meaning; old clients expect it.', deprecated: true },
    ),
  },
  { title: 'CurrentKey' },
);
export type CurrentKey = Static<typeof CurrentKey>;

/** Body of `POST /keys`. Unknown fields are refused: a misspelt limit must not become no limit. */
export const CreateKeyBody = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: limits.key_name_chars_max }),
    limit: Type.Optional(
      Nullable(Type.Number({ minimum: 0, maximum: limits.usd_max }), 'Spending limit, USD; null: none.'),
    ),
    limit_reset: Type.Optional(
      Nullable(LimitReset, 'When the limit resets, at midnight UTC, weeks on Monday; null: never.'),
    ),
    include_byok_in_limit: Type.Optional(
      Type.Boolean({ default: false, description: 'Whether usage of your own provider accounts counts.' }),
    ),
    expires_at: Type.Optional(Nullable(Type.String(), 'ISO 8601 in UTC, such as 2027-01-31T00:00:00Z; null: never.')),
    creator_user_id: Type.Optional(
      Nullable(Type.String({ minLength: 1 }), 'A member of the organization; default: the owner of the calling key.'),
    ),
    workspace_id: Type.Optional(Type.String({ description: 'Default: the default workspace.' })),
    external: Type.Optional(
      Type.Object(
        {
          user: Type.String({
            minLength: 1,
            maxLength: KEY_EXTERNAL_USER_CHARS_MAX,
            description: 'Your end user of the key: it is shown with the key and has no other effect.',
          }),
        },
        {
          additionalProperties: false,
          description: 'Only `user`: an `api_key` is refused, because only the gateway makes secrets.',
        },
      ),
    ),
    budget_mode: Type.Optional(
      Nullable(
        BudgetMode,
        'strict: the highest possible cost of a request is reserved before it is sent, so that no limit is exceeded. soft: an ' +
          'estimate is reserved, so that more requests run at once. null: the setting of the gateway.',
      ),
    ),
  },
  { additionalProperties: false, examples: [{ name: 'my laptop' }] },
);
export type CreateKeyBody = Static<typeof CreateKeyBody>;

/** Body of `PATCH /keys/{hash}`. Omitted fields stay unchanged. Expiry, workspace and creator cannot be changed. */
export const UpdateKeyBody = Type.Object(
  {
    name: Type.Optional(CreateKeyBody.properties.name),
    disabled: Type.Optional(
      Type.Boolean({ description: 'A disabled key is refused on all nodes as soon as this is answered.' }),
    ),
    limit: CreateKeyBody.properties.limit,
    limit_reset: CreateKeyBody.properties.limit_reset,
    include_byok_in_limit: Type.Optional(
      Type.Boolean({ description: 'Whether usage of your own provider accounts counts.' }),
    ),
    budget_mode: CreateKeyBody.properties.budget_mode,
  },
  { additionalProperties: false, examples: [{ disabled: true }] },
);
export type UpdateKeyBody = Static<typeof UpdateKeyBody>;

/** Body of `POST /keys/{hash}/rotate`. */
export const RotateKeyBody = Type.Object(
  {
    grace_seconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: limits.key_grace_seconds_max,
        default: limits.key_grace_default_seconds,
        description: 'For how long the older secret stays valid. 0: no older secret is accepted once this is answered.',
      }),
    ),
    keep: Type.Optional(
      Type.Enum(['current', 'previous'] as const, {
        description:
          'Which older secret stays valid; the other one ends at once. current: the one that is current until now. previous: the one ' +
          'before it, such as when the answer to the last rotation was lost. Needed only while the previous secret is valid.',
      }),
    ),
  },
  { additionalProperties: false, examples: [{ grace_seconds: 3_600 }] },
);
