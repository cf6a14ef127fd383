import { createHmac } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { BROADCAST_ANSWER_BYTES_MAX } from '../src/inference/observe/broadcast.ts';
import { limits } from '../src/limits.ts';
import { changeLimits, withLimits } from './changed-limits.ts';
import { type LoggingGateway, startLoggingGateway } from './logging-gateway.ts';
import { type Collector, startCollector } from './otlp-collector.ts';

/** The fields of `GET /generation` that these tests read. */
interface GenerationAnswer {
  model: string;
  provider_name: string;
  tokens_prompt: number;
  tokens_completion: number;
  total_cost: number;
  provider_responses: { status: number }[];
}

withLimits({ broadcast_gather_ms: 20, broadcast_retry_ms: 20, broadcast_stop_ms_max: 300, loss_notice_ms: 0 });

interface Site {
  collector: Collector;
  gateway: LoggingGateway;
  stop(): Promise<void>;
}

let collector: Collector;
let gateway: LoggingGateway;
/** Resources of the running test. */
let own: Site | undefined;

afterEach(async () => {
  await own?.stop();
  own = undefined;
  expect(collector.faults).toEqual([]);
});

/** A gateway that sends spans to a collector, with these settings of the destination. */
async function startSite(settings = '', type = 'otel-collector', environment = {}): Promise<Site> {
  const collector = await startCollector();
  const yaml = `logging:\n  broadcast:\n    - { type: ${type}, url: "${collector.url}"${settings === '' ? '' : `, ${settings}`} }\n`;
  const telling = await startLoggingGateway({ yaml, environment });
  await telling.set({ is_observability_broadcast_enabled: true });
  return {
    collector: collector,
    gateway: telling,
    async stop() {
      await telling.stop();
      await collector.stop();
    },
  };
}

/** A gateway for the running test. */
async function start(...args: Parameters<typeof startSite>): Promise<void> {
  own = await startSite(...args);
  ({ collector, gateway } = own);
}

/** A gateway without settings for all tests of the `describe` block. Each test begins without broadcast calls. */
function sharedSite(): () => void {
  let site: Site;
  beforeAll(async () => {
    site = await startSite();
  });
  afterAll(() => site.stop());
  return () => {
    ({ collector, gateway } = site);
    collector.behave(undefined);
    collector.requests.length = 0;
    gateway.log_lines.length = 0;
  };
}

async function ask(body: object = {}, headers: Record<string, string> = {}): Promise<string> {
  const request = { model: 'sandbox/echo', messages: [{ role: 'user', content: 'a secret word' }], ...body };
  const answer = await gateway.call('POST', '/chat/completions', request, headers);
  await answer.text();
  return answer.headers.get('x-generation-id') ?? '';
}

const seen = (count: number) => expect.poll(() => collector.calls().length, { interval: 10 }).toBe(count);

async function metric(outcome: string): Promise<number> {
  const text = await (await fetch(`${gateway.url}/metrics`)).text();
  const line = text.split('\n').find((one) => one.startsWith('gateway_broadcast') && one.includes(`"${outcome}"`));
  return Number(line?.split(' ').at(-1) ?? 0);
}

describe('a call', () => {
  const shared = sharedSite();

  test('is sent as a span with model, tokens, cost, times and outcome, and a child span for each attempt', async () => {
    shared();
    const id = await ask({ model: 'sandbox/fallback', temperature: 1, max_tokens: 50, user: 'u-1', session_id: 's-1' });
    const response = await gateway.call('GET', `/generation?id=${id}`);
    const { data: record } = (await response.json()) as { data: GenerationAnswer };
    await seen(1);
    expect(collector.requests[0]?.path).toBe('/v1/traces');
    const [call] = collector.calls();
    expect(call).toMatchObject({
      name: 'chat sandbox/fallback',
      kind: 3,
      parentSpanId: undefined,
      status: { code: 0 },
    });
    expect(call?.attributes).toMatchObject({
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': record.provider_name.toLowerCase(),
      'gen_ai.request.model': 'sandbox/fallback',
      'gen_ai.response.model': record.model,
      'gen_ai.response.id': id,
      'gen_ai.response.finish_reasons': ['stop'],
      'gen_ai.request.temperature': 1,
      'gen_ai.request.max_tokens': 50,
      'gen_ai.conversation.id': 's-1',
      'session.id': 's-1',
      'user.id': 'u-1',
      'gen_ai.usage.input_tokens': record.tokens_prompt,
      'gen_ai.usage.output_tokens': record.tokens_completion,
      'gen_ai.usage.cost': record.total_cost,
      'gateway.outcome': 'completed',
      'gateway.workspace.id': gateway.workspace_id,
    });
    expect(record.total_cost).toBeGreaterThan(0);
    expect(record.tokens_completion).toBeGreaterThan(0);
    const attempts = collector.spans().filter((span) => span !== call);
    expect(attempts.length).toBe(record.provider_responses.length);
    expect(attempts.length).toBe(2);
    for (const [at, attempt] of attempts.entries()) {
      expect(attempt.parentSpanId).toBe(call?.spanId);
      expect(attempt.traceId).toBe(call?.traceId);
      expect(attempt.attributes['gateway.attempt.number']).toBe(at + 1);
      expect(attempt.attributes['http.response.status_code']).toBe(record.provider_responses[at]?.status);
      expect(attempt.start >= (call?.start ?? 0n) && attempt.end <= (call?.end ?? 0n)).toBe(true);
    }
    expect(attempts.map(({ status }) => status.code)).toEqual([2, 0]);
    // A sum over the spans counts tokens and money once.
    for (const { attributes } of attempts) {
      expect(Object.keys(attributes).filter((name) => name.startsWith('gen_ai.usage'))).toEqual([]);
    }
    expect(collector.requests.map(({ body }) => body).join()).not.toContain('a secret word');
  });

  test('is sent as failed if it failed', async () => {
    shared();
    await ask({ model: 'sandbox/fail-503' });
    await seen(1);
    expect(collector.calls()[0]).toMatchObject({ status: { code: 2 }, attributes: { 'gateway.outcome': 'failed' } });
    expect(collector.calls()[0]?.attributes['error.type']).toEqual(expect.any(String));
  });

  test.each<[string, object, Record<string, string>, object]>([
    [
      'its header',
      {},
      { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' },
      { traceId: '0af7651916cd43dd8448eb211c80319c', parentSpanId: 'b7ad6b7169203331' },
    ],
    [
      'its body',
      {
        trace: {
          trace_id: '4BF92F35-77b34da6a3ce929d0e0e4736',
          parent_span_id: '00f067aa0ba902b7',
          generation_name: 'plan',
          step: 3,
        },
      },
      {},
      { traceId: '4bf92f3577b34da6a3ce929d0e0e4736', parentSpanId: '00f067aa0ba902b7', name: 'plan' },
    ],
    [
      'its body before its header',
      { trace: { trace_id: '4bf92f3577b34da6a3ce929d0e0e4736' } },
      { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' },
      { traceId: '4bf92f3577b34da6a3ce929d0e0e4736', parentSpanId: undefined },
    ],
    [
      'a new trace, since its header names none',
      {},
      { traceparent: '00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01' },
      { traceId: expect.not.stringContaining('0af7651916cd43dd'), parentSpanId: undefined },
    ],
  ])('belongs to the trace of %s', async (_what, body, headers, expected) => {
    shared();
    await ask(body, headers);
    await seen(1);
    expect(collector.calls()[0]).toMatchObject(expected);
    if ('trace' in body && collector.calls()[0]?.name === 'plan') {
      expect(collector.calls()[0]?.attributes['gateway.trace.step']).toBe('3');
    }
  });

  test('is sent for every API, whole or streamed, and an id of unknown form always becomes the same trace id', async () => {
    shared();
    const trace = { trace_id: 'my trace' };
    await ask({ trace, stream: true });
    await gateway.call('POST', '/messages', {
      model: 'sandbox/echo',
      max_tokens: 20,
      trace,
      messages: [{ role: 'user', content: 'x' }],
    });
    await gateway.call('POST', '/responses', { model: 'sandbox/echo', input: 'x', trace });
    await gateway.call('POST', '/embeddings', { model: 'sandbox/embed', input: 'x' });
    await seen(4);
    const calls = collector.calls();
    expect(calls.map(({ attributes }) => attributes['gateway.api'])).toEqual([
      'completions',
      'messages',
      'responses',
      'embeddings',
    ]);
    expect(new Set(calls.slice(0, 3).map(({ traceId }) => traceId)).size).toBe(1);
    expect(calls[3]?.attributes['gen_ai.operation.name']).toBe('embeddings');
  });
});

describe('contents', () => {
  test('are sent if they are kept and the destination wants them, in the form of the conventions', async () => {
    await start('include_content: true');
    await gateway.set({ is_observability_io_logging_enabled: true });
    const tools = [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } } }];
    await ask({
      model: 'sandbox/tools',
      tools,
      metadata: { job: 'nightly' },
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: [{ type: 'text', text: 'a secret word' }] },
      ],
    });
    await seen(1);
    const attributes = collector.calls()[0]?.attributes ?? {};
    expect(JSON.parse(String(attributes['gen_ai.input.messages']))).toEqual([
      { role: 'user', parts: [{ type: 'text', content: 'a secret word' }] },
    ]);
    expect(JSON.parse(String(attributes['gen_ai.system_instructions']))).toEqual([
      { type: 'text', content: 'Be brief.' },
    ]);
    expect(JSON.parse(String(attributes['gen_ai.output.messages']))).toEqual([
      {
        role: 'assistant',
        parts: [{ type: 'tool_call', id: expect.any(String), name: 'look', arguments: {} }],
        finish_reason: 'tool_calls',
      },
    ]);
    expect(attributes['gateway.metadata.job']).toBe('nightly');
  });

  test.each([
    ['the destination does not want them', 'include_content: false', {}],
    ['the workspace keeps none', 'include_content: true', { is_observability_io_logging_enabled: false }],
  ])('are not sent if %s', async (_what, settings, workspace) => {
    await start(settings);
    await gateway.set({ is_observability_io_logging_enabled: true, ...workspace });
    await ask({ metadata: { job: 'a secret word' } });
    await seen(1);
    expect(collector.requests.map(({ body }) => body).join()).not.toContain('a secret word');
  });
});

describe('destinations', () => {
  test('receive nothing of a workspace without broadcast, or of one that they do not name', async () => {
    await start('workspaces: [default, elsewhere]');
    const other = await gateway.managed<{ data: { id: string } }>('POST', '/workspaces', {
      name: 'Other',
      slug: 'other',
      is_observability_broadcast_enabled: true,
    });
    const { key } = await gateway.addKey({ workspace_id: other.body.data.id });
    await ask({}, { authorization: `Bearer ${key}` });
    await gateway.set({ is_observability_broadcast_enabled: false });
    await ask();
    await gateway.set({ is_observability_broadcast_enabled: true });
    const { body } = await gateway.managed<{ data: { slug: string } }>('GET', `/workspaces/${gateway.workspace_id}`);
    expect(body.data.slug).toBe('default');
    const id = await ask();
    await seen(1);
    expect(collector.calls()[0]?.attributes['gen_ai.response.id']).toBe(id);
  });

  test('receive a sample of conversations, each of them completely', async () => {
    await start('sampling_rate: 0.5');
    for (let session = 0; session < 16; session += 1) {
      for (let turn = 0; turn < 2; turn += 1) await ask({ session_id: `session ${session}` });
    }
    const turns = () => Map.groupBy(collector.calls(), ({ attributes }) => attributes['session.id']);
    // Each turn of a conversation that is seen arrives, however late.
    await expect
      .poll(() => [...new Set([...turns().values()].map(({ length }) => length))], { interval: 10 })
      .toEqual([2]);
    // None or all of sixteen: a chance of one in thirty thousand.
    expect(turns().size).toBeLessThan(16);
  });
});

describe('a webhook', () => {
  test('receives the same, signed, with the configured headers', async () => {
    await start(`secret: "\${HOOK_SECRET}", headers: { authorization: "Bearer \${HOOK_TOKEN}" }`, 'webhook', {
      HOOK_SECRET: 'a shared secret',
      HOOK_TOKEN: 'token-1',
    });
    await ask();
    await seen(1);
    const [seenRequest] = collector.requests;
    const { headers, body, path } = seenRequest ?? (expect.unreachable() as never);
    expect(path).toBe('/');
    expect(headers.authorization).toBe('Bearer token-1');
    const [, at, signature] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(headers['x-gateway-signature'])) ?? [];
    expect(signature).toBe(createHmac('sha256', 'a shared secret').update(`${at},${body}`).digest('hex'));
    expect(headers['x-gateway-idempotency-key']).toEqual(expect.any(String));
    expect(gateway.log_lines.join('')).not.toContain('token-1');
  });
});

describe('a destination that', () => {
  const shared = sharedSite();
  /** The numbers of outcomes when the test began: each test waits for the outcomes of what it sent. */
  let before: Record<'sent' | 'refused', number>;
  const begin = async () => {
    shared();
    before = { sent: await metric('sent'), refused: await metric('refused') };
  };
  const outcomes = (outcome: 'sent' | 'refused') =>
    expect.poll(async () => (await metric(outcome)) - before[outcome], { interval: 10 });

  test.each([429, 502, 503, 504])('answers %i gets the spans again until it accepts them', async (status) => {
    await begin();
    let refused = 0;
    collector.behave((response) => {
      refused += 1;
      if (refused > 2) collector.behave(undefined);
      response.writeHead(refused > 2 ? 200 : status, { 'retry-after': '0' }).end('{}');
    });
    await ask();
    await outcomes('sent').toBe(1);
    expect(refused).toBe(3);
    expect(new Set(collector.requests.map(({ body }) => body)).size).toBe(1);
  });

  test.each([400, 401, 413, 500])('answers %i does not get them again, as the specification says', async (status) => {
    await begin();
    collector.behave((response) => void response.writeHead(status).end('{}'));
    await ask();
    await outcomes('refused').toBe(1);
    expect(collector.requests).toHaveLength(1);
    expect(gateway.log_lines.join('\n')).toContain(`it answered with ${status}`);
  });

  test('accepts only a part gets no more', async () => {
    await begin();
    collector.behave((response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end('{"partialSuccess":{"rejectedSpans":"1","errorMessage":"no"}}');
    });
    await ask();
    await outcomes('refused').toBe(1);
    expect(collector.requests).toHaveLength(1);
  });

  test('answers without an end counts as having received them', async () => {
    await begin();
    collector.behave((response) => void response.writeHead(200).end(Buffer.alloc(BROADCAST_ANSWER_BYTES_MAX * 2)));
    await ask();
    await outcomes('sent').toBe(1);
    expect(collector.requests).toHaveLength(1);
  });

  test('never answers or does not exist delays no call, and delays the stop of the gateway at most by a bound', async () => {
    await start();
    collector.behave(() => undefined);
    for (let sent = 0; sent < 5; sent += 1) expect(await ask()).toMatch(/^gen-/);
    await expect.poll(() => collector.requests.length, { interval: 10 }).toBe(1);
    const began = Date.now();
    await gateway.gateway.stop();
    expect(Date.now() - began).toBeLessThan(limits.broadcast_stop_ms_max + 5_000);
  });

  test('is reachable when the gateway stops receives the queued spans', async () => {
    await start();
    const restore = changeLimits({ broadcast_gather_ms: 60_000 });
    const ids = [await ask(), await ask()];
    restore();
    await gateway.gateway.stop();
    expect(collector.calls().map(({ attributes }) => attributes['gen_ai.response.id'])).toEqual(ids);
  });
});
