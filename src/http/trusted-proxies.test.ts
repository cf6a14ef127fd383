import { expect, test } from 'vitest';
import { networkOf, trustedProxies } from './trusted-proxies.ts';

const proxies = trustedProxies(['10.0.0.0/8', '192.0.2.7', '2001:db8::/32']);

test.each([
  ['no proxies: the header of any client is ignored', trustedProxies([]), '10.1.2.3', '198.51.100.1', '10.1.2.3'],
  ['a client that is not a proxy: its header is ignored', proxies, '203.0.113.5', '198.51.100.1', '203.0.113.5'],
  ['a proxy: the address in its header', proxies, '10.1.2.3', '198.51.100.1', '198.51.100.1'],
  ['a proxy without a header is the client', proxies, '10.1.2.3', undefined, '10.1.2.3'],
  [
    'addresses that the client wrote before the proxy’s are ignored',
    proxies,
    '10.1.2.3',
    '1.1.1.1, 198.51.100.1',
    '198.51.100.1',
  ],
  ['several proxies are skipped', proxies, '10.1.2.3', '1.1.1.1, 198.51.100.1, 192.0.2.7', '198.51.100.1'],
  ['proxies alone: the first of them', proxies, '10.1.2.3', '192.0.2.7, 10.9.9.9', '192.0.2.7'],
  ['several headers are one list', proxies, '10.1.2.3', ['1.1.1.1', '198.51.100.1'], '198.51.100.1'],
  ['an invalid address ends the list', proxies, '10.1.2.3', '198.51.100.1, unknown', '10.1.2.3'],
  ['octal and one-number forms are not addresses', proxies, '10.1.2.3', '0300.1', '10.1.2.3'],
  ['ports are ignored', proxies, '10.1.2.3', '198.51.100.1:5123', '198.51.100.1'],
  ['brackets and ports of IPv6 are ignored', proxies, '2001:db8::1', '[2001:4860::8]:443', '2001:4860::8'],
  ['IPv4 in IPv6 form is IPv4', proxies, '::ffff:10.1.2.3', '::ffff:198.51.100.1', '198.51.100.1'],
  ['a closed socket has no address', proxies, undefined, '198.51.100.1', 'unknown'],
])('%s', (_, list, remote, header, client) => {
  expect(list.clientAddress(remote, header)).toBe(client);
});

test('a proxy is one of the addresses or in one of the ranges, in either notation', () => {
  const included = ['10.255.0.1', '::ffff:10.0.0.1', '192.0.2.7', '2001:db8:1::2'];
  const others = ['11.0.0.1', '192.0.2.8', '2001:db9::1', '', 'localhost'];
  expect(included.filter((address) => !proxies.includes(address))).toEqual([]);
  expect(others.filter((address) => proxies.includes(address))).toEqual([]);
  expect(proxies.includes(undefined)).toBe(false);
});

test('a client is one IPv4 address, or one /64 network of IPv6', () => {
  expect(networkOf('198.51.100.1')).toBe('198.51.100.1');
  expect(networkOf('::ffff:198.51.100.1')).toBe('198.51.100.1');
  expect(networkOf('2001:db8:1:2:3::4')).toBe(networkOf('2001:db8:1:2::9'));
  expect(networkOf('2001:db8:1:2::4')).not.toBe(networkOf('2001:db8:1:3::4'));
  expect(networkOf(undefined)).toBe('unknown');
});
