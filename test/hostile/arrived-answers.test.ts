/**
 * An answer that has arrived completely, as one JSON body or as one read of events, is billed completely: closing its
 * connection stops no billing.
 */
import { afterEach, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../harness.ts';
import { responseHead, startWireServer, type WireServer } from '../wires/wire-server.ts';

const WORDS = 200_000;
const CONTENT = 'word '.repeat(WORDS);
const ANSWER = JSON.stringify({
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: `a@example.com ${CONTENT}` }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 10, completion_tokens: WORDS, total_tokens: WORDS + 10 },
});
/** In USD for a million: 10 prompt tokens at 1, and the words at 10. */
const COST = 2.00001;

let upstream: WireServer | undefined;
let gateway: TestGateway | undefined;
afterEach(async () => {
  await gateway?.stop();
  await upstream?.stop();
});

async function managed(path: string, body: object): Promise<{ key: string; data: { hash: string; id: string } }> {
  const response = await gateway!.call('POST', path, body, { authorization: `Bearer ${gateway!.management_key}` });
  return (await response.json()) as { key: string; data: { hash: string; id: string } };
}

async function answered(
  limit: number,
  guardrail?: object,
  [type, body] = ['application/json', ANSWER],
): Promise<{ text: string; cost: number }> {
  upstream = await startWireServer(() => [responseHead(200, type), body, 'END']);
  gateway = await startGateway({
    yaml: JSON.stringify({
      bundled_catalog: false,
      providers: {
        one: { name: 'One', dialect: 'openai-chat', base_url: upstream.url, abort_stops_billing: true },
      },
      models: {
        'case/model': {
          context_length: 1_000_000,
          endpoints: [{ provider: 'one', upstream_model: 'm', pricing: { prompt: 1, completion: 10 } }],
        },
      },
    }),
  });
  const { key, data } = await managed('/keys', { name: 'k', limit });
  if (guardrail !== undefined) {
    const made = await managed('/guardrails', { name: 'g', ...guardrail });
    await managed(`/guardrails/${made.data.id}/assignments/keys`, { key_hashes: [data.hash] });
  }
  const authorization = `Bearer ${key}`;
  const response = await gateway.call(
    'POST',
    '/chat/completions',
    { model: 'case/model', stream: true, max_tokens: 1_000, messages: [{ role: 'user', content: 'Hi' }] },
    { authorization },
  );
  const text = await response.text();
  const shown = (await (await gateway.call('GET', '/key', undefined, { authorization })).json()) as {
    data: { usage: number };
  };
  return { text, cost: shown.data.usage };
}

test('an answer that exceeds its hold costs what its provider reports, and is not cut', async () => {
  const { text, cost } = await answered(0.05);
  expect(cost).toBe(COST);
  expect(text).not.toContain('"finish_reason":"length"');
});

const BLOCKED = { content_filter_builtins: [{ slug: 'email', action: 'block' }], content_filter_output: true };

test('an answer that a filter withholds costs what its provider reports', async () => {
  expect((await answered(5, BLOCKED)).cost).toBe(COST);
});

test('a stream that a filter withholds costs what its provider reports, if the report has arrived', async () => {
  const event = (choices: object[], more: object = {}) =>
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices, ...more })}\n\n`;
  const text = (content: string) => event([{ index: 0, delta: { role: 'assistant', content }, finish_reason: null }]);
  const words = Array.from({ length: 300 }, (_, nth) => text(`w${nth} `)).join('');
  const end = event([{ index: 0, delta: {}, finish_reason: 'stop' }]);
  const usage = event([], { usage: { prompt_tokens: 10, completion_tokens: 900, total_tokens: 910 } });
  const stream = `${text('a@example.com ')}${words}${end}${usage}data: [DONE]\n\n`;
  const { cost } = await answered(5, BLOCKED, ['text/event-stream', stream]);
  expect(cost).toBe(0.00901);
});
