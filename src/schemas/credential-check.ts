import Type, { type Static } from 'typebox';

/** The result of a test of a provider's credential. */
export const CredentialCheck = Type.Object(
  {
    result: Type.Enum(['works', 'refused', 'limited', 'unreachable', 'unknown'] as const, {
      description: 'unknown: the provider offers no test that is free of charge.',
    }),
    status: Type.Union([Type.Integer(), Type.Null()], { description: "The status of the provider's answer." }),
    message: Type.String(),
    ms: Type.Integer(),
  },
  { title: 'CredentialCheck' },
);
export type CredentialCheck = Static<typeof CredentialCheck>;

/** A provider of the operator's with the state of its credential. */
export const ProviderCredential = Type.Object(
  {
    slug: Type.String(),
    name: Type.String(),
    state: Type.Enum(['on', 'refused', 'own_only', 'off'] as const, {
      description:
        'refused: the provider refused the credential in the last call of an endpoint. own_only: only callers with their own credential.',
    }),
    has_credential: Type.Boolean(),
    is_sandbox: Type.Boolean(),
    reason: Type.Union([Type.String(), Type.Null()], { description: 'Why it is off.' }),
    endpoints: Type.Integer({ description: 'The number of its endpoints in the catalog.' }),
    refused_endpoints: Type.Integer({
      description: 'How many of these refused the credential last, as this node knows.',
    }),
  },
  { title: 'ProviderCredential' },
);
