import { readFileSync } from 'node:fs';
import { readGoogleAccount } from '../providers/transport/google-account.ts';
import type { ConfigError } from './config-error.ts';

const PLACES: ReadonlySet<string> = new Set(['project_id', 'quota_project_id', 'location', 'region']);

/**
 * A credential of Google Cloud as one line: an account's JSON text, given as it is or by the path of its file (as
 * `GOOGLE_APPLICATION_CREDENTIALS` has it), or a plain key as it stands. What the account tells of its own place is left out: the
 * provider's address says where the operator's requests go, and an account of one project may be let into another.
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
    // What was read is a secret: it is not quoted.
    throw wrong(isText ? 'must be JSON text' : 'must be the path of a JSON file that can be read');
  }
  if (readGoogleAccount(text) !== undefined) return text;
  throw wrong('must be the key file of a service account, or the credentials of a user that gcloud made');
}
