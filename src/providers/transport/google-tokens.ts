import { createPrivateKey, sign } from 'node:crypto';
import { limits } from '../../limits.ts';
import type { JsonValue } from '../../schemas/json.ts';
import { parseServiceJson } from '../../schemas/json-structure.ts';
import { UpstreamError } from '../dialect.ts';
import { asObject, asText } from '../shared/json-shape.ts';
import { bearer, type GoogleAccount, readGoogleAccount } from './google-account.ts';

/**
 * Google accounts whose tokens are cached, the remaining lifetime below which a token is no longer used, and the timeout of a
 * request for one.
 */
const GOOGLE_ACCOUNTS_MAX = 1_000;
const GOOGLE_TOKEN_MARGIN_MS = 300_000;
const GOOGLE_TOKEN_MS_MAX = 10_000;
/** How long an account is not sent again after Google refused it, and after a request for its token failed. */
export const GOOGLE_REFUSAL_MS = 30_000;
export const GOOGLE_FAILURE_MS = 1_000;
/** The lifetime of the assertion that requests a token: Google's maximum. */
const GOOGLE_ASSERTION_S = 3_600;
/** Google makes keys of 2048 bits, and takes longer ones that were uploaded (https://cloud.google.com/iam/docs/keys-upload). */
const GOOGLE_KEY_BITS_MAX = 4_096;

/** The issuer of tokens. The address in an account's text is not used: the text may be anybody's. */
const TOKEN_URL = 'https://oauth2.googleapis.com/token';
const SCOPE = 'https://www.googleapis.com/auth/cloud-platform';

/** Exchanges accounts for access tokens, and caches each until shortly before it expires. */
export interface GoogleTokens {
  /**
   * The credential for a dialect's `authorize`: synchronous for a cached token and for a plain key, which is returned as is.
   * Rejects with `UpstreamError`; its failure is `credential` if Google refuses the account.
   */
  show(credential: string, tokenUrl: string | undefined, nowMs: number): string | Promise<string>;
  /** Drops a token that was refused: the next call requests another. */
  forget(shown: string | undefined): void;
}

interface CachedToken {
  credential: string;
  until_ms: number;
}

/** An account that was refused a token. Calls within its time get the same error. */
interface Refused {
  error: UpstreamError;
  until_ms: number;
}

/** Sends a request and reads its answer. Rejects with `UpstreamError`, with `timeout` after `msMax`. */
export type SendRequest = (
  request: { url: string; headers: Record<string, string>; payload: string },
  msMax: number,
) => Promise<{ status: number; text: string }>;

/** Tokens are requested through `send`, once for any number of waiting calls. At most `google_accounts_max` accounts are cached. */
export function createGoogleTokens(send: SendRequest): GoogleTokens {
  // Keyed by the whole credential, so that a rotated one never gets the former one's token.
  const cached = new Map<string, CachedToken>();
  const waiting = new Map<string, Promise<string>>();
  const refused = new Map<string, Refused>();

  function store<T>(map: Map<string, T>, key: string, value: T): void {
    map.delete(key);
    map.set(key, value);
    for (const oldest of map.keys()) {
      if (map.size <= GOOGLE_ACCOUNTS_MAX) return;
      map.delete(oldest);
    }
  }

  function handleFailure(key: string, error: unknown, nowMs: number): string {
    if (!(error instanceof UpstreamError)) throw error;
    const waitMs = error.failure === 'credential' ? GOOGLE_REFUSAL_MS : GOOGLE_FAILURE_MS;
    const retryAfterMs = Math.min(error.retry_after_ms ?? 0, GOOGLE_REFUSAL_MS);
    store(refused, key, { error, until_ms: nowMs + Math.max(waitMs, retryAfterMs) });
    return cachedOr(key, error, nowMs);
  }

  /** A cached token that has not expired yet, if no other can be obtained and the account itself is not refused. Throws the error otherwise. */
  function cachedOr(key: string, error: UpstreamError, nowMs: number): string {
    const token = cached.get(key);
    const isUsable = token !== undefined && nowMs < token.until_ms + GOOGLE_TOKEN_MARGIN_MS;
    if (!isUsable || error.failure === 'credential') throw error;
    return token.credential;
  }

  async function fetchToken(key: string, account: GoogleAccount, tokenUrl: string, nowMs: number): Promise<string> {
    const { token, lifetime_ms: lifetimeMs } = await exchange(send, account, tokenUrl, nowMs).catch(beforeSend);
    const bearerToken = bearer(token);
    refused.delete(key);
    store(cached, key, { credential: bearerToken, until_ms: nowMs + lifetimeMs - GOOGLE_TOKEN_MARGIN_MS });
    return bearerToken;
  }

  return {
    show(credential, tokenUrl = TOKEN_URL, nowMs) {
      if (!credential.startsWith('{')) return credential;
      const key = `${tokenUrl} ${credential}`;
      const token = cached.get(key);
      if (token !== undefined && nowMs < token.until_ms) return token.credential;
      const running = waiting.get(key);
      if (running !== undefined) return running;
      const failed = refused.get(key);
      if (failed !== undefined && nowMs < failed.until_ms) {
        return Promise.resolve(failed.error).then((error) => cachedOr(key, error, nowMs));
      }
      const account = readGoogleAccount(credential);
      if (account === undefined) return Promise.reject(refusal('The credential is not a Google account.'));
      const request = fetchToken(key, account, tokenUrl, nowMs)
        .catch((error: unknown) => handleFailure(key, error, nowMs))
        .finally(() => waiting.delete(key));
      waiting.set(key, request);
      return request;
    },
    forget(refusedCredential) {
      for (const [key, token] of cached) if (token.credential === refusedCredential) cached.delete(key);
    },
  };
}

/** Nothing was sent to the model yet: the error gets a status, since a failure with a status is not billed. */
function beforeSend(error: unknown): never {
  if (!(error instanceof UpstreamError) || error.status !== null) throw error;
  const status = error.failure === 'timeout' ? 504 : 503;
  throw new UpstreamError(error.failure, `Google returned no access token: ${error.message}`, {
    status,
    native_code: error.native_code,
    cause: error,
  });
}

/** https://developers.google.com/identity/protocols/oauth2/service-account#httprest; RFC 7523, section 2.1; RFC 6749, section 6 */
async function exchange(
  send: SendRequest,
  account: GoogleAccount,
  tokenUrl: string,
  nowMs: number,
): Promise<{ token: string; lifetime_ms: number }> {
  const payload = new URLSearchParams(grantOf(account, tokenUrl, nowMs)).toString();
  const headers = { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' };
  const { status, text } = await send({ url: tokenUrl, payload, headers }, GOOGLE_TOKEN_MS_MAX);
  return readAnswer(status, text);
}

function grantOf(account: GoogleAccount, tokenUrl: string, nowMs: number): Record<string, string> {
  if (account.kind === 'user') {
    const { client_id: clientId, client_secret: clientSecret, refresh_token: refreshToken } = account;
    return {
      grant_type: 'refresh_token',
      client_id: clientId,
      client_secret: clientSecret,
      refresh_token: refreshToken,
    };
  }
  return {
    grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
    assertion: assertionOf(account, tokenUrl, Math.floor(nowMs / 1000)),
  };
}

/** RFC 7519 and 7515: a signed assertion by which the account requests its own token. */
function assertionOf(account: GoogleAccount & { kind: 'service' }, aud: string, now: number): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const head = { alg: 'RS256', typ: 'JWT', ...(account.private_key_id === '' ? {} : { kid: account.private_key_id }) };
  const claims = { iss: account.email, scope: SCOPE, aud, iat: now, exp: now + GOOGLE_ASSERTION_S };
  const text = `${part(head)}.${part(claims)}`;
  try {
    const key = createPrivateKey(account.private_key);
    // The cost of signing grows with the cube of the length, which the owner of the credential chooses.
    const bits = key.asymmetricKeyType === 'rsa' ? (key.asymmetricKeyDetails?.modulusLength ?? 0) : 0;
    if (bits === 0 || bits > GOOGLE_KEY_BITS_MAX) throw new Error(`a key of ${bits} bits`);
    return `${text}.${sign('RSA-SHA256', Buffer.from(text), key).toString('base64url')}`;
  } catch {
    // The cause could quote the key.
    throw refusal('The private key of the Google account cannot be read.');
  }
}

function readAnswer(status: number, text: string): { token: string; lifetime_ms: number } {
  const answer = asObject(parse(text)) ?? {};
  const token = asText(answer['access_token']);
  const seconds = answer['expires_in'];
  if (status === 200 && /^[\x21-\x7e]+$/.test(token)) {
    return { token, lifetime_ms: (typeof seconds === 'number' && seconds > 0 ? seconds : 0) * 1000 };
  }
  const code = asText(answer['error']);
  const reason = asText(answer['error_description']) || code || `status ${status}`;
  // Only the reason is shown: the answer is to a request that contained the account.
  const message = `Google returned no access token for the account: ${reason.slice(0, limits.upstream_word_chars_max)}`;
  if (status === 200) throw new UpstreamError('invalid_response', message, { status });
  if (status === 429) throw new UpstreamError('rate_limited', message, { status, native_code: code || null });
  if (status >= 500) throw new UpstreamError('unavailable', message, { status, native_code: code || null });
  throw refusal(message, status, code);
}

function refusal(message: string, status = 401, code = ''): UpstreamError {
  return new UpstreamError('credential', message, { status, native_code: code || null });
}

function parse(text: string): JsonValue {
  try {
    return parseServiceJson(text);
  } catch {
    return null;
  }
}
