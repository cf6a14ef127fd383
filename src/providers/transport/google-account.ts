import type { JsonValue } from '../../schemas/json.ts';
import { asObject, asText } from '../shared/json-shape.ts';

/**
 * A Google account as its JSON text tells it: a service account's key file, or what `gcloud auth application-default login`
 * leaves (https://cloud.google.com/docs/authentication/application-default-credentials). `project` and `location` say where
 * its requests go, where the text tells.
 */
export type GoogleAccount = { project: string; location: string } & (
  | { kind: 'service'; email: string; private_key: string; private_key_id: string }
  | { kind: 'user'; client_id: string; client_secret: string; refresh_token: string }
);

/** Reads a credential: an account's JSON text; undefined for a plain key, or a text that is no account. */
export function readGoogleAccount(credential: string): GoogleAccount | undefined {
  if (!credential.startsWith('{')) return undefined;
  let value: JsonValue;
  try {
    value = JSON.parse(credential);
  } catch {
    return undefined;
  }
  const told = asObject(value) ?? {};
  const text = (name: string) => asText(told[name]);
  const place = {
    project: text('project_id') || text('quota_project_id'),
    location: text('location') || text('region'),
  };
  if (text('client_email') !== '' && text('private_key') !== '') {
    const { private_key: privateKey, private_key_id: privateKeyId } = {
      private_key: text('private_key'),
      private_key_id: text('private_key_id'),
    };
    return {
      kind: 'service',
      email: text('client_email'),
      private_key: privateKey,
      private_key_id: privateKeyId,
      ...place,
    };
  }
  const user = {
    client_id: text('client_id'),
    client_secret: text('client_secret'),
    refresh_token: text('refresh_token'),
  };
  return user.client_id !== '' && user.refresh_token !== '' ? { kind: 'user', ...user, ...place } : undefined;
}

const PROJECT = /^[a-z][a-z0-9:.-]{0,99}$/;
/** It becomes a part of a host's name. */
const LOCATION = /^[a-z][a-z0-9-]{0,49}$/;
const GLOBAL_HOST = 'https://aiplatform.googleapis.com/';
const PLACE = /\/projects\/([^/]+)\/locations\/([^/]+)/;

/**
 * The address of Vertex AI for one credential and the models of one publisher: in the credential's own project, and at its
 * own location, where it tells them. Other addresses stay as they are. Every location but `global` has a host of its own (https://cloud.google.com/vertex-ai/generative-ai/docs/learn/locations).
 */
export function vertexAddress(baseUrl: string, credential: string | undefined, publisher: string): string {
  const found = PLACE.exec(baseUrl);
  if (found === null) return baseUrl;
  const account = credential === undefined ? undefined : readGoogleAccount(credential);
  const [, givenProject = '', givenLocation = ''] = found;
  // Names that would change the address are none.
  const own = (name: string | undefined, form: RegExp, given: string) =>
    name !== undefined && form.test(name) ? name : given;
  const location = own(account?.location, LOCATION, givenLocation);
  const project = own(account?.project, PROJECT, givenProject);
  const address = baseUrl
    // A plain key is of one project, which then is not named (https://cloud.google.com/vertex-ai/generative-ai/docs/start/express-mode).
    .replace(PLACE, project === '-' ? '' : `/projects/${project}/locations/${location}`)
    .replace(/\/publishers\/google$/, `/publishers/${publisher}`);
  return address.startsWith(GLOBAL_HOST) ? address.replace(GLOBAL_HOST, hostOf(location)) : address;
}

function hostOf(location: string): string {
  if (location === 'global') return GLOBAL_HOST;
  if (location === 'us' || location === 'eu') return `https://aiplatform.${location}.rep.googleapis.com/`;
  return `https://${location}-aiplatform.googleapis.com/`;
}

/** A token as a dialect's `authorize` gets it, in place of the account that it was got for. */
export function bearer(token: string): string {
  return `Bearer ${token}`;
}

/** Whether a credential is such a token: no key of a provider has a space in it. */
export function isBearer(credential: string): boolean {
  return credential.startsWith('Bearer ');
}
