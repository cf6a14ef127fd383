import { limits } from '../limits.ts';
import { type Environment, expand } from './providers.ts';
import type { ReadFile } from './read-file.ts';
import { readVariable } from './read-variable.ts';

/** The access to the metrics, and their address. */
export interface MetricsConfig {
  /** The bearer token of the scraper; undefined if everybody who reaches the address may read the metrics. */
  token: string | undefined;
  /** A separate address; undefined if they are at the address of the API. */
  listen: { host: string; port: number } | undefined;
}

function tokenRule(token: string): string | undefined {
  const { management_key_chars_min: charsMin } = limits;
  return token.length >= charsMin && /^[\x21-\x7e]+$/.test(token)
    ? undefined
    : `must have ${charsMin} characters or more, of plain ASCII without white space`;
}

/** Reads the section `metrics`. A token that cannot be read stops the start: without it the metrics would be open. */
export function readMetrics(environment: Environment, file: ReadFile | undefined, host: string): MetricsConfig {
  const { token: text, host: ownHost = host, port } = file?.value.metrics ?? {};
  const listen = port === undefined ? undefined : { host: ownHost, port };
  if (port === undefined && ownHost !== host) throw file!.wrong(['metrics', 'host'], 'needs metrics.port as well');
  const fromEnvironment = readVariable(environment, 'GATEWAY_METRICS_TOKEN');
  if (fromEnvironment !== undefined) return { token: fromEnvironment, listen };
  if (text === undefined) return { token: undefined, listen };
  const { text: token, unset } = expand(text, environment);
  const rule = unset === undefined ? tokenRule(token) : `refers to ${unset}, which is not set`;
  if (rule !== undefined) throw file!.wrong(['metrics', 'token'], rule);
  return { token, listen };
}
