/** A provider that answers a streamed request with a whole JSON body has made and billed all of it: nothing ends its bill early. */
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
/** USD: 10 tokens at 1, and the words at 10, for a million. */
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

async function answered(limit: number, guardrail?: object): Promise<{ text: string; cost: number }> {
  upstream = await startWireServer(() => [responseHead(200, 'application/json'), ANSWER, 'END']);
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
  const body = { model: 'case/model', stream: true, max_tokens: 1_000, messages: [{ role: 'user', content: 'Hi' }] };
  const response = await gateway.call('POST', '/chat/completions', body, { authorization });
  const text = await response.text();
  const shown = (await (await gateway.call('GET', '/key', undefined, { authorization })).json()) as {
    data: { usage: number };
  };
  return { text, cost: shown.data.usage };
}

test.fails('an answer longer than its hold costs what its provider reports, and is not cut', async () => {
  const { text, cost } = await answered(0.05);
  expect(cost).toBe(COST);
  expect(text).not.toContain('"finish_reason":"length"');
});

test.fails('an answer that a filter withholds costs what its provider reports', async () => {
  const { cost } = await answered(5, {
    content_filter_builtins: [{ slug: 'email', action: 'block' }],
    content_filter_output: true,
  });
  expect(cost).toBe(COST);
});
