/**
 * Routing through a running gateway and a scripted upstream: which endpoint and which model serve a request, by its
 * model name, its preferences, its caller's defaults and its conversation.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/schemas/json.ts';
import { startGateway, type TestGateway } from '../harness.ts';
import { describeStores } from '../ledger/store-variants.ts';
import { type Exchange, responseHead, type Step, startWireServer, type WireServer } from '../wires/wire-server.ts';

let wire: WireServer;
let gateway: TestGateway;
/** The drawn random number. */
let draw = 0;
/** The number of prompt tokens that the upstream reports as cached. */
let cachedTokens = 0;
/** Providers whose upstream refuses, by credential. */
const down = new Set<string>();
/** Providers whose upstream refuses the request itself, with the message. */
const refusing = new Map<string, { status: number; code: string; message: string }>();

const providers = ['cheap', 'middle', 'dear'] as const;
const prices = { cheap: 1, middle: 2, dear: 3 };

function configuration(url: string, routing: object = {}): string {
  const priced = (price: number, over: object = {}) => ({
    upstream_model: 'scripted',
    pricing: { prompt: price, completion: price, input_cache_read: price / 10 },
    ...over,
  });
  const everywhere = (over: object = {}) =>
    providers.map((provider) => ({ provider, ...priced(prices[provider], over) }));
  return JSON.stringify({
    bundled_catalog: false,
    ledger: { journal_sync: 'os' },
    providers: Object.fromEntries(
      providers.map((slug) => [
        slug,
        { name: slug, dialect: 'openai-chat', base_url: url, api_key: `key-of-${slug}-0123` },
      ]),
    ),
    models: {
      'acme/fast-1': { context_length: 10_000, created: 1, endpoints: everywhere() },
      'acme/fast-2': {
        context_length: 10_000,
        created: 2,
        canonical_slug: 'acme/fast-2-20260101',
        endpoints: [
          {
            provider: 'dear',
            ...priced(9, {
              pricing: { prompt: 9, completion: 9, service_tiers: { flex: { prompt: 4, completion: 4 } } },
            }),
          },
        ],
      },
      'acme/sees': {
        context_length: 10_000,
        input_modalities: ['text', 'image'],
        endpoints: [{ provider: 'dear', ...priced(5) }],
      },
      'acme/gift': {
        context_length: 10_000,
        endpoints: [{ provider: 'middle', upstream_model: 'scripted', pricing: { prompt: 0, completion: 0 } }],
      },
      'acme/distilled': { context_length: 10_000, distillable: true, endpoints: [{ provider: 'dear', ...priced(7) }] },
    },
    routing: { auto_models: ['acme/fast-2', 'acme/sees'], free_models: 'all', ...routing },
  });
}

const keyOf = ({ headers }: Exchange) => headers['authorization']?.replace(/^Bearer key-of-|-0123$/g, '') ?? '';

function answered(exchange: Exchange): Step[] {
  if (down.has(keyOf(exchange))) return [responseHead(503, 'application/json'), '{"error":{"message":"down"}}', 'END'];
  const refusal = refusing.get(keyOf(exchange));
  if (refusal !== undefined) {
    const { status, ...error } = refusal;
    return [responseHead(status, 'application/json'), JSON.stringify({ error }), 'END'];
  }
  const usage = {
    prompt_tokens: 10,
    completion_tokens: 1,
    total_tokens: 11,
    prompt_tokens_details: { cached_tokens: cachedTokens },
  };
  const whole = {
    id: 'up-1',
    object: 'chat.completion',
    created: 1,
    model: 'scripted',
    choices: [{ index: 0, message: { role: 'assistant', content: 'Yes.' }, finish_reason: 'stop' }],
    usage,
  };
  if (!exchange.body.includes('"stream":true')) {
    return [responseHead(200, 'application/json'), JSON.stringify(whole), 'END'];
  }
  const chunk = { id: 'up-1', object: 'chat.completion.chunk', created: 1, model: 'scripted' };
  const chunks = [
    { ...chunk, choices: [{ index: 0, delta: { content: 'Yes.' }, finish_reason: 'stop' }] },
    { ...chunk, choices: [], usage },
  ];
  const frames = chunks.map((one) => `data: ${JSON.stringify(one)}\n\n`).join('');
  return [responseHead(200, 'text/event-stream'), `${frames}data: [DONE]\n\n`, 'END'];
}

interface ChatOutcome {
  status: number;
  /** The provider that answered. */
  provider: unknown;
  body: JsonObject & { error?: { message: string; metadata: JsonObject } };
  metadata: { strategy: string; adjusted_parameters: { field: string }[] };
}

async function ask(request: object, at = gateway): Promise<ChatOutcome> {
  const response = await at.call(
    'POST',
    '/chat/completions',
    { messages: [{ role: 'user', content: 'Is it?' }], ...request },
    { 'x-gateway-experimental-metadata': 'enabled' },
  );
  const body = (await response.json()) as ChatOutcome['body'];
  return { status: response.status, body, provider: body['provider'], metadata: body['gateway_metadata'] as never };
}

beforeAll(async () => {
  wire = await startWireServer(answered);
  gateway = await startGateway({ yaml: configuration(wire.url), chance: () => draw });
});
afterAll(async () => {
  await gateway.stop();
  await wire.stop();
});
beforeEach(() => {
  draw = 0;
  cachedTokens = 0;
  down.clear();
  refusing.clear();
  wire.exchanges.length = 0;
});

describe('a refusal of the request itself', () => {
  const tooLong = { status: 400, code: 'context_length_exceeded', message: 'This is too long' };
  const filtered = { status: 400, code: 'content_filter', message: 'The content was filtered' };

  test.each([
    [tooLong, 'invalid_request', false],
    [filtered, 'content_filter', false],
    [tooLong, 'invalid_request', true],
  ])('leads to the next of `models`, past the other endpoints of its model: %j', async (refusal, failure, stream) => {
    refusing.set('cheap', refusal);
    const request = { models: ['acme/fast-1', 'acme/sees'], stream };
    if (stream) {
      const answer = await gateway.call('POST', '/chat/completions', {
        messages: [{ role: 'user', content: 'Is it?' }],
        ...request,
      });
      expect(await answer.text()).toContain('"model":"acme/sees"');
    } else {
      const { body, metadata } = await ask(request);
      expect(body['model']).toBe('acme/sees');
      expect(metadata).toMatchObject({
        attempts: [
          { provider: 'cheap', status: 400, failure, cost: 0 },
          { provider: 'dear', status: 200 },
        ],
      });
    }
    expect(wire.exchanges.map(keyOf)).toEqual(['cheap', 'dear']);
  });

  test('is the answer if the last model refuses as well, or none is left', async () => {
    refusing.set('cheap', tooLong);
    expect(await ask({ model: 'acme/fast-1' })).toMatchObject({ status: 400 });
    expect(wire.exchanges).toHaveLength(1);
    refusing.set('dear', filtered);
    const { status, body } = await ask({ models: ['acme/fast-1', 'acme/sees'] });
    expect(status).toBe(403);
    expect(body.error?.metadata).toMatchObject({
      provider_name: 'dear',
      previous_errors: [{ provider: 'cheap', code: 400, reason: 'invalid_request' }],
    });
  });

  test('at a router’s first choice is not retried at its other choices', async () => {
    refusing.set('dear', tooLong);
    expect(await ask({ model: 'gateway/auto' })).toMatchObject({ status: 400 });
    expect(wire.exchanges).toHaveLength(1);
    wire.exchanges.length = 0;
    const { body } = await ask({ models: ['gateway/auto', 'acme/gift'] });
    expect(body['model']).toBe('acme/gift');
    expect(wire.exchanges.map(keyOf)).toEqual(['dear', 'middle']);
    wire.exchanges.length = 0;
    expect(await ask({ models: ['gateway/auto', 'acme/sees'] })).toMatchObject({ status: 400 });
    expect(wire.exchanges.map(keyOf)).toEqual(['dear', 'dear']);
  });
});

describe('the name of a model', () => {
  test.each<[string, string, string]>([
    ['acme/fast-1', 'acme/fast-1', 'direct'],
    ['acme/fast-2-20260101', 'acme/fast-2', 'alias'],
    ['~acme/fast-latest', 'acme/fast-2', 'latest'],
    ['acme/fast-1:floor', 'acme/fast-1', 'direct'],
    ['gateway/auto', 'acme/fast-2', 'auto'],
    ['openrouter/auto', 'acme/fast-2', 'auto'],
    ['gateway/free', 'acme/gift', 'free'],
    ['acme/gift:free', 'acme/gift', 'direct'],
  ])('%s is answered by %s', async (name, model, strategy) => {
    const { status, body, metadata } = await ask({ model: name });
    expect(status).toBe(200);
    expect(body['model']).toBe(model);
    expect(metadata).toMatchObject({ strategy, requested: name });
  });

  test('of the auto router leads to a model that accepts the request’s content', async () => {
    const messages = [
      { role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } }] },
    ];
    expect((await ask({ model: 'gateway/auto', messages })).body['model']).toBe('acme/sees');
    const plugins = [{ id: 'auto-router', allowed_models: ['other/*'] }];
    const { status, body } = await ask({ model: 'gateway/auto', plugins });
    expect(status).toBe(404);
    expect(body.error?.message).toBe('No models match your request and model restrictions');
  });

  test(':floor allows the flex tier, and requests it', async () => {
    await ask({ model: 'acme/fast-2:floor' });
    expect(JSON.parse(wire.exchanges[0]?.body ?? '')).toMatchObject({ service_tier: 'flex' });
    await ask({ model: 'acme/fast-2' });
    expect(JSON.parse(wire.exchanges[1]?.body ?? '')).not.toHaveProperty('service_tier');
  });

  test(':thinking enables reasoning', async () => {
    await ask({ model: 'acme/fast-1:thinking' });
    expect(JSON.parse(wire.exchanges[0]?.body ?? '')).toHaveProperty('reasoning_effort');
  });

  test(':online without any search is refused, with the setting to change', async () => {
    const { status, body } = await ask({ model: 'acme/fast-1:online' });
    expect(status).toBe(400);
    expect(body.error?.message).toMatch(/:online, .*plugins\.web/);
    expect(wire.exchanges).toEqual([]);
  });

  test.each(['acme/nobody', 'acme/fast-1:slow', '~acme/slow-latest'])('%s is a 400', async (model) => {
    const { status, body } = await ask({ model });
    expect(status).toBe(400);
    expect(body.error?.message).toBe(`${model} is not a valid model ID`);
  });
});

describe('preferences', () => {
  test('are applied, and a 404 names what could be changed', async () => {
    expect((await ask({ model: 'acme/fast-1', provider: { order: ['dear'] } })).provider).toBe('dear');
    expect(
      (await ask({ models: ['acme/fast-1', 'acme/distilled'], provider: { enforce_distillable_text: true } })).body[
        'model'
      ],
    ).toBe('acme/distilled');
    const { status, body } = await ask({ model: 'acme/fast-1', provider: { max_price: { prompt: 0.5 } } });
    expect(status).toBe(404);
    expect(body.error?.metadata).toMatchObject({
      failed_routing_step: 'Filter by Max Price',
      constraint: { field: 'provider.max_price' },
    });
  });

  test.each([
    [{ preferred_max_latency: 'soon' }],
    [{ preferred_min_throughput: { p50: -1 } }],
    [{ sort: 'best' }],
    [{ max_price: { prompt: ' ' } }],
    [{ max_price: { prompt: '0x10' } }],
    [{ sort: { by: 'price', partition: 'some' } }],
  ])('%j is a 400', async (provider) => {
    expect((await ask({ model: 'acme/fast-1', provider })).status).toBe(400);
  });

  test('without any, the endpoint is drawn, and after a failure the order is by price', async () => {
    expect((await ask({ model: 'acme/fast-1' })).provider).toBe('cheap');
    draw = 0.99;
    expect((await ask({ model: 'acme/fast-1' })).provider).toBe('dear');
    down.add('dear');
    expect((await ask({ model: 'acme/fast-1' })).provider).toBe('cheap');
  });
});

describe('a conversation', () => {
  const say = (conversation: string, over: object = {}) =>
    ask({ model: 'acme/fast-1', messages: [{ role: 'user', content: conversation }], ...over });

  test('without a session stays where its prompt was cached', async () => {
    draw = 0.9;
    expect((await say('first')).provider).toBe('middle');
    draw = 0;
    expect((await say('first')).provider).toBe('cheap');
    draw = 0.9;
    cachedTokens = 5;
    expect((await say('first')).provider).toBe('middle');
    draw = 0;
    cachedTokens = 0;
    expect((await say('first')).provider).toBe('middle');
    expect((await say('another')).provider).toBe('cheap');
  });

  test('with a session stays where it was answered, also by a stream', async () => {
    draw = 0.9;
    await gateway
      .call('POST', '/chat/completions', {
        model: 'acme/fast-1',
        session_id: 'of a stream',
        stream: true,
        messages: [{ role: 'user', content: 'x' }],
      })
      .then((response) => response.text());
    draw = 0;
    expect((await say('whatever', { session_id: 'of a stream' })).provider).toBe('middle');
    expect((await say('whatever', { session_id: 'of another' })).provider).toBe('cheap');
  });

  test('leaves an endpoint that fails, and stays with the next', async () => {
    const named = { session_id: 'that moves' };
    draw = 0.9;
    expect((await say('x', named)).provider).toBe('middle');
    draw = 0;
    down.add('middle');
    expect((await say('x', named)).provider).toBe('cheap');
    down.clear();
    draw = 0.99;
    expect((await say('x', named)).provider).toBe('cheap');
    expect((await say('x', { ...named, provider: { order: ['dear'] } })).provider).toBe('dear');
  });

  test('stays with the model that a router chose', async () => {
    const plugins = [{ id: 'auto-router', allowed_models: ['acme/sees'] }];
    expect((await say('x', { model: 'gateway/auto', session_id: 'routed', plugins })).body['model']).toBe('acme/sees');
    expect((await say('x', { model: 'gateway/auto', session_id: 'routed' })).body['model']).toBe('acme/sees');
    expect((await say('x', { model: 'gateway/auto', session_id: 'other' })).body['model']).toBe('acme/fast-2');
  });
});

describeStores('defaults', ({ freshUrl }) => {
  test('of a workspace apply to its keys at once; a user’s take precedence', async () => {
    const url = await freshUrl();
    const environment = { GATEWAY_DEFAULT_MODEL: 'acme/gift', ...(url === undefined ? {} : { DATABASE_URL: url }) };
    const options = { environment, chance: () => 0.9 };
    const one = await startGateway({ yaml: configuration(wire.url), ...options });
    let dataDir: string | undefined;
    try {
      const manage = (method: string, path: string, body?: unknown) =>
        one.call(method, path, body, { authorization: `Bearer ${one.management_key}` });
      expect((await ask({}, one)).body['model']).toBe('acme/gift');
      const keys = (await (await manage('GET', '/keys')).json()) as {
        data: { workspace_id: string; creator_user_id: string | null }[];
      };
      const [key] = keys.data;
      const set = await manage('PATCH', `/workspaces/${key?.workspace_id}`, {
        default_text_model: 'acme/fast-1',
        default_provider_sort: 'price',
      });
      expect(set.status).toBe(200);
      const after = await ask({}, one);
      expect([after.body['model'], after.provider]).toEqual(['acme/fast-1', 'cheap']);
      expect((await ask({ model: 'acme/fast-1', provider: { sort: 'latency' } }, one)).provider).toBe('cheap');
      await manage('PATCH', `/workspaces/${key?.workspace_id}`, { default_image_model: 'acme/no-pictures' });
      const pictures = await ask({ modalities: ['image'] }, one);
      expect([pictures.status, pictures.body.error?.message]).toEqual([
        400,
        expect.stringContaining('acme/no-pictures'),
      ]);
      expect((await ask({}, one)).body['model']).toBe('acme/fast-1');
      await manage('PATCH', `/workspaces/${key?.workspace_id}`, { default_text_model: 'acme/gone' });
      const unserved = await ask({}, one);
      expect(unserved.status).toBe(400);
      expect(unserved.body.error?.message).toContain('acme/gone');
      await manage('PATCH', `/workspaces/${key?.workspace_id}`, {
        default_text_model: null,
        default_provider_sort: null,
      });
      expect((await ask({ model: 'acme/fast-1' }, one)).provider).toBe('middle');
      expect(key?.creator_user_id).toBeTruthy();
      dataDir = url === undefined ? one.data_dir : undefined;
      const users = {
        [String(key?.creator_user_id)]: { default_text_model: 'acme/sees', default_provider_sort: 'price' },
      };
      const other = await startGateway({
        yaml: configuration(wire.url, { users }),
        ...options,
        ...(dataDir === undefined ? {} : { data_dir: dataDir }),
      });
      try {
        expect((await ask({}, other)).body['model']).toBe('acme/sees');
        expect((await ask({ model: 'acme/fast-1' }, other)).provider).toBe('cheap');
      } finally {
        await other.stop();
      }
    } finally {
      await one.stop();
    }
  });
});
