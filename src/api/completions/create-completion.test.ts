import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkChatStream } from '../../../test/grammar/chat.ts';
import { startGateway, type TestGateway } from '../../../test/harness.ts';
import { array, object } from '../../../test/readings/recordings.ts';
import { responseHead, startWireServer, type WireServer } from '../../../test/wires/wire-server.ts';
import type { JsonObject } from '../../schemas/json.ts';

const usage = { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 };
const logprobs = {
  content: ['Hé', '😀!', 'x'].map((token, i) => ({
    token,
    logprob: -i,
    bytes: null,
    top_logprobs: [{ token: 'other', logprob: -9, bytes: null }],
  })),
};

let upstream: WireServer;
let gateway: TestGateway;
/** The current number of requests at the upstream, and their maximum. */
let atOnce = 0;
let mostAtOnce = 0;

beforeAll(async () => {
  upstream = await startWireServer((exchange) => {
    const body = JSON.parse(exchange.body) as JsonObject;
    const prompt = String(object(array(body['messages'])[0])['content']);
    atOnce += 1;
    mostAtOnce = Math.max(mostAtOnce, atOnce);
    void exchange.closed.then(() => {
      atOnce -= 1;
    });
    if (prompt.startsWith('refused')) {
      return [
        responseHead(400, 'application/json'),
        '{"error":{"message":"I will not","type":"x","code":"no"}}',
        'END',
      ];
    }
    if (prompt.startsWith('calls')) {
      const call = { index: 0, id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } };
      const message = { role: 'assistant', content: null, tool_calls: [call] };
      const head = { id: 'x', created: 1, model: 'm', usage };
      const ends = { index: 0, finish_reason: 'tool_calls' };
      if (body['stream'] !== true) {
        const whole = { ...head, object: 'chat.completion', choices: [{ ...ends, message }] };
        return [responseHead(200, 'application/json'), JSON.stringify(whole), 'END'];
      }
      const chunk = { ...head, object: 'chat.completion.chunk', choices: [{ ...ends, delta: message }] };
      return [responseHead(200, 'text/event-stream'), `data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`, 'END'];
    }
    const shownLogprobs = body['logprobs'] === true ? logprobs : null;
    const message = { role: 'assistant', content: `answer to ${prompt}`, reasoning_content: 'a hidden thought' };
    if (body['stream'] !== true) {
      const choice = { index: 0, message, finish_reason: 'stop', logprobs: shownLogprobs };
      const whole = { id: 'x', object: 'chat.completion', created: 1, model: 'm', choices: [choice], usage };
      return [responseHead(200, 'application/json'), { wait: 100 }, JSON.stringify(whole), 'END'];
    }
    const event = (choices: object[], more: object = {}) =>
      `data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices, ...more })}\n\n`;
    const piece = (delta: object, more: object = {}) => event([{ index: 0, delta, finish_reason: null, ...more }]);
    return [
      responseHead(200, 'text/event-stream'),
      piece({ role: 'assistant', reasoning_content: 'a hidden thought' }),
      piece({ content: 'answer ' }, { logprobs: shownLogprobs }),
      ...(prompt.startsWith('endless') ? [{ wait: 5_000 }] : [{ wait: 100 }]),
      piece({ content: `to ${prompt}` }, { logprobs: shownLogprobs }),
      ...(prompt.startsWith('broken')
        ? ['data: {"error":{"message":"Overloaded","code":502}}\n\n', 'END' as const]
        : [piece({}, { finish_reason: 'stop' }), event([], { usage }), 'data: [DONE]\n\n', 'END' as const]),
    ];
  });
  const file = {
    bundled_catalog: false,
    providers: { wire: { name: 'Wire', dialect: 'openai-chat', base_url: upstream.url, api_key: 'k' } },
    models: {
      'wire/model': { endpoints: [{ provider: 'wire', upstream_model: 'm', pricing: { prompt: 1, completion: 2 } }] },
    },
  };
  gateway = await startGateway({ yaml: JSON.stringify(file) });
});
afterAll(async () => {
  await gateway.stop();
  await upstream.stop();
});

async function complete(body: object): Promise<{ status: number; answer: JsonObject }> {
  const response = await gateway.call('POST', '/completions', { model: 'wire/model', ...body });
  return { status: response.status, answer: (await response.json()) as JsonObject };
}

/** The chunks of a stream with a valid grammar, and the texts of its choices. */
async function stream(body: { prompt: string | string[] } & JsonObject) {
  const response = await gateway.call('POST', '/completions', { model: 'wire/model', ...body, stream: true });
  const text = await response.text();
  expect(response.status, text).toBe(200);
  const { length } = [body.prompt].flat();
  const chunks = checkChatStream(text, { form: 'completions', choices: length });
  const texts = Array.from({ length }, () => '');
  for (const chunk of chunks) {
    for (const choice of array(chunk['choices']).map(object)) texts[Number(choice['index'])] += String(choice['text']);
  }
  return { chunks, texts, last: chunks.at(-1)! };
}

const COST = 0.000009;

describe('one prompt', () => {
  test('is answered with text', async () => {
    const { status, answer } = await complete({ prompt: 'Hello' });
    expect(status).toBe(200);
    expect(answer).toMatchObject({
      id: expect.stringMatching(/^gen-/),
      object: 'text_completion',
      model: 'wire/model',
      provider: 'Wire',
      choices: [
        {
          index: 0,
          text: 'answer to Hello',
          reasoning: 'a hidden thought',
          logprobs: null,
          finish_reason: 'stop',
          native_finish_reason: 'stop',
        },
      ],
      usage: { ...usage, cost: COST },
    });
    expect(answer).not.toHaveProperty('generations');
    const record = await gateway.call('GET', `/generation?id=${answer['id']}`);
    expect(await record.json()).toMatchObject({ data: { total_cost: COST, api_type: 'completions' } });
  });

  test('is streamed as text', async () => {
    const { chunks, texts, last } = await stream({ prompt: 'Hello' });
    expect(texts).toEqual(['answer to Hello']);
    expect(last).toMatchObject({ choices: [], usage: { total_tokens: 7, cost: COST } });
    expect(array(chunks[0]?.['choices'])[0]).toMatchObject({ text: '', reasoning: 'a hidden thought' });
  });

  test.each(['/completions', '/chat/completions'])(
    'unrequested tool calls end the answer with stop at %s',
    async (path) => {
      const body = { model: 'wire/model', prompt: 'calls' };
      const whole = (await (await gateway.call('POST', path, body)).json()) as JsonObject;
      expect(whole).toMatchObject({
        choices: [{ text: '', finish_reason: 'stop', native_finish_reason: 'tool_calls' }],
      });
      const text = await (await gateway.call('POST', path, { ...body, stream: true })).text();
      expect(text).toContain('"finish_reason":"stop","native_finish_reason":"tool_calls"');
    },
  );

  test('a list of one is one prompt', async () => {
    expect((await complete({ prompt: ['Hello'] })).answer).toMatchObject({ choices: [{ text: 'answer to Hello' }] });
  });

  test('is repeated before the text if echo is set', async () => {
    const { answer } = await complete({ prompt: 'Hello', echo: true });
    expect(answer).toMatchObject({ choices: [{ text: 'Helloanswer to Hello' }] });
    expect((await stream({ prompt: 'Hello', echo: true })).texts).toEqual(['Helloanswer to Hello']);
  });

  test('reasoning is omitted if it is excluded', async () => {
    const hidden = { prompt: 'Hello', reasoning: { exclude: true } };
    expect(JSON.stringify((await complete(hidden)).answer)).not.toContain('a hidden thought');
    expect(JSON.stringify((await stream(hidden)).chunks)).not.toContain('a hidden thought');
  });

  test('log probabilities are arrays, with offsets in characters that continue through a stream', async () => {
    const expected = {
      tokens: ['Hé', '😀!', 'x'],
      token_logprobs: [-0, -1, -2],
      top_logprobs: [
        { other: -9, Hé: -0 },
        { other: -9, '😀!': -1 },
        { other: -9, x: -2 },
      ],
      text_offset: [0, 2, 4],
    };
    const { answer } = await complete({ prompt: 'Hello', logprobs: 1 });
    expect(array(answer['choices'])[0]).toMatchObject({ logprobs: JSON.parse(JSON.stringify(expected)) });
    expect(JSON.parse(upstream.exchanges.at(-1)!.body)).toMatchObject({ logprobs: true, top_logprobs: 1 });
    const { chunks } = await stream({ prompt: 'Hello', logprobs: 0 });
    expect(JSON.parse(upstream.exchanges.at(-1)!.body)).not.toHaveProperty('top_logprobs');
    const offsets = chunks.flatMap((chunk) =>
      array(chunk['choices']).flatMap((choice) => array(object(object(choice)['logprobs'])['text_offset'])),
    );
    expect(offsets).toEqual([0, 2, 4, 5, 7, 9]);
  });

  test('a failure in the stream has the same form as in chat', async () => {
    const { chunks } = await stream({ prompt: 'broken' });
    expect(chunks.at(-2)).toMatchObject({
      error: { code: 503, metadata: { error_type: 'provider_overloaded' } },
      choices: [{ text: '', finish_reason: 'error' }],
    });
    expect(Object.keys(chunks.at(-2)!)[0]).toBe('error');
  });

  test('routing is shown if requested', async () => {
    const headers = { 'x-gateway-experimental-metadata': 'enabled' };
    const body = { model: 'wire/model', prompt: 'Hello' };
    const response = await gateway.call('POST', '/completions', body, headers);
    expect(await response.json()).toMatchObject({ gateway_metadata: { attempts: expect.anything() } });
  });
});

describe('several prompts', () => {
  const prompts = Array.from({ length: 12 }, (_, i) => `p${i}`);

  test('are separate calls: choices in order, summed usage, a generation each, eight at once', async () => {
    mostAtOnce = 0;
    const { answer } = await complete({ prompt: prompts });
    expect(array(answer['choices'])).toMatchObject(prompts.map((p, index) => ({ index, text: `answer to ${p}` })));
    expect(answer['usage']).toMatchObject({
      prompt_tokens: 60,
      completion_tokens: 24,
      total_tokens: 84,
      cost: 0.000108,
      is_byok: false,
    });
    expect(mostAtOnce).toBe(8);
    const generations = array(answer['generations']).map(object);
    expect(new Set(generations.map(({ id }) => id)).size).toBe(12);
    expect(generations[0]?.['id']).toBe(answer['id']);
    const record = await gateway.call('GET', `/generation?id=${generations[11]?.['id']}`);
    expect(await record.json()).toMatchObject({ data: { total_cost: COST } });
  });

  test('are streamed in parallel, with one usage', async () => {
    mostAtOnce = 0;
    const { chunks, texts, last } = await stream({ prompt: prompts });
    expect(texts).toEqual(prompts.map((p) => `answer to ${p}`));
    expect(last).toMatchObject({ usage: { total_tokens: 84, cost: 0.000108 } });
    expect(mostAtOnce).toBe(8);
    const order = chunks.flatMap((chunk) => array(chunk['choices']).map((choice) => Number(object(choice)['index'])));
    expect(order.indexOf(1)).toBeLessThan(order.lastIndexOf(0));
  });

  test.each(['refused', 'broken'])('one that is %s does not fail the others', async (bad) => {
    const { chunks, texts, last } = await stream({ prompt: ['a', bad, 'b'] });
    expect([texts[0], texts[2]]).toEqual(['answer to a', 'answer to b']);
    const failed = chunks.flatMap((chunk) => array(chunk['choices']).map(object)).filter((one) => one['error']);
    expect(failed).toMatchObject([{ index: 1, finish_reason: 'error', error: { message: expect.any(String) } }]);
    expect(chunks.some((chunk) => chunk['error'] !== undefined)).toBe(false);
    expect(object(last['usage'])['total_tokens']).toBeGreaterThanOrEqual(14);
    if (bad === 'broken') return;
    const { status, answer } = await complete({ prompt: ['a', bad, 'b'] });
    expect(status).toBe(200);
    expect(answer).toMatchObject({
      choices: [
        { text: 'answer to a' },
        { index: 1, text: '', finish_reason: 'error', error: { code: 400 } },
        { index: 2, text: 'answer to b' },
      ],
      usage: { total_tokens: 14 },
    });
  });

  test('reserve memory for their common parts once per concurrent prompt', async () => {
    const small = await startGateway({ yaml: 'limits: { memory_bytes: 16777216 }' });
    try {
      const send = async (prompt: string[]) => {
        const trace = { x: 'y'.repeat(500_000) };
        return (await small.call('POST', '/completions', { model: 'sandbox/echo', prompt, trace })).status;
      };
      expect(await send(['a'])).toBe(200);
      expect(await send(Array.from({ length: 9 }, () => 'a'))).toBe(413);
    } finally {
      await small.stop();
    }
  });

  test('that all fail are an error like that of one', async () => {
    const { status, answer } = await complete({ prompt: ['refused 1', 'refused 2'] });
    expect([status, object(answer['error'])['code']]).toEqual([400, 400]);
    const streamed = await gateway.call('POST', '/completions', {
      model: 'wire/model',
      prompt: ['refused 1', 'refused 2'],
      stream: true,
    });
    expect(streamed.status).toBe(400);
  });

  test('are all cancelled when the client disconnects', async () => {
    const leave = new AbortController();
    const pending = fetch(`${gateway.base_url}/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'wire/model', prompt: prompts.map((one) => `endless ${one}`), stream: true }),
      signal: leave.signal,
    });
    const reader = (await pending).body!.getReader();
    await reader.read();
    await expect.poll(() => atOnce).toBe(8);
    leave.abort();
    await expect.poll(() => atOnce).toBe(0);
    // Prompts that were not started are not started any more.
    expect(upstream.exchanges.some(({ body }) => body.includes('endless p8'))).toBe(false);
  });
});

test.each<[string, object, string]>([
  ['no prompt', {}, 'prompt'],
  ['an empty prompt', { prompt: '' }, 'prompt'],
  ['an empty list of prompts', { prompt: [] }, 'prompt'],
  ['tokens', { prompt: [1, 2] }, 'prompt'],
  ['lists of tokens', { prompt: [[1, 2]] }, 'tokens'],
  ['too many prompts', { prompt: Array.from({ length: 65 }, () => 'x') }, 'at most 64'],
  ['a suffix', { prompt: 'x', suffix: 'y' }, 'suffix'],
  ['best_of 2', { prompt: 'x', best_of: 2 }, 'best_of'],
  ['two choices', { prompt: 'x', n: 2 }, 'n'],
  ['logprobs of echoed text', { prompt: 'x', echo: true, logprobs: 0 }, 'logprobs'],
  ['six logprobs', { prompt: 'x', logprobs: 6 }, 'logprobs'],
  ['messages', { prompt: 'x', messages: [] }, 'messages'],
  ['tools', { prompt: 'x', tools: {} }, 'tools'],
  ['sound', { prompt: 'x', modalities: ['audio'] }, 'modalities'],
])('%s is a 400 that names the field', async (_title, body, named) => {
  const { status, answer } = await complete(body);
  expect(status).toBe(400);
  expect(object(answer['error'])['message']).toContain(named);
});

test.each([{ suffix: '' }, { best_of: 1 }, { n: 1 }, { logprobs: null }, { echo: null }, { user: 'u' }])(
  'fields without effect are accepted: %j',
  async (more) => {
    expect((await complete({ prompt: 'Hello', ...more })).status).toBe(200);
  },
);
