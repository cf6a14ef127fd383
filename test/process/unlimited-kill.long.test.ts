import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { limits } from '../../src/limits.ts';
import { makeKey, serve, stop, until } from './gateway-process.ts';
import { COMPLETION_USD, FINISHED_TOKENS, generationOf, PROMPT_USD, silentSite, silentSound } from './silent-site.ts';

const TEXT = 'Tell me a story about a gateway that was killed.';
const LONG = `${TEXT} `.repeat(200);

interface Generation {
  outcome: string;
  estimated: boolean;
  total_cost: number;
  estimated_cost: number;
  tokens_prompt: number | null;
  tokens_completion: number | null;
  charges: { class: string; amount: string }[];
}

const chat = (content: string, more: object) => ({
  model: 'wire/text',
  messages: [{ role: 'user', content }],
  ...more,
});
/** The request, and its operation. */
const CALLS: [path: string, body: object][] = [
  ['/chat/completions', chat(TEXT, { stream: true })],
  ['/chat/completions', chat(TEXT, {})],
  ['/chat/completions', chat(LONG, {})],
  ['/messages', chat(TEXT, { max_tokens: 100 })],
  ['/responses', { model: 'wire/text', input: TEXT }],
  ['/completions', { model: 'wire/text', prompt: TEXT }],
  ['/audio/transcriptions', { model: 'wire/speech', input_audio: { data: silentSound(), format: 'wav' } }],
  ['/embeddings', { model: 'wire/vectors', input: [TEXT, TEXT] }],
];

/** Bounds of the token count of a prompt. */
function tokensOf({ path, body }: { path: string; body: string }): [number, number] {
  if (path.endsWith('/embeddings')) return [20, 40];
  if (path.endsWith('/transcriptions')) return [1, 100];
  return body.length > 2_000 ? [2_000, 3_000] : [12, 24];
}

/** The charged tokens of the answer. */
function presumedOf({ path, body }: { path: string; body: string }): number {
  if (!path.endsWith('/chat/completions')) return 0;
  const { max_tokens } = JSON.parse(body) as { max_tokens?: number };
  return max_tokens ?? limits.expected_completion_tokens;
}

test('without limits, a call that a kill interrupts costs its prompt and an answer of usual length within its bound, and its record has no zero for unknown values', async () => {
  const { wire, options } = await silentSite();
  const first = await serve(options);
  const { key, hash } = await makeKey(first);
  const cut = CALLS.map(([path, body]) => first.call('POST', path, { key, body }).then((answer) => answer.text()));
  await until('all calls are in progress', () => wire.exchanges.length === CALLS.length);
  await sleep(100);
  first.child.kill('SIGKILL');
  await Promise.all([first.ended, Promise.allSettled(cut)]);

  const again = await serve(options);
  let sum = 0;
  for (const exchange of wire.exchanges) {
    const start = exchange.body.slice(0, 200);
    const answer = await again.call('GET', `/generation?id=${generationOf(exchange)}`, { key });
    expect(answer.status, start).toBe(200);
    const { data } = (await answer.json()) as { data: Generation };
    const [least, most] = tokensOf(exchange);
    expect(data, start).toMatchObject({ outcome: 'unknown', estimated: true, tokens_completion: null });
    expect(data.tokens_prompt, start).toBeGreaterThanOrEqual(least);
    expect(data.tokens_prompt, start).toBeLessThanOrEqual(most);
    const output = presumedOf(exchange);
    expect(data.total_cost, start).toBeCloseTo(data.tokens_prompt! * PROMPT_USD + output * COMPLETION_USD, 9);
    expect(data.estimated_cost, start).toBe(data.total_cost);
    expect(data.charges, start).toMatchObject([{ class: 'unknown_outcome' }]);
    sum += data.total_cost;
  }
  const { data } = (await (await again.call('GET', `/keys/${hash}`)).json()) as { data: { usage: number } };
  expect(data.usage).toBeCloseTo(sum, 9);
  expect(await stop(again)).toBe(0);
});

test('the usual length survives the process: a call that is killed right after a start is charged by it', async () => {
  const { wire, options } = await silentSite();
  const first = await serve(options);
  const { key, hash } = await makeKey(first);
  for (let at = 0; at < 5; at++) {
    const answer = await first.call('POST', '/chat/completions', { key, body: chat(`finish ${at}`, {}) });
    expect(answer.status).toBe(200);
  }
  // Waits until the store has them.
  await first.call('GET', `/keys/${hash}`);
  first.child.kill('SIGKILL');
  await first.ended;
  const second = await serve(options);
  const cut = second.call('POST', '/chat/completions', { key, body: chat(TEXT, { stream: true }) });
  const exchange = await wire.exchange(5);
  second.child.kill('SIGKILL');
  await Promise.all([second.ended, Promise.allSettled([cut])]);

  const third = await serve(options);
  const { data } = (await (await third.call('GET', `/generation?id=${generationOf(exchange)}`, { key })).json()) as {
    data: Generation;
  };
  expect(data).toMatchObject({ outcome: 'unknown', estimated: true });
  expect(data.total_cost).toBeCloseTo(data.tokens_prompt! * PROMPT_USD + FINISHED_TOKENS * COMPLETION_USD, 9);
  expect(await stop(third)).toBe(0);
});

test('with a limit, the hold is charged, and no token count is reported', async () => {
  const { wire, options } = await silentSite();
  const first = await serve(options);
  const made = await first.call('POST', '/keys', { body: { name: 'limited', limit: 10 } });
  const { key } = (await made.json()) as { key: string };
  const body = chat(TEXT, { max_tokens: 100 });
  const cut = first.call('POST', '/chat/completions', { key, body });
  const exchange = await wire.exchange(0);
  first.child.kill('SIGKILL');
  await Promise.all([first.ended, Promise.allSettled([cut])]);
  const again = await serve(options);
  const { data } = (await (await again.call('GET', `/generation?id=${generationOf(exchange)}`, { key })).json()) as {
    data: Generation;
  };
  expect(data).toMatchObject({ outcome: 'unknown', tokens_prompt: null, tokens_completion: null });
  expect(data.total_cost).toBeGreaterThan(100 * COMPLETION_USD);
  expect(await stop(again)).toBe(0);
});
