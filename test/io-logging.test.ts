import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { withLimits } from './changed-limits.ts';
import { type LoggingGateway, startLoggingGateway } from './logging-gateway.ts';
import { inTier } from './tier.ts';

withLimits({ logged_gather_ms: 10 });

let gateway: LoggingGateway;

beforeAll(async () => {
  gateway = await startLoggingGateway();
});
afterAll(() => gateway.stop());

const OFF = {
  is_observability_io_logging_enabled: false,
  io_logging_sampling_rate: 1,
  io_logging_api_key_ids: null,
};

let count = 0;
/** A word that occurs in one request only. */
function canary(): string {
  count += 1;
  return `canary-${count}-end`;
}

/** One request of each client API with a word, and the word in its answer. */
const requests = {
  chat: (word: string, more: object) => ({
    path: '/chat/completions',
    body: { model: 'sandbox/echo', messages: [{ role: 'user', content: word }], ...more },
  }),
  completions: (word: string, more: object) => ({
    path: '/completions',
    body: { model: 'sandbox/echo', prompt: word, ...more },
  }),
  responses: (word: string, more: object) => ({
    path: '/responses',
    body: { model: 'sandbox/echo', input: word, ...more },
  }),
  messages: (word: string, more: object) => ({
    path: '/messages',
    body: { model: 'sandbox/echo', max_tokens: 100, messages: [{ role: 'user', content: word }], ...more },
  }),
} as const;
type Api = keyof typeof requests;
const apis = Object.keys(requests) as Api[];

/** Sends a request and reads its answer to the end. Returns the id of the generation. */
async function send(api: Api, word: string, more: object = {}, credential = gateway.key): Promise<string> {
  const { path, body } = requests[api](word, more);
  const answer = await fetch(`${gateway.base_url}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${credential}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  await answer.text();
  statuses.set(answer.headers.get('x-generation-id') ?? '', answer.status);
  return answer.headers.get('x-generation-id') ?? '';
}

/** The answer to each. */
const statuses = new Map<string, number>();

/** Every byte that the gateway has on disk. */
function stored(): string {
  const files = readdirSync(gateway.data_dir, { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
  return files.map((one) => readFileSync(join(one.parentPath, one.name), 'latin1')).join('\n');
}

/** Waits until the kept contents are in the store. */
const written = () => sleep(120);

beforeEach(() => gateway.set(OFF));

test('nothing is kept without the workspace’s setting', async () => {
  const id = await send('chat', canary());
  expect(await gateway.content(id)).toMatchObject({ status: 404 });
});

describe.each(apis)('through %s', (api) => {
  test.each([false, true])('request and answer are kept (stream: %s)', async (stream) => {
    await gateway.set({ is_observability_io_logging_enabled: true });
    const word = canary();
    const id = await send(api, word, { stream });
    const { status, body } = await gateway.content(id);
    expect(status).toBe(200);
    if (api === 'completions') expect(body.data.input).toEqual({ prompt: word });
    else expect(body.data.input).toEqual({ messages: [expect.objectContaining({ role: 'user' })] });
    expect(JSON.stringify(body.data.input)).toContain(word);
    expect(body.data.output).toEqual({ completion: word, reasoning: null, finish_reason: 'stop' });
    expect(body.data).toMatchObject({ error: null, truncated: false });
    await written();
    expect(await gateway.content(id)).toEqual({ status, body });
  });
});

test('tools, reasoning and the order of turns are kept', async () => {
  await gateway.set({ is_observability_io_logging_enabled: true });
  const thought = await gateway.content(
    await send('messages', canary(), {
      model: 'sandbox/think',
      thinking: { type: 'enabled', budget_tokens: 1024 },
      max_tokens: 2000,
    }),
  );
  expect(thought.body.data.output.reasoning).toEqual(expect.any(String));
  const tools = [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } } }];
  for (const stream of [false, true]) {
    const { body } = await gateway.content(await send('chat', canary(), { model: 'sandbox/tools', tools, stream }));
    expect(body.data.output).toMatchObject({
      completion: null,
      tool_calls: [{ type: 'function', function: { name: 'look', arguments: '{}' } }],
      finish_reason: 'tool_calls',
    });
  }
});

test('embeddings and transcripts are kept as their texts', async () => {
  await gateway.set({ is_observability_io_logging_enabled: true });
  const word = canary();
  const answer = await gateway.call('POST', '/embeddings', { model: 'sandbox/embed', input: [word, 'other'] });
  await answer.text();
  const { body } = await gateway.content(answer.headers.get('x-generation-id') ?? '');
  expect(JSON.stringify(body.data.input)).toContain(word);
  expect(body.data.output).toEqual({ completion: null, reasoning: null });
});

test('a failed call is kept with its failure, early and late', async () => {
  await gateway.set({ is_observability_io_logging_enabled: true });
  const word = canary();
  const failed = await gateway.content(await send('chat', word, { model: 'sandbox/fail-503' }));
  expect(failed.body.data.output.completion).toBeNull();
  expect(failed.body.data.error).toMatchObject({ message: expect.any(String), status: 503 });
  expect(JSON.stringify(failed.body.data.input)).toContain(word);
  const late = await gateway.content(await send('chat', canary(), { model: 'sandbox/fail-mid-stream', stream: true }));
  expect(late.body.data.output.completion).toEqual(expect.stringMatching(/.+/));
  expect(late.body.data.error).toMatchObject({ status: expect.any(Number) });
});

test('if the client disconnects, the received part of the answer is kept', async () => {
  await gateway.set({ is_observability_io_logging_enabled: true });
  const leaving = new AbortController();
  const answer = await fetch(`${gateway.base_url}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'sandbox/slow', stream: true, messages: [{ role: 'user', content: canary() }] }),
    signal: leaving.signal,
  });
  const id = answer.headers.get('x-generation-id') ?? '';
  const reader = answer.body?.getReader();
  for (let text = ''; !text.includes('"content":"'); )
    text += Buffer.from((await reader?.read())?.value ?? []).toString();
  leaving.abort();
  await expect.poll(async () => (await gateway.content(id)).status).toBe(200);
  const { body } = await gateway.content(id);
  expect(body.data.output.completion).toEqual(expect.stringMatching(/.+/));
});

test('a call that reached no endpoint is not a generation, and has no content', async () => {
  await gateway.set({ is_observability_io_logging_enabled: true });
  expect(await gateway.content(await send('chat', canary(), { model: 'sandbox/no-such-model' }))).toMatchObject({
    status: 404,
  });
});

describe('a guardrail that enforces zero retention disables the log, a preference of a request does not', () => {
  const preferences = [undefined, { zdr: true }, { data_collection: 'deny' }, { zdr: false, data_collection: 'allow' }];
  const rules = [
    undefined,
    { enforce_zdr: true },
    { enforce_zdr_anthropic: true },
    { enforce_zdr_openai: true },
    { enforce_zdr_google: true },
    { enforce_zdr_other: true },
  ];
  // All of both lists; every combination in the second tier.
  const combinations = preferences
    .flatMap((provider) => rules.map((rule) => ({ provider, rule })))
    .filter(({ provider, rule }) =>
      inTier(provider === undefined || rule === undefined || 'enforce_zdr' in rule, true),
    );

  test.each(combinations)('$provider with a guardrail of $rule', async ({ provider, rule }) => {
    await gateway.set({ is_observability_io_logging_enabled: true });
    const { key, hash } = await gateway.addKey();
    if (rule !== undefined) {
      const made = await gateway.managed<{ data: { id: string } }>('POST', '/guardrails', { name: 'rule', ...rule });
      const assigned = await gateway.managed('POST', `/guardrails/${made.body.data.id}/assignments/keys`, {
        key_hashes: [hash],
      });
      expect(assigned.status).toBe(200);
    }
    const isKept = rule === undefined;
    for (const api of apis) {
      const ways = [{}, { stream: true }, { model: 'sandbox/fail-503' }];
      for (const more of api === 'chat' ? ways : inTier(ways.slice(1, 2), ways)) {
        const word = canary();
        const id = await send(api, word, { ...more, ...(provider === undefined ? {} : { provider }) }, key);
        const { status } = await gateway.content(id, key);
        if (!('model' in more)) expect(statuses.get(id)).toBe(200);
        expect({ api, more, status }).toEqual({ api, more, status: isKept ? 200 : 404 });
      }
    }
  });
});

describe('with content filters', () => {
  /** A key whose guardrail redacts addresses in this way. */
  async function redactingKey(settings: object): Promise<string> {
    const { key, hash } = await gateway.addKey();
    const made = await gateway.managed<{ data: { id: string } }>('POST', '/guardrails', {
      name: 'redacts',
      content_filter_builtins: [{ slug: 'email', action: 'redact' }],
      ...settings,
    });
    expect(made.status).toBe(201);
    const path = `/guardrails/${made.body.data.id}/assignments/keys`;
    expect(await gateway.managed('POST', path, { key_hashes: [hash] })).toMatchObject({ status: 200 });
    return key;
  }

  test.each([false, true])(
    'the content that models saw is kept, and the answer before restoring (stream: %s)',
    async (stream) => {
      await gateway.set({ is_observability_io_logging_enabled: true });
      for (const api of apis) {
        const all = [{}, { content_filter_reversible: true }, { content_filter_output: true }];
        for (const settings of api === 'chat' ? all : inTier(all.slice(1, 2), all)) {
          const key = await redactingKey(settings);
          const secret = `${canary()}@example.com`;
          const { path, body } = requests[api](`write to ${secret}`, { stream });
          const answer = await fetch(`${gateway.base_url}${path}`, {
            method: 'POST',
            headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
            body: JSON.stringify(body),
          });
          const text = await answer.text();
          expect(answer.status).toBe(200);
          // The echo of a stream may arrive in pieces.
          if (!stream) expect(text.includes(secret)).toBe('content_filter_reversible' in settings);
          const kept = await gateway.content(answer.headers.get('x-generation-id') ?? '', key);
          expect(kept.status).toBe(200);
          expect(JSON.stringify(kept.body)).not.toContain(secret);
          expect(JSON.stringify(kept.body.data.input)).toContain('[EMAIL');
          expect(kept.body.data.output.completion).toContain('[EMAIL');
        }
      }
    },
  );

  test('nothing is kept of a request that a guardrail refuses', async () => {
    await gateway.set({ is_observability_io_logging_enabled: true });
    const key = await redactingKey({ content_filter_builtins: [{ slug: 'email', action: 'block' }] });
    const secret = `${canary()}@example.com`;
    const id = await send('chat', secret, {}, key);
    expect(statuses.get(id)).toBe(403);
    expect(await gateway.content(id, key)).toMatchObject({ status: 404 });
    await written();
    expect(stored()).not.toContain(secret);
  });
});

test('a sample of the calls is kept, and it is the same for every reader', async () => {
  await gateway.set({ is_observability_io_logging_enabled: true, io_logging_sampling_rate: 0.25 });
  const ids = await Promise.all(Array.from({ length: 120 }, () => send('chat', canary())));
  const contents = await Promise.all(ids.map((id) => gateway.content(id)));
  const kept = contents.filter(({ status }) => status === 200).length;
  // Of 120 calls at 0.25, a number outside these bounds has a chance of less than one in a million.
  expect(kept).toBeGreaterThan(8);
  expect(kept).toBeLessThan(60);
});

test('if keys are listed, only their calls are kept', async () => {
  const [logged, other] = [await gateway.addKey(), await gateway.addKey()];
  await gateway.set({ is_observability_io_logging_enabled: true, io_logging_api_key_ids: [logged.id] });
  const ids = {
    logged: await send('chat', canary(), {}, logged.key),
    other: await send('chat', canary(), {}, other.key),
  };
  expect(await gateway.content(ids.logged)).toMatchObject({ status: 200 });
  expect(await gateway.content(ids.other)).toMatchObject({ status: 404 });
});

test('a change of the workspace takes effect at once', async () => {
  const before = await send('chat', canary());
  await gateway.set({ is_observability_io_logging_enabled: true });
  const during = await send('chat', canary());
  await gateway.set({ is_observability_io_logging_enabled: false });
  const after = await send('chat', canary());
  const statuses = await Promise.all([before, during, after].map(async (id) => (await gateway.content(id)).status));
  expect(statuses).toEqual([404, 200, 404]);
});

test('contents are encrypted on disk, and log lines contain none', async () => {
  await gateway.set({ is_observability_io_logging_enabled: true });
  const word = canary();
  const id = await send('chat', word);
  expect(await gateway.content(id)).toMatchObject({ status: 200 });
  await written();
  const bytes = stored();
  expect(bytes).toContain(id);
  expect(bytes).not.toContain(word);
  expect(gateway.log_lines.join('\n')).not.toContain(word);
});

test('a key cannot read contents of another workspace or member; a management key reads all', async () => {
  const made = await gateway.managed<{ data: { id: string } }>('POST', '/workspaces', {
    name: 'apart',
    slug: `apart-${canary()}`,
  });
  const workspaceId = made.body.data.id;
  for (const id of [workspaceId, gateway.workspace_id]) {
    await gateway.set({ is_observability_io_logging_enabled: true }, id);
  }
  const apart = await gateway.addKey({ workspace_id: workspaceId });
  const here = await send('chat', canary());
  const there = await send('chat', canary(), {}, apart.key);
  const sibling = await gateway.addKey();
  const statusesFor = async (credential: string) =>
    Promise.all([here, there].map(async (id) => (await gateway.content(id, credential)).status));
  for (let times = 0; times < 2; times += 1) {
    expect(await statusesFor(gateway.key)).toEqual([200, 404]);
    expect(await statusesFor(sibling.key)).toEqual([200, 404]);
    expect(await statusesFor(apart.key)).toEqual([404, 200]);
    expect(await statusesFor(gateway.management_key)).toEqual([200, 200]);
    await written();
  }
});

test('contents are deleted with their workspace', async () => {
  const made = await gateway.managed<{ data: { id: string } }>('POST', '/workspaces', {
    name: 'short-lived',
    slug: `short-lived-${canary()}`,
  });
  const workspaceId = made.body.data.id;
  await gateway.set({ is_observability_io_logging_enabled: true }, workspaceId);
  const { key, hash } = await gateway.addKey({ workspace_id: workspaceId });
  const id = await send('chat', canary(), {}, key);
  await written();
  expect(await gateway.content(id, gateway.management_key)).toMatchObject({ status: 200 });
  expect(await gateway.managed('DELETE', `/keys/${hash}`)).toMatchObject({ status: 200 });
  expect(await gateway.managed('DELETE', `/workspaces/${workspaceId}`)).toMatchObject({ status: 200 });
  expect(await gateway.content(id, gateway.management_key)).toMatchObject({ status: 404 });
});
