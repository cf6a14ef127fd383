/** Answers that should be JSON, through the whole gateway, on each API with a format. */

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../harness.ts';

/** An upstream that echoes the last message in any format. */
const upstream = createServer(async (request, response) => {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  const { messages, stream } = JSON.parse(Buffer.concat(parts).toString()) as ReceivedRequest;
  const content = messages.at(-1)!.content;
  const text = typeof content === 'string' ? content : content.map((part) => part.text).join('');
  const usage = { prompt_tokens: 5, completion_tokens: 5, total_tokens: 10 };
  if (!stream) {
    const choice = { index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' };
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(
      JSON.stringify({ id: 'a', object: 'chat.completion', created: 1, model: 'm', choices: [choice], usage }),
    );
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const send = (event: object) =>
    response.write(`data: ${JSON.stringify({ id: 'a', created: 1, model: 'm', ...event })}\n\n`);
  send({ choices: [{ index: 0, delta: { role: 'assistant', content: text }, finish_reason: null }] });
  send({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] });
  send({ choices: [], usage });
  response.end('data: [DONE]\n\n');
});
interface ReceivedRequest {
  messages: { content: string | { text: string }[] }[];
  stream?: boolean;
}

let gateway: TestGateway;
beforeAll(async () => {
  await new Promise<void>((resolve) => void upstream.listen(0, '127.0.0.1', resolve));
  const { port } = upstream.address() as AddressInfo;
  const file = {
    bundled_catalog: false,
    providers: { local: { name: 'Local', dialect: 'openai-chat', base_url: `http://127.0.0.1:${port}` } },
    ledger: { journal_sync: 'os' },
    models: {
      'test/parrot': {
        context_length: 100_000,
        endpoints: [{ provider: 'local', upstream_model: 'm', pricing: { prompt: 1, completion: 1 } }],
      },
    },
  };
  gateway = await startGateway({ yaml: JSON.stringify(file) });
});
afterAll(async () => {
  await gateway.stop();
  upstream.close();
});

const BROKEN = 'Here you are:\n```json\n{"name": "Ann", age: 7,}\n```';
const MENDED = { name: 'Ann', age: 7 };
const schema = {
  type: 'object',
  properties: { name: { type: 'string' }, age: { type: 'integer' } },
  required: ['name', 'age'],
  additionalProperties: false,
};
const plugins = [{ id: 'response-healing' }];
const model = 'test/parrot';
const messages = [{ role: 'user', content: BROKEN }];
const METADATA = { 'x-gateway-experimental-metadata': 'enabled' };

interface Answer {
  choices: { message: { content: string } }[];
  output: { content: { text: string }[] }[];
  content: { text: string }[];
  gateway_metadata: { pipeline?: object[]; adjusted_parameters: object[] };
  error: { message: string };
}
const ask = async (path: string, body: object): Promise<Answer> =>
  (await (await gateway.call('POST', path, { model, plugins, ...body }, METADATA)).json()) as Answer;
const chatFormat = { type: 'json_schema', json_schema: { name: 'person', schema } };

describe.each<[string, object, (answer: Answer) => string]>([
  ['/chat/completions', { messages, response_format: chatFormat }, (answer) => answer.choices[0]!.message.content],
  [
    '/chat/completions',
    { messages, response_format: { type: 'json_object' } },
    (answer) => answer.choices[0]!.message.content,
  ],
  [
    '/responses',
    { input: BROKEN, text: { format: { type: 'json_schema', name: 'person', schema } } },
    (answer) => answer.output[0]!.content[0]!.text,
  ],
  [
    '/responses',
    { input: BROKEN, text: { format: { type: 'json_object' } } },
    (answer) => answer.output[0]!.content[0]!.text,
  ],
  [
    '/messages',
    { messages, max_tokens: 100, output_config: { format: { type: 'json_schema', schema } } },
    (answer) => answer.content[0]!.text,
  ],
])('%s, %j', (path, body, textOf) => {
  test('is repaired if the plugin is requested, with a stage', async () => {
    const answer = await ask(path, body);
    expect(JSON.parse(textOf(answer))).toEqual(MENDED);
    expect(answer.gateway_metadata.pipeline).toMatchObject([{ type: 'response_healing', data: { improved: true } }]);
  });
  test('is unchanged without the plugin', async () => {
    const answer = await ask(path, { ...body, plugins: [] });
    expect(textOf(answer)).toBe(BROKEN);
    expect(answer.gateway_metadata.pipeline).toBeUndefined();
  });
});

test('a stream is not repaired, and a stage says so', async () => {
  const body = { model, plugins, messages, response_format: chatFormat, stream: true };
  const text = await (await gateway.call('POST', '/chat/completions', body, METADATA)).text();
  expect(text).toContain('Here you are');
  expect(text).toContain('"reason":"streams are not repaired"');
});

test('an unknown option is refused', async () => {
  const { error } = await ask('/chat/completions', { messages, plugins: [{ id: 'response-healing', level: 2 }] });
  expect(error.message).toBe('plugins[0].level is not an option of this plugin; its options are enabled');
});

test('an engine that is not configured is refused, with the name of the setting', async () => {
  const { error } = await ask('/chat/completions', {
    messages,
    plugins: [{ id: 'file-parser', pdf: { engine: 'mistral-ocr' } }],
  });
  expect(error.message).toMatch(/^plugins\[0\]\.pdf\.engine is not configured \(plugins\.file_parser\.ocr\)/);
});
