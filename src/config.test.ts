import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getHeapStatistics } from 'node:v8';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ConfigError, type Environment, loadConfig, readBundledCatalog } from './config.ts';
import { dataPolicyOf } from './providers/provider.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gateway-config-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Loads a configuration from YAML text and an environment. */
function load(yaml: string, environment: Environment = {}) {
  const file = join(folder, 'gateway.yaml');
  writeFileSync(file, yaml);
  return loadConfig(environment, { config_file: file });
}

/** The message of the refusal. */
function refusal(yaml: string, environment: Environment = {}): string {
  try {
    load(yaml, environment);
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return (error as Error).message.replace(`${folder}/`, '');
  }
  throw new Error('The configuration was accepted');
}

const empty: Environment = { GATEWAY_CONFIG: undefined };
const acme = `
providers:
  acme:
    name: Acme AI
    dialect: openai-chat
    base_url: https://api.acme.example/v1/
    api_key: \${ACME_API_KEY}
    data_policy: { training: false, retention: none }
models:
  acme/fast-1:
    name: Acme Fast 1
    context_length: 128000
    input_modalities: [text, image]
    endpoints:
      - provider: acme
        upstream_model: fast-1-2026-01
        pricing: { prompt: 0.25, completion: 2.00, image: 0.001, web_search: "0.005" }
        max_completion_tokens: 8192
        supported_parameters: [temperature, tools]
        quantization: fp8
`;

describe('the environment', () => {
  test('without settings the defaults apply and the sandbox is enabled', () => {
    const config = loadConfig(empty);
    expect(config).toMatchObject({
      host: '127.0.0.1',
      port: 8080,
      database_url: undefined,
      body_bytes_max: 64 * 1024 * 1024,
      log_level: 'info',
      sandbox: true,
      bundled_catalog: true,
      providers: [],
      ledger: { journal_sync: 'group', unknown_price: 'refuse' },
      warnings: [],
    });
    expect(config.timeouts.heartbeat_first_ms).toBe(3_000);
  });

  test.each([
    ['GATEWAY_PORT', '80 80', 'GATEWAY_PORT must be a whole number from 0 to 65535, not "80 80"'],
    ['GATEWAY_PORT', '70000', 'GATEWAY_PORT must be a whole number from 0 to 65535, not "70000"'],
    ['GATEWAY_LOG_LEVEL', 'loud', 'GATEWAY_LOG_LEVEL must be one of fatal, error, warn'],
    ['GATEWAY_SANDBOX', 'yes', 'GATEWAY_SANDBOX must be one of auto, on, off, not "yes"'],
    ['GATEWAY_MANAGEMENT_KEY', 'short-secret', 'GATEWAY_MANAGEMENT_KEY must have 32 characters or more'],
    ['GATEWAY_MANAGEMENT_KEY', `schlüssel-secret-${'0'.repeat(20)}`, 'GATEWAY_MANAGEMENT_KEY must be plain ASCII'],
    ['GATEWAY_SECRET', 'short-secret', 'GATEWAY_SECRET must have 32 characters or more'],
    ['OPENAI_API_KEY', 'short-secret\nshort-secret', 'OPENAI_API_KEY must be one line of plain ASCII'],
    ['VLLM_BASE_URL', 'ftp://h', 'VLLM_BASE_URL must be an address such as http://127.0.0.1:8000/v1'],
    ['DATABASE_URL', 'mysql://u:secret@h/d', 'DATABASE_URL must start with postgres:// or postgresql://'],
    ['GATEWAY_CONFIG', '/nowhere/gateway.yaml', 'The configuration file /nowhere/gateway.yaml cannot be read (ENOENT)'],
  ])('%s=%s is refused with a message without secrets', (name, value, message) => {
    expect(() => loadConfig({ [name]: value })).toThrow(message);
    expect(() => loadConfig({ [name]: value })).not.toThrow(/secret@|short-secret/);
  });

  test('an unknown setting is a warning with a suggestion', () => {
    expect(loadConfig({ GATEWAY_PROT: '1' }).warnings).toEqual([
      'GATEWAY_PROT is not a known setting; did you mean "GATEWAY_PORT"?',
    ]);
  });

  test('GATEWAY_KEY, which the documentation uses, is not an unknown setting', () => {
    expect(loadConfig({ GATEWAY_KEY: 'sk-gw-v1-0' }).warnings).toEqual([]);
  });

  test('a blank variable counts as unset', () => {
    expect(loadConfig({ GATEWAY_PORT: ' ', OPENAI_API_KEY: '' })).toMatchObject({ port: 8080, providers: [] });
  });
});

describe('providers of the table', () => {
  test('a provider is enabled by its credential, which disables the sandbox', () => {
    const config = loadConfig({ OPENAI_API_KEY: ' sk-1 ', GOOGLE_API_KEY: 'g' });
    expect(config.providers.map(({ slug, credential }) => [slug, credential])).toEqual([
      ['openai', 'sk-1'],
      ['google-ai-studio', 'g'],
    ]);
    expect(config.sandbox).toBe(false);
    expect(config.providers_off.find(({ slug }) => slug === 'mistral')?.reason).toBe('MISTRAL_API_KEY is not set');
  });

  test.each([
    ['off', { GATEWAY_SANDBOX: 'off' }, false],
    ['on', { GATEWAY_SANDBOX: 'on', OPENAI_API_KEY: 'k' }, true],
  ])('GATEWAY_SANDBOX=%s takes precedence', (_, environment: Environment, expected) => {
    expect(loadConfig(environment).sandbox).toBe(expected);
  });

  test('Azure requires its resource name beside the key', () => {
    expect(loadConfig({ AZURE_API_KEY: 'k' }).providers_off.find(({ slug }) => slug === 'azure')?.reason).toBe(
      'AZURE_RESOURCE_NAME is not set',
    );
    expect(() => loadConfig({ AZURE_API_KEY: 'k', AZURE_RESOURCE_NAME: 'https://my-res.openai.azure.com' })).toThrow(
      'AZURE_RESOURCE_NAME must be only a name, not a URL or a path',
    );
    const [azure] = loadConfig({ AZURE_API_KEY: 'k', AZURE_RESOURCE_NAME: 'my-res' }).providers;
    expect(azure).toMatchObject({
      base_url: 'https://my-res.openai.azure.com/openai/v1',
      quirks: { api_key_header: 'api-key' },
    });
  });

  test.each([
    ['us-east-1', ['us', 'global']],
    ['us-gov-west-1', ['us-gov']],
    ['eu-central-1', ['eu', 'global']],
    ['ap-northeast-1', ['jp', 'apac', 'global']],
    ['ap-southeast-2', ['au', 'apac', 'global']],
    ['ap-south-1', ['apac', 'global']],
    ['sa-east-1', ['global']],
  ])('of Bedrock in %s only the inference profiles of that region are offered', (region, variants) => {
    const [bedrock] = loadConfig({ AWS_BEARER_TOKEN_BEDROCK: 'k', AWS_REGION: region }).providers;
    expect(bedrock?.variants).toEqual(variants);
  });

  test.each([
    ['us-eats-1', true],
    ['eu-west', true],
    ['Frankfurt', true],
    ['us-gov-west-1', false],
    ['eusc-de-east-1', false],
    ['ap-southeast-7', false],
    ['mx-central-1', false],
  ])('AWS_REGION %s is reported as a mistake: %s', (region, isReported) => {
    const { warnings } = loadConfig({ AWS_BEARER_TOKEN_BEDROCK: 'k', AWS_REGION: region });
    const warning = `AWS_REGION is "${region}", which does not look like one of Amazon Bedrock; an example is us-east-1`;
    expect(warnings).toEqual(isReported ? [warning] : []);
  });

  test('a provider without a credential is enabled for callers with their own credential; one that lacks more is not', () => {
    const config = loadConfig({ OPENAI_API_KEY: 'k' });
    const slugs = config.providers_own_only.map(({ slug }) => slug);
    expect(slugs).toContain('mistral');
    for (const slug of ['openai', 'azure', 'amazon-bedrock', 'ollama']) expect(slugs).not.toContain(slug);
    expect(config.providers_own_only.find(({ slug }) => slug === 'mistral')).toMatchObject({
      is_own_only: true,
      credential: undefined,
      base_url: expect.stringMatching(/^https:/),
    });
  });

  test('Bedrock accepts a key, or the parts of an account as one credential', () => {
    const region = { AWS_REGION: 'eu-west-1' };
    const bedrock = (environment: Record<string, string>) => {
      const config = loadConfig({ ...region, ...environment });
      const on = config.providers.find(({ slug }) => slug === 'amazon-bedrock');
      return on?.credential ?? config.providers_off.find(({ slug }) => slug === 'amazon-bedrock')?.reason;
    };
    const pair = { AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b' };
    expect(bedrock({ AWS_BEARER_TOKEN_BEDROCK: 'k', ...pair })).toBe('k');
    expect(bedrock({ AWS_ACCESS_KEY_ID: 'a' })).toBe('AWS_SECRET_ACCESS_KEY is not set');
    expect(bedrock(pair)).toBe('{"accessKeyId":"a","secretAccessKey":"b"}');
    expect(bedrock({ ...pair, AWS_SESSION_TOKEN: 'c' })).toBe(
      '{"accessKeyId":"a","secretAccessKey":"b","sessionToken":"c"}',
    );
  });

  test.each([
    ['http://127.0.0.1:11434', 'http://127.0.0.1:11434/v1'],
    ['gpu-box', 'http://gpu-box:11434/v1'],
    ['gpu-box:8000', 'http://gpu-box:8000/v1'],
    [':8000', 'http://127.0.0.1:8000/v1'],
    ['0.0.0.0:11434', 'http://127.0.0.1:11434/v1'],
    ['https://ollama.example/api/v1/', 'https://ollama.example/api/v1'],
  ])('OLLAMA_HOST=%s is used as %s, without a key', (address, url) => {
    const [ollama] = loadConfig({ OLLAMA_HOST: address }).providers;
    expect(ollama).toMatchObject({ slug: 'ollama', base_url: url, credential: undefined });
  });
});

describe('gateway.yaml', () => {
  const endpoint = (line: string) =>
    `providers: { acme: { dialect: openai-chat, base_url: "http://h/v1" } }\nmodels:\n  acme/fast-1:\n    endpoints:\n      - provider: acme\n        upstream_model: m\n        ${line}\n`;

  test('declares providers and models, with exact prices', () => {
    const config = load(acme, { ACME_API_KEY: 'k' });
    expect(config.providers).toEqual([
      {
        slug: 'acme',
        name: 'Acme AI',
        dialect: 'openai-chat',
        base_url: 'https://api.acme.example/v1',
        credential: 'k',
        quirks: { inline_media: true },
        data_policy: { training: false, retention_days: 0 },
        abort_stops_billing: true,
        headers: {},
      },
    ]);
    expect(config.models[0]).toMatchObject({
      id: 'acme/fast-1',
      context_length: 128000,
      endpoints: [
        {
          upstream_model: 'fast-1-2026-01',
          pricing: { prompt: 250_000, completion: 2_000_000, image: 1_000_000_000, web_search: 5_000_000_000 },
        },
      ],
    });
  });

  test.each([
    [
      'an unknown model name',
      'models: { openai/gpt4o: { name: x } }',
      ['Model openai/gpt4o has no endpoints, and no bundled model has this name; did you mean "openai/gpt-4o"?'],
    ],
    [
      'half a price',
      endpoint('pricing: { prompt: 1 }'),
      ['Model acme/fast-1 at acme is refused: its pricing has no completion (use 0 if it is free)'],
    ],
    [
      'half a price, with unpriced endpoints allowed',
      `${endpoint('pricing: { prompt: 1 }')}ledger: { unknown_price: allow }`,
      [],
    ],
    ['a bundled model', 'models: { openai/gpt-4o: { name: x } }', []],
    [
      'the slug of another model',
      'models: { openai/gpt-4o: { canonical_slug: openai/o3 }, "openai/o3:free": { canonical_slug: openai/o3, endpoints: [{ provider: openai, upstream_model: o3, pricing: { prompt: 0, completion: 0 } }] } }',
      ['Model openai/gpt-4o has the canonical_slug of openai/o3: guardrails and links cannot distinguish them'],
    ],
    [
      'an unknown variant',
      'providers: { amazon-bedrock: { variants: [eu, globl, apac] }, deepinfra: { variants: [turbo] } }',
      ['Provider "amazon-bedrock": no bundled model has a variant "globl"; did you mean "global"?'],
    ],
    [
      'a bundled price',
      'models: { openai/gpt-4o: { endpoints: [{ provider: openai, upstream_model: gpt-4o-mine }] } }',
      [],
    ],
  ])('a model or endpoint that cannot serve is a warning: %s', (_, yaml, warnings) => {
    expect(load(yaml, { OPENAI_API_KEY: 'k' }).warnings).toEqual(warnings);
  });

  test('the memory of large requests is half of the heap limit, or the value of the file', () => {
    const { heap_size_limit } = getHeapStatistics();
    expect(load('{}').limits.memory_bytes).toBe(Math.floor(heap_size_limit / 2));
    expect(load('limits: { memory_bytes: 33554432 }').limits.memory_bytes).toBe(33_554_432);
    expect(() => load('limits: { memory_bytes: 1000 }')).toThrow(/memory_bytes.*whole number of bytes from 16777216/);
  });

  test('an unset variable in api_key disables the provider with a warning', () => {
    const config = load(acme);
    expect(config.providers).toEqual([]);
    expect(config.warnings).toEqual(['Provider "acme" is off: its api_key refers to ACME_API_KEY, which is not set']);
  });

  test('changes facts of a known provider, and keeps the others', () => {
    const config = load('providers: { openai: { base_url: "http://127.0.0.1:9/v1", quirks: { think_tags: true } } }', {
      OPENAI_API_KEY: 'k',
    });
    expect(config.providers[0]).toMatchObject({
      slug: 'openai',
      name: 'OpenAI',
      base_url: 'http://127.0.0.1:9/v1',
      credential: 'k',
      quirks: { think_tags: true, output_bound_field: 'max_completion_tokens' },
    });
  });

  test('a published data policy applies to the models that it covers, unless the operator declares another', () => {
    const policies = (text: string, slug: string) => {
      const environment = { OPENAI_API_KEY: 'k', DEEPINFRA_API_KEY: 'k', MISTRAL_API_KEY: 'k' };
      const provider = load(text, environment).providers.find((one) => one.slug === slug)!;
      const of = (canonicalSlug: string) =>
        dataPolicyOf(provider, { canonical_slug: canonicalSlug }, { upstream_model: 'm' });
      return [of('meta-llama/llama-9'), of('google/gemini-9')].map(({ training, retention_days }) => [
        training,
        retention_days,
      ]);
    };
    const twice = <T>(policy: T) => [policy, policy];
    expect(policies('', 'deepinfra')).toEqual([
      [false, 0],
      ['unknown', 'unknown'],
    ]);
    expect(policies('', 'openai')).toEqual(twice([false, 30]));
    expect(policies('', 'mistral')).toEqual(twice(['unknown', 'unknown']));
    const declared = (slug: string, policy: string) => `providers: { ${slug}: { data_policy: ${policy} } }`;
    expect(policies(declared('openai', '{ retention: none }'), 'openai')).toEqual(twice([false, 0]));
    expect(policies(declared('openai', '{ training: true }'), 'openai')).toEqual(twice([true, 30]));
    expect(policies(declared('deepinfra', '{ retention: unknown, training: unknown }'), 'deepinfra')).toEqual(
      twice(['unknown', 'unknown']),
    );
    expect(policies(declared('deepinfra', '{ retention: 7d }'), 'deepinfra')).toEqual([
      [false, 7],
      ['unknown', 7],
    ]);
    // Another server at this address publishes no policy.
    expect(policies('providers: { openai: { base_url: "http://127.0.0.1:9/v1" } }', 'openai')).toEqual(
      twice(['unknown', 'unknown']),
    );
  });

  test('a retention in days is read as days, and a missing policy is unknown', () => {
    const config = load(
      'providers: { a: { dialect: openai-chat, base_url: "http://h/v1", data_policy: { retention: 30d } } }',
    );
    expect(config.providers[0]?.data_policy).toEqual({ training: 'unknown', retention_days: 30 });
  });

  test('an empty file is an empty configuration', () => {
    expect(load('# nothing\n').providers).toEqual([]);
  });

  test.each([
    ['none without an orchestrator', {}, '', 0],
    ['two seconds in Kubernetes', { KUBERNETES_SERVICE_HOST: '10.0.0.1' }, '', 2_000],
    ['two seconds in Nomad', { NOMAD_ALLOC_ID: 'a' }, '', 2_000],
    ['two seconds in Amazon ECS', { ECS_CONTAINER_METADATA_URI_V4: 'http://x' }, '', 2_000],
    ['the value of the file', { KUBERNETES_SERVICE_HOST: '10.0.0.1' }, 'timeouts: { shutdown_grace_ms: 0 }', 0],
  ])('the grace period after SIGTERM is %s', (_, environment, yaml, graceMs) => {
    expect(load(yaml, environment).timeouts.shutdown_grace_ms).toBe(graceMs);
  });

  test('timeouts, journal and logging are read, and the environment takes precedence over the file', () => {
    const yaml = 'timeouts: { upstream_idle_ms_max: 5 }\nledger: { journal_sync: os }\nlogging: { level: debug }\n';
    expect(load(yaml)).toMatchObject({
      timeouts: { upstream_idle_ms_max: 5, heartbeat_ms: 5_000 },
      ledger: { journal_sync: 'os' },
      log_level: 'debug',
    });
    expect(load(yaml, { GATEWAY_LOG_LEVEL: 'warn' }).log_level).toBe('warn');
  });

  test.each([
    ['the key is pointed at', 'providers:\n  x:\n    base_url: "http://h"\n', 'line 2: providers.x must have dialect'],
    [
      'no endpoints',
      'models: { a/b: { endpoints: [] } }',
      'models.a/b.endpoints must be a list of one endpoint or more, not an empty list',
    ],
    ['a month 13', 'models: { a/b: { expiration_date: 2026-13-01 } }', 'must be a day such as 2026-01-31'],
    ['unresolved alias', 'providers: *x', 'an alias (*name) refers to an anchor (&name) that is not above it'],
    [
      'a slug that cannot be in a path',
      'models: { a/b: { canonical_slug: b } }',
      'canonical_slug must be a name as author/slug',
    ],
    [
      'a variable without braces',
      'providers: { x: { dialect: openai-chat, base_url: "http://h", api_key: $HUSH } }',
      `providers.x.api_key must refer to a variable as \${NAME}`,
    ],
    [
      'a key of two lines',
      'providers: { x: { dialect: openai-chat, base_url: "http://h", api_key: "hush\\nhush" } }',
      'providers.x.api_key must be one line of plain ASCII',
    ],
    ['text that is not YAML', 'a: [1', 'gateway.yaml, line 1: this is not valid YAML'],
    ['unknown key', 'provders: {}', 'line 1: provders is not a known setting; did you mean "providers"?'],
    [
      'unknown key below',
      endpoint('pricing: { promt: 1 }'),
      'line 7: models.acme/fast-1.endpoints[0].pricing.promt is not a known setting; did you mean "prompt"?',
    ],
    [
      'wrong type',
      endpoint('pricing: { prompt: cheap }'),
      'line 7: models.acme/fast-1.endpoints[0].pricing.prompt must be a price in USD per million tokens, 0 or more, not "cheap"',
    ],
    [
      'negative price',
      endpoint('pricing: { prompt: -1 }'),
      'pricing.prompt must be a price in USD per million tokens, 0 or more, not -1',
    ],
    [
      'price too fine',
      endpoint('pricing: { prompt: 0.0000001 }'),
      'pricing.prompt must not be finer than 0.000001 USD per million tokens. If it is the price of one token, add "per: token" to its pricing',
    ],
    ['price too high', endpoint('pricing: { image: 10000 }'), 'pricing.image must not be above 9007 USD for one unit'],
    [
      'missing field',
      'models: { a/b: { endpoints: [{ provider: openai }] } }',
      'models.a/b.endpoints[0] must have upstream_model',
    ],
    [
      'unknown provider',
      endpoint('').replace('provider: acme', 'provider: acne'),
      'endpoints[0].provider must be the slug of a provider, not "acne"; did you mean "acme"?',
    ],
    [
      'unknown dialect',
      'providers: { x: { dialect: openai, base_url: "http://h" } }',
      'providers.x.dialect must be one of openai-chat, ',
    ],
    ['no address', 'providers: { x: { dialect: openai-chat } }', 'providers.x must have base_url'],
    [
      'no dialect',
      'providers: { opnai: { base_url: "http://h" } }',
      'providers.opnai must have dialect and base_url; did you mean "openai"?',
    ],
    [
      'an address that is not a URL',
      'providers: { x: { dialect: openai-chat, base_url: "ftp://h" } }',
      'providers.x.base_url must be a URL that starts with http:// or https://',
    ],
    [
      'credential in the URL',
      'providers: { x: { dialect: openai-chat, base_url: "https://u:hush@h" } }',
      'without user, query or fragment',
    ],
    [
      'unset reference',
      `providers: { x: { dialect: openai-chat, base_url: "https://\${NO_HOST}" } }`,
      'providers.x.base_url refers to NO_HOST, which is not set',
    ],
    [
      'bad slug',
      'providers: { "X Y": { dialect: openai-chat, base_url: "http://h" } }',
      'providers.X Y must have a slug of lower-case letters',
    ],
    ['bad model id', 'models: { fast: { name: x } }', 'models.fast must be named author/slug'],
    [
      'taken name',
      'providers: { x: { dialect: openai-chat, base_url: "http://h", name: openai } }',
      'providers.x.name is already the name of provider "openai"',
    ],
    [
      'twins',
      `${endpoint('').trimEnd()}\n      - { provider: acme, upstream_model: n }\n`,
      'endpoints[1] has the same provider as endpoints[0]; distinguish them by variant',
    ],
    [
      'no endpoints without the bundled catalog',
      'bundled_catalog: false\nmodels: { a/b: { name: x } }',
      'models.a/b must have endpoints, because bundled_catalog is false',
    ],
    [
      'bad header',
      'providers: { x: { dialect: openai-chat, base_url: "http://h", headers: { "a b": c } } }',
      'providers.x.headers.a b is not a valid header name',
    ],
    [
      'a secret of the wrong type is not repeated',
      'providers: { x: { dialect: openai-chat, base_url: "http://h", api_key: 123456789 } }',
      'providers.x.api_key must be a key, or a reference to an environment variable',
    ],
  ])('%s is refused with its place and the expected value', (_, yaml, message) => {
    const text = refusal(yaml);
    expect(text).toContain('gateway.yaml');
    expect(text).toContain(message);
    expect(text).not.toMatch(/hush|123456789/);
  });
});

test("several nodes without a common secret are a warning: they could not read each other's credentials", () => {
  const fleet = { DATABASE_URL: 'postgres://db.example/gateway' };
  const secret = { GATEWAY_SECRET: 'an-encryption-key-0123456789-0123456789' };
  expect(load('{}', fleet).warnings).toEqual([expect.stringMatching(/^DATABASE_URL is set but GATEWAY_SECRET is not/)]);
  expect(load('{}', { ...fleet, ...secret }).warnings).toEqual([]);
  expect(load('{}', secret).warnings).toEqual([]);
});

test('the bundled catalog is read from the program', () => {
  expect(readBundledCatalog().models.length).toBeGreaterThan(300);
});

test('media and reasoning state have defaults that the file can change', () => {
  expect(load('{}').media).toEqual({ ports: [80, 443], private_hosts: [], buckets: [] });
  expect(load('{}').reasoning_state).toEqual({ keep: 'store', hours: 24 });
  const config = load(
    'media: { private_hosts: ["Files.Internal:9000"], ports: [8443] }\nreasoning_state: { keep: memory, hours: 1 }',
  );
  expect(config.media).toEqual({ ports: [8443], private_hosts: ['files.internal:9000'], buckets: [] });
  expect(config.reasoning_state).toEqual({ keep: 'memory', hours: 1 });
});

test.each([
  ['media: { private_hosts: ["http://files.internal"] }', 'a host, or host:port'],
  ['media: { buckets: ["s3://media/folder"] }', 'a bucket such as s3://media'],
  ['media: { ports: [0] }', 'the number of a port'],
  ['reasoning_state: { keep: always }', 'one of store, memory, off'],
])('invalid settings of media or reasoning state are refused: %s', (yaml, message) => {
  expect(refusal(yaml)).toContain(message);
});

test('endpoints are probed only if the file sets a budget', () => {
  expect(load('{}').probes).toBeNull();
  expect(load('probes: { usd_per_day: 0.5 }').probes).toEqual({
    usd_per_day: 0.5,
    every_minutes: 15,
    models: undefined,
  });
  expect(load('probes: { usd_per_day: 1, every_minutes: 60, models: [a/b] }').probes).toEqual({
    usd_per_day: 1,
    every_minutes: 60,
    models: ['a/b'],
  });
});

test.each([
  ['probes: {}', 'usd_per_day'],
  ['probes: { usd_per_day: 0 }', 'an amount of USD above 0'],
  ['probes: { usd_per_day: 1, every_minutes: 0 }', 'a number of minutes, at most a day'],
  ['probes: { usd_per_day: 1, often: true }', 'often'],
])('an invalid probe budget is refused: %s', (yaml, message) => {
  expect(refusal(yaml)).toContain(message);
});

describe('a file with several errors', () => {
  test('is refused with one line for each, whatever detects them', () => {
    const lines = refusal(
      acme
        .replace('dialect: openai-chat', 'dialect: openai-chatt')
        .replace('context_length: 128000', 'context_length: none\n    colour: red')
        .replace('upstream_model: fast-1-2026-01', 'upstream: x'),
    ).split('\n');
    expect(lines).toHaveLength(5);
    for (const path of [
      /line 5: providers\.acme\.dialect must be one of/,
      /line 12: models\.acme\/fast-1\.context_length must be a whole number of 1 or more, not "none"/,
      /line 13: models\.acme\/fast-1\.colour is not a known setting/,
      /line 17: models\.acme\/fast-1\.endpoints\[0\]\.upstream is not a known setting/,
      /line 16: models\.acme\/fast-1\.endpoints\[0\] must have upstream_model/,
    ])
      expect(lines.filter((line) => path.test(line))).toHaveLength(1);
  });

  test('is refused with those of all sections that fit the schema', () => {
    const lines = refusal(`
providers:
  acme: { dialect: openai-chat, base_url: nowhere }
  other: { base_url: "https://api.other.example/v1" }
models:
  nameless: { endpoints: [{ provider: acme, upstream_model: a }] }
  acme/two:
    endpoints:
      - { provider: akme, upstream_model: a }
      - { provider: acme, upstream_model: a, pricing: { prompt: 0.0000001, completion: 1 } }
http: { trusted_proxies: [not-an-address] }
`).split('\n');
    expect(lines.map((line) => /line \d+: (\S+)/.exec(line)?.[1])).toEqual([
      'providers.acme.base_url',
      'providers.other',
      'models.nameless',
      'models.acme/two.endpoints[0].provider',
      'models.acme/two.endpoints[1].pricing.prompt',
      'http.trusted_proxies[0]',
    ]);
  });

  test('is refused with one line for a value that matches none of several forms', () => {
    expect(refusal(acme.replace('prompt: 0.25', 'prompt: cheap')).split('\n')).toEqual([
      'gateway.yaml, line 17: models.acme/fast-1.endpoints[0].pricing.prompt must be a price in USD per million tokens, 0 or more, not "cheap"',
    ]);
  });

  test('shows at most twenty of them and counts the others', () => {
    const unknown = Array.from({ length: 25 }, (_, index) => `colour${index}: red`).join('\n');
    const lines = refusal(unknown).split('\n');
    expect(lines).toHaveLength(21);
    expect(lines.at(-1)).toBe('… and 5 more faults');
  });
});

describe('token prices', () => {
  const priced = (pricing: string) => load(acme.replace(/pricing: \{.*\}/, `pricing: { ${pricing} }`));
  const warnings = (pricing: string) => priced(pricing).warnings.filter((text) => text.includes('per million tokens'));

  test('may be per token, in every price list of an endpoint', () => {
    const lists = (prompt: number, completion: number, request: number, over: number) =>
      `prompt: ${prompt}, completion: ${completion}, request: ${request}, tiers: [{ over: 10, prompt: ${over}, completion: ${completion} }]`;
    const [one] = priced(`per: token, ${lists(0.00000025, 0.000002, 0.01, 0.0000005)}`).models;
    const [million] = priced(lists(0.25, 2, 0.01, 0.5)).models;
    expect(one).toEqual(million);
  });

  test('with an implausible unit are a warning', () => {
    expect(warnings('prompt: 0.000003, completion: 0.000015')).toEqual([
      'Model acme/fast-1 at acme: the prompt price is $0.000003 per million tokens. If it is the price of one token, add "per: token" to its pricing',
      'Model acme/fast-1 at acme: the completion price is $0.000015 per million tokens. If it is the price of one token, add "per: token" to its pricing',
    ]);
    expect(warnings('per: token, prompt: 2.5, completion: 0')).toEqual([
      'Model acme/fast-1 at acme: the prompt price is $2500000 per million tokens. If it is the price of a million tokens, remove "per: token" from its pricing',
    ]);
    expect(warnings('prompt: 0, completion: 0.001')).toEqual([]);
  });
});
