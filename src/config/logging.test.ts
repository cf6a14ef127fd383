import { expect, test } from 'vitest';
import { loadConfig } from '../config.ts';

const load = (yaml: string, environment: Record<string, string> = {}) =>
  loadConfig(
    { GATEWAY_SECRET: 'x'.repeat(32), ...environment },
    { config_file_content: { path: 'gateway.yaml', text: yaml } },
  );

test('without a section, contents are kept for thirty days and not broadcast', () => {
  expect(load('{}').logging).toEqual({ retention_days: 30, broadcast: [] });
});

test('destinations are read with their defaults; a collector URL without a path gets the standard one', () => {
  const { broadcast, retention_days } = load(
    `
logging:
  retention_days: 7
  broadcast:
    - { type: otel-collector, url: "http://collector:4318" }
    - { type: otel-collector, url: "http://collector:4318/otlp/v1/traces", name: second }
    - type: webhook
      url: https://hooks.example
      headers: { Authorization: "Bearer \${HOOK_TOKEN}" }
      secret: \${HOOK_SECRET}
      workspaces: [research]
      include_content: true
      sampling_rate: 0.25
`,
    { HOOK_TOKEN: 'token', HOOK_SECRET: 'secret' },
  ).logging;
  expect(retention_days).toBe(7);
  expect(broadcast).toEqual([
    {
      name: 'otel-collector-1',
      type: 'otel-collector',
      url: 'http://collector:4318/v1/traces',
      headers: {},
      secret: undefined,
      workspaces: undefined,
      include_content: false,
      share_bp: 10_000,
    },
    expect.objectContaining({ name: 'second', url: 'http://collector:4318/otlp/v1/traces' }),
    {
      name: 'webhook-3',
      type: 'webhook',
      url: 'https://hooks.example/',
      headers: { authorization: 'Bearer token' },
      secret: 'secret',
      workspaces: ['research'],
      include_content: true,
      share_bp: 2_500,
    },
  ]);
});

test('a destination whose variables are not set is disabled, with a warning that names the variable', () => {
  const config = load(
    `logging: { broadcast: [{ type: webhook, url: "https://h.example", headers: { x-key: "\${GONE}" } }] }`,
  );
  expect(config.logging.broadcast).toEqual([]);
  expect(config.warnings).toContainEqual(expect.stringContaining('GONE'));
});

test.each([
  ['{ type: webhook, url: "https://user:pw@h.example" }', 'must not hold a credential'],
  ['{ type: webhook, url: "ftp://h.example" }', 'must be an http(s) address'],
  ['{ type: webhook, url: "https://" }', 'must be an http(s) address'],
  ['{ type: webhook, url: "https://h.example", headers: { host: x } }', 'must not have "host"'],
  ['{ type: webhook, url: "https://h.example", headers: { "a b": x } }', 'must not have "a b"'],
  ['{ type: webhook, url: "https://h.example", headers: { a: "x\\ny" } }', 'must have plain text'],
  ['{ type: webhook, url: "https://h.example", sampling_rate: 2 }', 'must be a number from 0.0001 to 1'],
  ['{ type: syslog, url: "https://h.example" }', 'must be one of otel-collector, webhook'],
  [
    '{ type: webhook, url: "https://h.example", name: a }, { type: webhook, url: "https://h.example", name: a }',
    'another destination',
  ],
])('%s is refused', (entry, reason) => {
  expect(() => load(`logging: { broadcast: [${entry}] }`)).toThrow(reason);
});
