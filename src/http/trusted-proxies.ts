import ipaddr from 'ipaddr.js';

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** The proxies whose `X-Forwarded-For` counts (setting `http.trusted_proxies`). */
export interface TrustedProxies {
  /** Whether the address is one of them. */
  includes(address: string | undefined): boolean;
  /**
   * The address of the client: the remote address of its connection, or, if that is a trusted proxy, the last address of
   * `X-Forwarded-For` that is not a trusted proxy. Entries in front of that one are the client's own claims and do not count.
   */
  clientAddress(remote: string | undefined, xForwardedFor: string | string[] | undefined): string;
}

/** An address of a header or a socket without port and brackets; an IPv4 address in IPv6 form is the IPv4 address. */
function parsed(text: string): Address | undefined {
  const [, bracketed, withPort] = /^\[([^\]]*)\](?::\d+)?$|^([\d.]+):\d+$/.exec(text) ?? [];
  const bare = bracketed ?? withPort ?? text;
  // Other forms of IPv4 (octal, one number) are not addresses here.
  if (!bare.includes(':') && !ipaddr.IPv4.isValidFourPartDecimal(bare)) return undefined;
  return ipaddr.isValid(bare) ? ipaddr.process(bare) : undefined;
}

function rangeOf(entry: string): [Address, number] {
  if (entry.includes('/')) return ipaddr.parseCIDR(entry);
  const address = ipaddr.process(entry);
  return [address, address.kind() === 'ipv4' ? 32 : 128];
}

/** Makes the rule from addresses and CIDR ranges, which the configuration has checked. */
export function trustedProxies(entries: readonly string[]): TrustedProxies {
  const ranges = entries.map(rangeOf);
  const isTrusted = (address: Address) =>
    ranges.some(([range, bits]) => range.kind() === address.kind() && address.match(range, bits));
  return {
    includes(text) {
      if (ranges.length === 0 || text === undefined) return false;
      const address = parsed(text);
      return address !== undefined && isTrusted(address);
    },
    clientAddress(remote, xForwardedFor) {
      const peer = parsed(remote ?? '');
      if (peer === undefined) return remote ?? 'unknown';
      let client = peer;
      const hops = [xForwardedFor ?? []].flat().join(',').split(',');
      while (isTrusted(client) && hops.length > 0) {
        const next = parsed((hops.pop() ?? '').trim());
        // What a trusted proxy wrote is an address; anything else is not: the proxy itself is then all that is known.
        if (next === undefined) break;
        client = next;
      }
      return client.toString();
    },
  };
}

/** What is counted as one client: an IPv4 address, or the /64 network of an IPv6 address, which one client has whole. */
export function networkOf(address: string | undefined): string {
  const one = parsed(address ?? '');
  if (one === undefined) return address ?? 'unknown';
  return one instanceof ipaddr.IPv6
    ? `${one.parts
        .slice(0, 4)
        .map((part) => part.toString(16))
        .join(':')}::/64`
    : one.toString();
}
