import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { sandbox_models } from '../sandbox/models.ts';
import { startSandbox } from '../sandbox/server.ts';

const port_default = 8090;

const usage = `Usage: model-gateway sandbox [--host HOST] [--port N] [--api-key KEY]

Runs the simulated upstream alone, on http://127.0.0.1:${port_default} unless told otherwise.
Models: ${Object.keys(sandbox_models).join(', ')}.
Settings follow a model's name: story;tokens=500;chunk_delay_ms=20
`;

/** Runs the sandbox until the process is asked to end. Gives the exit code. */
export async function runSandbox(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      host: { type: 'string', default: '127.0.0.1' },
      port: { type: 'string', default: String(port_default) },
      'api-key': { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(usage);
    return 0;
  }
  const port = Number(values.port);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    process.stderr.write(`--port takes a number from 0 to 65535, not '${values.port}'.\n`);
    return 2;
  }
  const api_key = values['api-key'];
  const sandbox = await startSandbox({ host: values.host, port, ...(api_key === undefined ? {} : { api_key }) });
  process.stdout.write(`The sandbox listens on ${sandbox.url} (POST /v1/chat/completions, POST /v1/messages).\n`);
  await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
  await sandbox.stop();
  return 0;
}
