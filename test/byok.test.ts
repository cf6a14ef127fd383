/**
 * Credentials of a workspace, through running gateways and a scripted upstream: which of them arrives there, what
 * follows it, who pays, and where it must not appear.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { JsonObject } from '../src/schemas/json.ts';
import { startGateway, type TestGateway } from './harness.ts';
import { describeStores } from './ledger/store-variants.ts';
import { type Exchange, responseHead, type Step, startWireServer, type WireServer } from './wires/wire-server.ts';

const UNSET = ['$', '{NOT_SET_ANYWHERE}'].join('');
const GATEWAYS_OWN = 'sk-of-the-gateway-0123456789';
// Nothing in them looks like a key, so that they are only removed because the gateway knows them.
const OURS = 'ours.first.0123456789.abc';
const SECOND = 'ours.second.0123456789.abc';
const MASKED = 'our...abc';

let wire: WireServer;
let gateway: TestGateway;
/** The upstream's steps for a request, by its credential; undefined: it answers. */
let scripts: Record<string, () => Step[]>;
const made: string[] = [];

/**
 * Ten tokens in, seven out: at USD 100 and 1000 per million this is 1,000,000 + 7,000,000 nano-USD at `paid` and
 * `other`.
 */
const PRICING = { prompt: 100, completion: 1000 };
const COST_USD = 0.008;

function configuration(url: string): string {
  const endpoint = (provider: string, over: object = {}) => ({
    provider,
    upstream_model: 'scripted',
    pricing: PRICING,
    max_completion_tokens: 100,
    ...over,
  });
  const dear = { pricing: { prompt: 200, completion: 2000 } };
  const model = (...endpoints: object[]) => ({ context_length: 10_000, endpoints });
  return JSON.stringify({
    bundled_catalog: false,
    logging: { level: 'debug' },
    ledger: { journal_sync: 'os' },
    timeouts: { upstream_headers_ms_max: 300, shutdown_ms_max: 2_000 },
    providers: {
      paid: { name: 'Paid', dialect: 'openai-chat', base_url: url, api_key: GATEWAYS_OWN },
      other: { name: 'Other', dialect: 'openai-chat', base_url: url, api_key: GATEWAYS_OWN },
      messages: { name: 'Messages', dialect: 'anthropic-messages', base_url: url, api_key: GATEWAYS_OWN },
      keyless: { name: 'Keyless', dialect: 'openai-chat', base_url: url, api_key: UNSET },
      account: {
        name: 'Account',
        dialect: 'anthropic-messages',
        base_url: url,
        headers: { authorization: `Bearer ${GATEWAYS_OWN}`, 'x-goog-user-project': GATEWAYS_OWN, 'x-kept': 'yes' },
      },
    },
    models: {
      'wire/one': model(endpoint('paid')),
      'wire/two': model(endpoint('paid'), endpoint('other', dear)),
      'wire/cheap-other': model(endpoint('paid', dear), endpoint('other')),
      'wire/messages': model(endpoint('messages')),
      'wire/keyless': model(endpoint('keyless')),
      'wire/keyless-too': model(endpoint('keyless'), endpoint('paid')),
      'wire/account': model(endpoint('account')),
      'wire/account-of-its-own': model(endpoint('paid')),
      'wire/output': model(endpoint('paid', { pricing: { prompt: 0, completion: 1000 } })),
      'wire/unpriced': model({ provider: 'paid', upstream_model: 'scripted' }),
    },
  });
}

const keyOf = ({ headers }: Exchange) => headers['authorization']?.replace('Bearer ', '') ?? headers['x-api-key'] ?? '';
const arrived = () => wire.exchanges.map(keyOf);

const answered = (): Step[] => [
  responseHead(200, 'application/json'),
  JSON.stringify({
    id: 'up-1',
    object: 'chat.completion',
    created: 1,
    model: 'scripted',
    choices: [{ index: 0, message: { role: 'assistant', content: 'Yes.' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 10, completion_tokens: 7, total_tokens: 17 },
  }),
  'END',
];
const refused =
  (status: number, message = 'no') =>
  (): Step[] => [
    responseHead(status, 'application/json'),
    JSON.stringify({ error: { message, type: 'error', code: 'refused' } }),
    'END',
  ];
/** The request arrived, and its outcome is unknown. */
const brokenOff = (): Step[] => ['RESET'];

const manage = async (method: string, path: string, body?: unknown, at = gateway) => {
  const response = await at.call(method, path, body, { authorization: `Bearer ${at.management_key}` });
  const { data } = (await response.json()) as { data: JsonObject };
  return { status: response.status, data };
};

/** Stores a credential until the test ends, and returns its id. */
async function bring(over: object = {}, at = gateway): Promise<string> {
  const { status, data } = await manage('POST', '/byok', { provider: 'paid', key: OURS, ...over }, at);
  expect(status).toBe(201);
  made.push(String(data['id']));
  return String(data['id']);
}

interface ChatOutcome {
  status: number;
  body: JsonObject;
  id: string;
  metadata: {
    is_byok: boolean;
    attempts: { provider: string; status: number; is_byok: boolean; byok?: object }[];
    endpoints: { excluded: { provider: string; step: string; reason: string; byok?: { id: string } }[] };
  };
}

async function ask(model: string, over: object = {}, key = gateway.key, at = gateway): Promise<ChatOutcome> {
  const response = await at.call(
    'POST',
    '/chat/completions',
    { model, messages: [{ role: 'user', content: 'Is it?' }], ...over },
    { authorization: `Bearer ${key}`, 'x-gateway-experimental-metadata': 'enabled' },
  );
  const text = await response.text();
  expect(text).not.toContain(OURS);
  expect(text).not.toContain(SECOND);
  expect(text).not.toContain(GATEWAYS_OWN);
  const body = JSON.parse(text) as JsonObject;
  const id = response.headers.get('x-generation-id') ?? '';
  return { status: response.status, body, id, metadata: body['gateway_metadata'] as never };
}

const generationOf = async (id: string) => (await manage('GET', `/generation?id=${id}`)).data;

beforeAll(async () => {
  wire = await startWireServer((exchange) => (scripts[keyOf(exchange)] ?? answered)());
  gateway = await startGateway({ yaml: configuration(wire.url) });
});
afterAll(async () => {
  await gateway.stop();
  await wire.stop();
});
beforeEach(() => {
  scripts = {};
  wire.exchanges.length = 0;
});
afterEach(async () => {
  for (const id of made.splice(0)) await manage('DELETE', `/byok/${id}`);
});

describe('the credential of a call', () => {
  test('is the gateway’s if the workspace has none', async () => {
    const { metadata, body } = await ask('wire/one');
    expect(arrived()).toEqual([GATEWAYS_OWN]);
    expect(metadata.attempts).toMatchObject([{ provider: 'Paid', model: 'wire/one', status: 200, is_byok: false }]);
    expect(body['usage']).toMatchObject({ is_byok: false, cost: COST_USD });
  });

  test('is the workspace’s own first, on every wire', async () => {
    const id = await bring({ name: 'team' });
    await bring({ provider: 'messages' });
    const { metadata } = await ask('wire/one');
    expect(metadata.is_byok).toBe(true);
    expect(metadata.attempts).toMatchObject([
      {
        provider: 'Paid',
        model: 'wire/one',
        status: 200,
        is_byok: true,
        byok: { id, label: MASKED, name: 'team' },
      },
    ]);
    scripts[OURS] = refused(500);
    await ask('wire/messages');
    expect(arrived()).toEqual([OURS, OURS]);
    expect(wire.exchanges[1]?.headers['x-api-key']).toBe(OURS);
  });

  test('is the workspace’s own even before a cheaper endpoint of the gateway and the client’s own order', async () => {
    await bring({ allow_shared_fallback: true });
    await ask('wire/cheap-other');
    await ask('wire/cheap-other', { provider: { order: ['other'] } });
    expect(arrived()).toEqual([OURS, OURS]);
  });

  test('is the gateway’s if the client excludes the provider of the own credential', async () => {
    await bring();
    await ask('wire/two', { provider: { ignore: ['paid'] } });
    await ask('wire/two', { provider: { only: ['other'] } });
    await ask('wire/two', { provider: { order: ['other'], allow_fallbacks: false, only: ['other'] } });
    expect(arrived()).toEqual([GATEWAYS_OWN, GATEWAYS_OWN, GATEWAYS_OWN]);
  });

  test('is chosen by sort_order, and is the next one after 401, 402, 403, 429 and 5xx', async () => {
    await bring({ key: SECOND, sort_order: 2 });
    await bring({ key: OURS, sort_order: 1 });
    for (const status of [401, 402, 403, 429, 500]) {
      wire.exchanges.length = 0;
      scripts[OURS] = refused(status);
      const { body, metadata } = await ask('wire/one');
      expect([status, ...arrived().slice(-1)]).toEqual([status, SECOND]);
      expect(metadata.attempts.at(-1)?.status).toBe(200);
      expect(body['usage']).toMatchObject({ is_byok: true });
    }
  });

  test('may be for a provider for which the gateway has no credential', async () => {
    expect((await ask('wire/keyless')).status).toBe(400);
    const elsewhere = await ask('wire/keyless-too');
    expect(elsewhere.metadata.attempts).toMatchObject([{ provider: 'Paid' }]);
    await bring({ provider: 'keyless', allowed_models: ['wire/keyless'] });
    wire.exchanges.length = 0;
    expect((await ask('wire/keyless')).status).toBe(200);
    expect((await ask('wire/keyless-too')).status).toBe(200);
    expect(arrived()).toEqual([OURS, GATEWAYS_OWN]);
  });

  test('is sent without any part of the gateway’s account', async () => {
    await bring({ provider: 'account' });
    await ask('wire/account');
    const { headers } = wire.exchanges[0] ?? { headers: {} };
    expect(headers).toMatchObject({ 'x-api-key': OURS, 'x-kept': 'yes' });
    expect(JSON.stringify(headers)).not.toContain(GATEWAYS_OWN);
  });
});

describe('a credential may be used', () => {
  test('only by calls of the models that it allows, by id or canonical slug', async () => {
    await bring({ allowed_models: ['wire/two'] });
    await ask('wire/one');
    await ask('wire/two');
    expect(arrived()).toEqual([GATEWAYS_OWN, OURS]);
  });

  test('only by the keys that it allows', async () => {
    const other = await manage('POST', '/keys', { name: 'other' });
    await bring({ allowed_api_key_hashes: [String(other.data['hash'])] });
    await ask('wire/one');
    await bring({ allowed_api_key_hashes: [gateway.key_hash] });
    await ask('wire/one');
    expect(arrived()).toEqual([GATEWAYS_OWN, OURS]);
  });

  test('only by the users that it allows', async () => {
    const { data } = await manage('GET', '/organization/members');
    const [{ id: owner } = { id: '' }] = data as unknown as { id: string }[];
    await bring({ allowed_user_ids: [owner] });
    await ask('wire/one');
    expect(arrived()).toEqual([OURS]);
  });

  test('only by its workspace', async () => {
    const workspace = await manage('POST', '/workspaces', { name: 'Another', slug: 'another' });
    await bring({ workspace_id: workspace.data['id'] });
    await ask('wire/one');
    const key = await gateway.call(
      'POST',
      '/keys',
      { name: 'k', workspace_id: workspace.data['id'] },
      { authorization: `Bearer ${gateway.management_key}` },
    );
    await ask('wire/one', {}, ((await key.json()) as { key: string }).key);
    expect(arrived()).toEqual([GATEWAYS_OWN, OURS]);
  });

  test('by no request while it is disabled; a change applies once it is answered', async () => {
    const id = await bring({ disabled: true });
    await ask('wire/one');
    await manage('PATCH', `/byok/${id}`, { disabled: false });
    await ask('wire/one');
    await manage('PATCH', `/byok/${id}`, { key: SECOND });
    await ask('wire/one');
    await manage('PATCH', `/byok/${id}`, { allowed_models: ['wire/two'] });
    await ask('wire/one');
    await manage('DELETE', `/byok/${id}`);
    await ask('wire/two');
    expect(arrived()).toEqual([GATEWAYS_OWN, OURS, SECOND, GATEWAYS_OWN, GATEWAYS_OWN]);
  });
});

describe('fallbacks', () => {
  test('never use the gateway’s accounts, at its provider or another, unless it allows that', async () => {
    const id = await bring({ name: 'team' });
    scripts[OURS] = refused(401, `the key ${OURS} is revoked`);
    const { status, body, metadata } = await ask('wire/two');
    expect(arrived()).toEqual([OURS]);
    expect(status).toBe(502);
    expect(body['error']).toMatchObject({
      message: 'Paid refused your own credential team: the key [redacted] is revoked',
      metadata: { is_byok: true, byok: { id, label: MASKED, name: 'team' } },
    });
    expect(metadata.is_byok).toBe(true);
    expect(metadata.endpoints.excluded).toMatchObject([
      { provider: 'Paid', step: 'Filter by Own Credentials', is_byok: false },
      { provider: 'Other', step: 'Filter by Own Credentials', is_byok: false },
    ]);
    await manage('PATCH', `/byok/${id}`, { allow_shared_fallback: true });
    const again = await ask('wire/two');
    expect(arrived()).toEqual([OURS, OURS, GATEWAYS_OWN]);
    expect(again.metadata.attempts).toMatchObject([
      { provider: 'Paid', status: 401, is_byok: true, byok: { id } },
      { provider: 'Paid', status: 200, is_byok: false },
    ]);
  });

  test('stop if one of several credentials does not allow it', async () => {
    await bring({ sort_order: 1, allow_shared_fallback: true });
    await bring({ sort_order: 2, key: SECOND });
    scripts = { [OURS]: refused(429), [SECOND]: refused(429) };
    const { status, body } = await ask('wire/one');
    expect(status).toBe(429);
    expect(JSON.stringify(body)).toContain('previous_errors');
    expect(arrived()).toEqual([OURS, SECOND]);
  });

  test('go to the next model of the client’s list, whoever pays for it', async () => {
    await bring({ allowed_models: ['wire/one'] });
    scripts[OURS] = refused(429);
    await ask('wire/one', { models: ['wire/two'] });
    expect(arrived()).toEqual([OURS, GATEWAYS_OWN]);
  });

  test('are only further credentials of the endpoint if the client wants none', async () => {
    await bring({ sort_order: 1, allow_shared_fallback: true });
    await bring({ sort_order: 2, key: SECOND, allow_shared_fallback: true });
    scripts = { [OURS]: refused(500), [SECOND]: refused(500) };
    await ask('wire/two', { provider: { allow_fallbacks: false } });
    expect(arrived()).toEqual([OURS, SECOND]);
  });

  test('use a fallback credential after the gateway’s accounts', async () => {
    await bring({ is_fallback: true });
    await ask('wire/one');
    scripts[GATEWAYS_OWN] = refused(503);
    const { body } = await ask('wire/two');
    expect(arrived()).toEqual([GATEWAYS_OWN, GATEWAYS_OWN, GATEWAYS_OWN, OURS]);
    expect(body['usage']).toMatchObject({ is_byok: true, cost: 0 });
  });

  test('use a fallback credential if no money is left', async () => {
    const spent = await gateway.call(
      'POST',
      '/keys',
      { name: 'spent', limit: 0.000001 },
      { authorization: `Bearer ${gateway.management_key}` },
    );
    const { key } = (await spent.json()) as { key: string };
    expect((await ask('wire/one', {}, key)).status).toBe(402);
    await bring({ is_fallback: true });
    const { status, body } = await ask('wire/one', {}, key);
    expect(status).toBe(200);
    expect(body['usage']).toMatchObject({ is_byok: true, cost: 0 });
    expect(arrived()).toEqual([OURS]);
  });

  test('do not follow an unusable credential, which is reported', async () => {
    const id = await bring({ key: '{"region":"eu-west-1"}' });
    const { status, body } = await ask('wire/one');
    expect(status).toBe(404);
    expect(arrived()).toEqual([]);
    expect(JSON.stringify(body)).toContain('Filter by Own Credentials');
    const { metadata } = await ask('wire/one');
    expect(metadata.endpoints.excluded).toMatchObject([
      { byok: { id }, reason: "the workspace's credential is JSON text, which this provider does not accept" },
      { provider: 'Paid' },
    ]);
  });

  test('cool down no endpoint for others', async () => {
    const id = await bring({ allowed_models: ['wire/two'] });
    scripts[OURS] = refused(401);
    for (let nth = 0; nth < 3; nth += 1) await ask('wire/two');
    await manage('DELETE', `/byok/${id}`);
    wire.exchanges.length = 0;
    const { metadata } = await ask('wire/two');
    // The cheaper endpoint is still the first one.
    expect(metadata.attempts).toMatchObject([{ provider: 'Paid', status: 200 }]);
  });
});

describe('a call with an own credential', () => {
  test('costs nothing at the gateway, and its list price is recorded separately, to the nano-dollar', async () => {
    const byokId = await bring();
    const before = (await manage('GET', `/keys/${gateway.key_hash}`)).data;
    const { body, id } = await ask('wire/one');
    expect(body['usage']).toMatchObject({
      cost: 0,
      is_byok: true,
      cost_details: {
        upstream_inference_cost: COST_USD,
        upstream_inference_prompt_cost: 0.001,
        upstream_inference_completions_cost: 0.007,
      },
    });
    expect(await generationOf(id)).toMatchObject({
      is_byok: true,
      usage: 0,
      total_cost: 0,
      upstream_inference_cost: COST_USD,
      provider_responses: [{ is_byok: true, byok_id: byokId, status: 200 }],
    });
    const { data: after } = await manage('GET', `/keys/${gateway.key_hash}`);
    expect(Number(after['usage']) - Number(before['usage'])).toBeCloseTo(0, 12);
    expect(Number(after['byok_usage']) - Number(before['byok_usage'])).toBeCloseTo(COST_USD, 12);
  });

  test('reports the same in a stream, and activity counts it separately', async () => {
    await bring();
    const chunk = (over: object) =>
      `data: ${JSON.stringify({ id: 'up-1', object: 'chat.completion.chunk', created: 1, model: 'scripted', ...over })}\n\n`;
    const usage = { prompt_tokens: 10, completion_tokens: 7, total_tokens: 17 };
    scripts[OURS] = () => [
      responseHead(200, 'text/event-stream'),
      chunk({ choices: [{ index: 0, delta: { content: 'Yes.' }, finish_reason: 'stop' }] }),
      `${chunk({ choices: [], usage })}data: [DONE]\n\n`,
      'END',
    ];
    const body = { model: 'wire/account-of-its-own', messages: [{ role: 'user', content: 'x' }], stream: true };
    const text = await (await gateway.call('POST', '/chat/completions', body)).text();
    expect(text).toContain('"cost":0,"is_byok":true,"cost_details":{"upstream_inference_cost":0.008');
    const activity = async () => {
      const { data } = await manage('GET', `/activity?date=${new Date().toISOString().slice(0, 10)}`);
      return (data as unknown as JsonObject[]).filter(({ model }) => model === 'wire/account-of-its-own');
    };
    await expect
      .poll(activity)
      .toMatchObject([{ usage: 0, byok_usage_inference: COST_USD, requests: 1, prompt_tokens: 10 }]);
  });

  test.each([
    ['its own', 'the gateway’s', OURS, { allow_shared_fallback: true }],
    ['the gateway’s', 'its own', GATEWAYS_OWN, { is_fallback: true }],
  ])(
    'is billed to both accounts if an attempt on %s account may have been billed before %s answered',
    async (_first, _then, broken, over) => {
      await bring(over);
      scripts[broken] = brokenOff;
      const before = (await manage('GET', `/keys/${gateway.key_hash}`)).data;
      const { body, id } = await ask('wire/one');
      const { data: after } = await manage('GET', `/keys/${gateway.key_hash}`);
      const isByok = broken !== OURS;
      const nano = (usd: unknown) => Math.round(Number(usd) * 1e9);
      const raised = (field: string) => nano(after[field]) - nano(before[field]);
      const generation = await generationOf(id);
      const charges = generation['charges'] as { is_byok: boolean; amount: string; attempt: number }[];
      const sum = (own: boolean) =>
        charges.reduce((total, charge) => total + (charge.is_byok === own ? Number(charge.amount) : 0), 0);
      // The cost of the answer is known; that of the other attempt is the prompt by the gateway's count.
      expect(nano(sum(isByok))).toBe(8_000_000);
      expect(nano(sum(!isByok))).toBeGreaterThan(0);
      expect(charges.find((charge) => charge.is_byok !== isByok)?.attempt).toBe(1);
      expect([raised('usage'), raised('byok_usage')]).toEqual([nano(sum(false)), nano(sum(true))]);
      expect(nano(generation['total_cost'])).toBe(nano(sum(false)));
      expect(generation).toMatchObject({ is_byok: isByok, upstream_inference_cost: isByok ? COST_USD : null });
      expect(body['usage']).toMatchObject({ is_byok: isByok, cost: isByok ? 0 : COST_USD });
    },
  );

  test('counts against a limit only if the key says so', async () => {
    await bring();
    const keyWith = async (over: object) => {
      const response = await gateway.call(
        'POST',
        '/keys',
        { name: 'limited', limit: 0.01, ...over },
        { authorization: `Bearer ${gateway.management_key}` },
      );
      return ((await response.json()) as { key: string }).key;
    };
    const free = await keyWith({});
    for (let nth = 0; nth < 3; nth += 1) expect((await ask('wire/output', { max_tokens: 7 }, free)).status).toBe(200);
    const counted = await keyWith({ include_byok_in_limit: true });
    const statuses: number[] = [];
    for (let nth = 0; nth < 3; nth += 1) statuses.push((await ask('wire/output', { max_tokens: 7 }, counted)).status);
    expect(statuses).toEqual([200, 402, 402]);
  });

  test('is refused as well if its price is not known', async () => {
    await bring();
    expect((await ask('wire/unpriced')).status).toBe(404);
    expect(arrived()).toEqual([]);
  });
});

test('leaves no credential in any log line, metric, audit entry or record', async () => {
  await bring({ name: 'team' });
  scripts[OURS] = refused(400, `Incorrect API key provided: ${OURS}`);
  const { id } = await ask('wire/one');
  scripts[OURS] = () => [responseHead(200, 'text/html'), `<p>${OURS}</p>`, 'END'];
  await ask('wire/one');
  await ask('wire/one', { stream: true }).catch(() => undefined);
  const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
  const seen = [
    gateway.log_lines.join(''),
    metrics,
    JSON.stringify(await generationOf(id)),
    JSON.stringify(await manage('GET', '/audit')),
    JSON.stringify(await manage('GET', '/byok')),
  ];
  for (const text of seen) {
    expect(text.length).toBeGreaterThan(10);
    for (const secret of [OURS, SECOND, GATEWAYS_OWN]) expect(text).not.toContain(secret);
  }
});

describeStores('a credential that another node changes', ({ freshUrl }) => {
  test('is not used in its old state on any node after the change is answered', async () => {
    const url = await freshUrl();
    const environment: Record<string, string> = { GATEWAY_SECRET: 'a-secret-that-both-nodes-share-0123456789' };
    if (url !== undefined) environment['DATABASE_URL'] = url;
    const yaml = configuration(wire.url);
    const one = await startGateway({ yaml, environment });
    const other = await startGateway({ yaml, environment, ...(url === undefined ? { data_dir: one.data_dir } : {}) });
    try {
      await ask('wire/one', {}, one.key, other);
      const { data } = await manage('POST', '/byok', { provider: 'paid', key: OURS }, one);
      await ask('wire/one', {}, one.key, other);
      for (let round = 0; round < 5; round += 1) {
        const key = round % 2 === 0 ? SECOND : OURS;
        await manage('PATCH', `/byok/${data['id']}`, { key }, one);
        wire.exchanges.length = 0;
        await Promise.all([ask('wire/one', {}, one.key, other), ask('wire/one', {}, one.key, one)]);
        expect([round, ...arrived()]).toEqual([round, key, key]);
      }
      await manage('DELETE', `/byok/${data['id']}`, undefined, one);
      wire.exchanges.length = 0;
      await ask('wire/one', {}, one.key, other);
      expect(arrived()).toEqual([GATEWAYS_OWN]);
    } finally {
      await other.stop();
      await one.stop();
    }
  });
});
