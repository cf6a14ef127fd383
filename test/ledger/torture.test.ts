import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { limits } from '../../src/limits.ts';
import { checkChatStream } from '../grammar/chat.ts';
import { startGateway, type TestGateway } from '../harness.ts';
import { inTier } from '../tier.ts';
import {
  type Exchange,
  httpChunk,
  responseHead,
  type Step,
  slices,
  startWireServer,
  type WireServer,
} from '../wires/wire-server.ts';

/** Short enough for tests of silence, and far enough apart to be distinguishable. */
const shortTimeouts = {
  upstream_headers_ms_max: 900,
  upstream_first_token_ms_max: 1_400,
  upstream_idle_ms_max: 900,
  heartbeat_first_ms: 100,
  heartbeat_ms: 100,
};
/** How long the end of an upstream's answer may take once its client has the whole answer. */
const { upstream_tail_ms_max } = limits;

type Script = (exchange: Exchange, nth: number) => Step[];
let wire: WireServer;
/** The gateway of the running test. */
let gateway: TestGateway;
let patient: TestGateway;
/** Its upstreams may be silent for a second. A busy machine may be silent as long, so only tests of silence use it. */
let impatient: TestGateway;
let script: Script;

beforeAll(async () => {
  Object.assign(limits, { upstream_tail_ms_max: 200 });
  wire = await startWireServer((exchange, nth) => script(exchange, nth));
  const endpoint = (provider: string) => ({
    provider,
    upstream_model: 'scripted',
    pricing: { prompt: 1, completion: 2 },
    max_completion_tokens: 4096,
  });
  const model = (...providers: string[]) => ({ context_length: 100_000, endpoints: providers.map(endpoint) });
  const file = {
    bundled_catalog: false,
    providers: {
      chat: { name: 'Chat', dialect: 'openai-chat', base_url: wire.url },
      messages: { name: 'Messages', dialect: 'anthropic-messages', base_url: wire.url },
      gemini: { name: 'Gemini', dialect: 'gemini-generate-content', base_url: wire.url },
      responses: { name: 'Responses', dialect: 'openai-responses', base_url: wire.url },
      cohere: { name: 'Cohere', dialect: 'cohere-chat', base_url: wire.url },
      bills: { name: 'Bills', dialect: 'openai-chat', base_url: wire.url, abort_stops_billing: false },
    },
    models: {
      'wire/chat': model('chat'),
      'wire/messages': model('messages'),
      'wire/gemini': model('gemini'),
      'wire/responses': model('responses'),
      'wire/cohere': model('cohere'),
      'wire/both': model('chat', 'messages'),
      'wire/bills': model('bills'),
      'wire/never-cooled': model('chat', 'messages'),
    },
  };
  const startWith = (timeouts: object) =>
    startGateway({ yaml: JSON.stringify({ ...file, timeouts: { shutdown_ms_max: 2_000, ...timeouts } }) });
  [patient, impatient] = await Promise.all([startWith({}), startWith(shortTimeouts)]);
});
afterAll(async () => {
  Object.assign(limits, { upstream_tail_ms_max });
  await Promise.all([patient.stop(), impatient.stop()]);
  await wire.stop();
});
beforeEach(() => {
  gateway = patient;
  script = () => ['RESET'];
  wire.exchanges.length = 0;
});

const sse = responseHead(200, 'text/event-stream');
const chatChunk = (delta: object, finishReason: string | null = null, more: object = {}) =>
  `data: ${JSON.stringify({ id: 'up-1', object: 'chat.completion.chunk', created: 1, model: 'scripted', choices: [{ index: 0, delta, finish_reason: finishReason }], ...more })}\n\n`;
const usage = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 };
const usageChunk = `data: ${JSON.stringify({ id: 'up-1', object: 'chat.completion.chunk', created: 1, model: 'scripted', choices: [], usage })}\n\n`;
const done = 'data: [DONE]\n\n';
const role = chatChunk({ role: 'assistant', content: '' });
const texts = (...parts: string[]) => parts.map((content) => chatChunk({ content })).join('');
const stop = chatChunk({}, 'stop');
const whole = role + texts('Hello', ' world') + stop + usageChunk + done;

const event = (payload: { type: string } & Record<string, unknown>) =>
  `event: ${payload.type}\ndata: ${JSON.stringify(payload)}\n\n`;
const messageStart = event({
  type: 'message_start',
  message: {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'scripted',
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: 11, output_tokens: 1 },
  },
});
const blockStart = event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } });
const textDelta = (text: string) =>
  event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } });
const messageEnd =
  event({ type: 'content_block_stop', index: 0 }) +
  event({
    type: 'message_delta',
    delta: { stop_reason: 'end_turn', stop_sequence: null },
    usage: { output_tokens: 7 },
  }) +
  event({ type: 'message_stop' });
const overloaded = event({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } });
const wholeMessage = messageStart + blockStart + textDelta('Hello') + textDelta(' world') + messageEnd;

interface Chunk {
  choices: { delta: { content?: string }; finish_reason: string | null; native_finish_reason: string | null }[];
  usage?: { prompt_tokens: number; completion_tokens: number; total_tokens: number; cost: number };
  error?: { code: number; message: string };
}
interface Streamed {
  status: number;
  id: string;
  raw: string;
  comments: number;
  chunks: Chunk[];
  text: string;
  finish: string[];
  usages: NonNullable<Chunk['usage']>[];
  ended: boolean;
}

function ask(model: string, more: object = {}): RequestInit {
  return {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${gateway.key}` },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello there' }], ...more }),
  };
}
const path = () => `${gateway.url}/api/v1/chat/completions`;

function readEvents(raw: string): Omit<Streamed, 'status' | 'id'> {
  const blocks = raw.split('\n\n').filter((block) => block !== '');
  const payloads = blocks.filter((block) => block.startsWith('data: ')).map((block) => block.slice(6));
  const chunks = payloads.filter((payload) => payload !== '[DONE]').map((payload) => JSON.parse(payload) as Chunk);
  return {
    raw,
    chunks,
    comments: blocks.filter((block) => block.startsWith(':')).length,
    text: chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join(''),
    finish: chunks.flatMap((chunk) => chunk.choices[0]?.finish_reason ?? []),
    usages: chunks.flatMap((chunk) => chunk.usage ?? []),
    ended: payloads.at(-1) === '[DONE]' && payloads.filter((payload) => payload === '[DONE]').length === 1,
  };
}

async function stream(model: string, more: object = {}): Promise<Streamed> {
  const response = await fetch(path(), ask(model, { stream: true, ...more }));
  const decoder = new TextDecoder();
  let raw = '';
  for await (const bytes of response.body!) {
    raw += decoder.decode(bytes, { stream: true });
  }
  const id = response.headers.get('x-generation-id') ?? '';
  if (response.status !== 200) return { ...readEvents(''), raw, status: response.status, id };
  checkChatStream(raw);
  return { ...readEvents(raw), status: 200, id };
}

async function generation(id: string): Promise<Record<string, unknown>> {
  let found: Record<string, unknown> | undefined;
  await expect
    .poll(async () => {
      const response = await fetch(`${gateway.url}/api/v1/generation?id=${id}`, {
        headers: { authorization: `Bearer ${gateway.key}` },
      });
      if (response.status === 200) found = ((await response.json()) as { data: Record<string, unknown> }).data;
      return response.status;
    })
    .toBe(200);
  return found!;
}

const ordinary = { status: 200, text: 'Hello world', finish: ['stop'], ended: true };

describe('a complete stream in any form arrives completely', () => {
  const crlf = (text: string) => text.replaceAll('\n', '\r\n');
  const cr = (text: string) => text.replaceAll('\n', '\r');
  test.each<[string, string, Step[]]>([
    ['in one write', 'wire/chat', [sse, whole]],
    ['a byte at a time', 'wire/chat', [sse, ...slices(whole, 1)]],
    ['the other wire, a byte at a time', 'wire/messages', [sse, ...slices(wholeMessage, 1)]],
    ['with CRLF', 'wire/chat', [sse, ...slices(crlf(whole), 3)]],
    ['with CR', 'wire/chat', [sse, ...slices(cr(whole), 3)]],
    ['the other wire with CRLF', 'wire/messages', [sse, ...slices(crlf(wholeMessage), 5)]],
    ['with a byte order mark and comments', 'wire/chat', [sse, `\ufeff: hello\n\n${whole}`]],
    ['without a space after data:', 'wire/chat', [sse, whole.replaceAll('data: ', 'data:')]],
    ['without [DONE]', 'wire/chat', [sse, whole.replace(done, '')]],
    ['without the last blank line', 'wire/chat', [sse, whole.trimEnd()]],
    [
      'with usage on every chunk',
      'wire/chat',
      [
        sse,
        chatChunk({ content: 'Hello' }, null, { usage: { ...usage, completion_tokens: 3, total_tokens: 14 } }) +
          chatChunk({ content: ' world' }, null, { usage }) +
          chatChunk({}, 'stop', { usage }) +
          done,
      ],
    ],
    [
      'with usage on the finish chunk',
      'wire/chat',
      [sse, role + texts('Hello', ' world') + chatChunk({}, 'stop', { usage }) + done],
    ],
    ['with usage after [DONE]', 'wire/chat', [sse, role + texts('Hello', ' world') + stop + done + usageChunk]],
    [
      'with pings',
      'wire/messages',
      [
        sse,
        messageStart +
          event({ type: 'ping' }) +
          blockStart +
          textDelta('Hello') +
          event({ type: 'ping' }) +
          textDelta(' world') +
          messageEnd,
      ],
    ],
    [
      'in HTTP chunks cut at random places',
      'wire/chat',
      [
        responseHead(200, 'text/event-stream', { 'transfer-encoding': 'chunked' }),
        ...[...Buffer.from(whole)].map((byte) => httpChunk(Uint8Array.of(byte))),
        httpChunk(''),
      ],
    ],
  ])('%s', async (_name, model, steps) => {
    script = () => [...steps, 'END'];
    const answer = await stream(model);
    expect(answer).toMatchObject(ordinary);
    expect(answer.usages).toMatchObject([{ prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 }]);
    expect(answer.chunks.at(-1)).toMatchObject({ choices: [] });
  });

  const cutBody = responseHead(200, 'text/event-stream', { 'transfer-encoding': 'chunked' });
  test.each<[string, string, Step[]]>([
    ['reset', 'wire/chat', [sse, whole, { wait: 30 }, 'RESET']],
    ['reset, on the other wire', 'wire/messages', [sse, wholeMessage, { wait: 30 }, 'RESET']],
    ['closed without the end of its body', 'wire/chat', [cutBody, httpChunk(whole), { wait: 30 }, 'END']],
    ['left open', 'wire/chat', [sse, whole]],
    ['left open, on the other wire', 'wire/messages', [sse, wholeMessage]],
    ['used for an error', 'wire/messages', [sse, wholeMessage, { wait: 30 }, overloaded, 'END']],
  ])('a connection error after the answer is not a failure of the answer: %s', async (_name, model, steps) => {
    script = () => steps;
    const answer = await stream(model);
    expect(answer).toMatchObject(ordinary);
    expect(answer.usages).toMatchObject([{ prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 }]);
    expect(await generation(answer.id)).toMatchObject({ finish_reason: 'stop', cancelled: false });
    await wire.exchanges.at(-1)!.closed;
  });

  test('characters of several bytes survive any cut', async () => {
    const text = 'žluť 雪 🌍👩‍👩‍👧 naïve';
    script = () => [sse, ...slices(role + texts(...text) + stop + usageChunk + done, 1), 'END'];
    expect((await stream('wire/chat')).text).toBe(text);
  });

  test('missing usage is counted by the gateway and marked as an estimate', async () => {
    script = () => [sse, role + texts('Hello', ' world') + stop + done, 'END'];
    const answer = await stream('wire/chat');
    expect(answer).toMatchObject(ordinary);
    expect(answer.usages).toHaveLength(1);
    expect(answer.usages[0]!.prompt_tokens).toBeGreaterThan(0);
    expect(answer.usages[0]!.completion_tokens).toBeGreaterThan(0);
    expect(answer.usages[0]!.cost).toBeGreaterThan(0);
    expect(await generation(answer.id)).toMatchObject({ finish_reason: 'stop', cancelled: false });
  });
});

describe('a stream that breaks off never looks like a success', () => {
  const broken = role + texts('Hello', ' world');
  test.each<[string, string, Step[]]>([
    ['its connection is closed', 'wire/chat', [sse, broken, 'DESTROY']],
    ['its connection is reset', 'wire/chat', [sse, broken, { wait: 20 }, 'RESET']],
    ['its body ends properly, but without a finish reason', 'wire/chat', [sse, broken, 'END']],
    [
      'its chunked body is cut',
      'wire/chat',
      [responseHead(200, 'text/event-stream', { 'transfer-encoding': 'chunked' }), httpChunk(broken), 'END'],
    ],
    [
      'it sends an error event',
      'wire/chat',
      [
        sse,
        broken,
        { wait: 30 },
        `data: ${JSON.stringify({ error: { message: 'The server had an error', type: 'server_error', code: null } })}\n\n`,
        'END',
      ],
    ],
    [
      'it sends an error event of that name',
      'wire/chat',
      [sse, broken, { wait: 30 }, `event: error\ndata: ${JSON.stringify({ error: { message: 'Broken' } })}\n\n`, 'END'],
    ],
    [
      'it sends an event that is not JSON',
      'wire/chat',
      [sse, broken, { wait: 30 }, 'data: <html>502</html>\n\n', 'END'],
    ],
    ['it falls silent', 'wire/chat', [sse, broken]],
    [
      'the other wire closes',
      'wire/messages',
      [sse, messageStart + blockStart + textDelta('Hello') + textDelta(' world'), 'END'],
    ],
    [
      'the other wire reports an overload',
      'wire/messages',
      [sse, messageStart + blockStart + textDelta('Hello') + textDelta(' world'), { wait: 30 }, overloaded, 'END'],
    ],
  ])('%s', async (name, model, steps) => {
    if (name === 'it falls silent') gateway = impatient;
    script = () => steps;
    const answer = await stream(model);
    expect(answer).toMatchObject({ status: 200, text: 'Hello world', finish: ['error'], ended: true });
    const failed = answer.chunks.find((chunk) => chunk.choices[0]?.finish_reason === 'error');
    expect(failed?.error).toMatchObject({ code: expect.any(Number), message: expect.stringMatching(/\w/) });
    expect(answer.usages).toHaveLength(1);
    expect(answer.chunks.at(-1)?.usage).toBeDefined();
    // Content arrived: it is charged by the gateway's count, because an upstream bills what it sent.
    expect(answer.usages[0]!.cost).toBeGreaterThan(0);
    expect(await generation(answer.id)).toMatchObject({ finish_reason: 'error' });
  });

  test.each<[string, string, Step[]]>([
    [
      'an error event',
      'wire/chat',
      [sse, role + texts('Hello'), { wait: 30 }, `${texts(' world')}data: {"error":{"message":"Broken"}}\n\n`, 'END'],
    ],
    [
      'the other wire reports an overload',
      'wire/messages',
      [sse, messageStart + blockStart + textDelta('Hello'), { wait: 30 }, textDelta(' world') + overloaded, 'END'],
    ],
  ])('content in the same read as the failure is not lost: %s', async (_name, model, steps) => {
    script = () => steps;
    expect(await stream(model)).toMatchObject({ status: 200, text: 'Hello world', finish: ['error'], ended: true });
  });

  test.each<[string, string]>([
    ['with its content', chatChunk({ content: ' world' }, null, { usage })],
    ['before the error', texts(' world') + usageChunk],
    ['after the finish reason', texts(' world') + stop + usageChunk],
  ])('usage that the provider reported %s before it failed is charged', async (_name, rest) => {
    script = () => [sse, role + texts('Hello') + rest, { wait: 30 }, 'data: {"error":{"message":"Broken"}}\n\n', 'END'];
    const answer = await stream('wire/chat');
    expect(answer).toMatchObject({ text: 'Hello world', usages: [usage] });
    expect(answer.finish.at(-1)).toBe('error');
    expect(await generation(answer.id)).toMatchObject({ native_tokens_prompt: 11, native_tokens_completion: 7 });
  });

  test.each<[string, string]>([
    [
      'wire/bills',
      `${role}${chatChunk({ content: 'Hello' }, null, { usage })}data: {"error":{"message":"Broken"}}\n\n`,
    ],
    [
      'wire/responses',
      event({ type: 'response.created', response: { id: 'resp_1' } }) +
        event({ type: 'response.output_text.delta', output_index: 0, content_index: 0, item_id: 'm', delta: 'Hello' }) +
        event({
          type: 'response.failed',
          response: {
            id: 'resp_1',
            status: 'failed',
            error: { code: 'server_error', message: 'Broken' },
            usage: { input_tokens: 11, output_tokens: 7, total_tokens: 18 },
          },
        }),
    ],
    [
      'wire/cohere',
      event({ type: 'message-start', id: 'm', delta: { message: { role: 'assistant' } } }) +
        event({ type: 'content-start', index: 0, delta: { message: { content: { type: 'text', text: '' } } } }) +
        event({ type: 'content-delta', index: 0, delta: { message: { content: { text: 'Hello' } } } }) +
        event({
          type: 'message-end',
          delta: { error: 'Broken', finish_reason: 'ERROR', usage: { tokens: { input_tokens: 11, output_tokens: 7 } } },
        }),
    ],
  ])('a failure with usage is passed on even if the connection stays open: %s', async (model, told) => {
    script = () => [sse, told, { wait: 4_000 }];
    const answer = await stream(model);
    expect(answer).toMatchObject({ text: 'Hello', finish: ['error'], usages: [usage] });
    expect(answer.chunks.find(({ error }) => error)?.error?.message).toContain('Broken');
  });

  test('usage that was reported during the answer counts if the connection is cut', async () => {
    script = () => [sse, role + texts('Hello') + chatChunk({ content: ' world' }, null, { usage }), 'DESTROY'];
    expect(await stream('wire/chat')).toMatchObject({ text: 'Hello world', finish: ['error'], usages: [usage] });
  });

  test('an error that Gemini sends as plain JSON after its events is reported as Gemini’s error', async () => {
    const begun = `data: ${JSON.stringify({ candidates: [{ content: { role: 'model', parts: [{ text: 'Hello' }] } }] })}\r\n\r\n`;
    const failed = { error: { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' } };
    script = () => [sse, begun, { wait: 30 }, JSON.stringify(failed, null, 2), 'END'];
    const answer = await stream('wire/gemini');
    expect(answer).toMatchObject({ text: 'Hello', finish: ['error'], ended: true });
    expect(answer.chunks.find(({ error }) => error)?.error).toMatchObject({
      code: 503,
      message: expect.stringContaining('The model is overloaded.'),
    });
  });

  test('an answer that failed before it began has the provider’s message', async () => {
    const failed = { finishReason: 'MALFORMED_FUNCTION_CALL', finishMessage: 'Malformed function call: f(' };
    const body = JSON.stringify({ candidates: [failed], usageMetadata: { promptTokenCount: 11, totalTokenCount: 11 } });
    script = ({ path }) =>
      path.includes('stream')
        ? [sse, `data: ${body}\n\n`, 'END']
        : [responseHead(200, 'application/json', { 'content-length': String(body.length) }), body];
    for (const more of [{ stream: true }, {}]) {
      const response = await fetch(path(), ask('wire/gemini', more));
      expect(response.status).toBe(502);
      expect(await response.text()).toContain('Malformed function call: f(');
    }
  });

  test('the record of a broken answer has its cause', async () => {
    script = () => [sse, broken, { wait: 20 }, 'RESET'];
    const { provider_responses } = await generation((await stream('wire/chat')).id);
    expect(provider_responses).toMatchObject([{ status: 200, failure: 'unavailable' }]);
  });

  test('an answer that cannot be written ends as an error and is charged, and its upstream is closed', async () => {
    const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`;
    const logprobs = `data: {"id":"c","choices":[{"index":0,"delta":{"content":"!"},"logprobs":{"content":${deep}}}]}\n\n`;
    script = () => [sse, broken, { wait: 20 }, logprobs];
    const answer = await stream('wire/chat');
    expect(answer).toMatchObject({ status: 200, text: 'Hello world', finish: ['error'], ended: true });
    expect(answer.usages).toHaveLength(1);
    expect(answer.usages[0]!.cost).toBeGreaterThan(0);
    const record = await generation(answer.id);
    expect(record).toMatchObject({ finish_reason: 'error', total_cost: answer.usages[0]!.cost });
    await expect.poll(() => wire.exchanges[0]?.closed_at).toBeDefined();
  });

  test('impossible usage is replaced by the gateway’s count, and the record is kept', async () => {
    const absurd = { prompt_tokens: 9e15, completion_tokens: 1e300, total_tokens: 1e300 };
    script = () => [sse, broken + chatChunk({}, 'stop', { usage: absurd }) + done, 'END'];
    const answer = await stream('wire/chat');
    expect(answer).toMatchObject(ordinary);
    expect(answer.usages[0]!.completion_tokens).toBeLessThan(100);
    expect(await generation(answer.id)).toMatchObject({ total_cost: answer.usages[0]!.cost, estimated: true });
  });

  test('the reported cost of a broken answer is the recorded one', async () => {
    script = () => [
      responseHead(200, 'text/event-stream', { 'transfer-encoding': 'chunked' }),
      httpChunk(broken),
      'END',
    ];
    const answer = await stream('wire/chat');
    const { total_cost, native_tokens_completion } = await generation(answer.id);
    expect(answer.usages).toMatchObject([{ cost: total_cost, completion_tokens: native_tokens_completion }]);
  });

  test('the upstream of a silent stream is closed', async () => {
    gateway = impatient;
    script = () => [sse, broken];
    const answer = await stream('wire/chat');
    expect(answer.finish).toEqual(['error']);
    await expect.poll(() => wire.exchanges[0]?.closed_at).toBeDefined();
  });
});

describe('before any content, a failure falls back to the next endpoint', () => {
  const page = '<!DOCTYPE html><html><body><h1>502 Bad Gateway</h1></body></html>';
  const nothing = chatChunk({}, null, { usage: { prompt_tokens: 11, completion_tokens: 0, total_tokens: 11 } });
  const refused = (status: number) =>
    [
      responseHead(status, 'application/json'),
      JSON.stringify({ error: { message: 'No', type: 'x', code: null } }),
      'END',
    ] as Step[];
  const failures: [string, Step[]][] = [
    ['an HTML page with 200', [responseHead(200, 'text/html'), page, 'END']],
    ['an HTML page with 502', [responseHead(502, 'text/html'), page, 'END']],
    ['an HTML page that claims to be a stream', [sse, page, 'END']],
    [
      'an error as the first event',
      [sse, `data: ${JSON.stringify({ error: { message: 'Overloaded', code: 529 } })}\n\n`, 'END'],
    ],
    [
      'an error after the role',
      [sse, role, `data: ${JSON.stringify({ error: { message: 'Overloaded' } })}\n\n`, 'END'],
    ],
    [
      'a JSON error with 200',
      [responseHead(200, 'application/json'), JSON.stringify({ error: { message: 'Sorry', code: 500 } }), 'END'],
    ],
    ['an empty stream', [sse, 'END']],
    ['a stream with only a role', [sse, role, 'END']],
    ['an answer without content and finish reason', [sse, role + nothing + done, 'END']],
    [
      'the same in one piece',
      [
        responseHead(200, 'application/json'),
        JSON.stringify({
          id: 'up-1',
          object: 'chat.completion',
          created: 1,
          model: 'scripted',
          choices: [{ index: 0, message: { role: 'assistant', content: '' }, finish_reason: null }],
          usage: { prompt_tokens: 11, completion_tokens: 0, total_tokens: 11 },
        }),
        'END',
      ],
    ],
    ['a connection that breaks at once', ['RESET']],
    ['headers that never arrive', []],
    ['headers, then silence', [sse]],
    ['a role, then silence', [sse, role]],
    ['half a head', ['HTTP/1.1 200 OK\r\ncontent-ty', 'END']],
    ['bytes that are not HTTP', ['\x00\x01\x02garbage\r\n\r\n', 'END']],
    ...[401, 402, 403, 404, 408, 409, 425, 429, 500, 502, 503, 529].map((status): [string, Step[]] => [
      `status ${status}`,
      refused(status),
    ]),
  ];
  const good: Step[] = [sse, wholeMessage, 'END'];
  const isSilent = (name: string) => /silence|never arrive/.test(name);
  /**
   * A silence takes a second: in the first tier each case continues at the next endpoint, and one has no other
   * endpoint.
   */
  const alone = failures.filter(
    ([name]) => !isSilent(name) || inTier(['headers, then silence'], [name]).includes(name),
  );
  const ofWhole = failures.filter(([name]) => !/role|first event|nothing/.test(name) && !inTier(isSilent(name), false));

  test.each(failures)('%s', async (name, steps) => {
    if (isSilent(name)) gateway = impatient;
    script = ({ path }) => (path.endsWith('/messages') ? good : steps);
    // Named in order, because endpoints that have just failed rank lower.
    const answer = await stream('wire/both', { provider: { order: ['chat', 'messages'] } });
    expect(wire.exchanges.map((exchange) => exchange.path.replace('/v1/', ''))).toEqual([
      'chat/completions',
      'messages',
    ]);
    expect(answer).toMatchObject(ordinary);
    expect(answer.usages).toMatchObject([{ prompt_tokens: 11, completion_tokens: 7 }]);
  });

  test.each(alone)(
    'if no other endpoint exists, it is an error of the gateway, not a success: %s',
    async (name, steps) => {
      if (isSilent(name)) gateway = impatient;
      script = () => steps;
      const answer = await stream('wire/chat');
      // After a heartbeat the status 200 is sent, and the error is in the stream.
      const told = answer.status === 200 ? answer.chunks[0]?.error : (JSON.parse(answer.raw) as Chunk).error;
      expect(told).toMatchObject({ code: expect.any(Number), message: expect.stringMatching(/\w/) });
      expect(told!.code).toBeGreaterThanOrEqual(400);
      expect(JSON.stringify(told)).not.toContain('127.0.0.1');
      expect(answer.text).toBe('');
      if (answer.status === 200)
        expect(answer).toMatchObject({ finish: ['error'], ended: true, usages: [{ cost: 0 }] });
      else expect(answer.status).toBe(told!.code);
    },
  );

  test('after content was sent, no other endpoint is tried', async () => {
    script = ({ path }) => (path.endsWith('/messages') ? good : [sse, role + texts('Hello'), 'DESTROY']);
    const answer = await stream('wire/both', { provider: { order: ['chat', 'messages'] } });
    expect(answer).toMatchObject({ text: 'Hello', finish: ['error'], ended: true });
    expect(wire.exchanges).toHaveLength(1);
  });

  test.each([400, 413, 422])("the caller's fault is final: %i", async (status) => {
    script = () => refused(status);
    const answer = await stream('wire/both', { provider: { order: ['chat', 'messages'] } });
    expect(answer.status).toBe(status);
    expect(wire.exchanges).toHaveLength(1);
  });

  test("a failure of the model at one client's prompt does not lower the health of its endpoint", async () => {
    script = ({ path }) =>
      path.endsWith('/messages')
        ? [sse, wholeMessage, 'END']
        : [
            responseHead(400, 'application/json'),
            JSON.stringify({ error: { message: 'Failed to validate JSON', code: 'json_validate_failed' } }),
            'END',
          ];
    for (let nth = 0; nth < 3; nth += 1) {
      const from = wire.exchanges.length;
      expect(await stream('wire/never-cooled')).toMatchObject(ordinary);
      expect(wire.exchanges.slice(from).map(({ path }) => path)).toEqual(['/v1/chat/completions', '/v1/messages']);
    }
  });

  test('whole answers fall back as streams do', async () => {
    const body = JSON.stringify({
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'scripted',
      content: [{ type: 'text', text: 'Hello' }],
      stop_reason: 'end_turn',
      stop_sequence: null,
      usage: { input_tokens: 1, output_tokens: 1 },
    });
    for (const [name, steps] of ofWhole) {
      gateway = isSilent(name) ? impatient : patient;
      script = ({ path }) =>
        path.endsWith('/messages') ? [responseHead(200, 'application/json'), body, 'END'] : steps;
      const response = await fetch(path(), ask('wire/both', { provider: { order: ['chat', 'messages'] } }));
      expect(response.status).toBe(200);
      expect(await response.json()).toMatchObject({
        choices: [{ message: { content: 'Hello' }, finish_reason: 'stop' }],
      });
    }
  });
});

describe('silence', () => {
  beforeEach(() => {
    gateway = impatient;
  });

  test('comments begin after the first deadline and continue, between events', async () => {
    script = () => [
      sse,
      { wait: 350 },
      role + texts('Hello'),
      { wait: 350 },
      texts(' world') + stop + usageChunk + done,
      'END',
    ];
    const answer = await stream('wire/chat');
    expect(answer).toMatchObject(ordinary);
    // Every 100 ms: two before the text, two in the pause.
    expect(answer.comments).toBeGreaterThanOrEqual(3);
    expect(answer.raw.startsWith(':')).toBe(true);
  });

  test('a comment is never inside an event', async () => {
    const half = texts('Hello world');
    script = () => [sse, role, half.slice(0, 40), { wait: 350 }, half.slice(40) + stop + usageChunk + done, 'END'];
    const answer = await stream('wire/chat');
    expect(answer.comments).toBeGreaterThanOrEqual(1);
    expect(answer).toMatchObject(ordinary);
  });

  test('a quick answer has no comments', async () => {
    gateway = patient;
    script = () => [sse, whole, 'END'];
    expect((await stream('wire/chat')).comments).toBe(0);
  });

  test('a fallback continues after the heartbeats', async () => {
    script = ({ path }) => (path.endsWith('/messages') ? [sse, wholeMessage, 'END'] : [{ wait: 350 }, 'RESET']);
    const answer = await stream('wire/both', { provider: { order: ['chat', 'messages'] } });
    expect(answer.comments).toBeGreaterThanOrEqual(1);
    expect(answer).toMatchObject(ordinary);
  });
});

/** Opens a stream by hand, so that the test decides when to read and when to disconnect. */
async function open(model: string): Promise<IncomingMessage> {
  const { headers, body } = ask(model, { stream: true });
  const request = httpRequest(path(), { method: 'POST', headers: headers as Record<string, string> });
  request.end(body);
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  response.on('error', () => undefined);
  return response;
}

describe('clients', () => {
  test('one that disconnects during a stream closes the upstream within 100 ms', { retry: 2 }, async () => {
    script = () => [sse, role + texts('Hello'), { wait: 10_000 }];
    const response = await open('wire/chat');
    await once(response, 'data');
    const leftAt = performance.now();
    response.destroy();
    const exchange = await wire.exchange(0);
    await exchange.closed;
    expect(exchange.closed_at! - leftAt).toBeLessThan(100);
    const record = await generation(String(response.headers['x-generation-id']));
    expect(record).toMatchObject({ cancelled: true });
    expect(record['total_cost']).toBeGreaterThan(0);
  });

  test('one that disconnects before the first content closes the upstream', { retry: 2 }, async () => {
    script = () => [{ wait: 10_000 }];
    const leave = new AbortController();
    const asked = fetch(path(), { ...ask('wire/chat', { stream: true }), signal: leave.signal }).catch(() => undefined);
    const exchange = await wire.exchange(0);
    const leftAt = performance.now();
    leave.abort();
    await asked;
    await exchange.closed;
    expect(exchange.closed_at! - leftAt).toBeLessThan(100);
  });

  test('if disconnecting does not stop billing, the upstream is read to its end and charged as reported', async () => {
    let more = () => {};
    const until = new Promise<void>((resolve) => {
      more = resolve;
    });
    script = () => [sse, role + texts('Hello'), { until }, texts(' world') + stop + usageChunk + done, 'END'];
    const response = await open('wire/bills');
    await once(response, 'data');
    response.destroy();
    await sleep(150);
    expect(wire.exchanges[0]!.closed_at).toBeUndefined();
    more();
    const record = await generation(String(response.headers['x-generation-id']));
    expect(record).toMatchObject({ cancelled: true, native_tokens_prompt: 11, native_tokens_completion: 7 });
  });

  test('if disconnecting does not stop billing, the rest that is read is bounded', async () => {
    script = () => [sse, role, { repeat: texts('x'.repeat(60_000)), times: 1_000 }];
    const response = await open('wire/bills');
    await once(response, 'data');
    response.destroy();
    const exchange = await wire.exchange(0);
    await exchange.closed;
    expect(exchange.written).toBeLessThan(30_000_000);
  });

  test('a slow reader slows the upstream: memory stays bounded', async () => {
    const megabyte = texts('x'.repeat(1_000_000));
    script = () => [sse, role, { repeat: megabyte, times: 200 }, stop + usageChunk + done, 'END'];
    const before = process.memoryUsage().rss;
    const response = await open('wire/chat');
    await once(response, 'data');
    response.pause();
    let written = -1;
    const exchange = await wire.exchange(0);
    // The socket buffers of both ends fill up; then it stands still.
    await expect
      .poll(
        () => {
          const still = written === exchange.written;
          written = exchange.written;
          return still;
        },
        { interval: 300 },
      )
      .toBe(true);
    expect(written).toBeLessThan(60_000_000);
    expect(process.memoryUsage().rss - before).toBeLessThan(400_000_000);
    response.destroy();
    await exchange.closed;
  });

  test('a huge frame passes, and one above the bound ends the stream as an error', async () => {
    script = () => [sse, role + texts('x'.repeat(4_000_000)) + stop + usageChunk + done, 'END'];
    expect((await stream('wire/chat')).text).toHaveLength(4_000_000);
    script = () => [sse, role + texts('Hello'), 'data: ', { repeat: 'x'.repeat(1_000_000), times: 40 }];
    expect(await stream('wire/chat')).toMatchObject({ text: 'Hello', finish: ['error'], ended: true });
    const exchange = wire.exchanges.at(-1)!;
    await exchange.closed;
    expect(exchange.written).toBeLessThan(35_000_000);
  });
});

/** Sends bytes unchanged, and returns what arrived until the connection ended. */
async function raw(bytes: string | Uint8Array, end = true): Promise<string> {
  const { hostname, port } = new URL(gateway.url);
  const socket = connect({ host: hostname, port: Number(port) });
  let answer = '';
  socket.on('data', (piece) => {
    answer += piece.toString();
  });
  socket.on('error', () => undefined);
  socket.write(bytes);
  if (end) socket.end();
  else setTimeout(() => socket.destroy(), 50);
  await once(socket, 'close');
  return answer;
}

describe('no input of a client ends the process', () => {
  const head = (length: number, type = 'application/json') =>
    `POST /api/v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer ${gateway.key}\r\ncontent-type: ${type}\r\ncontent-length: ${length}\r\n\r\n`;

  async function alive(): Promise<void> {
    script = () => [sse, whole, 'END'];
    expect((await fetch(`${gateway.url}/health/live`)).status).toBe(200);
    expect(await stream('wire/chat')).toMatchObject(ordinary);
  }

  test('bytes that are not HTTP, or incomplete HTTP', async () => {
    expect(await raw('\x00\x01\x02\x03\r\n\r\n')).toMatch(/^HTTP\/1.1 400|^$/);
    expect(await raw('GET / HTTP/9.9\r\n\r\n')).toMatch(/^HTTP\/1.1 (400|505)/);
    expect(await raw(`GET /health/live HTTP/1.1\r\nhost: x\r\nx: ${'y'.repeat(100_000)}\r\n\r\n`)).toMatch(
      /^HTTP\/1.1 431|^$/,
    );
    expect(await raw(`GET /${'y'.repeat(20_000)} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`)).toMatch(
      /^HTTP\/1.1 4\d\d/,
    );
    await raw(`${head(1_000)}{"model":`);
    await raw(`${head(1_000)}{"model":`, false);
    await raw('POST /api/v1/chat/completions HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n', false);
    await alive();
  });

  test('JSON that is invalid, too deep, not an object, or in another encoding', async () => {
    // biome-ignore format: a list reads better in rows
    const bodies = [
      '', '{', 'null', '[]', '"text"', '4', '{"model":"wire/chat","messages":', '[{'.repeat(50_000), '['.repeat(200_000),
      `{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`, `${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}`,
      '{"__proto__":{"x":1}}', '{"constructor":{"prototype":{"x":1}}}', '\ufeff{}', '{"model":1e999}',
    ];
    for (const body of bodies) {
      const answer = await raw(`${head(Buffer.byteLength(body))}${body}`);
      expect(answer, body.slice(0, 40)).toMatch(/^HTTP\/1.1 400/);
      expect(answer).toContain('"error":{"code":400');
    }
    const latin = Buffer.concat([Buffer.from(head(3)), Uint8Array.of(0xff, 0xfe, 0xc0)]);
    expect(await raw(latin)).toMatch(/^HTTP\/1.1 400/);
    expect(await raw(`${head(2, 'text/plain')}{}`)).toMatch(/^HTTP\/1.1 4(00|15)/);
    expect(await raw(`${head(2, 'multipart/form-data')}{}`)).toMatch(/^HTTP\/1.1 4(00|15)/);
    await alive();
  });

  test('any value in any field', async () => {
    script = () => [sse, whole, 'END'];
    // biome-ignore format: a list reads better in rows
    const fields = [
      'model', 'models', 'messages', 'prompt', 'stream', 'provider', 'route', 'tools', 'tool_choice', 'stop', 'temperature',
      'top_p', 'top_k', 'max_tokens', 'max_completion_tokens', 'seed', 'response_format', 'reasoning', 'reasoning_effort',
      'logit_bias', 'plugins', 'user', 'metadata', 'cache_control', 'debug', 'prediction', 'modalities', 'audio', 'stream_options',
      'session_id', 'functions', 'function_call', 'web_search_options', 'parallel_tool_calls', 'logprobs', 'n', 'unknown_field',
    ];
    const property = fc.asyncProperty(
      fc.constantFrom(...fields),
      fc.jsonValue({ maxDepth: 4 }),
      async (field, value) => {
        const response = await fetch(path(), ask('wire/chat', { stream: true, [field]: value }));
        const text = await response.text();
        expect([200, 400, 404, 502], `${field} = ${JSON.stringify(value)}: ${text.slice(0, 300)}`).toContain(
          response.status,
        );
        if (response.status === 200 && field !== 'stream')
          checkChatStream(text, { form: field === 'prompt' && value !== null ? 'prompt' : 'chat' });
      },
    );
    await fc.assert(property, { numRuns: inTier(50, 400), seed: 7 });
    await alive();
  });

  test('any message of any shape', async () => {
    script = () => [sse, whole, 'END'];
    const odd = fc.jsonValue({ maxDepth: 3 });
    const part = fc.record(
      {
        type: fc.oneof(fc.constantFrom('text', 'image_url', 'file', 'input_audio', 'video_url', 'native'), odd),
        text: odd,
        image_url: odd,
        file: odd,
        input_audio: odd,
        cache_control: odd,
        ext: odd,
      },
      { requiredKeys: [] },
    );
    const message = fc.record(
      {
        role: fc.constantFrom('system', 'developer', 'user', 'assistant', 'tool', 'function', ''),
        content: fc.oneof(fc.string(), fc.array(part, { maxLength: 3 }), odd),
        tool_calls: fc.oneof(
          fc.array(fc.record({ id: odd, type: odd, function: odd }, { requiredKeys: [] }), { maxLength: 2 }),
          odd,
        ),
        tool_call_id: fc.oneof(fc.string(), odd),
        name: odd,
        reasoning_details: odd,
        ext: odd,
      },
      { requiredKeys: ['role'] },
    );
    const property = fc.asyncProperty(
      fc.constantFrom('wire/chat', 'wire/messages'),
      fc.array(message, { maxLength: 4 }),
      async (model, messages) => {
        script = ({ path }) => [sse, path.endsWith('/messages') ? wholeMessage : whole, 'END'];
        const response = await fetch(path(), ask(model, { stream: true, messages }));
        const text = await response.text();
        expect([200, 400], `${model} ${JSON.stringify(messages)}: ${text.slice(0, 300)}`).toContain(response.status);
        if (response.status === 200) checkChatStream(text);
      },
    );
    const oddFields = [{ tool_calls: {} }, { tool_calls: [null] }, { tool_call_id: [] }, { function_call: 4 }];
    const examples = oddFields.map((fields): [string, object[]] => [
      'wire/chat',
      [{ role: 'system', content: '', ...fields }],
    ]);
    await fc.assert(property, { numRuns: inTier(50, 400), seed: 7, examples: examples as never });
    await alive();
  });

  test('many at once, disconnecting at any time', async () => {
    script = () => [sse, ...slices(whole, 60).flatMap((step) => [step, { wait: 2 }]), 'END'];
    await Promise.all(
      Array.from({ length: 60 }, async (_, nth) => {
        const leave = new AbortController();
        setTimeout(() => leave.abort(), nth * 3);
        await fetch(path(), { ...ask('wire/chat', { stream: true }), signal: leave.signal })
          .then((response) => response.text())
          .catch(() => undefined);
      }),
    );
    await alive();
  });
});
