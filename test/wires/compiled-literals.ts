/**
 * Checks values against the types of a package with the compiler: they are written as literals, so that a name that the
 * types lack is an error.
 */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { JsonValue } from '../../src/schemas/json.ts';

const compiler = new URL('../../node_modules/.bin/tsc', import.meta.url).pathname;

/**
 * The compiler's messages, by the name of each value that does not match its type; empty if all match. `module` is a
 * path below node_modules.
 */
export async function faultsByType(
  module: string,
  type: string,
  values: Readonly<Record<string, JsonValue>>,
): Promise<Record<string, string>> {
  const folder = await mkdtemp(join(tmpdir(), 'literals-'));
  try {
    const from = new URL(`../../node_modules/${module}`, import.meta.url).pathname;
    const names = Object.keys(values);
    const constants = names.map((name, i) => `export const a${i}: official.${type} = ${JSON.stringify(values[name])};`);
    const file = join(folder, 'literals.ts');
    await writeFile(file, [`import type * as official from '${from}';`, ...constants].join('\n'));
    const options = ['--ignoreConfig', '--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext'];
    const { stdout } = await promisify(execFile)(compiler, [...options, '--target', 'es2024', file]).catch(
      (error: { stdout?: string }) => {
        if (!error.stdout) throw error;
        return { stdout: error.stdout };
      },
    );
    const errors = [...stdout.matchAll(/literals\.ts\((\d+),\d+\): (.*)/g)];
    return Object.fromEntries(
      errors.map(([, line, message = '']) => [names[Number(line) - 2] ?? `line ${line}`, message]),
    );
  } finally {
    await rm(folder, { recursive: true });
  }
}
