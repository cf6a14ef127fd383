import { resolve } from 'node:path';
import { loadConfig } from '../config.ts';
import { backUp } from '../storage/backup.ts';
import { type Command, common, Refusal, readArguments, UsageError } from './command.ts';

const usage = `Usage: model-gateway backup FILE [--config FILE]

Copies the embedded store to FILE, which must not exist, also while a gateway runs. Only this user can read the copy.
The folder of FILE must exist. A PostgreSQL store is backed up with pg_dump.
`;

/** `model-gateway backup FILE`: a consistent copy of the embedded store. */
export const backupCommand: Command = {
  usage,
  async run(args, environment) {
    const { positionals, values } = readArguments({
      args,
      allowPositionals: true,
      options: { config: common.config },
    });
    const [file] = positionals;
    if (file === undefined || positionals.length > 1) throw new UsageError();
    const config = loadConfig(environment, { config_file: values.config });
    if (config.database_url !== undefined) throw new Refusal('The store is PostgreSQL: back it up with pg_dump.');
    await backUp({ data_dir: config.data_dir, file: resolve(file) });
    process.stdout.write(`${resolve(file)}\n`);
    return 0;
  },
};
