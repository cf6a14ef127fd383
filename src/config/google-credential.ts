import { readFileSync } from 'node:fs';
import { readGoogleAccount } from '../providers/transport/google-account.ts';
import type { ConfigError } from './config-error.ts';

const PLACES: ReadonlySet<string> = new Set(['project_id', 'quota_project_id', 'location', 'region']);

/**
 * A credential of Google Cloud as one line: the JSON text of an account, from the text itself or from the path of its file (as in
 * `GOOGLE_APPLICATION_CREDENTIALS`), or a plain key unchanged. The account's own project and region are removed: the provider's
 * address decides where requests go, and an account of one project may have access to another.
 */
export function googleCredential(credential: string, wrong: (expectation: string) => ConfigError): string {
  const isText = credential.startsWith('{');
  if (!isText && !/[/\\]|\.json$/.test(credential)) return credential;
  let text: string;
  try {
    text = JSON.stringify(JSON.parse(isText ? credential : readFileSync(credential, 'utf8')), (name, value: unknown) =>
      PLACES.has(name) ? undefined : value,
    );
  } catch {
    // The content is a secret, so the message does not quote it.
    throw wrong(isText ? 'must be JSON text' : 'must be the path of a JSON file that can be read');
  }
  if (readGoogleAccount(text) !== undefined) return text;
  throw wrong('must be the key file of a service account, or the credentials of a user that gcloud made');
}
