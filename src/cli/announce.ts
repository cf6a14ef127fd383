import { resolve } from 'node:path';
import { type Config, gatewayVersion } from '../config.ts';
import type { Logger } from '../telemetry/log.ts';
import { commandName, startCommand } from './command-name.ts';
import type { FirstKeys } from './first-start.ts';

/** A second signal within this time is an echo of the first: a terminal, a supervisor and a parent can all send it. */
const SIGNAL_ECHO_MS = 1_000;

/** The configuration that the lines of a start show. */
type Shown = Pick<Config, 'providers' | 'sandbox'>;

/** The address by which clients on this machine reach a gateway that listens on all addresses. */
export function localUrl(url: string): string {
  return url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//127.0.0.1:');
}

const listens = (url: string) => `Model Gateway ${gatewayVersion()} listens on ${url}`;

const reference = (url: string) => `API reference: ${localUrl(url)}/docs`;

/** A request that can be pasted into a shell. `key` is the API key, or the shell's name for it. */
function curl(url: string, model: string, key: string): string[] {
  // A quote in the model's name must not end the shell's string.
  const name = JSON.stringify(model).replaceAll("'", "'\\''");
  return [
    `curl -s ${localUrl(url)}/api/v1/chat/completions \\`,
    `  -H "Authorization: Bearer ${key}" \\`,
    '  -H "Content-Type: application/json" \\',
    `  -d '{"model": ${name}, "messages": [{"role": "user", "content": "Tell me a story."}]}'`,
  ];
}

function keyLines({ management_key, api_key, file }: FirstKeys): string[] {
  if (file !== undefined) return [`Keys: in ${file} (readable for this user alone). Store them, then delete the file.`];
  return [
    'Keys (shown only this once; store them now):',
    ...(api_key === undefined ? [] : [`  API key, calls models:                 ${api_key}`]),
    ...(management_key === undefined ? [] : [`  Management key, administers the rest:  ${management_key}`]),
  ];
}

function firstRequest({ api_key, file }: FirstKeys, url: string, model: string | undefined): string[] {
  if (api_key === undefined) return [`Make an API key, which calls models: ${commandName()} keys create --name laptop`];
  const key = file === undefined ? api_key : '$GATEWAY_KEY';
  return [
    model === undefined
      ? 'First request: paste this into a second terminal, with one of your models instead of MODEL'
      : 'First request: paste this into a second terminal',
    '',
    ...[...(file === undefined ? [] : [`. '${file}'`]), ...curl(url, model ?? 'MODEL', key)].map((line) => `  ${line}`),
  ];
}

function providerLines({ providers, sandbox }: Shown): string[] {
  const other = providers.some(({ slug }) => slug === 'openai')
    ? 'ANTHROPIC_API_KEY=sk-ant-...'
    : 'OPENAI_API_KEY=sk-...';
  const example = `${other} ${startCommand()}`;
  if (sandbox) {
    return [
      'No provider is configured: the sandbox, a simulated provider, answers. Its costs are simulated too.',
      `To add a provider, stop the gateway (Ctrl-C) and start it with the provider's key: ${example}`,
    ];
  }
  return [
    `Providers: ${providers.map(({ slug }) => slug).join(', ') || 'none'}`,
    `To add one, stop the gateway (Ctrl-C) and start it with the provider's key: ${example}`,
  ];
}

/** Where the console is: the one-time link of a first start, else what prints one. */
function consoleLines(url: string, path: string | undefined): string[] {
  if (path === undefined) return [`Console: ${localUrl(url)}/ (a link that signs you in: ${commandName()} console)`];
  return [
    'Console: open this link in your browser; it signs you in once, within ten minutes',
    `  ${localUrl(url)}${path}`,
  ];
}

/** Prints the keys of a first start, the only time, and what to do next. */
export function announceFirst(
  config: Shown & Pick<Config, 'console'>,
  keys: FirstKeys,
  start: { url: string; model: string | undefined; sign_in_path?: string | undefined },
): void {
  const paragraphs = [
    [listens(start.url)],
    keyLines(keys),
    firstRequest(keys, start.url, start.model),
    ...(config.console ? [consoleLines(start.url, start.sign_in_path)] : []),
    providerLines(config),
    [`Documentation: ${resolve(import.meta.dirname, '../../docs/guides')}`, reference(start.url)],
  ];
  const text = paragraphs.map((lines) => lines.map((line) => (line === '' ? '' : `  ${line}`)).join('\n'));
  process.stdout.write(`\n${text.join('\n\n')}\n\n`);
}

/** The state of a gateway that serves. */
export interface Started {
  url: string;
  /** `announceFirst` has printed the address already. */
  has_shown: boolean;
  /** What its configuration lacks. */
  warnings: readonly string[];
}

/** Prints or logs the address of the gateway, and what its configuration lacks. */
export function announce(config: Shown, { url, has_shown, warnings }: Started, log: Logger): void {
  const providers = config.providers.map(({ slug }) => slug);
  if (process.stdout.isTTY && !has_shown) {
    const served = [...(config.sandbox ? ['the sandbox'] : []), ...providers].join(', ') || 'none';
    const lines = [listens(url), `Providers: ${served}. API keys: ${commandName()} keys create --name NAME`];
    process.stdout.write(`${[...lines, reference(url)].join('\n')}\n`);
  }
  for (const warning of warnings) log.warn(warning);
  if (!process.stdout.isTTY) log.info({ url, providers, sandbox: config.sandbox }, 'serving');
}

/**
 * Runs `stop` at the first SIGTERM or SIGINT, then ends the process. A second signal ends it at once, unless it is an echo of
 * the first. Returns a function that stops and ends the process in the same order, as failed.
 */
export function onceSignalled(stop: (reason: string) => Promise<void>): (reason: string) => void {
  let firstMs: number | undefined;
  const end = (reason: string, code: number) =>
    void stop(reason).then(
      () => process.exit(code),
      (error) => {
        process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
        process.exit(1);
      },
    );
  const handle = (signal: NodeJS.Signals) => {
    const now = performance.now();
    if (firstMs !== undefined) {
      if (now - firstMs > SIGNAL_ECHO_MS) process.exit(1);
      return;
    }
    firstMs = now;
    end(signal, 0);
  };
  process.on('SIGTERM', handle);
  process.on('SIGINT', handle);
  return (reason) => {
    if (firstMs !== undefined) return;
    firstMs = performance.now();
    end(reason, 1);
  };
}
