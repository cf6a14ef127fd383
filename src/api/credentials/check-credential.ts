import type { ChatDialect } from '../../providers/dialect.ts';
import type { Provider } from '../../providers/provider.ts';
import { ServiceFailed, type Services } from '../../providers/transport/services.ts';
import type { CredentialCheck } from '../../schemas/credential-check.ts';

const CHECK_MS_MAX = 15_000;
/** Lists of models can be long; of a longer one the status is enough. */
const CHECK_BYTES_MAX = 2 * 1024 * 1024;
/**
 * No provider accepts this credential: if a provider lists its models with it, a list does not show that a credential is valid.
 */
const WRONG_CREDENTIAL = 'not-a-credential';

export interface CheckOptions {
  provider: Pick<Provider, 'base_url' | 'headers' | 'quirks'>;
  dialect: Pick<ChatDialect, 'addressFor' | 'authorize' | 'facts'>;
  credential: string | undefined;
  services: Pick<Services, 'ask'>;
  now_ms: number;
}

/**
 * Tests a credential for free: asks the provider for the list of its models, with the credential, and then with a wrong one if the first
 * was accepted. The answer never contains text of the provider.
 */
export async function checkCredential(options: CheckOptions): Promise<Omit<CredentialCheck, 'ms'>> {
  const { credential, dialect } = options;
  // A credential of several fields is for a platform, which lists its models elsewhere.
  if (!dialect.facts.listsModels || credential?.startsWith('{') === true) {
    return { result: 'unknown', status: null, message: 'This provider offers no test that is free of charge.' };
  }
  let status: number;
  try {
    status = await statusFor(credential, options);
  } catch (error) {
    const message =
      error instanceof ServiceFailed
        ? 'The provider could not be reached.'
        : 'The credential does not fit this provider.';
    return { result: error instanceof ServiceFailed ? 'unreachable' : 'refused', status: null, message };
  }
  if (status === 401 || status === 403)
    return { result: 'refused', status, message: 'The provider refuses the credential. Replace it.' };
  if (status === 402 || status === 429)
    return {
      result: 'limited',
      status,
      message: 'The provider knows the credential, but its account has no credit or is at its rate limit.',
    };
  if (status >= 500) return { result: 'unreachable', status, message: 'The provider fails at the moment.' };
  if (status < 200 || status >= 300)
    return { result: 'unknown', status, message: 'The provider does not list its models, so nothing could be tested.' };
  if (credential === undefined)
    return { result: 'works', status, message: 'The provider answers; it needs no credential.' };
  const control = await statusFor(WRONG_CREDENTIAL, options).catch(() => 401);
  return control === status
    ? {
        result: 'unknown',
        status,
        message: 'The provider answers, but it lists its models to everybody: send a request to test the credential.',
      }
    : { result: 'works', status, message: 'The provider accepts the credential.' };
}

async function statusFor(credential: string | undefined, options: CheckOptions): Promise<number> {
  const { dialect, provider, services, now_ms } = options;
  const { base_url, headers, quirks } = provider;
  const url = `${dialect.addressFor?.(base_url, credential) ?? base_url}/models`;
  const request = { method: 'GET', url, headers: {}, payload: '' };
  const authorization = dialect.authorize(credential, request, now_ms, quirks);
  try {
    const { status } = await services.ask({
      url,
      method: 'GET',
      headers: { accept: 'application/json', ...headers, ...authorization },
      bytes_max: CHECK_BYTES_MAX,
      timeout_ms: CHECK_MS_MAX,
    });
    return status;
  } catch (error) {
    if (error instanceof ServiceFailed && error.status !== undefined) return error.status;
    throw error;
  }
}
