import type { DirectRule, ProxyRules } from '../providers/transport/proxy.ts';
import { ConfigError } from './config-error.ts';
import { type Environment, variable } from './providers.ts';

/** A variable in lower or upper case: both are in use, and most programs prefer lower case. */
function eitherCase(environment: Environment, name: string): { name: string; text: string } | undefined {
  for (const spelling of [name.toLowerCase(), name]) {
    const text = variable(environment, spelling);
    if (text !== undefined) return { name: spelling, text };
  }
  return undefined;
}

/** The value may contain a password, so the message does not quote it. */
function proxyUrl(environment: Environment, variableName: 'HTTP_PROXY' | 'HTTPS_PROXY'): string | undefined {
  const setting = eitherCase(environment, variableName);
  if (setting === undefined) return undefined;
  const url = URL.parse(setting.text.includes('://') ? setting.text : `http://${setting.text}`);
  const isPlain = url !== null && /^https?:$/.test(url.protocol) && /^\/?$/.test(url.pathname) && !url.search;
  if (!isPlain) {
    throw new ConfigError(
      `${setting.name} must be the address of an HTTP proxy, such as http://proxy.internal:3128 or http://user:password@proxy.internal:3128`,
    );
  }
  return url.href;
}

function directRule(entry: string): DirectRule {
  const [, bracketed, bracketedPort] = /^\[(.+)\](?::(\d+))?$/.exec(entry) ?? [];
  // An IPv6 address has more colons than one.
  const [, plain, plainPort] = /^([^:]+):(\d+)$/.exec(entry) ?? [];
  const host = bracketed ?? plain ?? entry;
  const port = bracketedPort ?? plainPort;
  return {
    host: host
      .replace(/^\*?\.(?=.)/, '')
      .replace(/(?<=.)\.$/, '')
      .toLowerCase(),
    port: port === undefined ? undefined : Number(port),
  };
}

/** The proxies that the environment names; undefined: none. */
export function readProxies(environment: Environment): ProxyRules | undefined {
  const http = proxyUrl(environment, 'HTTP_PROXY');
  const https = proxyUrl(environment, 'HTTPS_PROXY');
  if (http === undefined && https === undefined) return undefined;
  const entries = (eitherCase(environment, 'NO_PROXY')?.text ?? '').split(/[\s,]+/).filter((entry) => entry !== '');
  return { http, https, direct: entries.map(directRule) };
}
