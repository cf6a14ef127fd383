import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { startGateway, type TestGateway } from '../../test/harness.ts';
import { responseHead, startWireServer } from '../../test/wires/wire-server.ts';
import { type ConfigText, findConfigFile, loadConfig } from '../config.ts';
import { limits } from '../limits.ts';
import { createLog } from '../telemetry/log.ts';
import { followConfig, holdReloadSignal } from './follow-config.ts';
import { createReloader, logReload, type Reloaded } from './reload.ts';

const acme = (fields: { price?: number; key?: string; more?: string; timeouts?: string } = {}) => `
providers:
  acme: { name: Acme AI, dialect: openai-chat, base_url: "http://127.0.0.1:9/v1", api_key: ${fields.key ?? 'first-key'} }
models:
  acme/fast: { endpoints: [{ provider: acme, upstream_model: m, pricing: { prompt: ${fields.price ?? 1}, completion: 2 } }] }
${fields.more ?? ''}
${fields.timeouts ?? ''}
`;

describe('a replaced configuration', () => {
  let gateway: TestGateway;
  let directory: string;

  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'reload-test-'));
    gateway = await startGateway({ yaml: acme() });
  });
  afterEach(async () => {
    await gateway.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  function replace(yaml: string): Reloaded {
    const path = join(directory, 'gateway.yaml');
    writeFileSync(path, yaml);
    return gateway.gateway.replace(loadConfig({}, { config_file: path }));
  }

  const listed = async (): Promise<Record<string, { created: number; pricing: { prompt: string } }>> => {
    const answer = await gateway.call('GET', '/models');
    const { data } = (await answer.json()) as { data: { id: string; created: number; pricing: { prompt: string } }[] };
    return Object.fromEntries(data.map((model) => [model.id, model]));
  };

  test('takes effect at once, and logs the changes without any secret', async () => {
    const etag = (await gateway.call('GET', '/models')).headers.get('etag') ?? '';
    const { changes, needs_restart } = replace(
      acme({
        price: 1.5,
        key: 'second-key',
        more: '  acme/slow: { endpoints: [{ provider: acme, upstream_model: s, pricing: { prompt: 0, completion: 0 } }] }',
      }),
    );
    expect(changes).toEqual([
      { what: 'provider', how: 'changed', name: 'acme', detail: 'credential' },
      { what: 'model', how: 'added', name: 'acme/slow' },
      { what: 'endpoint', how: 'added', name: 'acme|acme/slow' },
      { what: 'price', how: 'changed', name: 'acme|acme/fast', detail: 'prompt 1 -> 1.5' },
    ]);
    expect(needs_restart).toEqual([]);
    expect((await listed())['acme/fast']?.pricing.prompt).toBe('0.0000015');
    const known = await gateway.call('GET', '/models', undefined, { 'if-none-match': etag });
    expect(known.status).toBe(200);
    expect(known.headers.get('etag')).not.toBe(etag);
    const log = createLog('info', { write: (line) => void gateway.log_lines.push(line) });
    logReload(log, { changes, settings: [], needs_restart, warnings: [] });
    const line = JSON.parse(gateway.log_lines.at(-1) ?? '');
    expect(line).toMatchObject({ models_added: 1, prices_changed: 1, providers_changed: 1 });
    expect(line.changes).toContain('~ price acme|acme/fast: prompt 1 -> 1.5');
    expect(gateway.log_lines.join('')).not.toContain('second-key');
  });

  test('a default or router model that no provider serves any more is a warning, once', async () => {
    const other = await startGateway({
      yaml: acme({
        more: '  acme/slow: { endpoints: [{ provider: acme, upstream_model: s, pricing: { prompt: 0, completion: 0 } }] }',
      }),
      environment: { GATEWAY_DEFAULT_MODEL: 'acme/slow' },
    });
    try {
      const path = join(directory, 'gateway.yaml');
      const warningsOf = (yaml: string) => {
        writeFileSync(path, yaml);
        return other.gateway.replace(loadConfig({}, { config_file: path })).warnings;
      };
      expect(warningsOf(acme({ more: 'routing: { auto_models: [acme/fest] }' }))).toEqual([
        'GATEWAY_DEFAULT_MODEL names acme/slow, which no active provider serves',
        'routing.auto_models names acme/fest, which no active provider serves; did you mean "acme/fast"?',
      ]);
      expect(warningsOf(acme({ price: 3, more: 'routing: { auto_models: [acme/fest] }' }))).toEqual([]);
    } finally {
      await other.stop();
    }
  });

  test('a change outside the catalog is logged by name, and a reload without changes as such', () => {
    const { settings, changes } = replace(acme({ more: 'rate_limits: { per_key: { requests_per_minute: 2 } }' }));
    expect(settings).toEqual(['rate_limits']);
    const line = (reloaded: { changes: typeof changes; settings: string[] }) => {
      const log = createLog('info', { write: (text) => void gateway.log_lines.push(text) });
      logReload(log, { ...reloaded, needs_restart: [], warnings: [] });
      return JSON.parse(gateway.log_lines.at(-1) ?? '') as object;
    };
    expect(line({ changes: [], settings: ['rate_limits'] })).toMatchObject({
      settings: ['rate_limits'],
      msg: 'the configuration was reloaded',
    });
    expect(line({ changes: [], settings: [] })).toMatchObject({
      msg: 'the configuration was read again; it is the same',
    });
  });

  test('the etag returns with the previous catalog', async () => {
    const first = (await gateway.call('GET', '/models')).headers.get('etag');
    replace(acme({ price: 7 }));
    replace(acme());
    expect((await gateway.call('GET', '/models')).headers.get('etag')).toBe(first);
  });

  test('a model without a date keeps its date', async () => {
    const before = (await listed())['acme/fast']?.created ?? 0;
    // Dates are in seconds: wait for another one.
    await sleep(Math.max(0, (before + 1) * 1_000 - Date.now() + 10));
    replace(acme({ price: 3 }));
    expect((await listed())['acme/fast']?.created).toBe(before);
  });

  test('settings that need a restart keep their values, and are named', () => {
    const { changes, needs_restart } = replace(
      acme({ timeouts: 'timeouts: { heartbeat_ms: 1 }\nauth: { public_url: "https://x.example" }' }),
    );
    expect(changes).toEqual([]);
    expect(needs_restart.toSorted()).toEqual(['auth', 'timeouts']);
    // The configuration in use has not changed, so the same is logged again.
    expect(replace(acme({ timeouts: 'timeouts: { heartbeat_ms: 1 }' })).needs_restart).toEqual(['timeouts']);
  });

  test('failures of a provider are forgotten when its credential changes', async () => {
    const body = { model: 'acme/fast', messages: [{ role: 'user', content: 'Hello' }] };
    const isCooling = async () => {
      const answer = await gateway.call('POST', '/route/explain', body);
      const explanation = (await answer.json()) as {
        data: { endpoints: { planned: { health: { cooling_down_until: unknown } }[] } };
      };
      return explanation.data.endpoints.planned[0]?.health.cooling_down_until !== null;
    };
    expect((await gateway.call('POST', '/chat/completions', body)).status).toBe(502);
    expect(await isCooling()).toBe(true);
    replace(acme({ price: 2 }));
    expect(await isCooling()).toBe(true);
    replace(acme({ price: 2, key: 'second-key' }));
    expect(await isCooling()).toBe(false);
  });

  test('a running request keeps its credential and its prices, and the next one has the new ones', async () => {
    const going = Promise.withResolvers<void>();
    const answer = {
      id: 'c',
      object: 'chat.completion',
      created: 1,
      model: 'm',
      choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 1_000, completion_tokens: 1_000, total_tokens: 2_000 },
    };
    const head = responseHead(200, 'application/json');
    const upstream = await startWireServer(() => [{ until: going.promise }, head + JSON.stringify(answer), 'END']);
    try {
      const yaml = (price: number, key: string) => acme({ price, key }).replace('http://127.0.0.1:9', upstream.url);
      replace(yaml(1, 'first-key'));
      const ask = async () => {
        const body = { model: 'acme/fast', messages: [{ role: 'user', content: 'Hello' }] };
        const answer = await gateway.call('POST', '/chat/completions', body);
        return ((await answer.json()) as { usage: { cost: number } }).usage.cost;
      };
      const first = ask();
      await upstream.exchange(0);
      replace(yaml(50, 'second-key').replace('acme/fast', 'acme/other'));
      replace(yaml(50, 'second-key'));
      going.resolve();
      expect(await first).toBeCloseTo(0.003, 9);
      expect(await ask()).toBeCloseTo(0.052, 9);
      expect(upstream.exchanges.map(({ headers }) => headers['authorization'])).toEqual([
        'Bearer first-key',
        'Bearer second-key',
      ]);
    } finally {
      await upstream.stop();
    }
  });

  test('routing and rate limits are replaced', async () => {
    expect(await listed()).not.toHaveProperty('gateway/auto');
    const more = 'routing: { auto_models: [acme/fast] }\nrate_limits: { per_key: { requests_per_minute: 1 } }';
    expect(replace(acme({ more })).needs_restart).toEqual([]);
    expect(await listed()).toHaveProperty('gateway/auto');
    const body = { model: 'gateway/auto', messages: [{ role: 'user', content: 'Hello' }] };
    const ask = async () => (await gateway.call('POST', '/chat/completions', body)).status;
    expect([await ask(), await ask()]).toEqual([502, 429]);
    replace(acme());
    expect(await listed()).not.toHaveProperty('gateway/auto');
    // The router chooses among the enabled models again, and no rate limit refuses the call.
    expect([await ask(), await ask()]).toEqual([502, 502]);
  });

  test('a removed model is no longer served', async () => {
    replace(acme().replace('acme/fast', 'acme/other'));
    const answer = await gateway.call('POST', '/chat/completions', {
      model: 'acme/fast',
      messages: [{ role: 'user', content: 'Hello' }],
    });
    expect(answer.status).toBe(400);
  });

  test('a new provider name can be used immediately', async () => {
    replace(acme().replace('name: Acme AI', 'name: Apex'));
    const answer = await gateway.call(
      'POST',
      '/guardrails',
      { name: 'g', allowed_providers: ['apex'] },
      { authorization: `Bearer ${gateway.management_key}` },
    );
    expect(answer.status).toBe(201);
    expect(await answer.json()).toMatchObject({ data: { allowed_providers: ['acme'] } });
  });
});

describe('a watched configuration file', () => {
  let directory: string;
  let path: string;
  let lines: string[];
  let applied: string[];
  let stop: () => void;

  const { config_watch_ms } = limits;
  const LOOK_MS = 50;
  const FOUR_LOOKS_MS = 4 * LOOK_MS;
  beforeAll(() => void Object.assign(limits, { config_watch_ms: LOOK_MS }));
  afterAll(() => void Object.assign(limits, { config_watch_ms }));
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'follow-test-'));
    path = join(directory, 'gateway.yaml');
    lines = [];
    applied = [];
    writeFileSync(path, acme());
  });
  afterEach(() => {
    stop();
    rmSync(directory, { recursive: true, force: true });
  });

  function follow(isWatched = true, configFile: ConfigText | null = findConfigFile({}, path)): void {
    const reload = createReloader({
      environment: {},
      path,
      configFile,
      log: createLog('info', { write: (line) => void lines.push(line) }),
      apply: (config) => void applied.push(config.models.map(({ id }) => id).join(',')),
    });
    stop = followConfig({ path, is_watched: isWatched }, reload);
  }

  const other = acme().replace('acme/fast', 'acme/other');
  const seen = (expected: string[]) => vi.waitFor(() => expect(applied).toEqual(expected), { timeout: 60_000 });

  test('is read again when it is written in place', async () => {
    follow();
    writeFileSync(path, other);
    await seen(['acme/other']);
  });

  test('is read again when another file is renamed to it, as editors do', async () => {
    follow();
    writeFileSync(`${path}.new`, other);
    renameSync(`${path}.new`, path);
    await seen(['acme/other']);
    // Written after it was moved away: the name was missing for a while.
    renameSync(path, `${path}~`);
    await sleep(100);
    writeFileSync(path, acme());
    await seen(['acme/other', 'acme/fast']);
  });

  test('is read again when a link in its path changes, as with Kubernetes', async () => {
    rmSync(path);
    for (const [name, text] of [
      ['v1', acme()],
      ['v2', other],
    ] as const) {
      mkdirSync(join(directory, name));
      writeFileSync(join(directory, name, 'gateway.yaml'), text);
    }
    symlinkSync('v1', join(directory, '..data'));
    symlinkSync('..data/gateway.yaml', path);
    follow();
    symlinkSync('v2', join(directory, '..data_tmp'));
    renameSync(join(directory, '..data_tmp'), join(directory, '..data'));
    await seen(['acme/other']);
  });

  test('is read again at SIGHUP, also without a watch', async () => {
    follow(false);
    writeFileSync(path, other);
    await sleep(FOUR_LOOKS_MS);
    expect(applied).toEqual([]);
    process.kill(process.pid, 'SIGHUP');
    await seen(['acme/other']);
  });

  test('changes nothing if it is invalid, and the log states the place and the expected value', async () => {
    follow();
    writeFileSync(path, acme().replace('prompt: 1', 'prompt: cheap'));
    await vi.waitFor(() => expect(lines.join('')).toContain('the previous one stays in force'), { timeout: 60_000 });
    const line = JSON.parse(lines.at(-1) ?? '');
    expect(line).toMatchObject({ level: 'error', config_file: path });
    expect(line.reason).toMatch(
      /gateway\.yaml, line 5: models\.acme\/fast\.endpoints\[0\]\.pricing\.prompt must be a price/,
    );
    expect(applied).toEqual([]);
    writeFileSync(path, acme());
    await vi.waitFor(() => expect(lines.join('')).toContain('is the same again'), { timeout: 60_000 });
    writeFileSync(path, other);
    await seen(['acme/other']);
  });

  test('a signal before a reload is possible does not end the process and is not lost', async () => {
    stop = () => undefined;
    const listeners = process.listenerCount('SIGHUP');
    const quiet = holdReloadSignal();
    expect(quiet()).toBe(false);
    const hasCome = holdReloadSignal();
    const arrived = new Promise((resolve) => process.once('SIGHUP', resolve));
    process.kill(process.pid, 'SIGHUP');
    await arrived;
    expect(hasCome()).toBe(true);
    expect(process.listenerCount('SIGHUP')).toBe(listeners);
  });

  test('is read one at a time: several requests meanwhile cause one further read, of the newest state', async () => {
    const many = (count: number) =>
      Array.from({ length: count }, (_, index) => acme().split('models:')[1]?.trim().replace('fast', `m-${index}`));
    const large = (count: number) => `${acme().split('models:')[0]}models:\n  ${many(count).join('\n  ')}\n`;
    stop = () => undefined;
    const reload = createReloader({
      environment: {},
      path,
      configFile: null,
      log: createLog('info', { write: (line) => void lines.push(line) }),
      apply: ({ models }) => void applied.push(String(models.length)),
    });
    writeFileSync(path, large(50));
    const first = reload('file');
    for (let count = 51; count <= 150; count += 1) {
      writeFileSync(path, large(count));
      void reload('file');
    }
    await first;
    expect([applied, lines]).toEqual([['50', '150'], []]);
  });

  test('is read when it first appears', async () => {
    rmSync(path);
    follow(true, null);
    await sleep(FOUR_LOOKS_MS);
    expect([applied, lines]).toEqual([[], []]);
    writeFileSync(path, other);
    await seen(['acme/other']);
  });

  test('changes nothing if it was deleted', async () => {
    follow();
    await sleep(FOUR_LOOKS_MS);
    rmSync(path);
    await vi.waitFor(() => expect(lines.join('')).toContain('cannot be read (ENOENT)'), { timeout: 60_000 });
    process.kill(process.pid, 'SIGHUP');
    await vi.waitFor(() => expect(lines).toHaveLength(2), { timeout: 60_000 });
    expect(applied).toEqual([]);
  });
});
