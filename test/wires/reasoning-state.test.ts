import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { sandboxModels, sandboxProviders } from '../../sandbox/catalog.ts';
import { type Sandbox, startSandbox } from '../../sandbox/server.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { startGateway, type TestGateway } from '../harness.ts';

/** Conversations of clients that know only chat, with an upstream that checks the signatures of its reasoning. */

let sandbox: Sandbox;
/** It keeps reasoning state. */
let gateway: TestGateway;
/** It keeps none. */
let forgetful: TestGateway;

const only = { provider: { only: ['sandbox-anthropic'] } };
const tools = [
  {
    type: 'function' as const,
    function: {
      name: 'get_weather',
      parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    },
  },
];

type Chat = OpenAI.ChatCompletionMessageParam;

const question: Chat = { role: 'user', content: 'What is the weather in Paris?' };

const ask = (messages: Chat[], more: object = {}) => ({
  model: 'sandbox/tools',
  messages,
  tools,
  reasoning_effort: 'high' as const,
  max_completion_tokens: 4_000,
  ...only,
  ...more,
});

function yamlOf(more: object = {}): string {
  const file = { bundled_catalog: false, providers: sandboxProviders(sandbox.url), models: sandboxModels, ...more };
  return JSON.stringify(file);
}

const clientOf = ({ url, key }: TestGateway) => new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });

/** The turn of a client that keeps only text and calls of an answer. */
function bare({ content, tool_calls }: OpenAI.ChatCompletionMessage): Chat {
  return { role: 'assistant', content, ...(tool_calls ? { tool_calls } : {}) };
}

function results({ tool_calls }: OpenAI.ChatCompletionMessage): Chat[] {
  return (tool_calls ?? []).map(({ id }) => ({ role: 'tool', tool_call_id: id, content: 'Rain' }));
}

interface Block {
  type: string;
  signature?: string;
}

/** The bodies that the attempts of a request sent upstream, the assistant message in each, and the routing. */
async function bodiesOf(where: TestGateway, body: object) {
  const response = await where.call(
    'POST',
    '/chat/completions',
    { ...body, stream: true, debug: { echo_upstream_body: true } },
    { 'x-gateway-experimental-metadata': 'enabled' },
  );
  const text = await response.text();
  expect(response.status, text).toBe(200);
  const events = text
    .split('\n\n')
    .filter((event) => event.startsWith('data: {'))
    .map((event) => JSON.parse(event.slice(6)) as Record<string, never>);
  const sent = events.flatMap(({ debug }) =>
    debug ? [(debug as { echo_upstream_body: never }).echo_upstream_body] : [],
  );
  const turns = sent.map(({ messages = [] as never }) =>
    (messages as { role: string; content: Block[] }[])
      .filter(({ role }) => role === 'assistant')
      .map(({ content }) => content),
  );
  const metadata = events.at(-1)!['gateway_metadata'] as unknown as {
    attempts: object[];
    adjusted_parameters: { kind: string; field: string; reason: string }[];
  };
  const answer = events
    .map(({ choices }) => (choices as never as { delta?: { content?: string } }[])[0]?.delta?.content ?? '')
    .join('');
  return { sent, turns, metadata, answer };
}

const kinds = (content: Block[] | undefined) => content?.map(({ type }) => type);

beforeAll(async () => {
  sandbox = await startSandbox();
  gateway = await startGateway({ yaml: yamlOf() });
  forgetful = await startGateway({ yaml: yamlOf({ reasoning_state: { keep: 'off' } }) });
});
afterAll(async () => {
  await Promise.all([gateway.stop(), forgetful.stop()]);
  await sandbox.stop();
});

/** A data directory of the running test, for a gateway that ends before the test does. */
function ownFolder(): string {
  const home = mkdtempSync(join(tmpdir(), 'reasoning-'));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  return join(home, 'data');
}

async function firstTurn(where = gateway, more: object = {}): Promise<OpenAI.ChatCompletionMessage> {
  const answer = await clientOf(where).chat.completions.create(ask([question], more));
  return answer.choices[0]!.message;
}

describe('a client that drops reasoning details', () => {
  test.each(['whole', 'streamed'])('gets its reasoning restored inside a tool loop: %s', async (way) => {
    const openai = clientOf(gateway);
    const first =
      way === 'whole'
        ? await firstTurn()
        : (await openai.chat.completions.stream(ask([question])).finalChatCompletion()).choices[0]!.message;
    const messages = [question, bare(first), ...results(first)];
    const { turns, metadata, answer } = await bodiesOf(gateway, ask(messages));
    expect(answer).toBe('The tools answered: Rain');
    expect(turns.map((one) => one.map(kinds))).toEqual([[['thinking', 'tool_use']]]);
    expect(turns[0]![0]![0]!.signature).toMatch(/^sandbox/);
    expect(metadata.attempts).toHaveLength(1);
    expect(metadata.adjusted_parameters).toEqual([
      { kind: 'changed', field: 'messages[1].reasoning_details', reason: expect.stringMatching(/^restored/) },
    ]);
  });

  test('gets it restored even if reasoning was not shown', async () => {
    const first = await firstTurn(gateway, {
      reasoning: { effort: 'high', exclude: true },
      reasoning_effort: undefined,
    });
    expect(JSON.stringify(first)).not.toMatch(/reasoning_details|The user says/);
    const { turns } = await bodiesOf(gateway, ask([question, bare(first), ...results(first)]));
    expect(turns.map((one) => one.map(kinds))).toEqual([[['thinking', 'tool_use']]]);
  });

  test('gets it restored by a restarted gateway', async () => {
    const options = { yaml: yamlOf(), data_dir: ownFolder() };
    const before = await startGateway(options);
    const first = await firstTurn(before);
    await before.stop();
    const restarted = await startGateway(options);
    const { turns } = await bodiesOf(restarted, ask([question, bare(first), ...results(first)])).finally(
      restarted.stop,
    );
    expect(turns.map((one) => one.map(kinds))).toEqual([[['thinking', 'tool_use']]]);
  });

  test('continues without it, with a report, if nothing is stored', async () => {
    const first = await firstTurn(forgetful);
    const { turns, sent, metadata, answer } = await bodiesOf(
      forgetful,
      ask([question, bare(first), ...results(first)]),
    );
    expect(answer).toBe('The tools answered: Rain');
    expect(turns.map((one) => one.map(kinds))).toEqual([[['tool_use']]]);
    expect(sent[0]!['thinking']).toBeUndefined();
    expect(metadata.adjusted_parameters).toContainEqual(expect.objectContaining({ field: 'reasoning' }));
  });

  test('does not share it with another workspace that knows the ids', async () => {
    const first = await firstTurn();
    const made = await gateway.call(
      'POST',
      '/workspaces',
      { name: 'Other', slug: 'other' },
      {
        authorization: `Bearer ${gateway.management_key}`,
      },
    );
    const { data: workspace } = (await made.json()) as { data: { id: string } };
    const other = await gateway.call(
      'POST',
      '/keys',
      { name: 'other', workspace_id: workspace.id },
      {
        authorization: `Bearer ${gateway.management_key}`,
      },
    );
    const { key } = (await other.json()) as { key: string };
    const call: TestGateway['call'] = (method, path, body, headers) =>
      gateway.call(method, path, body, { ...headers, authorization: `Bearer ${key}` });
    const { turns } = await bodiesOf({ ...gateway, call }, ask([question, bare(first), ...results(first)]));
    expect(turns.map((one) => one.map(kinds))).toEqual([[['tool_use']]]);
  });

  test('that sends an empty list of details gets none', async () => {
    const first = await firstTurn();
    const emptied: Chat = Object.assign(bare(first), { reasoning_details: [] });
    const { turns } = await bodiesOf(gateway, ask([question, emptied, ...results(first)]));
    expect(turns.map((one) => one.map(kinds))).toEqual([[['tool_use']]]);
  });
});

test.each([{ zdr: true }, { data_collection: 'deny' }])(
  'no reasoning state of a request with %o is kept',
  async (preference) => {
    const preferences = { provider: { ...only.provider, ...preference } };
    const dataDir = ownFolder();
    const own = await startGateway({ yaml: yamlOf(), data_dir: dataDir });
    const first = await firstTurn(own, preferences);
    const { turns } = await bodiesOf(own, ask([question, bare(first), ...results(first)])).finally(own.stop);
    expect(first).toHaveProperty('reasoning_details');
    expect(turns.map((one) => one.map(kinds))).toEqual([[['tool_use']]]);
    const database = await openDatabase({ data_dir: dataDir });
    const rows = await database.queries.selectFrom('reasoning_states').selectAll().execute();
    await database.close();
    expect(rows).toEqual([]);
  },
);

test('kept reasoning state cannot be read from the store alone', async () => {
  const dataDir = ownFolder();
  const own = await startGateway({ yaml: yamlOf(), data_dir: dataDir });
  const first = await firstTurn(own).finally(own.stop);
  const database = await openDatabase({ data_dir: dataDir });
  const rows = await database.queries.selectFrom('reasoning_states').selectAll().execute();
  await database.close();
  expect(rows).toHaveLength(1);
  expect(rows[0]!.sealed).toMatch(/^v1\.[0-9a-f]{8}\./);
  expect(JSON.stringify(rows)).not.toContain(first.tool_calls![0]!.id);
});

describe('a client that sends its details back', () => {
  test('needs nothing restored, and its turn is unchanged', async () => {
    const first = await firstTurn();
    const { turns, metadata } = await bodiesOf(gateway, ask([question, first as Chat, ...results(first)]));
    expect(turns.map((one) => one.map(kinds))).toEqual([[['thinking', 'tool_use']]]);
    expect(metadata.adjusted_parameters).toEqual([]);
  });

  test('with another signature is refused once, and served without', async () => {
    const first = await firstTurn(forgetful);
    const { reasoning_details } = first as unknown as { reasoning_details: object[] };
    const forged = reasoning_details.map((detail) => ({ ...detail, signature: 'forged' }));
    const changed = { ...first, reasoning_details: forged } as unknown as Chat;
    const { turns, metadata, answer } = await bodiesOf(forgetful, ask([question, changed, ...results(first)]));
    expect(answer).toBe('The tools answered: Rain');
    expect(turns.map((one) => one.map(kinds))).toEqual([[['thinking', 'tool_use']], [['tool_use']]]);
    expect(metadata.attempts).toMatchObject([{ status: 400 }, { status: 200 }]);
    expect(metadata.adjusted_parameters).toContainEqual({
      kind: 'dropped',
      field: 'messages[1].reasoning_details[0]',
      reason: 'the upstream refused the reasoning state of former turns',
    });
  });

  test.each(['forged', 'from elsewhere'])(
    'cannot use a seal that is %s, and the seal is not sent to any provider',
    async (what) => {
      const first = await firstTurn();
      const { reasoning_details } = first as unknown as { reasoning_details: object[] };
      const data = what === 'forged' ? 'gw1.AAAA.AAAA' : `gw1.${'A'.repeat(40)}.${'B'.repeat(43)}`;
      const seal = { type: 'reasoning.encrypted', id: 'seal_gen-1', format: 'unknown', data };
      const changed = { ...first, reasoning_details: [...reasoning_details, seal] } as unknown as Chat;
      const { turns, sent, metadata } = await bodiesOf(gateway, ask([question, changed, ...results(first)]));
      expect(turns.map((one) => one.map(kinds))).toEqual([[['thinking', 'tool_use']]]);
      expect(JSON.stringify(sent)).not.toContain('gw1.');
      expect(metadata.attempts).toHaveLength(1);
    },
  );
});

test('a conversation stays with the account that made its opaque state, and continues elsewhere without it', async () => {
  const baseUrl = `${sandbox.url}/v1`;
  const endpoint = (provider: string, prompt: number) => ({
    provider,
    upstream_model: 'tools',
    pricing: { prompt, completion: 1 },
  });
  const accounts = await startGateway({
    yaml: JSON.stringify({
      bundled_catalog: false,
      providers: {
        cheap: { name: 'Cheap', dialect: 'openai-responses', base_url: baseUrl },
        dear: { name: 'Dear', dialect: 'openai-responses', base_url: baseUrl },
      },
      models: { 'two/accounts': { context_length: 200_000, endpoints: [endpoint('cheap', 1), endpoint('dear', 9)] } },
    }),
  });
  onTestFinished(accounts.stop);
  const request = (messages: Chat[], provider: object) => ({ ...ask(messages), model: 'two/accounts', provider });
  const answer = await clientOf(accounts).chat.completions.create(request([question], { only: ['dear'] }));
  const first = answer.choices[0]!.message;
  expect(JSON.stringify(first)).toContain('reasoning.encrypted');
  const messages = [question, first as Chat, ...results(first)];
  const stays = await bodiesOf(accounts, request(messages, {}));
  expect(stays.metadata.attempts).toMatchObject([{ provider: 'Dear', status: 200 }]);
  expect(JSON.stringify(stays.sent)).toContain('"encrypted_content":"');
  const leaves = await bodiesOf(accounts, request(messages, { only: ['cheap'] }));
  expect(leaves.metadata.attempts).toMatchObject([{ provider: 'Cheap', status: 200 }]);
  expect(JSON.stringify(leaves.sent)).not.toContain('"encrypted_content":"');
  expect(leaves.metadata.adjusted_parameters).toContainEqual(
    expect.objectContaining({ kind: 'dropped', reason: expect.stringMatching(/another account/) }),
  );
});
