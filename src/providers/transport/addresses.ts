import ipaddr from 'ipaddr.js';

/** Global unicast (RFC 4291, section 2.4; IANA "IPv6 Global Unicast Address Assignments"). */
const GLOBAL = ipaddr.IPv6.parseCIDR('2000::/3');
/** The well-known prefix of NAT64 (RFC 6052), whose last 32 bits are an IPv4 address. */
const NAT64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96');
/** Platform services reachable from every machine of Azure (https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16). */
const PLATFORM = new Set(['168.63.129.16']);

/**
 * Whether an address is on the public internet, so that it cannot be a machine of the operator's own network. False for a text that is not
 * an address, and for addresses that embed an IPv4 address in any way but NAT64's well-known prefix.
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

/** Whether an address is in a network such as `10.0.0.0/8`. False if either is invalid. */
export function isInNetwork(address: string, network: string): boolean {
  if (!ipaddr.isValid(address) || !ipaddr.isValidCIDR(network)) return false;
  const parsed = ipaddr.process(address);
  const [base, bits] = ipaddr.parseCIDR(network);
  return parsed.kind() === base.kind() && parsed.match(base, bits);
}
