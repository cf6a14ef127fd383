import Type, { type Static, type TSchema } from 'typebox';

const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

/** A member of the organization. */
export const OrganizationMember = Type.Object(
  {
    id: Type.String({ description: 'The user, as in user_ids and creator_user_id.' }),
    email: Type.String({ description: 'Empty if it is not known.' }),
    first_name: nullable(Type.String()),
    last_name: nullable(Type.String()),
    role: Type.Enum(['org:admin', 'org:member'] as const),
  },
  { title: 'OrganizationMember' },
);
export type OrganizationMember = Static<typeof OrganizationMember>;

/** The answer to the removal of a member. */
export const RemovedMember = Type.Object(
  {
    deleted: Type.Literal(true),
    keys_disabled: Type.Integer({ description: 'Keys that were disabled.' }),
    keys_handed_over: Type.Integer({ description: 'Keys that now belong to the member in hand_keys_to.' }),
    sessions_ended: Type.Integer(),
  },
  { title: 'RemovedMember' },
);
