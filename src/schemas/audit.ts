import Type, { type Static, type TSchema } from 'typebox';

const nullable = <T extends TSchema>(schema: T, description: string) =>
  Type.Union([schema, Type.Null()], { description });

/** The kinds of resources that management operations change. */
export const resourceTypes = [
  'api_key',
  'authorization_code',
  'byok_credential',
  'credits',
  'generation',
  'guardrail',
  'guardrail_assignment',
  'ledger_node',
  'provider',
  'retention',
  'session',
  'user',
  'workspace',
  'workspace_budget',
  'workspace_member',
] as const;

const State = Type.Object({}, { additionalProperties: true });

/** An audit record: who changed what, with the values before and after. Never contains a secret. */
export const AuditEvent = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    created_at: Type.String({ format: 'date-time' }),
    actor: Type.Enum(['key', 'environment', 'command', 'page', 'callback'] as const, {
      description:
        'How the change was made: with a management key, the one of the environment, a command, a page, or a code exchange.',
    }),
    actor_key_hash: nullable(Type.String(), 'The key that acted.'),
    actor_user_id: nullable(Type.String(), 'The user of that key or session.'),
    action: Type.Enum([
      'create',
      'update',
      'delete',
      'assign',
      'unassign',
      'rotate',
      'exchange',
      'test',
      'sign-in',
      'sign-out',
    ] as const),
    resource_type: Type.Enum(resourceTypes),
    resource_id: Type.String(),
    before: nullable(State, 'null: the record did not exist.'),
    after: nullable(State, 'null: the record was deleted.'),
    request_id: nullable(Type.String(), 'The x-request-id of the request.'),
  },
  { title: 'AuditEvent' },
);
export type AuditEvent = Static<typeof AuditEvent>;
