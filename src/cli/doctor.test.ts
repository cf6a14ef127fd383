import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { buildCatalog } from '../catalog/catalog.ts';
import { ConfigError, loadConfig, readBundledCatalog } from '../config.ts';
import { DATABASE_FILE, openDatabase } from '../storage/database.ts';
import { doctor, doctorCommand } from './doctor.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'gateway-doctor-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function file(text: string): string {
  const path = join(folder, 'gateway.yaml');
  writeFileSync(path, text);
  return path;
}

function examine(environment: Record<string, string>, yaml: string): string {
  const config = loadConfig(environment, { config_file: file(yaml) });
  const catalog = buildCatalog({
    bundled: readBundledCatalog(),
    config,
    providers: config.providers,
    created_default: 0,
  });
  return doctor(config, { catalog, data_dir: 'in use', exposed: [] });
}

const secrets = {
  OPENAI_API_KEY: 'sk-hidden-openai',
  ACME_API_KEY: 'hidden-acme',
  ACME_HEADER: 'hidden-header',
  GATEWAY_MANAGEMENT_KEY: 'hidden-management-key-0123456789abcdef',
  GATEWAY_SECRET: 'hidden-encryption-key-0123456789abcdef',
  DATABASE_URL: 'postgres://hidden-user:hidden-password@hidden-host/db',
};

test('doctor reports names of models that no provider serves', () => {
  const faultsWith = (model: string) =>
    examine(
      { OPENAI_API_KEY: 'sk-hidden-openai', GATEWAY_DEFAULT_MODEL: model },
      [
        'routing:',
        '  auto_models: [openai/gpt-5, openai/gpt-none]',
        '  free_models: [acme/none]',
        '  users: { user_1: { default_text_model: acme/gone } }',
      ].join('\n'),
    )
      .split('\n')
      .flatMap((line) => /^Warning: (.* names \S+), which/.exec(line)?.[1] ?? []);
  const others = [
    'routing.auto_models names openai/gpt-none',
    'routing.free_models names acme/none',
    'routing.users.user_1 names acme/gone',
  ];
  for (const model of ['openai/gpt-5:nitro', '~openai/gpt-latest', 'gateway/auto', 'openrouter/auto:floor']) {
    expect(faultsWith(model)).toEqual(others);
  }
  expect(faultsWith('~openai/none-latest')).toEqual(['GATEWAY_DEFAULT_MODEL names ~openai/none-latest', ...others]);
});

test('doctor reports what is enabled, what is disabled and why, without a secret', () => {
  const text = examine(
    { ...secrets, GATEWAY_DEFAULT_MODEL: 'mistralai/mistral-nemo' },
    [
      'providers:',
      `  acme: { dialect: openai-chat, base_url: "https://api.acme.example/v1", api_key: "\${ACME_API_KEY}", headers: { x-extra: "\${ACME_HEADER}" } }`,
      '  literal: { dialect: openai-chat, base_url: "https://api.literal.example/v1", api_key: hidden-literal }',
      `  later: { dialect: openai-chat, base_url: "https://api.later.example/v1", api_key: "\${LATER_API_KEY}" }`,
    ].join('\n'),
  );
  expect(text).toMatch(
    /^ {2}openai +OpenAI, openai-chat, api\.openai\.com, with credential, \d+ endpoints, training: no, retention: 30 days$/m,
  );
  expect(text).toMatch(
    /^ {2}acme +acme, openai-chat, api\.acme\.example, with credential, 0 endpoints, training: unknown, retention: unknown$/m,
  );
  expect(text).toMatch(/^ {2}anthropic +ANTHROPIC_API_KEY is not set$/m);
  expect(text).toMatch(/^ {2}later +LATER_API_KEY is not set$/m);
  expect(text).toContain('Warning: Provider "later" is off: its api_key refers to LATER_API_KEY, which is not set');
  expect(text).toContain('Warning: GATEWAY_DEFAULT_MODEL names mistralai/mistral-nemo');
  expect(text).toMatch(/^ {2}store +PostgreSQL$/m);
  expect(text).toMatch(/^Models: \d+, with \d+ endpoints$/m);
  expect(text).toMatch(/^Ledger\n(?: {2}\S+ +\S+\n)* {2}budgets +strict\n/m);
  expect(text).toMatch(/^ {2}unknown_outcome +hold$/m);
  expect(text).toContain('Data directory: in use');
  for (const secret of [...Object.values(secrets), 'hidden']) expect(text).not.toContain(secret);
});

test('doctor reports how requests are routed, limited and probed', () => {
  const text = examine(
    {},
    [
      'routing: { continuation: true, hedge_share: 0.05, auto_models: [openai/gpt-5] }',
      'probes: { usd_per_day: 0.5, every_minutes: 15 }',
      'responses: { store: true, retention_days: 7 }',
      'rate_limits:',
      '  per_key: { requests_per_minute: 600, tokens_per_minute: 200000 }',
      '  models: { "openai/*": { tokens_per_minute: 1000 } }',
      '  free_models: off',
    ].join('\n'),
  );
  const rows = new Map([...text.matchAll(/^ {2}(\S+) +(\S.*)$/gm)].map(([, name, value]) => [name, value]));
  expect(Object.fromEntries(rows)).toMatchObject({
    probes: '$0.5 a day, of all models after 15 minutes without a call',
    stored_responses: 'for 7 days',
    continuation: 'true',
    hedge: 'false',
    hedge_share: '0.05',
    auto_models: 'openai/gpt-5',
    free_models: 'off',
    per_key: '600 requests and 200000 tokens a minute',
    per_model: 'without bound',
    'models.openai/*': '1000 tokens a minute',
    media_private_hosts: 'none',
    media_buckets: 'none',
  });
  expect(text).not.toMatch(/\[object|undefined/);
});

test('doctor reports the broadcast destinations, without their secrets', () => {
  const text = examine(
    { HOOK_TOKEN: 'token-to-hide', HOOK_SECRET: 'secret-to-hide' },
    `logging: { retention_days: 7, broadcast: [{ type: webhook, url: "https://hooks.example/path-to-hide", name: hooks,
      headers: { x-key: "\${HOOK_TOKEN}" }, secret: "\${HOOK_SECRET}", workspaces: [research], sampling_rate: 0.25 }] }`,
  );
  expect(text).toMatch(/retention_days +7\n/);
  expect(text).toMatch(/broadcast\.hooks +webhook at https:\/\/hooks\.example, 25 % of research\n/);
  expect(text).not.toContain('to-hide');
});

test('doctor refuses a wrong file with its message', async () => {
  const path = file('models: { a/b: { endpoints: [{ provider: opnai, upstream_model: m }] } }');
  const refused = doctorCommand.run(['--config', path], {});
  await expect(refused).rejects.toThrow(ConfigError);
  await expect(refused).rejects.toThrow(
    'models.a/b.endpoints[0].provider must be the slug of a provider, not "opnai"; did you mean "openai"?',
  );
});

test('doctor reports the data directory as a start would use it', async () => {
  const path = file('bundled_catalog: false\n');
  const dataDir = mkdtempSync(join(folder, 'data-'));
  const stateWith = async (databaseUrl?: string) => {
    const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
    await doctorCommand.run(['--config', path], {
      GATEWAY_DATA_DIR: dataDir,
      ...(databaseUrl && { DATABASE_URL: databaseUrl }),
    });
    const printed = write.mock.calls.join('');
    write.mockRestore();
    return /^Data directory: (.*)$/m.exec(printed)?.[1];
  };
  expect(await stateWith()).toBe('empty');
  writeFileSync(join(dataDir, 'notes.txt'), 'mine');
  expect(await stateWith()).toBe('not empty, but without a store yet');
  expect(await stateWith('postgres://u@127.0.0.1:1/d')).toBe('in use');

  const store = join(dataDir, DATABASE_FILE);
  await (await openDatabase({ data_dir: dataDir })).close();
  expect(await stateWith()).toBe('in use');
  const whole = readFileSync(store);
  const refusal = () =>
    openDatabase({ data_dir: dataDir }).then(
      () => 'opened',
      (error: Error) => error.message,
    );
  for (const [bytes, reason] of [
    [whole.subarray(0, whole.length / 2), 'malformed'],
    [Buffer.alloc(whole.length, 'x'), 'not a database'],
  ] as const) {
    writeFileSync(store, bytes);
    const message = await refusal();
    expect(message).toContain(`${store} is damaged, or is not a store of this program (`);
    expect(message).toContain(reason);
    expect(await stateWith()).toBe(`not usable. ${message}`);
  }
  writeFileSync(store, whole);
  const database = new DatabaseSync(store);
  database.exec("INSERT INTO schema_migrations VALUES ('9999_later.sql', 'x', 'now')");
  database.close();
  expect(await refusal()).toContain('newer version');
  expect(await stateWith()).toBe(`not usable. ${await refusal()}`);
});

test('doctor ends with exit code 0 for a valid file', async () => {
  const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  const code = await doctorCommand.run(['--config', file('bundled_catalog: false\n')], {
    GATEWAY_DATA_DIR: join(folder, 'none'),
  });
  const printed = write.mock.calls.join('');
  write.mockRestore();
  expect(code).toBe(0);
  expect(printed).toContain('Models: 0, with 0 endpoints');
});

test('doctor shows declared prices in one unit', () => {
  const yaml = (pricing: string) =>
    `providers: { acme: { dialect: openai-chat, base_url: "https://acme.example/v1" } }
models: { acme/fast-1: { endpoints: [{ provider: acme, upstream_model: fast, pricing: { ${pricing} } }] } }`;
  const expected = 'acme/fast-1 at acme  prompt $2.5, completion $10';
  expect(examine({}, yaml('prompt: 2.5, completion: 10'))).toContain(expected);
  expect(examine({}, yaml('per: token, prompt: 0.0000025, completion: 0.00001'))).toContain(expected);
});
