import type { IncomingMessage } from 'node:http';
import { GatewayError } from '../errors.ts';

const BEARER = /^bearer +\S+ *$/i;

/** The secret of a request: a bearer token, or the key header of Anthropic's or Azure's clients; undefined if there is none. Throws a 400 for two different ones. */
export function credentialOf({ headers }: IncomingMessage): string | undefined {
  const { authorization } = headers;
  const isBearer = authorization !== undefined && BEARER.test(authorization);
  const bearer = isBearer ? authorization.slice('bearer'.length).trim() : undefined;
  const anthropic = headers['x-api-key'];
  const azure = headers['api-key'];
  if (anthropic === undefined && azure === undefined) return bearer;
  const secrets = [bearer, anthropic, azure].filter((one) => typeof one === 'string' && one !== '') as string[];
  if (secrets.some((one) => one !== secrets[0])) {
    throw new GatewayError(400, 'The request has two different keys, in authorization, x-api-key or api-key: send one');
  }
  return secrets[0];
}

/** Treats the body of a request without a content type as JSON. Called for authenticated requests. */
export function assumeJson({ headers }: IncomingMessage): void {
  const { 'content-length': length, 'transfer-encoding': encoding } = headers;
  if (encoding !== undefined || (length !== undefined && length !== '0')) headers['content-type'] = 'application/json';
}
