/** Prompts that are too long for an endpoint, through the whole gateway. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sandboxProviders } from '../../sandbox/catalog.ts';
import { type Sandbox, startSandbox } from '../../sandbox/server.ts';
import { startGateway, type TestGateway } from '../harness.ts';

let sandbox: Sandbox;
let gateway: TestGateway;

beforeAll(async () => {
  sandbox = await startSandbox();
  const row = (provider: string, contextLength: number, tokenizer = 'Other') => ({
    context_length: contextLength,
    tokenizer,
    endpoints: [{ provider, upstream_model: 'echo', pricing: { prompt: 1, completion: 1 } }],
  });
  const file = {
    bundled_catalog: false,
    providers: sandboxProviders(sandbox.url),
    ledger: { journal_sync: 'os' },
    models: {
      'test/small': row('sandbox', 4_000),
      'test/gpt': row('sandbox', 4_000, 'GPT'),
      'test/large': row('sandbox', 20_000),
      'test/larger': row('sandbox', 60_000),
      'test/claude': row('sandbox-anthropic', 200_000),
    },
  };
  gateway = await startGateway({ yaml: JSON.stringify(file) });
});
afterAll(async () => {
  await gateway.stop();
  await sandbox.stop();
});

interface Answer {
  model: string;
  choices: { message: { content: string }; text: string }[];
  output: { content: { text: string }[] }[];
  usage: { prompt_tokens: number };
  error: { message: string; metadata?: object };
  gateway_metadata: { pipeline?: { type: string; name: string; data: object }[]; adjusted_parameters: object[] };
}
const ask = async (path: string, body: object) => {
  const response = await gateway.call('POST', path, body, { 'x-gateway-experimental-metadata': 'enabled' });
  return { status: response.status, body: (await response.json()) as Answer };
};
const words = (count: number, word = 'apple') => Array.from({ length: count }, (_, at) => `${word}${at}`).join(' ');
const turns = (count: number, chars = 400) =>
  Array.from({ length: count }, (_, at) => ({
    role: at % 2 === 0 ? 'user' : 'assistant',
    content: `turn ${at} ${'word '.repeat(chars / 5)}`,
  }));
const plugins = [{ id: 'context-compression' }];
const off = [{ id: 'context-compression', enabled: false }];

describe.each(['small', 'gpt'])('an endpoint of little context, a model with tokenizer of %s', (name) => {
  test('keeps as much of both ends of the prompt as fits, and reports it to the client', async () => {
    const messages = [{ role: 'system', content: 'Be brief.' }, ...turns(101)];
    const { status, body } = await ask('/chat/completions', { model: `test/${name}`, messages, max_tokens: 500 });
    expect(status).toBe(200);
    expect(body.usage.prompt_tokens).toBeLessThanOrEqual(3_500);
    // It is shortened only as far as required, except for the margin of the gateway's own count.
    expect(body.usage.prompt_tokens).toBeGreaterThan(1_800);
    expect(body.choices[0]!.message.content).toMatch(/^turn 100 /);
    const [stage, ...others] = body.gateway_metadata.pipeline!;
    expect(others).toEqual([]);
    expect(stage).toMatchObject({
      type: 'context_compression',
      name: 'context-compression',
      data: { engine: 'middle-out', input_type: 'messages', original_count: 102, cut_count: 0 },
    });
    expect(body.gateway_metadata.adjusted_parameters).toContainEqual(
      expect.objectContaining({ kind: 'changed', field: 'messages' }),
    );
  });
});

test('one long text is cut in its middle', async () => {
  const { body } = await ask('/chat/completions', {
    model: 'test/small',
    messages: [{ role: 'user', content: words(20_000) }],
    max_tokens: 100,
  });
  expect(body.usage.prompt_tokens).toBeLessThanOrEqual(3_900);
  expect(body.gateway_metadata.pipeline![0]!.data).toMatchObject({
    original_count: 1,
    compressed_count: 1,
    cut_count: 1,
  });
});

test('prompt and output bound fit together', async () => {
  const askFor = { model: 'test/small', messages: turns(101), max_tokens: 3_900 };
  const { status, body } = await ask('/chat/completions', askFor);
  expect(status).toBe(200);
  expect(body.usage.prompt_tokens).toBeLessThanOrEqual(2_000);
  const reason = 'the endpoint has room for 2000 beside the prompt';
  expect(body.gateway_metadata.adjusted_parameters).toContainEqual({ kind: 'clamped', field: 'max_tokens', reason });
});

test('a short prompt is unchanged', async () => {
  const { body } = await ask('/chat/completions', { model: 'test/small', messages: turns(3) });
  expect(body.gateway_metadata.pipeline).toBeUndefined();
});

describe('an endpoint of more context', () => {
  const messages = turns(401);
  test('gets a long prompt unchanged unless compression is requested', async () => {
    const { body } = await ask('/chat/completions', { model: 'test/large', messages });
    expect(body.gateway_metadata.pipeline).toBeUndefined();
  });
  test.each([{ plugins }, { transforms: ['middle-out'] }])(
    'gets a shorter one if it is requested: %j',
    async (more) => {
      const { status, body } = await ask('/chat/completions', { model: 'test/large', messages, ...more });
      expect(status).toBe(200);
      expect(body.usage.prompt_tokens).toBeLessThan(20_000);
      expect(body.gateway_metadata.pipeline).toHaveLength(1);
    },
  );
  test('of two models, the one that accepts half of the prompt is called', async () => {
    const { body } = await ask('/chat/completions', {
      models: ['test/small', 'test/larger'],
      messages,
      plugins,
    });
    expect(body.model).toBe('test/larger');
  });
});

test('if it is off, a prompt that cannot fit is refused, with advice', async () => {
  const { status, body } = await ask('/chat/completions', {
    model: 'test/small',
    messages: [{ role: 'user', content: 'x'.repeat(600_000) }],
    plugins: off,
  });
  expect(status).toBe(400);
  expect(body.error.message).toMatch(/shorten it.*or use the plugin context-compression/);
});

test('a prompt that cannot be cut is refused', async () => {
  const tools = Array.from({ length: 100 }, (_, at) => ({
    type: 'function',
    function: { name: `tool_${at}`, description: words(100), parameters: { type: 'object' } },
  }));
  const { status, body } = await ask('/chat/completions', { model: 'test/small', messages: turns(1), tools });
  expect(status).toBe(400);
  expect(body.error.message).toMatch(/^messages: the prompt is longer than the 4000 tokens/);
});

test('an unknown engine is refused', async () => {
  const { status, body } = await ask('/chat/completions', {
    model: 'test/small',
    messages: turns(1),
    plugins: [{ id: 'context-compression', engine: 'front' }],
  });
  expect(status).toBe(400);
  expect(body.error.message).toBe('plugins[0].engine must be middle-out');
});

describe('in other APIs', () => {
  test('a prompt is cut', async () => {
    const { status, body } = await ask('/chat/completions', { model: 'test/small', prompt: words(20_000) });
    expect(status).toBe(200);
    expect(body.gateway_metadata.pipeline![0]!.data).toMatchObject({ input_type: 'prompt' });
  });
  test('a conversation of the Responses API is shortened, and with truncation for every endpoint', async () => {
    const input = turns(401);
    for (const more of [{ model: 'test/small' }, { model: 'test/large', truncation: 'auto' }]) {
      const { status, body } = await ask('/responses', { input, ...more });
      expect(status).toBe(200);
      expect(body.output[0]!.content[0]!.text).toMatch(/^turn 400 /);
      expect(body.gateway_metadata.pipeline).toHaveLength(1);
    }
  });
  test('a conversation of the Messages API is shortened, also if it has too many messages', async () => {
    const body = { max_tokens: 100, messages: turns(1_201, 20) };
    const small = await ask('/messages', { ...body, model: 'test/small' });
    expect(small.status).toBe(200);
    expect(small.body.gateway_metadata.pipeline).toHaveLength(1);
    const claude = await ask('/messages', { ...body, model: 'test/claude', plugins });
    expect(claude.body.gateway_metadata.pipeline![0]!.data).toMatchObject({
      original_count: 1_201,
      compressed_count: 1_000,
    });
  });
});
