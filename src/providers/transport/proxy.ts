import type { Agent as AgentType, Dispatcher, ProxyAgent } from 'undici';
import { isInNetwork } from './addresses.ts';
import { Agent, Pool, proxyAgent } from './undici.ts';

/** Which proxy leads to which address, as the operator's environment says. */
export interface ProxyRules {
  /** For addresses of http; undefined: none. */
  http: string | undefined;
  /** For addresses of https. */
  https: string | undefined;
  /** What is reached without a proxy: `*`, or hosts (each with all below it), addresses and networks, all in lower case. */
  direct: readonly DirectRule[];
}

export interface DirectRule {
  host: string;
  /** undefined: all of them. */
  port: number | undefined;
}

/** This machine is never reached through a proxy. */
const OWN_HOSTS: readonly string[] = ['localhost', '127.0.0.0/8', '::1'];

function matches(rule: string, host: string): boolean {
  return rule === '*' || host === rule || host.endsWith(`.${rule}`) || isInNetwork(host, rule);
}

/** The proxy that leads to an address; undefined: it is reached directly. */
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

/** Pools of connections, each address by its way. */
export interface Connections {
  to(origin: string): Dispatcher;
  destroy(): Promise<void>;
}

/** A way through one proxy, with the bounds of direct connections. `options` may say more of it. */
export function throughProxy(proxy: string, options: Options, more: Partial<ProxyAgent.Options> = {}): Dispatcher {
  const { timeout } = options.connect;
  const { connect: _, ...bounds } = options;
  const ProxyAgentOf = proxyAgent();
  return new ProxyAgentOf({
    ...bounds,
    uri: proxy,
    connectTimeout: timeout,
    // A proxy that takes the connection and never answers is as late as a server that cannot be reached.
    clientFactory: (origin, own) => new Pool(origin, { ...own, headersTimeout: timeout }),
    factory: (origin, own) => new Pool(origin, { ...bounds, ...own }),
    ...more,
  });
}

/** Opens the pools; they are empty until something is sent. */
export function openConnections(options: Options, rules: ProxyRules | undefined): Connections {
  const direct = new Agent(options);
  if (rules === undefined) return { to: () => direct, destroy: () => direct.destroy() };
  const proxied = new Map<string, Dispatcher>();
  return {
    to(origin) {
      const proxy = URL.canParse(origin) ? proxyFor(rules, new URL(origin)) : undefined;
      if (proxy === undefined) return direct;
      let way = proxied.get(proxy);
      if (way === undefined) {
        way = throughProxy(proxy, options);
        proxied.set(proxy, way);
      }
      return way;
    },
    async destroy() {
      await Promise.all([direct, ...proxied.values()].map((way) => way.destroy()));
    },
  };
}
