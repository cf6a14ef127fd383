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

/** Parses the address of a header or a socket, without port and brackets; an IPv4 address in IPv6 form becomes IPv4. */
function parseAddress(text: string): Address | undefined {
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

/** Makes the rule from checked addresses and CIDR ranges. */
export function trustedProxies(entries: readonly string[]): TrustedProxies {
  const ranges = entries.map(rangeOf);
  const isTrusted = (address: Address) =>
    ranges.some(([range, bits]) => range.kind() === address.kind() && address.match(range, bits));
  return {
    includes(text) {
      if (ranges.length === 0 || text === undefined) return false;
      const address = parseAddress(text);
      return address !== undefined && isTrusted(address);
    },
    clientAddress(remote, xForwardedFor) {
      const peer = parseAddress(remote ?? '');
      if (peer === undefined) return remote ?? 'unknown';
      let client = peer;
      const hops = [xForwardedFor ?? []].flat().join(',').split(',');
      while (isTrusted(client) && hops.length > 0) {
        const next = parseAddress((hops.pop() ?? '').trim());
        // A trusted proxy writes an address. If the entry is none, only the proxy itself is known.
        if (next === undefined) break;
        client = next;
      }
      return client.toString();
    },
  };
}

/** The unit that counts as one client: an IPv4 address, or the /64 network of an IPv6 address, which one client usually has. */
export function networkOf(address: string | undefined): string {
  const one = parseAddress(address ?? '');
  if (one === undefined) return address ?? 'unknown';
  return one instanceof ipaddr.IPv6
    ? `${one.parts
        .slice(0, 4)
        .map((part) => part.toString(16))
        .join(':')}::/64`
    : one.toString();
}
