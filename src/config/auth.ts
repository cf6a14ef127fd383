import { type Environment, expand } from './providers.ts';
import type { ReadFile } from './read-file.ts';
import { filled } from './settings/declare.ts';
import { oidc as oidcSection } from './settings/service.ts';

/** Signing in to the pages. */
export interface AuthConfig {
  /** scheme://host[:port] under which browsers know the gateway. */
  public_origin: string | undefined;
  issuer: IssuerConfig | undefined;
}

/** An OpenID Connect issuer and the users that it may sign in. */
export interface IssuerConfig {
  issuer: string;
  client_id: string;
  client_secret: string | undefined;
  scopes: readonly string[];
  provision: 'admin' | 'member' | 'none';
  /** Lower case. */
  allowed_email_domains: readonly string[] | undefined;
}

const LOOPBACK = ['localhost', '127.0.0.1', '[::1]'];

function publicOrigin(file: ReadFile): string | undefined {
  const text = file.value.auth?.public_url;
  if (text === undefined) return undefined;
  const url = URL.parse(text);
  const plain = url !== null && url.pathname === '/' && url.search === '' && url.hash === '' && url.username === '';
  if (!plain || !/^https?:$/.test(url.protocol)) {
    throw file.wrong(['auth', 'public_url'], 'must be an address without a path, such as https://gateway.example');
  }
  return url.origin;
}

function issuerUrl(file: ReadFile, text: string): string {
  const url = URL.parse(text);
  const local = url?.protocol === 'http:' && LOOPBACK.includes(url.hostname);
  // OpenID Connect Discovery 1.0, section 3: https, no query, no fragment.
  if (url === null || (url.protocol !== 'https:' && !local) || url.search !== '' || url.hash !== '') {
    throw file.wrong(
      ['auth', 'oidc', 'issuer'],
      'must be a URL that starts with https:// (http:// on this machine only), without a query',
    );
  }
  return text;
}

/** Reads the section `auth`; an issuer whose secret is not set is off, with a warning. */
export function readAuth(
  environment: Environment,
  file: ReadFile | undefined,
): { auth: AuthConfig; warnings: string[] } {
  const section = file?.value.auth;
  if (file === undefined || section === undefined) {
    return { auth: { public_origin: undefined, issuer: undefined }, warnings: [] };
  }
  const origin = publicOrigin(file);
  const { oidc } = section;
  if (oidc === undefined) return { auth: { public_origin: origin, issuer: undefined }, warnings: [] };
  if (origin === undefined) throw file.wrong(['auth'], 'must have public_url: the issuer sends browsers back there');
  const secret = oidc.client_secret === undefined ? undefined : expand(oidc.client_secret, environment);
  if (secret?.unset !== undefined) {
    const warning = `Sign-in at ${oidc.issuer} is off: auth.oidc.client_secret refers to ${secret.unset}, which is not set`;
    return { auth: { public_origin: origin, issuer: undefined }, warnings: [warning] };
  }
  const { scopes, provision } = filled(oidcSection, oidc);
  if (!scopes.includes('openid')) throw file.wrong(['auth', 'oidc', 'scopes'], 'must have openid');
  const issuer = {
    issuer: issuerUrl(file, oidc.issuer),
    client_id: oidc.client_id,
    client_secret: secret?.text,
    scopes,
    provision,
    allowed_email_domains: oidc.allowed_email_domains?.map((domain) => domain.toLowerCase()),
  };
  return { auth: { public_origin: origin, issuer }, warnings: [] };
}
