import type { IncomingMessage } from 'node:http';
import { GatewayError } from '../errors.ts';

/** The secret of a request: a bearer token, or a header that clients of Anthropic or Azure send. Throws a 400 for two that differ. */
export function credentialOf({ headers }: IncomingMessage): string | undefined {
  const { authorization } = headers;
  const bearer = authorization === undefined ? undefined : /^bearer +(\S+) *$/i.exec(authorization)?.[1];
  const anthropic = headers['x-api-key'];
  const azure = headers['api-key'];
  if (anthropic === undefined && azure === undefined) return bearer;
  const told = [bearer, anthropic, azure].filter((one) => typeof one === 'string' && one !== '') as string[];
  if (told.some((one) => one !== told[0])) {
    throw new GatewayError(400, 'The request has two different keys, in authorization, x-api-key or api-key: send one');
  }
  return told[0];
}

/** A body without a content type is JSON, of one who has shown a key: no browser sends that for another site's page unasked. */
export function assumeJson({ headers }: IncomingMessage): void {
  if (headers['content-type'] !== undefined) return;
  const { 'content-length': length, 'transfer-encoding': encoding } = headers;
  if (encoding !== undefined || (length !== undefined && length !== '0')) headers['content-type'] = 'application/json';
}
