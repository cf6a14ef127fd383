import type { Agent as AgentType, Dispatcher, ProxyAgent } from 'undici';
import { isInNetwork } from './addresses.ts';
import { Agent, Pool, proxyAgent } from './undici.ts';

/** The proxies of the operator's environment. */
export interface ProxyRules {
  /** For http addresses; undefined if none. */
  http: string | undefined;
  /** For https addresses; undefined if none. */
  https: string | undefined;
  /** Hosts reached without a proxy: `*`, hosts (each with its subdomains), addresses and networks, all in lower case. */
  direct: readonly DirectRule[];
}

export interface DirectRule {
  host: string;
  /** Undefined for all ports. */
  port: number | undefined;
}

/** This machine is never reached through a proxy. */
const OWN_HOSTS: readonly string[] = ['localhost', '127.0.0.0/8', '::1'];

function matches(rule: string, host: string): boolean {
  return rule === '*' || host === rule || host.endsWith(`.${rule}`) || isInNetwork(host, rule);
}

/** The proxy for an address; undefined for a direct connection. */
export function proxyFor(rules: ProxyRules | undefined, url: URL): string | undefined {
  const proxy = url.protocol === 'https:' ? rules?.https : rules?.http;
  if (rules === undefined || proxy === undefined) return undefined;
  const host = url.hostname.replace(/^\[|\]$|\.$/g, '').toLowerCase();
  const port = Number(url.port) || (url.protocol === 'https:' ? 443 : 80);
  const isDirect =
    OWN_HOSTS.some((rule) => matches(rule, host)) ||
    rules.direct.some((rule) => (rule.port === undefined || rule.port === port) && matches(rule.host, host));
  return isDirect ? undefined : proxy;
}

type Options = AgentType.Options & { connect: { timeout: number } };

/** Connection pools, direct or through a proxy. */
export interface Connections {
  to(origin: string): Dispatcher;
  destroy(): Promise<void>;
}

/** Connections through one proxy, with the bounds of direct ones. `more` overrides the proxy's options. */
export function throughProxy(proxy: string, options: Options, more: Partial<ProxyAgent.Options> = {}): Dispatcher {
  const { timeout } = options.connect;
  const { connect: _, ...bounds } = options;
  const ProxyAgentOf = proxyAgent();
  return new ProxyAgentOf({
    ...bounds,
    uri: proxy,
    connectTimeout: timeout,
    // A proxy that accepts the connection and never answers counts as a connect timeout.
    clientFactory: (origin, own) => new Pool(origin, { ...own, headersTimeout: timeout }),
    factory: (origin, own) => new Pool(origin, { ...bounds, ...own }),
    ...more,
  });
}

/** Opens the pools; they are empty until the first request. */
export function openConnections(options: Options, rules: ProxyRules | undefined): Connections {
  const direct = new Agent(options);
  if (rules === undefined) return { to: () => direct, destroy: () => direct.destroy() };
  const proxied = new Map<string, Dispatcher>();
  return {
    to(origin) {
      const proxy = URL.canParse(origin) ? proxyFor(rules, new URL(origin)) : undefined;
      if (proxy === undefined) return direct;
      let pool = proxied.get(proxy);
      if (pool === undefined) {
        pool = throughProxy(proxy, options);
        proxied.set(proxy, pool);
      }
      return pool;
    },
    async destroy() {
      await Promise.all([direct, ...proxied.values()].map((way) => way.destroy()));
    },
  };
}
