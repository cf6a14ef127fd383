import { createPrivateKey, sign } from 'node:crypto';
import { limits } from '../../limits.ts';
import type { JsonValue } from '../../schemas/json.ts';
import { parseServiceJson } from '../../schemas/json-structure.ts';
import { UpstreamError } from '../dialect.ts';
import { asObject, asText } from '../shared/json-shape.ts';
import { bearer, type GoogleAccount, readGoogleAccount } from './google-account.ts';

/** Where accounts get their tokens. What an account's text says of that is not followed: it may come from anybody. */
const TOKEN_URL = 'https://oauth2.googleapis.com/token';
const SCOPE = 'https://www.googleapis.com/auth/cloud-platform';

/** Gets tokens for accounts, and keeps each until shortly before its end. */
export interface GoogleTokens {
  /**
   * What a dialect's `authorize` takes for this credential: at once where a token is at hand, and for a plain key, which is
   * its own. Rejects with `UpstreamError`: `credential` where Google refuses the account.
   */
  show(credential: string, tokenUrl: string | undefined, nowMs: number): string | Promise<string>;
  /** A token that was refused is not shown again: the next who asks gets another. */
  forget(shown: string | undefined): void;
}

interface Kept {
  shown: string;
  until_ms: number;
}

/** An account that got no token: who asks again soon is told the same. */
interface Refused {
  error: UpstreamError;
  until_ms: number;
}

/** Sends a request and reads its answer. Rejects with `UpstreamError`, `timeout` after so long. */
export type Ask = (
  request: { url: string; headers: Record<string, string>; payload: string },
  msMax: number,
) => Promise<{ status: number; text: string }>;

/** `ask` is the way out. Tokens are asked for once however many requests wait; so many accounts are remembered. */
export function createGoogleTokens(ask: Ask): GoogleTokens {
  // The key is the whole credential, so that a rotated one never gets a former one's token.
  const kept = new Map<string, Kept>();
  const waiting = new Map<string, Promise<string>>();
  const refused = new Map<string, Refused>();

  function keep<T>(map: Map<string, T>, key: string, value: T): void {
    map.delete(key);
    map.set(key, value);
    for (const oldest of map.keys()) {
      if (map.size <= limits.google_accounts_max) return;
      map.delete(oldest);
    }
  }

  function refuse(key: string, error: unknown, nowMs: number): string {
    if (!(error instanceof UpstreamError)) throw error;
    const waitMs = error.failure === 'credential' ? limits.google_refusal_ms : limits.google_failure_ms;
    const toldMs = Math.min(error.retry_after_ms ?? 0, limits.google_refusal_ms);
    keep(refused, key, { error, until_ms: nowMs + Math.max(waitMs, toldMs) });
    return lastOf(key, error, nowMs);
  }

  /** A token serves to its end where no other can be got, unless it is the account that is refused. Throws the error where there is none. */
  function lastOf(key: string, error: UpstreamError, nowMs: number): string {
    const token = kept.get(key);
    const lasts = token !== undefined && nowMs < token.until_ms + limits.google_token_margin_ms;
    if (!lasts || error.failure === 'credential') throw error;
    return token.shown;
  }

  async function fetchToken(key: string, account: GoogleAccount, tokenUrl: string, nowMs: number): Promise<string> {
    const { token, lifetime_ms: lifetimeMs } = await exchange(ask, account, tokenUrl, nowMs).catch(beforeTheSend);
    const shown = bearer(token);
    refused.delete(key);
    keep(kept, key, { shown, until_ms: nowMs + lifetimeMs - limits.google_token_margin_ms });
    return shown;
  }

  return {
    show(credential, tokenUrl = TOKEN_URL, nowMs) {
      if (!credential.startsWith('{')) return credential;
      const key = `${tokenUrl} ${credential}`;
      const token = kept.get(key);
      if (token !== undefined && nowMs < token.until_ms) return token.shown;
      const running = waiting.get(key);
      if (running !== undefined) return running;
      const former = refused.get(key);
      if (former !== undefined && nowMs < former.until_ms) {
        return Promise.resolve(former.error).then((error) => lastOf(key, error, nowMs));
      }
      const account = readGoogleAccount(credential);
      if (account === undefined) return Promise.reject(refusal('The credential is not a Google account.'));
      const asked = fetchToken(key, account, tokenUrl, nowMs)
        .catch((error: unknown) => refuse(key, error, nowMs))
        .finally(() => waiting.delete(key));
      waiting.set(key, asked);
      return asked;
    },
    forget(shown) {
      for (const [key, token] of kept) if (token.shown === shown) kept.delete(key);
    },
  };
}

/** Whatever went wrong, nothing was asked of the model yet: with a status, a failure costs nothing. */
function beforeTheSend(error: unknown): never {
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
  ask: Ask,
  account: GoogleAccount,
  tokenUrl: string,
  nowMs: number,
): Promise<{ token: string; lifetime_ms: number }> {
  const payload = new URLSearchParams(grantOf(account, tokenUrl, nowMs)).toString();
  const headers = { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' };
  const { status, text } = await ask({ url: tokenUrl, payload, headers }, limits.google_token_ms_max);
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

/** RFC 7519 and 7515: a signed statement that the account asks for itself. */
function assertionOf(account: GoogleAccount & { kind: 'service' }, aud: string, now: number): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const head = { alg: 'RS256', typ: 'JWT', ...(account.private_key_id === '' ? {} : { kid: account.private_key_id }) };
  const claims = { iss: account.email, scope: SCOPE, aud, iat: now, exp: now + limits.google_assertion_s };
  const text = `${part(head)}.${part(claims)}`;
  try {
    const key = createPrivateKey(account.private_key);
    // What signing takes grows with the cube of the length, and whoever brings a credential chooses it.
    const bits = key.asymmetricKeyType === 'rsa' ? (key.asymmetricKeyDetails?.modulusLength ?? 0) : 0;
    if (bits === 0 || bits > limits.google_key_bits_max) throw new Error(`a key of ${bits} bits`);
    return `${text}.${sign('RSA-SHA256', Buffer.from(text), key).toString('base64url')}`;
  } catch {
    // The cause may quote the key.
    throw refusal('The private key of the Google account cannot be read.');
  }
}

function readAnswer(status: number, text: string): { token: string; lifetime_ms: number } {
  const told = asObject(parse(text)) ?? {};
  const token = asText(told['access_token']);
  const seconds = told['expires_in'];
  if (status === 200 && /^[\x21-\x7e]+$/.test(token)) {
    return { token, lifetime_ms: (typeof seconds === 'number' && seconds > 0 ? seconds : 0) * 1000 };
  }
  const code = asText(told['error']);
  const said = asText(told['error_description']) || code || `status ${status}`;
  // Of the answer nothing is shown but the reason: it is of a request that held the account.
  const message = `Google returned no access token for the account: ${said.slice(0, limits.upstream_word_chars_max)}`;
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
