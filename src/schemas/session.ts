import Type, { type Static } from 'typebox';

/** The session of a signed-in person (`GET /session`). */
export const Session = Type.Object(
  {
    organization_id: Type.String(),
    user_id: Type.String(),
    user_name: Type.String(),
    user_email: Type.Union([Type.String(), Type.Null()]),
    role: Type.Enum(['admin', 'member'] as const, {
      description: 'admin: acts for the organization. member: acts for its own keys and workspaces.',
    }),
    is_demo: Type.Boolean({ description: 'The store holds invented data (`model-gateway demo`).' }),
    expires_at: Type.String({ format: 'date-time' }),
    form_token: Type.String({
      description: 'Requests of this session that change something send it in the header x-form-token.',
    }),
  },
  { title: 'Session' },
);
export type Session = Static<typeof Session>;
