import Type, { type Static } from 'typebox';
import { limits } from '../limits.ts';
import { LimitReset } from './key.ts';

const AUTHORIZATION_CODE_CHARS_MAX = 256;
const CODE_VERIFIER_CHARS_MAX = 512;

const ChallengeMethod = Type.Union([Type.Literal('S256'), Type.Literal('plain')]);

/** The authorization code record (specification, section Resources). */
export const AuthorizationCode = Type.Object(
  {
    id: Type.String({
      description: 'The code for `POST /auth/keys`: shown once, for one exchange within ten minutes.',
    }),
    app_id: Type.Integer({ description: 'The application, by the origin of its callback.' }),
    created_at: Type.String({ format: 'date-time' }),
  },
  { title: 'AuthorizationCode' },
);

/** Body of `POST /auth/keys/code`. Unknown fields are refused: a misspelt limit must not become no limit. */
export const CreateAuthCodeBody = Type.Object(
  {
    callback_url: Type.String({
      minLength: 1,
      maxLength: limits.callback_url_chars_max,
      description:
        'The address of the application that receives the code: https on port 443 or 3000, without credentials, without a fragment, and without `code` and `error` in its query.',
    }),
    code_challenge: Type.Optional(
      Type.String({
        description:
          'PKCE (RFC 7636). Without one, only the code protects the exchange, and an exchange with a verifier is refused.',
      }),
    ),
    code_challenge_method: Type.Optional(
      Type.Union(ChallengeMethod.anyOf, { description: 'Default, with a challenge: plain (RFC 7636, section 4.3).' }),
    ),
    key_label: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: limits.key_label_chars_max,
        description: 'Name of the new key; default: the host of the callback.',
      }),
    ),
    limit: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: limits.usd_max,
        description: 'Spending limit of the key, USD; default: none.',
      }),
    ),
    usage_limit_type: Type.Optional(
      Type.Union(LimitReset.anyOf, { description: 'When the limit resets, at midnight UTC; default: never.' }),
    ),
    workspace_id: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 100,
        description:
          'The workspace of the new key. An API key can name only its own workspace, which is the default; the default for a management key is the default workspace.',
      }),
    ),
    expires_at: Type.Optional(
      Type.Union([Type.String(), Type.Null()], {
        description: 'When the key expires: ISO 8601 in UTC, such as 2027-01-31T00:00:00Z; null: never.',
      }),
    ),
  },
  {
    additionalProperties: false,
    examples: [
      {
        callback_url: 'https://app.example/callback',
        code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
        code_challenge_method: 'S256',
      },
    ],
  },
);
export type CreateAuthCodeBody = Static<typeof CreateAuthCodeBody>;

/** Body of `POST /auth/keys`. */
export const ExchangeAuthCodeBody = Type.Object(
  {
    code: Type.String({ minLength: 1, maxLength: AUTHORIZATION_CODE_CHARS_MAX }),
    code_verifier: Type.Optional(
      Type.Union([Type.String({ maxLength: CODE_VERIFIER_CHARS_MAX }), Type.Null()], {
        description:
          'The secret from which the challenge was made. Required if the code has a challenge, refused if it has none.',
      }),
    ),
    code_challenge_method: Type.Optional(
      Type.Union([Type.String(), Type.Null()], {
        description: 'S256 or plain, the same as in the request for the code; may be left out.',
      }),
    ),
  },
  { additionalProperties: false, examples: [{ code: '…', code_verifier: '…', code_challenge_method: 'S256' }] },
);
export type ExchangeAuthCodeBody = Static<typeof ExchangeAuthCodeBody>;
