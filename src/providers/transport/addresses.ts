import ipaddr from 'ipaddr.js';

/** Global unicast (RFC 4291, section 2.4; IANA "IPv6 Global Unicast Address Assignments"). */
const GLOBAL = ipaddr.IPv6.parseCIDR('2000::/3');
/** The well-known prefix of NAT64 (RFC 6052), whose last 32 bits are an IPv4 address. */
const NAT64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96');
/** The platform's own services on every machine of Azure (https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16). */
const PLATFORM = new Set(['168.63.129.16']);

/**
 * Whether an address is somebody's on the public internet: no machine of the operator's own network can be behind it. What
 * is no address, or stands for an IPv4 address in any way but the well-known prefix of NAT64, is not.
 */
export function isPublicAddress(text: string): boolean {
  if (!ipaddr.isValid(text)) return false;
  const address = ipaddr.parse(text);
  if (address instanceof ipaddr.IPv4) return isPublicIpv4(address);
  if (address.zoneId !== undefined) return false;
  if (address.match(NAT64)) return isPublicIpv4(new ipaddr.IPv4(address.toByteArray().slice(-4)));
  // ISATAP (RFC 5214, section 6.1) has an IPv4 address in its interface identifier.
  const isIsatap = (address.parts[4]! & 0xfdff) === 0 && address.parts[5] === 0x5efe;
  return address.range() === 'unicast' && address.match(GLOBAL) && !isIsatap;
}

function isPublicIpv4(address: ipaddr.IPv4): boolean {
  return address.range() === 'unicast' && !PLATFORM.has(address.toString());
}

/** Whether an address is in a network such as `10.0.0.0/8`; what is no address, or no network, is not. */
export function isInNetwork(address: string, network: string): boolean {
  if (!ipaddr.isValid(address) || !ipaddr.isValidCIDR(network)) return false;
  const parsed = ipaddr.process(address);
  const [base, bits] = ipaddr.parseCIDR(network);
  return parsed.kind() === base.kind() && parsed.match(base, bits);
}
