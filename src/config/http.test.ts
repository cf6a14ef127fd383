import { expect, test } from 'vitest';
import { readHttp } from './http.ts';
import { readConfigFile } from './read-file.ts';

const read = (yaml: string, openFilesMax?: number) => readHttp(readConfigFile('gateway.yaml', yaml), openFilesMax);

test('without the section there is no trusted proxy, and one address may use a quarter of the connections', () => {
  expect(readHttp(undefined, 1_000_000)).toEqual({
    trusted_proxies: [],
    connections_max: 4096,
    connections_per_address_max: 1024,
  });
});

test('with a low limit of open files the default leaves room for upstreams and the store', () => {
  expect(readHttp(undefined, 1024)).toMatchObject({ connections_max: 384, connections_per_address_max: 96 });
});

test('a setting above the limit of open files is refused, and the message names both', () => {
  expect(read('http: { connections_max: 384 }', 1024)).toMatchObject({ connections_max: 384 });
  expect(() => read('http: { connections_max: 385 }', 1024)).toThrow(
    'gateway.yaml, line 1: http.connections_max must be at most 384: this process may have 1024 open files (ulimit -n)',
  );
});

test('trusted proxies are addresses and ranges', () => {
  const proxies = ['10.0.0.0/8', '192.0.2.7', '2001:db8::/32', '::1'];
  expect(read(JSON.stringify({ http: { trusted_proxies: proxies } })).trusted_proxies).toEqual(proxies);
});

test.each(['proxy.internal', '10.1', '10.0.0.0/33', '1.2.3.4:80', ''])('%j is refused as a trusted proxy', (entry) => {
  expect(() => read(JSON.stringify({ http: { trusted_proxies: [entry] } }))).toThrow(
    /http\.trusted_proxies\[0\] must be an IP address/,
  );
});
