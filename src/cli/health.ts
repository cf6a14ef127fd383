import { request } from 'node:http';
import { ConfigError, listenAddress } from '../config.ts';
import { type Command, readArguments } from './command.ts';

/** The timeout of the command `health`: below the time that a container waits for it. */
const HEALTH_MS_MAX = 4_000;
const HEALTH_CHARS_MAX = 10_000;

const usage = `Usage: model-gateway health [--live]

Checks whether the gateway at GATEWAY_HOST and GATEWAY_PORT is ready for requests. Ends with 0 if it is, otherwise with 1.
  --live  checks only whether the process answers: for supervisors that restart an unhealthy gateway
`;

/** The loopback addresses that reach a server on all addresses. */
const LOOPBACK: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

/** `model-gateway health`, for containers and supervisors. */
export const healthCommand: Command = {
  usage,
  async run(args, environment) {
    const { values } = readArguments({ args, options: { live: { type: 'boolean', default: false } } });
    const { host, port } = listenAddress(environment);
    if (port === 0)
      throw new ConfigError('GATEWAY_PORT is 0, so the port is not known. Set it to the port of the gateway');
    const path = values.live ? '/health/live' : '/health/ready';
    try {
      const { status, text } = await fetchHealth({ host: LOOPBACK[host] ?? host, port, path });
      if (status === 200) {
        process.stdout.write(values.live ? 'live\n' : 'ready\n');
        return 0;
      }
      process.stderr.write(`The gateway at ${host} port ${port} answered ${status}: ${text}\n`);
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      process.stderr.write(
        `No gateway answers at ${host} port ${port} (${code ?? message}). Start it, or set GATEWAY_HOST and GATEWAY_PORT to its address.\n`,
      );
    }
    return 1;
  },
};

/** Sends the request without a proxy: the gateway is on this machine. */
function fetchHealth(target: { host: string; port: number; path: string }): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(HEALTH_MS_MAX);
    const sent = request({ ...target, signal, agent: false }, (answer) => {
      let text = '';
      answer.setEncoding('utf8');
      answer.on('data', (part: string) => {
        if (text.length < HEALTH_CHARS_MAX) text += part;
      });
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text: messageOf(text) }));
      answer.on('error', reject);
    });
    sent.on('error', reject);
    sent.end();
  });
}

function messageOf(text: string): string {
  try {
    const { error } = JSON.parse(text) as { error?: { message?: unknown } };
    return String(error?.message ?? text);
  } catch {
    return text;
  }
}
