import aws4 from 'aws4';
import type { JsonValue } from '../../schemas/json.ts';
import { type SignableRequest, UpstreamError } from '../dialect.ts';
import { asObject } from '../shared/json-shape.ts';

/** A key pair of an AWS account, optionally of a session, optionally for one region. */
interface AwsKeys {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken: string | undefined;
  region: string | undefined;
}

/** The header in which the signer looks for the hash of a payload before it computes one. */
const DIGEST = 'x-amz-content-sha256';
const REGION = /^[a-z]{2,3}(?:-[a-z]+)+-\d{1,2}$/;

/**
 * The credential's headers: a Bedrock API key as a bearer token, or, if the credential is JSON text
 * `{accessKeyId, secretAccessKey, sessionToken?, region?}`, a signature (AWS Signature Version 4) over the request as it is
 * sent. Throws `UpstreamError` (`credential`) for JSON text without keys.
 */
export function authorize(
  credential: string | undefined,
  { method, url, headers, payload, payload_sha256: payloadSha256 }: SignableRequest,
  nowMs: number,
): Record<string, string> {
  if (credential === undefined) return {};
  const keys = readKeys(credential);
  if (keys === undefined) return { authorization: `Bearer ${credential.trim()}` };
  const { host, pathname, search } = new URL(url);
  const signed: Record<string, string> = {
    'x-amz-date': new Date(nowMs).toISOString().replace(/[:-]|\.\d{3}/g, ''),
    ...(keys.sessionToken === undefined ? {} : { 'x-amz-security-token': keys.sessionToken }),
  };
  // Only these headers and the length are signed: others may change on the way.
  const signedHeaders = { host, 'content-type': headers['content-type'] ?? 'application/json', ...signed };
  const known = payloadSha256 === undefined ? {} : { [DIGEST]: payloadSha256 };
  const request: aws4.Request & { extraHeadersToIgnore: Record<string, boolean> } = {
    service: 'bedrock',
    region: regionOf(host) ?? keys.region ?? 'us-east-1',
    method,
    host,
    path: pathname + search,
    body: payload,
    headers: { ...signedHeaders, ...known },
    // For the signer only: not sent.
    extraHeadersToIgnore: { [DIGEST]: true },
  };
  const { headers: signedRequest } = aws4.sign(request, keys);
  return { ...signed, authorization: String(signedRequest?.['Authorization']) };
}

/** Whether a credential is a key pair, so that the payload is signed. */
export function signsPayload(credential: string | undefined): boolean {
  return credential?.trim().startsWith('{') === true;
}

/** The base URL in the credential's region, if the provider's address is one of AWS's own hosts. */
export function addressFor(baseUrl: string, credential: string | undefined): string {
  const region = credential === undefined ? undefined : readKeys(credential)?.region;
  if (region === undefined) return baseUrl;
  return baseUrl.replace(
    /^(https:\/\/bedrock-runtime(?:-fips)?)\.[a-z0-9-]+(\.amazonaws\.com(?:\.cn)?)(?=\/|$)/,
    (_, service: string, domain: string) => `${service}.${region}${domain}`,
  );
}

/** The region in the name of an AWS host. */
function regionOf(host: string): string | undefined {
  if (!/\.amazonaws\.com(\.cn)?(:\d+)?$/.test(host)) return undefined;
  return host.split('.').find((label) => REGION.test(label));
}

function readKeys(credential: string): AwsKeys | undefined {
  const text = credential.trim();
  if (!text.startsWith('{')) return undefined;
  const keys = asObject(parse(text)) ?? {};
  const { accessKeyId, secretAccessKey, sessionToken, region } = keys;
  if (typeof accessKeyId !== 'string' || typeof secretAccessKey !== 'string' || !accessKeyId || !secretAccessKey) {
    throw new UpstreamError(
      'credential',
      'The AWS credential is not a JSON object with accessKeyId and secretAccessKey.',
      {
        status: 401,
      },
    );
  }
  return {
    accessKeyId,
    secretAccessKey,
    sessionToken: typeof sessionToken === 'string' && sessionToken !== '' ? sessionToken : undefined,
    region: typeof region === 'string' && REGION.test(region) ? region : undefined,
  };
}

function parse(text: string): JsonValue {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
