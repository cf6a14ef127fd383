import { expect, test } from 'vitest';
import { readMetrics } from './metrics.ts';
import { readConfigFile } from './read-file.ts';

const TOKEN = 'token-of-the-scraper-0123456789abcdef';
const read = (yaml: string, environment: Record<string, string> = {}) =>
  readMetrics(environment, readConfigFile('gateway.yaml', yaml), '127.0.0.1');

test('without settings the metrics are at the address of the API, without a token', () => {
  expect(readMetrics({}, undefined, '127.0.0.1')).toEqual({ token: undefined, listen: undefined });
});

test('the variable takes precedence over the file, and a separate port uses the host of the API', () => {
  const yaml = `metrics: { token: ${TOKEN}, port: 9100 }`;
  expect(read(yaml)).toEqual({ token: TOKEN, listen: { host: '127.0.0.1', port: 9100 } });
  expect(read(yaml, { GATEWAY_METRICS_TOKEN: `${TOKEN}-2` }).token).toBe(`${TOKEN}-2`);
  expect(read('metrics: { port: 9100, host: 10.0.0.5 }').listen).toEqual({ host: '10.0.0.5', port: 9100 });
});

test.each([
  ['metrics: { token: short }', /line 1: metrics\.token must have 32 characters or more/],
  ['metrics: { token: "${NOBODY}" }', /metrics\.token refers to NOBODY, which is not set/],
  [`metrics: { token: "${TOKEN} x" }`, /metrics\.token must have .* without white space/],
  ['metrics: { port: 0 }', /metrics\.port must be a whole number from 1 to 65535/],
  ['metrics: { host: 10.0.0.5 }', /metrics\.host needs metrics\.port as well/],
])('%s stops the start, since the metrics would be open without the token', (yaml, message) => {
  expect(() => read(yaml)).toThrow(message);
});

test('a variable that is not a token stops the start', () => {
  expect(() => readMetrics({ GATEWAY_METRICS_TOKEN: 'short' }, undefined, '127.0.0.1')).toThrow(
    /^GATEWAY_METRICS_TOKEN must have 32 characters/,
  );
});
