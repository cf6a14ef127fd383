import { createHash, generateKeyPairSync, type KeyObject, randomUUID, sign } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** The deviations of the issuer from a correct one. */
export interface IssuerFaults {
  /** Claims that replace the correct ones; undefined removes one. */
  claims?: Record<string, unknown> | undefined;
  /** Signs with a key that it does not publish. */
  foreign_key?: boolean;
  /** Answers a path with only this status. */
  broken?: { path: string; status: number };
  /** Sends the browser back with an error. */
  refuses?: boolean;
  /** How the client must authenticate: by basic or form if it is one of them. Not set: the metadata do not say. */
  methods?: string[];
  /** The answer of `/userinfo`. */
  userinfo?: Record<string, unknown>;
}

const base64url = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

/** RS256 (RFC 7518, section 3.3). */
function jwt(claims: object, key: KeyObject): string {
  const text = `${base64url({ alg: 'RS256', typ: 'JWT', kid: 'one' })}.${base64url(claims)}`;
  return `${text}.${sign('sha256', Buffer.from(text), key).toString('base64url')}`;
}

const formDecoded = (text: string) => new URLSearchParams(`v=${text}`).get('v');

async function formOf(request: IncomingMessage): Promise<URLSearchParams> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return new URLSearchParams(Buffer.concat(parts).toString());
}

// Made once, because it takes a quarter of a second of processor time.
const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const foreign = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;

/** A small OpenID Connect issuer on this machine: discovery, RS256 keys, authorization codes with PKCE, userinfo. */
export async function startOidcIssuer(client: { id: string; secret: string | undefined }) {
  let faults: IssuerFaults = {};
  let person: Record<string, unknown> = { sub: 'subject-1' };
  const requestedPaths: string[] = [];
  const codes = new Map<string, URLSearchParams>();

  const answer = (response: ServerResponse, status: number, body: object) =>
    void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));

  /** Which of its credentials the client has sent, and how. */
  const authenticated = (request: IncomingMessage, form: URLSearchParams): boolean => {
    const basic = /^Basic (.+)$/.exec(request.headers.authorization ?? '')?.[1];
    if (client.secret === undefined) return basic === undefined && form.get('client_id') === client.id;
    if (faults.methods?.includes('client_secret_post')) {
      return basic === undefined && form.get('client_secret') === client.secret;
    }
    // Both parts are form-encoded first (RFC 6749, section 2.3.1).
    const shown = Buffer.from(basic ?? '', 'base64')
      .toString()
      .split(':')
      .map(formDecoded);
    return shown[0] === client.id && shown[1] === client.secret && !form.has('client_secret');
  };

  const token = async (request: IncomingMessage, response: ServerResponse) => {
    const form = await formOf(request);
    const begun = codes.get(form.get('code') ?? '');
    codes.delete(form.get('code') ?? '');
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url');
    if (!authenticated(request, form)) return answer(response, 401, { error: 'invalid_client' });
    if (begun?.get('code_challenge') !== challenge || begun.get('redirect_uri') !== form.get('redirect_uri')) {
      return answer(response, 400, { error: 'invalid_grant' });
    }
    const now = Math.floor(Date.now() / 1000);
    const claims = {
      iss: url,
      aud: client.id,
      iat: now,
      exp: now + 300,
      nonce: begun.get('nonce'),
      ...person,
      ...faults.claims,
    };
    const idToken = jwt(claims, faults.foreign_key ? foreign : privateKey);
    return answer(response, 200, { access_token: 'access', token_type: 'Bearer', expires_in: 300, id_token: idToken });
  };

  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://issuer');
    requestedPaths.push(pathname);
    if (faults.broken?.path === pathname) return void response.writeHead(faults.broken.status).end();
    if (pathname === '/.well-known/openid-configuration') {
      return answer(response, 200, {
        issuer: url,
        authorization_endpoint: `${url}/authorize`,
        token_endpoint: `${url}/token`,
        userinfo_endpoint: `${url}/userinfo`,
        jwks_uri: `${url}/keys`,
        response_types_supported: ['code'],
        subject_types_supported: ['public'],
        id_token_signing_alg_values_supported: ['RS256'],
        ...(faults.methods === undefined ? {} : { token_endpoint_auth_methods_supported: faults.methods }),
      });
    }
    if (pathname === '/keys') {
      return answer(response, 200, {
        keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'one', alg: 'RS256', use: 'sig' }],
      });
    }
    if (pathname === '/userinfo') return answer(response, 200, { sub: person['sub'], ...faults.userinfo });
    if (pathname === '/token') return void token(request, response);
    return answer(response, 404, {});
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  return {
    url,
    /** The requested paths. */
    requestedPaths,
    be(claims: Record<string, unknown>, different: IssuerFaults = {}) {
      person = claims;
      faults = different;
    },
    /** What a browser does at `address`: signs the person in, and returns the address of the redirect. */
    visit(address: string): string {
      const query = new URL(address).searchParams;
      const back = new URL(query.get('redirect_uri') ?? '');
      back.searchParams.set('state', query.get('state') ?? '');
      if (faults.refuses) back.searchParams.set('error', 'access_denied');
      else {
        const code = randomUUID();
        codes.set(code, query);
        back.searchParams.set('code', code);
      }
      return back.href;
    },
    stop: () => new Promise<void>((resolve) => void server.close(() => resolve())),
  };
}
