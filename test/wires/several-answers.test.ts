import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../harness.ts';

interface Answer {
  choices: { index: number; message: { content: string; tool_calls?: { id: string }[] }; finish_reason: string }[];
  usage: { prompt_tokens: number; completion_tokens: number; cost: number };
}
interface Chunk {
  choices: {
    index: number;
    delta: { role?: string; content: string; tool_calls?: { index: number; id?: string }[] };
    finish_reason: string | null;
  }[];
  usage?: Answer['usage'];
}

const ask = (text: string, more: Record<string, unknown> = {}) => ({
  model: 'sandbox/echo',
  messages: [{ role: 'user', content: text }],
  ...more,
});

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway.stop());

async function manage(method: string, path: string, body?: unknown) {
  const response = await fetch(`${gateway.base_url}${path}`, {
    method,
    headers: { authorization: `Bearer ${gateway.management_key}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return (await response.json()) as { key: string; data: { id: string; hash: string; usage: number } };
}

async function whole(body: object): Promise<Answer> {
  const response = await gateway.call('POST', '/chat/completions', body);
  const text = await response.text();
  expect(response.status, text).toBe(200);
  return JSON.parse(text) as Answer;
}

async function streamed(body: object): Promise<{ texts: string[]; finishes: string[]; ids: string[][]; last: Chunk }> {
  const response = await gateway.call('POST', '/chat/completions', { ...body, stream: true });
  // Read as text, so that it is checked against the grammar of streams.
  const chunks = (await response.text())
    .split('\n\n')
    .flatMap((event) => (/^data: \{/.test(event) ? (JSON.parse(event.slice(6)) as Chunk) : []));
  const [texts, finishes, ids]: [string[], string[], string[][]] = [[], [], []];
  for (const { index, delta, finish_reason } of chunks.flatMap(({ choices }) => choices)) {
    texts[index] = (texts[index] ?? '') + delta.content;
    ids[index] ??= [];
    for (const { id } of delta.tool_calls ?? []) if (id !== undefined) ids[index].push(id);
    if (finish_reason !== null) finishes[index] = finish_reason;
  }
  return { texts, finishes, ids, last: chunks.at(-1)! };
}

describe('n answers to one request', () => {
  test('are n choices, whole and streamed, and all of them are charged', async () => {
    const [one, three] = [await whole(ask('Good morning')), await whole(ask('Good morning', { n: 3 }))];
    expect(three.choices.map(({ index, message, finish_reason }) => [index, message.content, finish_reason])).toEqual(
      [0, 1, 2].map((index) => [index, 'Good morning', 'stop']),
    );
    expect(three.usage.prompt_tokens).toBe(one.usage.prompt_tokens);
    expect(three.usage.completion_tokens).toBe(3 * one.usage.completion_tokens);
    const stream = await streamed(ask('Good morning', { n: 3 }));
    expect(stream.texts).toEqual(['Good morning', 'Good morning', 'Good morning']);
    expect(stream.finishes).toEqual(['stop', 'stop', 'stop']);
    expect(stream.last.usage).toMatchObject({
      completion_tokens: three.usage.completion_tokens,
      cost: three.usage.cost,
    });
  });

  test('call tools with ids of their own', async () => {
    const tools = [{ type: 'function', function: { name: 'get_weather', parameters: { type: 'object' } } }];
    const body = ask('Weather?', { model: 'sandbox/tools', tools, n: 2 });
    const answer = await whole(body);
    expect(answer.choices.map(({ finish_reason }) => finish_reason)).toEqual(['tool_calls', 'tool_calls']);
    const { ids } = await streamed(body);
    expect(new Set(ids.flat()).size).toBe(ids.flat().length);
    expect(ids.map((ofChoice) => ofChoice.length > 0)).toEqual([true, true]);
  });

  test('are held together, and the bound is lowered to what the limit pays for', async () => {
    const { key } = await manage('POST', '/keys', { name: 'small', limit: 0.001 });
    const auth = { authorization: `Bearer ${key}` };
    const bound = async (n: number) => {
      const body = ask('Hi', { max_tokens: 100_000, n, debug: { echo_upstream_body: true }, stream: true });
      const text = await (await gateway.call('POST', '/chat/completions', body, auth)).text();
      const { debug } = JSON.parse(text.slice(text.indexOf('data: {') + 6).split('\n\n')[0]!) as {
        debug: { echo_upstream_body: Record<string, number> };
      };
      const sent = debug.echo_upstream_body;
      return { n: sent['n'] ?? 1, most: sent['max_completion_tokens'] ?? sent['max_tokens']! };
    };
    const one = await bound(1);
    const four = await bound(4);
    expect([one.n, four.n]).toEqual([1, 4]);
    // The rest pays for a quarter of the tokens in each of four answers.
    expect(four.most).toBeLessThanOrEqual(one.most / 4 + 1);
    expect(four.most).toBeGreaterThan(one.most / 5);
  });

  test('beyond a limit are a 402, even if one answer could be paid for', async () => {
    const { key } = await manage('POST', '/keys', { name: 'tiny', limit: 0.00005 });
    const auth = { authorization: `Bearer ${key}` };
    const many = await gateway.call('POST', '/chat/completions', ask('Hi', { n: 128 }), auth);
    expect(many.status).toBe(402);
    expect((await gateway.call('POST', '/chat/completions', ask('Hi'), auth)).status).toBe(200);
  });

  test('are a 400 with the reason if the wire of the model returns only one answer', async () => {
    const body = ask('Hi', { n: 2, provider: { only: ['sandbox-anthropic'] } });
    const response = await gateway.call('POST', '/chat/completions', body);
    const { error } = (await response.json()) as { error: { message: string; metadata: object } };
    expect([response.status, error.message]).toEqual([
      400,
      expect.stringMatching(/^n must be 1 for the selected model: .*send one request per answer$/),
    ]);
    expect(error.metadata).toMatchObject({ failed_routing_step: 'Filter by Number of Answers' });
  });

  test.each([
    ['a tool of the gateway', { tools: [{ type: 'gateway:datetime' }] }, 'gateway:datetime'],
    [
      'JSON healing',
      { plugins: [{ id: 'response-healing' }], response_format: { type: 'json_object' } },
      'response-healing',
    ],
  ])('cannot be combined with %s', async (_, more, named) => {
    const response = await gateway.call('POST', '/chat/completions', ask('Hi', { n: 2, ...more }));
    const { error } = (await response.json()) as { error: { message: string } };
    expect([response.status, error.message]).toEqual([400, `n must be 1 with ${named}: send one request per answer`]);
  });

  test.each([0, 129, 1.5])('are an integer from 1 to 128: %s', async (n) => {
    expect((await gateway.call('POST', '/chat/completions', ask('Hi', { n }))).status).toBe(400);
  });

  test('are not available in the older API, whose prompts are answered once', async () => {
    const response = await gateway.call('POST', '/completions', { model: 'sandbox/echo', prompt: 'Hi', n: 2 });
    expect(response.status).toBe(400);
  });

  test('are explained with the cost of all of them', async () => {
    const cost = async (n: number) => {
      const response = await gateway.call('POST', '/route/explain', ask('Hi', { n, max_tokens: 1000 }));
      const { data } = (await response.json()) as { data: { attempts: { worst_case: number }[] } };
      return data;
    };
    expect(JSON.stringify(await cost(4))).not.toBe(JSON.stringify(await cost(1)));
  });
});

describe('a provider of several answers', () => {
  const SECRET = '4111 1111 1111 1111';
  const TEXTS = ['Nothing of note.', `Their card is ${SECRET}, it says.`];
  let upstream: Server;
  let acme: TestGateway;
  /** How many of the requested answers it returns, and whether its stream has its end. */
  let gives = 2;
  let isCut = false;

  beforeAll(async () => {
    upstream = createServer((request, response) => {
      let text = '';
      request.on('data', (piece: Buffer) => {
        text += piece.toString();
      });
      request.on('end', () => {
        const body = JSON.parse(text) as { stream?: boolean };
        const head = { id: 'c', created: 1, model: 'm' };
        const usage = { prompt_tokens: 10, completion_tokens: 40, total_tokens: 50 };
        const texts = TEXTS.slice(0, gives);
        if (body.stream !== true) {
          const choices = texts.map((content, index) => ({
            index,
            message: { role: 'assistant', content },
            finish_reason: 'stop',
          }));
          response.writeHead(200, { 'content-type': 'application/json' });
          response.end(JSON.stringify({ ...head, object: 'chat.completion', choices, usage }));
          return;
        }
        const chunk = (index: number, delta: object, finishReason: string | null = null) =>
          `data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', choices: [{ index, delta, finish_reason: finishReason }] })}\n\n`;
        const pieces = texts.map((one) => one.match(/.{1,4}/g) ?? []);
        const byTurns = Array.from({ length: 20 }, (_, at) =>
          pieces.map((ofOne, index) => (ofOne[at] === undefined ? '' : chunk(index, { content: ofOne[at] }))).join(''),
        ).join('');
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        const ends = texts.map((_, index) => chunk(index, {}, 'stop')).join('');
        const last = `data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', choices: [], usage })}\n\ndata: [DONE]\n\n`;
        response.end(isCut ? byTurns + chunk(0, {}, 'stop') : byTurns + ends + last);
      });
    });
    await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
    const baseUrl = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
    const pricing = { prompt: 1, completion: 1 };
    const at = (provider: string) => ({ endpoints: [{ provider, upstream_model: 'm', pricing }] });
    const provider = { dialect: 'openai-chat', base_url: baseUrl, api_key: 'k' };
    acme = await startGateway({
      yaml: JSON.stringify({
        bundled_catalog: false,
        providers: { acme: provider, single: { ...provider, quirks: { refused_parameters: ['n'] } } },
        models: { 'acme/m': at('acme'), 'acme/one': at('single') },
      }),
    });
  });
  afterAll(async () => {
    await acme.stop();
    upstream.close();
  });
  beforeEach(() => {
    [gives, isCut] = [2, false];
  });

  const call = async (more: object = {}, key = acme.key) => {
    const body = { model: 'acme/m', n: 2, messages: [{ role: 'user', content: 'Hi' }], ...more };
    const response = await acme.call('POST', '/chat/completions', body, { authorization: `Bearer ${key}` });
    return { status: response.status, text: await response.text() };
  };

  async function keyUnder(settings: object): Promise<string> {
    const authorization = `Bearer ${acme.management_key}`;
    const manage = async (path: string, body: object) => {
      const response = await acme.call('POST', path, body, { authorization });
      expect(response.ok, await response.clone().text()).toBe(true);
      return (await response.json()) as { key: string; data: { id: string; hash: string } };
    };
    const { key, data } = await manage('/keys', { name: 'filtered' });
    const made = await manage('/guardrails', { name: 'cards', content_filter_output: true, ...settings });
    await manage(`/guardrails/${made.data.id}/assignments/keys`, { key_hashes: [data.hash] });
    return key;
  }

  test.each([false, true])('is charged for its reported usage (stream: %s)', async (stream) => {
    const { text } = await call({ stream });
    expect(text).toContain('"cost":0.00005');
    expect(text.match(/"index":1/g)?.length).toBeGreaterThan(0);
  });

  test.each([false, true])('has each of its answers filtered by guardrails (stream: %s)', async (stream) => {
    const redacted = await keyUnder({
      content_filter_builtins: [{ slug: 'credit-card', action: 'redact' }],
    });
    const { status, text } = await call({ stream }, redacted);
    expect(status).toBe(200);
    expect(text.replaceAll(/[^\d]/g, '')).not.toContain(SECRET.replaceAll(' ', ''));
    expect(text).toContain('[');
    const blocked = await keyUnder({
      content_filter_builtins: [{ slug: 'credit-card', action: 'block' }],
    });
    const refused = await call({ stream }, blocked);
    expect(refused.status).toBe(stream ? 200 : 403);
    expect(refused.text).toContain('Response blocked by content filter');
    // The other one ends as well, if it has not yet.
    if (stream) expect(refused.text.match(/"finish_reason":"(?:content_filter|stop)"/g)).toHaveLength(2);
  });

  test('may return fewer answers than requested', async () => {
    gives = 1;
    const { status, text } = await call();
    expect([status, (JSON.parse(text) as Answer).choices.length]).toEqual([200, 1]);
  });

  test('whose stream breaks off before all of them ended has failed', async () => {
    isCut = true;
    const { text } = await call({ stream: true });
    expect(text).toContain('"finish_reason":"error"');
  });

  test('is not called if it is known to refuse n', async () => {
    const { status, text } = await call({ model: 'acme/one' });
    expect([status, text]).toEqual([400, expect.stringContaining('n must be 1')]);
  });

  test('receives only the n of the request: neither options nor extra fields set one', async () => {
    const { text } = await call({
      n: 1,
      stream: true,
      provider: { options: { acme: { n: 5 } } },
      debug: { echo_upstream_body: true },
    });
    expect(/"n":/.test(text)).toBe(false);
  });
});
