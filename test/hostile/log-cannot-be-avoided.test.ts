/**
 * A workspace that keeps its requests keeps all of them: no form of a request, of an answer or of a fault excludes a
 * call from the log.
 */
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Events, withSources } from '../../src/http/sources.ts';
import type { Call } from '../../src/inference/call.ts';
import type { Engine, Inference } from '../../src/inference/create-inference.ts';
import type { StreamEvent } from '../../src/inference/events.ts';
import { type LoggedCall, requestLog } from '../../src/inference/observe/request-log.ts';
import { createPipeline } from '../../src/inference/pipeline.ts';
import type { LoggedContent } from '../../src/schemas/logged-content.ts';
import { generation } from '../generation-fixture.ts';
import { type LoggingGateway, startLoggingGateway } from '../logging-gateway.ts';
import { inTier } from '../tier.ts';

let gateway: LoggingGateway;
let upstream: Server;
/** The next answer of the upstream: whole, or as the chunks of a stream. */
let answer: unknown;

beforeAll(async () => {
  upstream = createServer((request, response) => {
    request.resume();
    request.on('end', () => {
      if (!Array.isArray(answer)) {
        response.setHeader('content-type', 'application/json');
        response.end(JSON.stringify(answer));
        return;
      }
      response.setHeader('content-type', 'text/event-stream');
      response.end(`${answer.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('')}data: [DONE]\n\n`);
    });
  });
  await new Promise<void>((resolve) => {
    upstream.listen(0, '127.0.0.1', resolve);
  });
  const baseUrl = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1`;
  gateway = await startLoggingGateway({
    environment: { GATEWAY_SANDBOX: 'on' },
    yaml: JSON.stringify({
      providers: { odd: { name: 'Odd', dialect: 'openai-chat', base_url: baseUrl } },
      models: {
        'test/odd': { endpoints: [{ provider: 'odd', upstream_model: 'm', pricing: { prompt: 1, completion: 1 } }] },
      },
    }),
  });
  await gateway.set({ is_observability_io_logging_enabled: true });
});
afterAll(async () => {
  await gateway.stop();
  upstream.closeAllConnections();
  upstream.close();
});

async function send(path: string, body: object): Promise<{ status: number; id: string }> {
  const response = await fetch(`${gateway.base_url}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  await response.text();
  return { status: response.status, id: response.headers.get('x-generation-id') ?? '' };
}

const chat = (body: object) =>
  send('/chat/completions', { model: 'sandbox/echo', messages: [{ role: 'user', content: 'x' }], ...body });

/** The JSON of all that is kept of an answered call. */
async function keptOf(sent: { status: number; id: string }): Promise<string> {
  expect(sent.status).toBe(200);
  const { status, body } = await gateway.content(sent.id);
  expect(status).toBe(200);
  return JSON.stringify(body);
}

test.each([false, true])('a field of the history that is null (stream: %s)', async (stream) => {
  for (const field of ['reasoning_details', 'tool_calls', 'reasoning', 'images', 'audio', 'annotations', 'refusal']) {
    const messages = [
      { role: 'assistant', content: 'before', [field]: null },
      { role: 'user', content: 'the question' },
    ];
    const kept = await keptOf(await chat({ messages, stream }));
    expect(kept).toContain('the question');
    expect(kept).not.toContain('not_kept');
  }
});

test.each([
  { provider: { zdr: true } },
  { provider: { data_collection: 'deny' } },
  { store: false },
  { metadata: null, user: null, session_id: null },
  { trace: { deep: [[[[[[1]]]]]] } },
])('a field of the request (%j)', async (body) => {
  expect(await keptOf(await chat({ ...body, messages: [{ role: 'user', content: 'the question' }] }))).toContain(
    'the question',
  );
});

describe('text that a model reads', () => {
  const HIDDEN = 'the hidden words of a prompt';
  const schema = (property: object) => ({
    tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object', properties: property } } }],
  });
  const file = `data:text/plain;base64,${Buffer.from(HIDDEN).toString('base64')}`;
  const cases: [string, object][] = [
    ['in a field that only some upstreams know', { documents: [{ title: 't', text: HIDDEN }] }],
    ['in a template of its own', { chat_template: HIDDEN }],
    ['in options for one provider', { provider: { options: { odd: { documents: [HIDDEN] } } } }],
    ['in a schema, as a signature', schema({ signature: { description: HIDDEN } })],
    ['in a schema, as a signature of text', schema({ x: { signature: HIDDEN } })],
    ['in a schema, as reasoning', schema({ reasoning_details: { description: HIDDEN } })],
    ['in a schema, as a cache hint', schema({ cache_control: { type: 'string', description: HIDDEN } })],
    ['in a schema, as a credential', schema({ headers: { description: HIDDEN }, server_url: { const: 'x' } })],
    ['in a schema, as an extension', schema({ ext: { wire: 'x', description: HIDDEN } })],
    ['in a false extension', { documents: [{ ext: { wire: 'x', rest: {}, note: HIDDEN } }] }],
    ['beside a false block', { documents: [{ type: 'native', wire: 'x', block: {}, note: HIDDEN }] }],
    ['in a schema, as data', schema({ x: { data: `${'A'.repeat(300)} ${HIDDEN}` } })],
    ['in a plugin', { plugins: [{ id: 'web', enabled: false, search_prompt: HIDDEN }] }],
    [
      'in reasoning details beside reasoning text',
      {
        messages: [
          {
            role: 'assistant',
            content: 'so',
            reasoning: 'shown',
            reasoning_details: [{ type: 'reasoning.text', text: HIDDEN }],
          },
          { role: 'user', content: 'x' },
        ],
      },
    ],
    [
      'in a text file',
      { messages: [{ role: 'user', content: [{ type: 'file', file: { file_data: file, filename: 'a.txt' } }] }] },
    ],
  ];

  test.each(cases)('%s', async (_where, body) => {
    expect(await keptOf(await chat(body))).toContain(HIDDEN);
  });

  test('of the Messages API in a document of blocks, and in its own fields', async () => {
    const source = { type: 'content', content: [{ type: 'text', text: HIDDEN }] };
    const messages = [{ role: 'user', content: [{ type: 'document', source }] }];
    expect(await keptOf(await send('/messages', { model: 'sandbox/echo', max_tokens: 9, messages }))).toContain(HIDDEN);
    const own = { context_management: { note: HIDDEN }, messages: [{ role: 'user', content: 'x' }] };
    expect(await keptOf(await send('/messages', { model: 'sandbox/echo', max_tokens: 9, ...own }))).toContain(HIDDEN);
  });

  test('of the Responses API in a field that it does not know', async () => {
    expect(await keptOf(await send('/responses', { model: 'sandbox/echo', input: 'x', own: HIDDEN }))).toContain(
      HIDDEN,
    );
  });

  test('of embeddings in tokens, and of a transcription in its prompt', async () => {
    expect(await keptOf(await send('/embeddings', { model: 'sandbox/embed', input: [[31_415, 92_653]] }))).toContain(
      '31415',
    );
    const data = readFileSync(join(import.meta.dirname, '../audio/speech.wav')).toString('base64');
    const sound = { model: 'sandbox/transcribe', input_audio: { data, format: 'wav' }, prompt: HIDDEN };
    expect(await keptOf(await send('/audio/transcriptions', sound))).toContain(HIDDEN);
  });
});

const ODD = [null, 0, '', 'x', [], {}, [null], [{}], { url: 5 }, [{ function: null }], [{ image_url: null }], true];
const MEMBERS =
  'content reasoning reasoning_content reasoning_details tool_calls images audio annotations refusal role';

test('whatever fields an upstream’s answer has, an answered call is kept and recorded', async () => {
  let answered = 0;
  for (const [nth, member] of MEMBERS.split(' ').entries()) {
    // In the first tier each member with a third of the values, and each value with a third of the members.
    for (const value of ODD.filter((_, at) => (at + nth) % inTier(3, 1) === 0)) {
      const message = { role: 'assistant', content: 'fine', [member]: value };
      for (const stream of [false, true]) {
        answer = stream
          ? [
              { id: 'u', choices: [{ index: 0, delta: { content: 'so' } }] },
              { id: 'u', choices: [{ index: 0, delta: message }] },
              { id: 'u', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
            ]
          : { id: 'u', choices: [{ index: 0, message, finish_reason: 'stop' }] };
        const sent = await chat({ model: 'test/odd', stream });
        expect({ member, value, stream, status: sent.status }).not.toMatchObject({ status: 500 });
        if (sent.status !== 200) continue;
        answered += 1;
        const { status, body } = await gateway.content(sent.id);
        expect({ member, value, stream, status }).toEqual({ member, value, stream, status: 200 });
        expect(body.data).not.toHaveProperty('not_kept');
        const record = await gateway.call('GET', `/generation?id=${sent.id}`);
        expect({ member, value, stream, recorded: record.status }).toMatchObject({ recorded: 200 });
      }
    }
  }
  expect(answered).toBeGreaterThan(inTier(33, 100));
  expect(gateway.log_lines.join('\n')).not.toContain('could not be logged');
});

describe('if the content for the log cannot be built', () => {
  const principal = {
    organization_id: 'o',
    workspace_id: 'w',
    key_hash: 'k',
    user_id: null,
    guardrails: [],
    logging: { kept_bp: 10_000, is_broadcast: true, workspace_slug: 'w' },
  };

  /** Runs one call whose answer or request cannot be read. */
  async function run(
    inner: Partial<Engine>,
    request: unknown,
    use: (logged: Inference, call: Call) => Promise<unknown>,
  ) {
    const kept: LoggedContent[] = [];
    const stubs: { call: LoggedCall; reason: string }[] = [];
    const broadcast: unknown[] = [];
    const lines: string[] = [];
    const log = requestLog({
      contents: {
        keep: (_call, content) => void kept.push(content),
        keepStub: (call, reason) => void stubs.push({ call, reason }),
      },
      broadcast: { wants: () => true, add: (ended) => void broadcast.push(ended) },
      clock: { nowMs: () => 0, monotonicMs: () => 0 },
      log: { error: (_facts, message) => void lines.push(message) },
    });
    const logged = createPipeline(inner as Engine, [log]);
    const call = { request, principal, generation_id: 'gen-1', accepted_ms: 0, accepted_monotonic_ms: 0, stages: [] };
    const outcome = { isSettled: false, record: undefined };
    const result = await use(logged, { ...call, outcome } as unknown as Call);
    await turn();
    return { result, kept, stubs, broadcast, lines };
  }
  const settle = ({ outcome }: Call, record = generation({ id: 'gen-1', model: 'acme/one' })) =>
    Object.assign(outcome, { isSettled: true, record });
  const stub = {
    call: expect.objectContaining({ id: 'gen-1', model: 'acme/one', key_hash: 'k' }),
    reason: expect.any(String),
  };
  const circle: { messages: unknown[] } = { messages: [] };
  circle.messages.push(circle);

  test('a stream that cannot be read reaches the client completely, and leaves a stub', async () => {
    const unreadable = {
      delta: {},
      get finish_reason(): never {
        throw new Error('unreadable');
      },
    };
    const chunks = [unreadable, { delta: { content: 'so' } }];
    async function* events(call: Call) {
      yield { type: 'chunks', chunks };
      settle(call);
      yield { type: 'end', error: undefined };
    }
    const inner: Partial<Engine> = {
      stream: (call) => withSources(events(call) as object as Events<StreamEvent>),
    };
    const { result, kept, stubs, broadcast, lines } = await run(inner, { messages: [] }, async (logged, call) => {
      const events = [];
      for await (const event of logged.stream(call)) events.push(event.type);
      return events;
    });
    expect(result).toEqual(['chunks', 'end']);
    expect({ kept, stubs }).toEqual({ kept: [], stubs: [stub] });
    expect(broadcast).toHaveLength(1);
    expect(lines).toEqual(['a call could not be logged: a stub is kept']);
  });

  test.each([
    ['an answer that cannot be read', { choices: [] }, { messages: [] }],
    ['a request that cannot be read', { choices: [{ message: { content: 'so' } }] }, { messages: [null] }],
  ])('%s reaches the client, and leaves a stub', async (_what, completion, request) => {
    const inner = {
      async complete(call: Call) {
        settle(call);
        return { completion };
      },
    } as unknown as Engine;
    const { result, kept, stubs, broadcast } = await run(inner, request, (logged, call) => logged.complete(call));
    expect(result).toEqual({ completion });
    expect({ kept, stubs }).toEqual({ kept: [], stubs: [stub] });
    expect(broadcast).toHaveLength(1);
  });

  test('a request with a circular value is cut, and kept', async () => {
    const inner = {
      async complete(call: Call) {
        settle(call);
        return { completion: { choices: [{ message: { content: 'so' } }] } };
      },
    } as unknown as Engine;
    const { kept, stubs } = await run(inner, circle, (logged, call) => logged.complete(call));
    expect(stubs).toEqual([]);
    expect(JSON.stringify(kept)).toContain('cut');
  });

  test('a call without a record is kept as well', async () => {
    const inner = {
      async complete(call: Call) {
        Object.assign(call.outcome, { isSettled: true });
        throw new Error('a fault of the gateway');
      },
    } as unknown as Engine;
    const { kept } = await run(inner, { messages: [], model: 'acme/one' }, (logged, call) =>
      logged.complete(call).catch(() => undefined),
    );
    expect(kept).toEqual([expect.objectContaining({ error: expect.objectContaining({ status: 500 }) })]);
  });
});
