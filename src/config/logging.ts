import type { Destination } from '../schemas/destination.ts';
import type { BroadcastSection } from './file-schema.ts';
import { type Environment, expand } from './providers.ts';
import type { Path, ReadFile } from './read-file.ts';
import { filled } from './settings/declare.ts';
import { broadcastDestination, logging as loggingSection } from './settings/service.ts';

/** How long requests and answers are kept, and where calls are sent. */
export interface LoggingConfig {
  retention_days: number;
  broadcast: readonly Destination[];
}

/** Names and values that every HTTP client can send. */
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const HEADER_VALUE = /^[\x20-\x7e]+$/;
/** Headers that the request itself sets. */
const OWN_HEADERS: ReadonlySet<string> = new Set(['content-length', 'content-type', 'host', 'transfer-encoding']);
const DEFAULT_PATH = '/v1/traces';
const BASIS_POINTS = 10_000;

/** OTLP specification, OTLP/HTTP Request: spans go to this path unless another is named. */
function addressOf({ type, url }: BroadcastSection, wrong: (field: string, rule: string) => Error): string {
  const parsed = URL.parse(url);
  if (parsed === null) throw wrong('url', 'must be an http(s) address');
  if (parsed.username !== '' || parsed.password !== '') throw wrong('url', 'must not hold a credential; use headers');
  if (type === 'otel-collector' && parsed.pathname === '/') parsed.pathname = DEFAULT_PATH;
  parsed.hash = '';
  return parsed.href;
}

/** Reads `logging.retention_days` and `logging.broadcast`; a destination whose variables are not set is off, with a warning. */
export function readLogging(
  environment: Environment,
  file: ReadFile | undefined,
): { logging: LoggingConfig; warnings: string[] } {
  const { retention_days, broadcast: sections = [] } = filled(loggingSection, file?.value.logging);
  const warnings: string[] = [];
  const broadcast: Destination[] = [];
  for (const [index, section] of sections.entries()) {
    const path: Path = ['logging', 'broadcast', index];
    const name = section.name ?? `${section.type}-${index + 1}`;
    const wrong = (field: string, rule: string) => file?.wrong([...path, field], rule) ?? new Error(rule);
    if (broadcast.some((other) => other.name === name)) throw wrong('name', `is that of another destination: ${name}`);
    const unset: string[] = [];
    const withVariables = (text: string) => {
      const expanded = expand(text, environment);
      if (expanded.unset !== undefined) unset.push(expanded.unset);
      return expanded.text;
    };
    const headers: Record<string, string> = {};
    for (const [header, text] of Object.entries(section.headers ?? {})) {
      const lower = header.toLowerCase();
      if (!HEADER_NAME.test(header) || OWN_HEADERS.has(lower)) {
        throw wrong('headers', `must not have ${JSON.stringify(header)}: it cannot be set`);
      }
      const value = withVariables(text);
      if (value !== '' && !HEADER_VALUE.test(value)) throw wrong('headers', `must have plain text for ${header}`);
      headers[lower] = value;
    }
    const secret = section.secret === undefined ? undefined : withVariables(section.secret);
    const url = addressOf({ ...section, url: withVariables(section.url) }, wrong);
    if (unset.length > 0) {
      warnings.push(`The broadcast to ${name} is off: ${unset[0]} is not set`);
      continue;
    }
    const { include_content, sampling_rate } = filled(broadcastDestination, section);
    broadcast.push({
      name,
      type: section.type,
      url,
      headers,
      secret,
      workspaces: section.workspaces,
      include_content,
      share_bp: Math.max(1, Math.round(sampling_rate * BASIS_POINTS)),
    });
  }
  return { logging: { retention_days, broadcast }, warnings };
}
