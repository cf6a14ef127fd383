import type { ClientAuth, Configuration, CustomFetch } from 'openid-client';
import { GatewayError } from '../errors.ts';
import { limits } from '../limits.ts';
import { structureBreach } from '../schemas/json-structure.ts';

/** An OpenID Connect issuer, and who this gateway is to it. */
export interface IssuerSettings {
  issuer: string;
  client_id: string;
  /** undefined: a public client. */
  client_secret: string | undefined;
  scopes: readonly string[];
  redirect_uri: string;
}

/** What a sign-in that is under way must be able to show at its end. */
export interface PendingSignIn {
  state: string;
  nonce: string;
  code_verifier: string;
}

/** Who somebody is, in the words of the issuer, whose signature was checked. */
export interface Identity {
  issuer: string;
  subject: string;
  email: string | undefined;
  email_verified: boolean;
  name: string | undefined;
  given_name: string | undefined;
  family_name: string | undefined;
}

/** Signs people in at an issuer: authorization code flow with PKCE, state and nonce. Failures are `GatewayError`s for a page. */
export interface Issuer {
  /** For people: the host that they will be sent to. */
  readonly host: string;
  begin(): Promise<{ url: string; pending: PendingSignIn }>;
  /** `query` is what the issuer has sent the browser back with. */
  complete(query: string, pending: PendingSignIn): Promise<Identity>;
}

type OpenId = typeof import('openid-client');

/** What the log may have of a failure: the library's errors carry answers and claims. */
function reasonOf(error: unknown): Error {
  const told: string[] = [];
  for (let here: unknown = error; here instanceof Error && told.length < 4; here = here.cause) {
    const { code } = here as { code?: unknown };
    told.push(typeof code === 'string' ? `${here.message} (${code})` : here.message);
  }
  return new Error(told.join(': ') || 'unknown');
}

/** Sends one request to the issuer, by the operator's proxy if there is one; redirects are not followed. */
export type AskIssuer = (request: {
  url: string;
  method: 'GET' | 'POST';
  headers: Record<string, string>;
  body?: string;
  bytes_max: number;
  timeout_ms: number;
}) => Promise<{ status: number; headers: Record<string, string | string[] | undefined>; body: Buffer }>;

/** The library's `fetch`, with bounds on the answer. */
function fetchThrough(ask: AskIssuer): CustomFetch {
  return async (url, { method, headers, body }) => {
    const answer = await ask({
      url,
      method: method === 'POST' ? 'POST' : 'GET',
      headers,
      ...(body == null ? {} : { body: String(body) }),
      bytes_max: limits.issuer_body_bytes_max,
      timeout_ms: limits.issuer_ms_max,
    });
    // What an issuer says has a few levels and values.
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
 * As the issuer says that it takes the secret: in the form where it does, because issuers disagree on how a header
 * encodes it; in the header where it says nothing (OpenID Connect Discovery 1.0, section 3).
 */
function authentication(openid: OpenId, secret: string | undefined): ClientAuth {
  if (secret === undefined) return openid.None();
  return (server, client, body, headers) => {
    const post = server.token_endpoint_auth_methods_supported?.includes('client_secret_post') ?? false;
    (post ? openid.ClientSecretPost(secret) : openid.ClientSecretBasic(secret))(server, client, body, headers);
  };
}

async function discover(openid: OpenId, settings: IssuerSettings, ask: AskIssuer): Promise<Configuration> {
  const { issuer, client_id, client_secret } = settings;
  const server = new URL(issuer);
  const configuration = await openid.discovery(server, client_id, {}, authentication(openid, client_secret), {
    timeout: limits.issuer_ms_max / 1000,
    [openid.customFetch]: fetchThrough(ask),
    execute: [
      // The signature of an identity is checked also where it comes from the issuer by TLS.
      openid.enableNonRepudiationChecks,
      // The configuration allows http only for issuers on this machine.
      ...(server.protocol === 'http:' ? [openid.allowInsecureRequests] : []),
    ],
  });
  checkEndpoints(configuration, server.protocol);
  return configuration;
}

/** Metadata are kept for a while: those that nobody could sign in with are a failure, and not kept. */
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

/** Makes the way to an issuer. It is asked about itself when somebody first wants to sign in, and again after a while. */
export function createIssuer(settings: IssuerSettings, monotonic_ms: () => number, ask: AskIssuer): Issuer {
  const { redirect_uri, scopes } = settings;
  const { host } = new URL(settings.issuer);
  let known: { configuration: Promise<Configuration>; until_ms: number } | undefined;

  const configurationOf = (openid: OpenId): Promise<Configuration> => {
    if (known !== undefined && known.until_ms > monotonic_ms()) return known.configuration;
    const configuration = discover(openid, settings, ask);
    const asked = { configuration, until_ms: monotonic_ms() + limits.issuer_metadata_ms_max };
    known = asked;
    // What failed is asked again by the next.
    configuration.catch(() => {
      if (known === asked) known = undefined;
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
      // Hardly any gateway needs it, and none at its start.
      const openid = await import('openid-client');
      const configuration = await configurationOf(openid).catch(fail);
      const code_verifier = openid.randomPKCECodeVerifier();
      const pending = { state: openid.randomState(), nonce: openid.randomNonce(), code_verifier };
      const url = openid.buildAuthorizationUrl(configuration, {
        redirect_uri,
        scope: scopes.join(' '),
        code_challenge: await openid.calculatePKCECodeChallenge(code_verifier),
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
        const told = identityOf(claims.iss, claims.sub, claims);
        if (told.email !== undefined || configuration.serverMetadata().userinfo_endpoint === undefined) return told;
        const more = await openid.fetchUserInfo(configuration, tokens.access_token, claims.sub);
        // What the token says of an address that it does not have is about no address.
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
