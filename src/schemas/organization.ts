import Type, { type Static, type TSchema } from 'typebox';

const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

/** A member of the organization. */
export const OrganizationMember = Type.Object(
  {
    id: Type.String({ description: 'The user, as in user_ids and creator_user_id.' }),
    email: nullable(Type.String()),
    first_name: nullable(Type.String()),
    last_name: nullable(Type.String()),
    role: Type.Enum(['org:admin', 'org:member'] as const),
  },
  { title: 'OrganizationMember' },
);
export type OrganizationMember = Static<typeof OrganizationMember>;
