import { expect, test } from 'vitest';
import { isPublicAddress } from './addresses.ts';

test.each([
  ['unspecified', '0.0.0.0'],
  ['of this network', '0.1.2.3'],
  ['private', '10.0.0.1'],
  ['private', '172.16.0.1'],
  ['private', '172.31.255.255'],
  ['private', '192.168.1.1'],
  ['loopback', '127.0.0.1'],
  ['loopback', '127.255.255.254'],
  ["link-local, where clouds tell a machine's credentials", '169.254.169.254'],
  ['shared behind a carrier, where Alibaba Cloud does', '100.100.100.200'],
  ["where Oracle's old machines do", '192.0.0.192'],
  ["Azure's own on every machine", '168.63.129.16'],
  ['for benchmarks', '198.18.0.1'],
  ['for documentation', '203.0.113.7'],
  ['multicast', '224.0.0.251'],
  ['reserved', '240.0.0.1'],
  ['broadcast', '255.255.255.255'],
  ['a relay of 6to4', '192.88.99.1'],
  ['unspecified', '::'],
  ['loopback', '::1'],
  ['an IPv4 address, mapped', '::ffff:127.0.0.1'],
  ['a public IPv4 address, mapped', '::ffff:8.8.8.8'],
  ['an IPv4 address, compatible', '::7f00:1'],
  ['an IPv4 address, translated', '::ffff:0:127.0.0.1'],
  ['a private address behind NAT64', '64:ff9b::a00:1'],
  ['loopback behind NAT64', '64:ff9b::7f00:1'],
  ['behind a NAT64 of its own', '64:ff9b:1::808:808'],
  ['loopback in 6to4', '2002:7f00:1::1'],
  ['a public address in 6to4', '2002:808:808::1'],
  ['Teredo', '2001:0:4136:e378:8000:63bf:3fff:fdd2'],
  ['an IPv4 address in ISATAP', '2606:4700::5efe:7f00:1'],
  ['the same, of a public one', '2606:4700::200:5efe:808:808'],
  ['unique local', 'fd00:ec2::254'],
  ['unique local', 'fc00::1'],
  ['link-local', 'fe80::1'],
  ['site-local', 'fec0::1'],
  ['multicast', 'ff02::1'],
  ['for documentation', '2001:db8::1'],
  ['for documentation', '3fff::1'],
  ['discarded', '100::1'],
  ['for segment routing', '5f00::1'],
  ['outside what was given out', '4000::1'],
  ['with a zone', '2606:4700::1%eth0'],
  ['no address', 'example.com'],
  ['nothing', ''],
])('an address that is %s is not public: %s', (_what, address) => {
  expect(isPublicAddress(address)).toBe(false);
});

test.each([
  '8.8.8.8',
  '1.1.1.1',
  '172.32.0.1',
  '100.128.0.1',
  '2606:4700::1111',
  '2001:4860:4860::8888',
  '64:ff9b::808:808',
])('an address of the public internet is: %s', (address) => {
  expect(isPublicAddress(address)).toBe(true);
});
