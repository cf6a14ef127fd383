import Type, { type Static, type TSchema } from 'typebox';
import { limits } from '../limits.ts';

const BYOK_NAME_CHARS_MAX = 255;
const BYOK_SCOPE_ENTRIES_MAX = 100;

const nullable = <T extends TSchema>(schema: T, description: string) =>
  Type.Union([schema, Type.Null()], { description });

const sharedFallback =
  'Whether a call that this credential could not serve may use shared endpoints, at the cost of the organization.';

const regions = ['global', 'europe', 'us'] as const;
export type DeclaredRegion = (typeof regions)[number];
const Region = Type.Enum(regions);

const required =
  'No call that this credential may serve uses shared endpoints: the opposite of allow_shared_fallback, in the words of the public service; always false for a credential that is used after them.';
const byokOnly =
  "No call of the workspace uses the gateway's own account at this provider, for any model and any caller.";
const zdr =
  'Your declaration whether this account keeps no data (true) or does (false), for calls and guardrails that require zero retention; null: what is known of the provider.';

/** A credential for an organization's own account at a provider. The secret itself is never shown. */
export const ByokCredential = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    provider: Type.String({ description: 'Slug of the provider.' }),
    label: Type.String({ description: 'The credential, masked.' }),
    name: nullable(Type.String(), 'The name of the credential.'),
    disabled: Type.Boolean(),
    is_fallback: Type.Boolean({ description: 'Used after the shared endpoints, not before them.' }),
    allow_shared_fallback: Type.Boolean({ description: sharedFallback }),
    is_required: Type.Boolean({ description: required }),
    is_byok_only: Type.Boolean({ description: byokOnly }),
    sort_order: Type.Integer({ description: 'The credential of a provider with the lowest value is used first.' }),
    allowed_models: nullable(Type.Array(Type.String()), 'Canonical slugs; null: all models.'),
    allowed_api_key_hashes: nullable(Type.Array(Type.String()), 'null: all keys of the workspace.'),
    allowed_user_ids: nullable(Type.Array(Type.String()), 'null: all users.'),
    declared_zdr: nullable(Type.Boolean(), zdr),
    declared_region: nullable(Region, 'Where the account processes requests, as you declared; it has no effect.'),
    workspace_id: Type.String(),
    created_at: Type.String({ format: 'date-time' }),
    updated_at: nullable(Type.String({ format: 'date-time' }), 'When the credential was last changed.'),
  },
  { title: 'ByokCredential' },
);
export type ByokCredential = Static<typeof ByokCredential>;

const credential = Type.String({
  minLength: 1,
  maxLength: limits.byok_credential_chars_max,
  description: 'The credential: an API key, or JSON text if the provider accepts that. Stored encrypted, never shown.',
});
const scope = (description: string) =>
  nullable(Type.Array(Type.String({ minLength: 1 }), { minItems: 1, maxItems: BYOK_SCOPE_ENTRIES_MAX }), description);

const settings = {
  name: Type.Optional(
    nullable(Type.String({ minLength: 1, maxLength: BYOK_NAME_CHARS_MAX }), 'A name for the credential.'),
  ),
  disabled: Type.Optional(Type.Boolean()),
  is_fallback: Type.Optional(Type.Boolean({ description: 'Used after the shared endpoints, not before them.' })),
  allow_shared_fallback: Type.Optional(Type.Boolean({ description: `${sharedFallback} Default: false.` })),
  is_required: Type.Optional(Type.Boolean({ description: required })),
  is_byok_only: Type.Optional(
    Type.Boolean({ description: `${byokOnly} Cannot be combined with is_fallback. Default: false.` }),
  ),
  declared_zdr: Type.Optional(nullable(Type.Boolean(), zdr)),
  declared_region: Type.Optional(
    nullable(Region, 'Where the account processes requests: it is shown and has no effect.'),
  ),
  sort_order: Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000_000 })),
  allowed_models: Type.Optional(scope('Ids or canonical slugs of models; null: all.')),
  allowed_api_key_hashes: Type.Optional(scope('Hashes of keys; null: all.')),
  allowed_user_ids: Type.Optional(scope('Members of the organization; null: all.')),
};

/** Body of `POST /byok`. */
export const CreateByokBody = Type.Object(
  {
    provider: Type.String({ minLength: 1, description: 'Slug or display name of a provider.' }),
    key: credential,
    workspace_id: Type.Optional(Type.String({ description: 'Default: the default workspace.' })),
    ...settings,
  },
  { additionalProperties: false },
);
export type CreateByokBody = Static<typeof CreateByokBody>;

/** Body of `PATCH /byok/{id}`. A new `key` replaces the old one. */
export const UpdateByokBody = Type.Object(
  { key: Type.Optional(credential), ...settings },
  { additionalProperties: false },
);
export type UpdateByokBody = Static<typeof UpdateByokBody>;
