import { readFileSync, statSync } from 'node:fs';
import { limits } from '../limits.ts';
import { ConfigError } from './config-error.ts';
import { type Variable, variables } from './settings/variables.ts';

/**
 * The variable that may name a file with the value of this one; undefined if the value is not a secret. Variables whose names do not
 * begin with `GATEWAY_` may all be secrets.
 */
export function fileVariable(name: string): string | undefined {
  if (name.startsWith('GATEWAY_') && declaredVariable(name)?.type !== 'secret') return undefined;
  return `${name}_FILE`;
}

function declaredVariable(name: string): Variable | undefined {
  return Object.hasOwn(variables, name) ? variables[name as keyof typeof variables] : undefined;
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
    // A device or a pipe could block the start for ever.
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
