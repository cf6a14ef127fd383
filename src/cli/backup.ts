import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { type Environment, loadConfig } from '../config.ts';
import { backUp } from '../storage/backup.ts';

/** `model-gateway backup FILE`: a consistent copy of the embedded store, also while a gateway runs on it. */
export async function runBackup(args: string[], environment: Environment): Promise<number> {
  const { positionals, values } = parseArgs({ args, allowPositionals: true, options: { config: { type: 'string' } } });
  const [file] = positionals;
  if (file === undefined || positionals.length > 1) {
    process.stderr.write('Usage: model-gateway backup FILE\n');
    return 2;
  }
  const config = loadConfig(environment, values.config === undefined ? {} : { config_file: values.config });
  if (config.database_url !== undefined) {
    process.stderr.write('The store is PostgreSQL: back it up with pg_dump.\n');
    return 2;
  }
  await backUp({ data_dir: config.data_dir, file: resolve(file) });
  process.stdout.write(`${resolve(file)}\n`);
  return 0;
}
