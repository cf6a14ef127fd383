import { expect, test } from 'vitest';
import { isPublicAddress } from './addresses.ts';

test.each([
  ['unspecified', '0.0.0.0'],
  ['in this network', '0.1.2.3'],
  ['private', '10.0.0.1'],
  ['private', '172.16.0.1'],
  ['private', '172.31.255.255'],
  ['private', '192.168.1.1'],
  ['loopback', '127.0.0.1'],
  ['loopback', '127.255.255.254'],
  ['link-local, used by cloud metadata services', '169.254.169.254'],
  ['in carrier-grade NAT, used by Alibaba Cloud metadata', '100.100.100.200'],
  ['used by metadata of old Oracle machines', '192.0.0.192'],
  ['Azure’s own on every machine', '168.63.129.16'],
  ['for benchmarks', '198.18.0.1'],
  ['for documentation', '203.0.113.7'],
  ['multicast', '224.0.0.251'],
  ['reserved', '240.0.0.1'],
  ['broadcast', '255.255.255.255'],
  ['a 6to4 relay', '192.88.99.1'],
  ['unspecified', '::'],
  ['loopback', '::1'],
  ['a mapped IPv4 address', '::ffff:127.0.0.1'],
  ['a mapped public IPv4 address', '::ffff:8.8.8.8'],
  ['an IPv4-compatible address', '::7f00:1'],
  ['a translated IPv4 address', '::ffff:0:127.0.0.1'],
  ['a private address behind NAT64', '64:ff9b::a00:1'],
  ['loopback behind NAT64', '64:ff9b::7f00:1'],
  ['in a local NAT64 prefix', '64:ff9b:1::808:808'],
  ['loopback in 6to4', '2002:7f00:1::1'],
  ['a public address in 6to4', '2002:808:808::1'],
  ['Teredo', '2001:0:4136:e378:8000:63bf:3fff:fdd2'],
  ['an IPv4 address in ISATAP', '2606:4700::5efe:7f00:1'],
  ['a public IPv4 address in ISATAP', '2606:4700::200:5efe:808:808'],
  ['unique local', 'fd00:ec2::254'],
  ['unique local', 'fc00::1'],
  ['link-local', 'fe80::1'],
  ['site-local', 'fec0::1'],
  ['multicast', 'ff02::1'],
  ['for documentation', '2001:db8::1'],
  ['for documentation', '3fff::1'],
  ['discarded', '100::1'],
  ['for segment routing', '5f00::1'],
  ['outside the allocated ranges', '4000::1'],
  ['with a zone', '2606:4700::1%eth0'],
  ['not an address', 'example.com'],
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
])('an address of the public internet is public: %s', (address) => {
  expect(isPublicAddress(address)).toBe(true);
});
