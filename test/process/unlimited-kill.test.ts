import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { responseHead, type Step, startWireServer } from '../wire-server.ts';
import { freePort, freshDir, makeKey, serve, stop, until } from './gateway-process.ts';

/** USD for a token of the prompt, and one of the answer. */
const PROMPT_USD = 0.000_1;
const COMPLETION_USD = 0.001;
const TEXT = 'Tell me a story about a gateway that was killed.';
const LONG = `${TEXT} `.repeat(200);

const chunk = (content: string) =>
  `data: ${JSON.stringify({ id: 'up-1', object: 'chat.completion.chunk', created: 1, model: 'x', choices: [{ index: 0, delta: { role: 'assistant', content }, finish_reason: null }] })}\n\n`;

interface Generation {
  outcome: string;
  estimated: boolean;
  total_cost: number;
  tokens_prompt: number | null;
  tokens_completion: number | null;
  charges: { class: string; amount: string }[];
}

const chat = (content: string, more: object) => ({
  model: 'wire/text',
  messages: [{ role: 'user', content }],
  ...more,
});
/** What is asked, and where. */
const CALLS: [path: string, body: object][] = [
  ['/chat/completions', chat(TEXT, { stream: true })],
  ['/chat/completions', chat(TEXT, {})],
  ['/chat/completions', chat(LONG, {})],
  ['/messages', chat(TEXT, { max_tokens: 100 })],
  ['/responses', { model: 'wire/text', input: TEXT }],
  ['/completions', { model: 'wire/text', prompt: TEXT }],
  ['/embeddings', { model: 'wire/vectors', input: [TEXT, TEXT] }],
];

/** A gateway whose upstream begins to answer streams and says nothing else. */
async function site() {
  const steps = (body: string): Step[] =>
    body.includes('"stream":true') ? [responseHead(200, 'text/event-stream'), chunk('Once')] : [];
  const wire = await startWireServer(({ body }) => steps(body));
  onTestFinished(() => wire.stop());
  const pricing = { prompt: PROMPT_USD * 1e6, completion: COMPLETION_USD * 1e6 };
  const endpoints = [{ provider: 'wire', upstream_model: 'x', pricing }];
  const yaml = JSON.stringify({
    bundled_catalog: false,
    logging: { level: 'warn' },
    providers: { wire: { dialect: 'openai-chat', base_url: wire.url } },
    models: {
      'wire/text': { context_length: 100_000, endpoints },
      'wire/vectors': { output_modalities: ['embeddings'], endpoints },
    },
  });
  return { wire, options: { data_dir: freshDir(), port: await freePort(), yaml } };
}

test('of a caller without limits, what a kill cut off costs the prompt at least, and its record makes no zero of what is not known', async () => {
  const { wire, options } = await site();
  const first = await serve(options);
  const { key, hash } = await makeKey(first);
  const cut = CALLS.map(([path, body]) => first.call('POST', path, { key, body }).then((answer) => answer.text()));
  await until('all are under way', () => wire.exchanges.length === CALLS.length);
  await sleep(100);
  first.child.kill('SIGKILL');
  await Promise.all([first.ended, Promise.allSettled(cut)]);

  const again = await serve(options);
  const ids = wire.exchanges.map(({ headers }) => headers['x-client-request-id']?.replace(/\.1$/, ''));
  let sum = 0;
  for (const [nth, id] of ids.entries()) {
    const told = JSON.stringify(wire.exchanges[nth]?.body);
    const answer = await again.call('GET', `/generation?id=${id}`, { key });
    expect(answer.status, told).toBe(200);
    const { data } = (await answer.json()) as { data: Generation };
    const is_long = told.length > 2_000;
    const [least, most] = is_long ? [2_000, 3_000] : told.includes('input') ? [20, 40] : [12, 24];
    expect(data, told).toMatchObject({ outcome: 'unknown', estimated: true, tokens_completion: null });
    expect(data.tokens_prompt, told).toBeGreaterThanOrEqual(least);
    expect(data.tokens_prompt, told).toBeLessThanOrEqual(most);
    expect(data.total_cost, told).toBeCloseTo(data.tokens_prompt! * PROMPT_USD, 9);
    expect(data.charges, told).toMatchObject([{ class: 'unknown_outcome' }]);
    sum += data.total_cost;
  }
  const { data } = (await (await again.call('GET', `/keys/${hash}`)).json()) as { data: { usage: number } };
  expect(data.usage).toBeCloseTo(sum, 9);
  expect(await stop(again)).toBe(0);
}, 90_000);

test('with a limit, what was set aside is the bound, and no count is told', async () => {
  const { wire, options } = await site();
  const first = await serve(options);
  const made = await first.call('POST', '/keys', { body: { name: 'limited', limit: 10 } });
  const { key } = (await made.json()) as { key: string };
  const body = chat(TEXT, { max_tokens: 100 });
  const cut = first.call('POST', '/chat/completions', { key, body });
  const { headers } = await wire.exchange(0);
  first.child.kill('SIGKILL');
  await Promise.all([first.ended, Promise.allSettled([cut])]);
  const again = await serve(options);
  const id = headers['x-client-request-id']?.replace(/\.1$/, '');
  const { data } = (await (await again.call('GET', `/generation?id=${id}`, { key })).json()) as { data: Generation };
  expect(data).toMatchObject({ outcome: 'unknown', tokens_prompt: null, tokens_completion: null });
  expect(data.total_cost).toBeGreaterThan(100 * COMPLETION_USD);
  expect(await stop(again)).toBe(0);
}, 90_000);
