import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { takeOver } from '../cli/reload.ts';
import { ConfigError, loadConfig } from '../config.ts';
import { limits } from '../limits.ts';
import { providerRows } from '../providers/table.ts';

const folder = mkdtempSync(join(tmpdir(), 'secret-files-'));
afterAll(() => rmSync(folder, { recursive: true }));

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

const load = (environment: Record<string, string>) => loadConfig(environment, { config_file_content: null });
const SECRET = 'secret-of-thirty-two-characters-or-more';

test('each secret of the gateway can be read from a file, without its last line break', () => {
  const path = file('secret', `${SECRET}\n`);
  const config = load({
    GATEWAY_MANAGEMENT_KEY_FILE: path,
    GATEWAY_SECRET_FILE: path,
    GATEWAY_METRICS_TOKEN_FILE: path,
    DATABASE_URL_FILE: file('database', 'postgres://gateway:pw@db.internal/gateway\n'),
    DATABASE_LISTEN_URL_FILE: file('listen', 'postgres://gateway:pw@listen.internal/gateway\n'),
    HTTPS_PROXY_FILE: file('proxy', 'http://user:pw@proxy.internal:3128\n'),
  });
  expect(config).toMatchObject({
    management_key: SECRET,
    secret: SECRET,
    metrics: { token: SECRET },
    database_url: 'postgres://gateway:pw@db.internal/gateway',
    listen_url: 'postgres://gateway:pw@listen.internal/gateway',
    proxies: { https: 'http://user:pw@proxy.internal:3128/' },
    warnings: [],
  });
});

const rows = providerRows.flatMap(
  ({ slug, credential_variables, credential_parts, quirks, base_url, address_variable }) =>
    quirks.google_cloud === true || base_url.includes('{') || address_variable !== undefined
      ? []
      : credential_variables
          .filter((name) => credential_parts?.[name] === undefined)
          .map((name) => [slug, name] as const),
);

test.each(rows)('the credential of %s can be read from a file that %s_FILE names', (slug, name) => {
  const { providers } = load({ [`${name}_FILE`]: file('key', 'sk-from-a-file\n') });
  expect(providers.find((one) => one.slug === slug)?.credential).toBe('sk-from-a-file');
});

test('parts of a credential, keys of search engines and references can be read from files', () => {
  const config = loadConfig(
    {
      AWS_ACCESS_KEY_ID: 'AKIA',
      AWS_SECRET_ACCESS_KEY_FILE: file('aws', 'aws-secret\n'),
      AWS_REGION: 'eu-central-1',
      EXA_API_KEY_FILE: file('exa', 'exa-key\n'),
      ACME_KEY_FILE: file('acme', 'acme-key\n'),
    },
    {
      config_file_content: {
        path: 'gateway.yaml',
        text: 'providers: { acme: { dialect: openai-chat, base_url: "https://acme.example/v1", api_key: "${ACME_KEY}" } }',
      },
    },
  );
  const credential = (slug: string) => config.providers.find((one) => one.slug === slug)?.credential;
  expect(credential('amazon-bedrock')).toContain('aws-secret');
  expect(credential('acme')).toBe('acme-key');
  expect(config.plugins.web.engines.get('exa')?.api_key).toBe('exa-key');
});

test.each([
  [
    'does not exist',
    () => join(folder, 'missing'),
    /OPENAI_API_KEY_FILE names the file .*missing, which cannot be read \(ENOENT\)\. Name a file/,
  ],
  ['is empty', () => file('empty', ' \n'), /OPENAI_API_KEY_FILE .* which is empty\./],
  ['is a folder', () => folder, /OPENAI_API_KEY_FILE .* which is not a regular file\./],
  ['never ends', () => '/dev/zero', /OPENAI_API_KEY_FILE .* which is not a regular file\./],
  [
    'is not a secret',
    () => file('large', 'k'.repeat(limits.secret_file_bytes_max + 1)),
    /which is larger than 65536 bytes\./,
  ],
])('a file that %s is refused with its variable and advice', (_, path, message) => {
  expect(() => load({ OPENAI_API_KEY_FILE: path() })).toThrow(message);
});

test('a file of two lines is refused without quoting it', () => {
  const wrong = () => load({ OPENAI_API_KEY_FILE: file('lines', 'sk-one\nsk-two\n') });
  expect(wrong).toThrow(ConfigError);
  expect(wrong).toThrow(/^(?!.*sk-).*OPENAI_API_KEY must be one line/);
});

test('a value and a file for the same secret are refused', () => {
  expect(() => load({ OPENAI_API_KEY: 'sk', OPENAI_API_KEY_FILE: file('both', 'sk') })).toThrow(
    'OPENAI_API_KEY and OPENAI_API_KEY_FILE are both set: unset one of them',
  );
});

test('other settings cannot be read from a file: such a variable is a warning', () => {
  const { port, warnings } = load({ GATEWAY_PORT_FILE: file('port', '9999') });
  expect(port).toBe(8080);
  expect(warnings.join('\n')).toContain('GATEWAY_PORT_FILE is not a known setting');
});

test('a reload reads the changed key of a provider from its file', () => {
  const environment = { OPENAI_API_KEY_FILE: file('exchanged', 'sk-before') };
  const running = load(environment);
  file('exchanged', 'sk-after');
  const { providers } = takeOver(running, load(environment)).config;
  expect(providers.find(({ slug }) => slug === 'openai')?.credential).toBe('sk-after');
});
