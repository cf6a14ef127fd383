import type { ClientAuth, Configuration, CustomFetch } from 'openid-client';
import { GatewayError } from '../errors.ts';
import { limits } from '../limits.ts';
import { structureBreach } from '../schemas/json-structure.ts';

/** How long the metadata of an issuer is used. */
const ISSUER_METADATA_MS_MAX = 3_600_000;

/** An OpenID Connect issuer, and this gateway's registration as its client. */
export interface IssuerSettings {
  issuer: string;
  client_id: string;
  /** Undefined for a public client. */
  client_secret: string | undefined;
  scopes: readonly string[];
  redirect_uri: string;
}

/** Values of a started sign-in that its completion checks. */
export interface PendingSignIn {
  state: string;
  nonce: string;
  code_verifier: string;
}

/** A person's identity as the issuer states it, with checked signature. */
export interface Identity {
  issuer: string;
  subject: string;
  email: string | undefined;
  email_verified: boolean;
  name: string | undefined;
  given_name: string | undefined;
  family_name: string | undefined;
}

/** Signs people in at an issuer: authorization code flow with PKCE, state and nonce. Throws a `GatewayError` that is shown on a page. */
export interface Issuer {
  /** The host that people are sent to, for display. */
  readonly host: string;
  begin(): Promise<{ url: string; pending: PendingSignIn }>;
  /** `query` is the query string with which the issuer sent the browser back. */
  complete(query: string, pending: PendingSignIn): Promise<Identity>;
}

type OpenId = typeof import('openid-client');

/** The messages of an error and its causes, for the log. The library's errors themselves carry answers and claims, which are not logged. */
function reasonOf(error: unknown): Error {
  const messages: string[] = [];
  for (let current: unknown = error; current instanceof Error && messages.length < 4; current = current.cause) {
    const { code } = current as { code?: unknown };
    messages.push(typeof code === 'string' ? `${current.message} (${code})` : current.message);
  }
  return new Error(messages.join(': ') || 'unknown');
}

/** Sends one request to the issuer, by the operator's proxy if there is one; redirects are not followed. */
export type SendToIssuer = (request: {
  url: string;
  method: 'GET' | 'POST';
  headers: Record<string, string>;
  body?: string;
  bytes_max: number;
  timeout_ms: number;
}) => Promise<{ status: number; headers: Record<string, string | string[] | undefined>; body: Buffer }>;

/** The library's `fetch`, with a bounded answer. */
function fetchThrough(send: SendToIssuer): CustomFetch {
  return async (url, { method, headers, body }) => {
    const answer = await send({
      url,
      method: method === 'POST' ? 'POST' : 'GET',
      headers,
      ...(body == null ? {} : { body: String(body) }),
      bytes_max: limits.issuer_body_bytes_max,
      timeout_ms: limits.issuer_ms_max,
    });
    // Answers of issuers have few levels and values.
    const breach = structureBreach(answer.body.toString());
    if (breach !== undefined) throw new Error(`the answer of the issuer ${breach}`);
    const fields = Object.entries(answer.headers).flatMap(([name, value]) =>
      [value ?? []].flat().map((one): [string, string] => [name, one]),
    );
    return new Response(answer.body.length === 0 ? null : new Uint8Array(answer.body), {
      status: answer.status,
      headers: fields,
    });
  };
}

/**
 * Sends the secret in the form if the issuer accepts that, because issuers disagree on how the header encodes it; in the
 * header if its metadata say nothing (OpenID Connect Discovery 1.0, section 3).
 */
function authentication(openid: OpenId, secret: string | undefined): ClientAuth {
  if (secret === undefined) return openid.None();
  return (server, client, body, headers) => {
    const post = server.token_endpoint_auth_methods_supported?.includes('client_secret_post') ?? false;
    (post ? openid.ClientSecretPost(secret) : openid.ClientSecretBasic(secret))(server, client, body, headers);
  };
}

async function discover(openid: OpenId, settings: IssuerSettings, send: SendToIssuer): Promise<Configuration> {
  const { issuer, client_id, client_secret } = settings;
  const server = new URL(issuer);
  const configuration = await openid.discovery(server, client_id, {}, authentication(openid, client_secret), {
    timeout: limits.issuer_ms_max / 1000,
    [openid.customFetch]: fetchThrough(send),
    execute: [
      // Checks the signature of identity tokens also if they are received over TLS.
      openid.enableNonRepudiationChecks,
      // The configuration allows http only for issuers on this machine.
      ...(server.protocol === 'http:' ? [openid.allowInsecureRequests] : []),
    ],
  });
  checkEndpoints(configuration, server.protocol);
  return configuration;
}

/** Throws if no one could sign in with these metadata, so that they are not cached. */
function checkEndpoints(configuration: Configuration, protocol: string): void {
  const { authorization_endpoint, token_endpoint, jwks_uri } = configuration.serverMetadata();
  for (const [name, address] of Object.entries({ authorization_endpoint, token_endpoint, jwks_uri })) {
    const endpoint = URL.parse(address ?? '')?.protocol;
    if (endpoint !== 'https:' && endpoint !== protocol) throw new Error(`the issuer's metadata have no usable ${name}`);
  }
}

const text = (value: unknown) => (typeof value === 'string' && value !== '' ? value : undefined);

function identityOf(issuer: string, subject: string, claims: Readonly<Record<string, unknown>>): Identity {
  return {
    issuer,
    subject,
    email: text(claims['email']),
    email_verified: claims['email_verified'] === true,
    name: text(claims['name']) ?? text(claims['preferred_username']),
    given_name: text(claims['given_name']),
    family_name: text(claims['family_name']),
  };
}

/** Makes a client of an issuer. Its metadata are fetched at the first sign-in, and again after `issuer_metadata_ms_max`. */
export function createIssuer(settings: IssuerSettings, monotonicMs: () => number, send: SendToIssuer): Issuer {
  const { redirect_uri, scopes } = settings;
  const { host } = new URL(settings.issuer);
  let known: { configuration: Promise<Configuration>; until_ms: number } | undefined;

  const configurationOf = (openid: OpenId): Promise<Configuration> => {
    if (known !== undefined && known.until_ms > monotonicMs()) return known.configuration;
    const configuration = discover(openid, settings, send);
    const entry = { configuration, until_ms: monotonicMs() + ISSUER_METADATA_MS_MAX };
    known = entry;
    // A failure is not cached.
    configuration.catch(() => {
      if (known === entry) known = undefined;
    });
    return configuration;
  };

  const fail = (error: unknown): never => {
    if (error instanceof GatewayError) throw error;
    const cause = reasonOf(error);
    throw new GatewayError(502, `The sign-in service ${host} did not answer correctly; try again later.`, {
      cause,
    });
  };

  return {
    host,
    async begin() {
      // Loaded at the first use: most gateways do not need it.
      const openid = await import('openid-client');
      const configuration = await configurationOf(openid).catch(fail);
      const codeVerifier = openid.randomPKCECodeVerifier();
      const pending = { state: openid.randomState(), nonce: openid.randomNonce(), code_verifier: codeVerifier };
      const url = openid.buildAuthorizationUrl(configuration, {
        redirect_uri,
        scope: scopes.join(' '),
        code_challenge: await openid.calculatePKCECodeChallenge(codeVerifier),
        code_challenge_method: 'S256',
        state: pending.state,
        nonce: pending.nonce,
      });
      return { url: url.href, pending };
    },

    async complete(query, pending) {
      const openid = await import('openid-client');
      const configuration = await configurationOf(openid).catch(fail);
      const current = new URL(redirect_uri);
      current.search = query;
      try {
        const tokens = await openid.authorizationCodeGrant(configuration, current, {
          pkceCodeVerifier: pending.code_verifier,
          expectedState: pending.state,
          expectedNonce: pending.nonce,
          idTokenExpected: true,
        });
        const claims = tokens.claims();
        if (claims === undefined) throw new Error('the issuer sent no identity');
        const identity = identityOf(claims.iss, claims.sub, claims);
        if (identity.email !== undefined || configuration.serverMetadata().userinfo_endpoint === undefined)
          return identity;
        const more = await openid.fetchUserInfo(configuration, tokens.access_token, claims.sub);
        // `email_verified` of a token without an address means nothing.
        return identityOf(claims.iss, claims.sub, { ...claims, email_verified: undefined, ...more });
      } catch (error) {
        if (error instanceof openid.AuthorizationResponseError) {
          throw new GatewayError(403, `The sign-in service ${host} did not sign you in.`, { cause: reasonOf(error) });
        }
        return fail(error);
      }
    },
  };
}
