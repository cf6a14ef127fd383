import { domainToASCII } from 'node:url';

/**
 * Which pages a search may find. `x.com` is that host and all below it, `*.x.com` those below it alone, and `x.com/blog` of a host
 * what is at that path or below it. What both lists name is left out.
 */
export interface DomainRules {
  allowed: readonly DomainRule[];
  excluded: readonly DomainRule[];
}

/** One entry of such a list. */
export interface DomainRule {
  /** As it was written, in its shortest form. */
  text: string;
  host: string;
  /** The host itself does not fit, only those below it. */
  below_alone: boolean;
  /** Starts with a slash and does not end in one; empty: all paths. */
  path: string;
}

export const NO_RULES: DomainRules = { allowed: [], excluded: [] };

const HOST = /^(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/** Reads an entry of a list; a scheme and a port are looked over. Undefined: it is no domain. */
export function domainRule(given: string): DomainRule | undefined {
  const bare = given.trim().replace(/^https?:\/\//i, '');
  const slash = bare.search(/[/?#]/);
  const name = slash === -1 ? bare : bare.slice(0, slash);
  const belowAlone = name.startsWith('*.');
  const host = asciiHost((belowAlone ? name.slice(2) : name).replace(/:\d+$/, ''));
  if (host === undefined) return undefined;
  const path = slash === -1 || bare[slash] !== '/' ? '' : plainPath(bare.slice(slash));
  return { text: `${belowAlone ? '*.' : ''}${host}${path}`, host, below_alone: belowAlone, path };
}

function asciiHost(name: string): string | undefined {
  const host = domainToASCII(name.replace(/\.$/, '').toLowerCase());
  return host.length <= 253 && HOST.test(host) ? host : undefined;
}

/** The path as a URL has it, so that one that is written in another way is the same; without a slash at its end. */
function plainPath(text: string): string {
  const path = URL.parse(`http://host${text}`)?.pathname ?? '';
  return spelled(path).replace(/\/+$/, '');
}

/** What may be written as it is or by its number in a path is one and the same. */
function spelled(path: string): string {
  return path.replace(/%[0-9a-f]{2}/gi, (escaped) => {
    const letter = String.fromCharCode(Number.parseInt(escaped.slice(1), 16));
    return /[A-Za-z0-9._~-]/.test(letter) ? letter : escaped.toUpperCase();
  });
}

function fits({ host, below_alone, path }: DomainRule, url: URL): boolean {
  const name = url.hostname.replace(/\.$/, '');
  if (!(name.endsWith(`.${host}`) || (name === host && !below_alone))) return false;
  if (path === '') return true;
  const at = spelled(url.pathname);
  return at === path || at.startsWith(`${path}/`);
}

/** Whether a page may be found. */
export function isAllowed({ allowed, excluded }: DomainRules, url: URL): boolean {
  if (excluded.some((rule) => fits(rule, url))) return false;
  return allowed.length === 0 || allowed.some((rule) => fits(rule, url));
}
