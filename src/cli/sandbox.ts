import { once } from 'node:events';
import { modelsByName, startSandbox } from '../../sandbox/index.ts';
import { type Command, readArguments, UsageError } from './command.ts';

const portDefault = 8090;

const usage = `Usage: model-gateway sandbox [--host HOST] [--port N] [--api-key KEY]

Runs the simulated provider as a server of its own, by default on http://127.0.0.1:${portDefault}.
Models: ${Object.keys(modelsByName).join(', ')}.
Settings follow a model's name: story;tokens=500;chunk_delay_ms=20
`;

/** `model-gateway sandbox`: runs until the process receives a signal. */
export const sandboxCommand: Command = {
  usage,
  async run(args) {
    const { values } = readArguments({
      args,
      options: {
        host: { type: 'string', default: '127.0.0.1' },
        port: { type: 'string', default: String(portDefault) },
        'api-key': { type: 'string' },
      },
    });
    const port = Number(values.port);
    if (!Number.isInteger(port) || port < 0 || port > 65_535) {
      throw new UsageError(`--port takes a number from 0 to 65535, not '${values.port}'.`);
    }
    const apiKey = values['api-key'];
    const sandbox = await startSandbox({
      host: values.host,
      port,
      ...(apiKey === undefined ? {} : { api_key: apiKey }),
    });
    process.stdout.write(`The sandbox listens on ${sandbox.url} (POST /v1/chat/completions, POST /v1/messages).\n`);
    await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
    await sandbox.stop();
    return 0;
  },
};
