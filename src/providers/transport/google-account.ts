import type { JsonValue } from '../../schemas/json.ts';
import { asObject, asText } from '../shared/json-shape.ts';

/**
 * A Google account from its JSON text: a service account's key file, or the file of `gcloud auth application-default login`
 * (https://cloud.google.com/docs/authentication/application-default-credentials). `project` and `location` of its requests are empty if
 * the text has none.
 */
export type GoogleAccount = { project: string; location: string } & (
  | { kind: 'service'; email: string; private_key: string; private_key_id: string }
  | { kind: 'user'; client_id: string; client_secret: string; refresh_token: string }
);

/** Reads a credential that is an account's JSON text; undefined for a plain key, or a text that is not an account. */
export function readGoogleAccount(credential: string): GoogleAccount | undefined {
  if (!credential.startsWith('{')) return undefined;
  let value: JsonValue;
  try {
    value = JSON.parse(credential);
  } catch {
    return undefined;
  }
  const fields = asObject(value) ?? {};
  const text = (name: string) => asText(fields[name]);
  const place = {
    project: text('project_id') || text('quota_project_id'),
    location: text('location') || text('region'),
  };
  if (text('client_email') !== '' && text('private_key') !== '') {
    return {
      kind: 'service',
      email: text('client_email'),
      private_key: text('private_key'),
      private_key_id: text('private_key_id'),
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
/** Part of a host name. */
const LOCATION = /^[a-z][a-z0-9-]{0,49}$/;
const GLOBAL_HOST = 'https://aiplatform.googleapis.com/';
const PLACE = /\/projects\/([^/]+)\/locations\/([^/]+)/;

/**
 * The address of Vertex AI for one credential and the models of one publisher: in the credential's own project and location, if it has
 * them. Other addresses are returned unchanged. Every location but `global` has its own host
 * (https://cloud.google.com/vertex-ai/generative-ai/docs/learn/locations).
 */
export function vertexAddress(baseUrl: string, credential: string | undefined, publisher: string): string {
  const match = PLACE.exec(baseUrl);
  if (match === null) return baseUrl;
  const account = credential === undefined ? undefined : readGoogleAccount(credential);
  const [, defaultProject = '', defaultLocation = ''] = match;
  // Names that could change the address are ignored.
  const validOr = (name: string | undefined, form: RegExp, fallback: string) =>
    name !== undefined && form.test(name) ? name : fallback;
  const location = validOr(account?.location, LOCATION, defaultLocation);
  const project = validOr(account?.project, PROJECT, defaultProject);
  const address = baseUrl
    // A plain key belongs to one project, which is then not named (https://cloud.google.com/vertex-ai/generative-ai/docs/start/express-mode).
    .replace(PLACE, project === '-' ? '' : `/projects/${project}/locations/${location}`)
    .replace(/\/publishers\/google$/, `/publishers/${publisher}`);
  return address.startsWith(GLOBAL_HOST) ? address.replace(GLOBAL_HOST, hostOf(location)) : address;
}

function hostOf(location: string): string {
  if (location === 'global') return GLOBAL_HOST;
  if (location === 'us' || location === 'eu') return `https://aiplatform.${location}.rep.googleapis.com/`;
  return `https://${location}-aiplatform.googleapis.com/`;
}

/** The credential for a dialect's `authorize` that carries an account's access token. */
export function bearer(token: string): string {
  return `Bearer ${token}`;
}

/** Whether a credential is such a token: provider keys contain no space. */
export function isBearer(credential: string): boolean {
  return credential.startsWith('Bearer ');
}
