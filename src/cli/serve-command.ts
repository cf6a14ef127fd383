import { limits } from '../limits.ts';
import { type Command, common, readArguments, UsageError } from './command.ts';
import { keepTaskShape } from './keep-task-shape.ts';

const usage = `Usage: model-gateway serve [--port N] [--host HOST] [--workers N] [--config FILE]

Runs the gateway until a signal ends it (Ctrl-C, SIGTERM).
  --port     the port to listen on, instead of GATEWAY_PORT; 0 chooses a free one
  --host     the address to listen on, instead of GATEWAY_HOST
  --workers  how many processes share the work, 1 to ${limits.workers_max}; by default 1
  --config   the configuration file, instead of GATEWAY_CONFIG; by default gateway.yaml, if it exists
`;

/** `model-gateway serve`. */
export const serveCommand: Command = {
  usage,
  async run(args, environment) {
    const text = { type: 'string' } as const;
    const { values } = readArguments({
      args,
      options: { config: common.config, host: text, port: text, workers: { type: 'string', default: '1' } },
    });
    const workers = Number(values.workers);
    if (!Number.isInteger(workers) || workers < 1 || workers > limits.workers_max) {
      throw new UsageError(`--workers takes a number from 1 to ${limits.workers_max}, not '${values.workers}'.`);
    }
    if (values.port !== undefined && !(/^\d{1,5}$/.test(values.port) && Number(values.port) <= 65_535)) {
      throw new UsageError(`--port takes a number from 0 to 65535, not '${values.port}'.`);
    }
    const hasReloadSignal = (await import('./follow-config.ts')).holdReloadSignal();
    keepTaskShape();
    const { serve } = await import('./serve.ts');
    const overridden = {
      ...environment,
      ...(values.port === undefined ? {} : { GATEWAY_PORT: values.port }),
      ...(values.host === undefined ? {} : { GATEWAY_HOST: values.host }),
    };
    await serve(overridden, { workers, config_file: values.config, hasReloadSignal });
    return -1;
  },
};
