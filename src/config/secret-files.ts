import { readFileSync, statSync } from 'node:fs';
import { limits } from '../limits.ts';
import { ConfigError } from './config-error.ts';

/** Settings of the gateway itself that are secrets. Of variables with other names, each may be one. */
const OWN_SECRETS: ReadonlySet<string> = new Set(['GATEWAY_MANAGEMENT_KEY', 'GATEWAY_SECRET', 'GATEWAY_METRICS_TOKEN']);

/** The variable that may name a file with the value of this one; undefined: there is none, since the value is no secret. */
export function fileVariable(name: string): string | undefined {
  return name.startsWith('GATEWAY_') && !OWN_SECRETS.has(name) ? undefined : `${name}_FILE`;
}

/** The text of the file that a variable names, without surrounding space; throws a `ConfigError` that never quotes it. */
export function readSecretFile(variable: string, path: string): string {
  const wrong = (what: string, cause?: unknown) =>
    new ConfigError(
      `${variable} names the file ${path}, which ${what}. Name a file that holds the value alone and that the user of the gateway may read, or unset ${variable}`,
      { cause },
    );
  let text: string;
  try {
    const stats = statSync(path);
    // What never ends, or never begins, would hold the start up for ever.
    if (!stats.isFile()) throw wrong('is not a regular file');
    if (stats.size > limits.secret_file_bytes_max) {
      throw wrong(`is larger than ${limits.secret_file_bytes_max} bytes`);
    }
    text = readFileSync(path, 'utf8').trim();
  } catch (cause) {
    if (cause instanceof ConfigError) throw cause;
    throw wrong(`cannot be read (${(cause as NodeJS.ErrnoException).code ?? 'unknown error'})`, cause);
  }
  if (text === '') throw wrong('is empty');
  return text;
}
