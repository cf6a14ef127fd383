import { domainToASCII } from 'node:url';
import { lengthWithout } from '../../schemas/trailing.ts';

/**
 * The pages that a search may return. `x.com` is the host and its subdomains, `*.x.com` only the subdomains, `x.com/blog`
 * pages at or below that path. Excluded rules take precedence.
 */
export interface DomainRules {
  allowed: readonly DomainRule[];
  excluded: readonly DomainRule[];
}

/** One entry of such a list. */
export interface DomainRule {
  /** The rule in its shortest form. */
  text: string;
  host: string;
  /** Whether only subdomains match. */
  below_alone: boolean;
  /** Starts with a slash and does not end with one. Empty for all paths. */
  path: string;
}

export const NO_RULES: DomainRules = { allowed: [], excluded: [] };

const HOST = /^(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/** Parses an entry of a list, ignoring a scheme and a port. Undefined if it is not a domain. */
export function domainRule(text: string): DomainRule | undefined {
  const bare = text.trim().replace(/^https?:\/\//i, '');
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

/** The normalized path of a URL without a trailing slash. */
function plainPath(text: string): string {
  const path = URL.parse(`http://host${text}`)?.pathname ?? '';
  const plain = spelled(path);
  return plain.slice(0, lengthWithout(plain, '/'));
}

/** Decodes percent escapes of unreserved characters in a path. */
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

/** Whether the rules allow a page. */
export function isAllowed({ allowed, excluded }: DomainRules, url: URL): boolean {
  if (excluded.some((rule) => fits(rule, url))) return false;
  return allowed.length === 0 || allowed.some((rule) => fits(rule, url));
}
