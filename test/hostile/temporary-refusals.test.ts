/** A 402 that is temporary says so, and until when, in the form of every client API. A final one does not. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../harness.ts';

const TEXT = 'hello there';
const messages = [{ role: 'user', content: TEXT }];
/** A request of each operation that may be refused for money. */
const REQUESTS: [string, object][] = [
  ['/chat/completions', { model: 'sandbox/echo', max_tokens: 20, messages }],
  ['/chat/completions', { model: 'sandbox/echo', max_tokens: 20, messages, stream: true }],
  ['/messages', { model: 'sandbox/echo', max_tokens: 20, messages }],
  ['/messages', { model: 'sandbox/echo', max_tokens: 20, messages, stream: true }],
  ['/responses', { model: 'sandbox/echo', max_output_tokens: 20, input: TEXT }],
  ['/responses', { model: 'sandbox/echo', max_output_tokens: 20, input: TEXT, stream: true }],
  ['/completions', { model: 'sandbox/echo', max_tokens: 20, prompt: TEXT }],
  ['/completions', { model: 'sandbox/echo', max_tokens: 20, prompt: [TEXT, TEXT] }],
  ['/embeddings', { model: 'sandbox/embed', input: TEXT }],
];

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway.stop());

async function keyWith(body: object): Promise<string> {
  const authorization = `Bearer ${gateway.management_key}`;
  const made = await gateway.call('POST', '/keys', { name: 'k', ...body }, { authorization });
  return ((await made.json()) as { key: string }).key;
}

async function ask(key: string, [path, body]: (typeof REQUESTS)[number]) {
  const answer = await gateway.call('POST', path, body, { authorization: `Bearer ${key}` });
  const text = await answer.text();
  const { status, headers } = answer;
  return {
    status,
    text,
    should_retry: headers.get('x-should-retry'),
    retry_after_s: Number(headers.get('retry-after') ?? Number.NaN),
  };
}

/** The lowest possible cost of a request, as its refusal states it. */
async function requiredOf(request: (typeof REQUESTS)[number]): Promise<number> {
  const { status, text } = await ask(await keyWith({ limit: 0 }), request);
  expect(status).toBe(402);
  const [, usd = ''] = /may cost \$([\d.]+)/.exec(text) ?? [];
  return Number(usd);
}

test.each(REQUESTS)(
  '%s %j: a limit that can never pay for it is final, with and without a window',
  async (path, body) => {
    for (const limitReset of [null, 'daily']) {
      const answer = await ask(await keyWith({ limit: 0, limit_reset: limitReset }), [path, body]);
      expect(answer).toMatchObject({ status: 402, should_retry: null, retry_after_s: Number.NaN });
    }
  },
);

test.each(REQUESTS)(
  '%s %j: a limit that is spent until its window ends states the seconds until then',
  async (path, body) => {
    const required = await requiredOf([path, body]);
    const key = await keyWith({ limit: required, limit_reset: 'daily' });
    let answer = await ask(key, [path, body]);
    expect(answer.status).toBe(200);
    await expect
      .poll(async () => {
        answer = await ask(key, [path, body]);
        return answer.status;
      })
      .toBe(402);
    expect(answer.should_retry).toBe('true');
    expect(answer.retry_after_s).toBeGreaterThan(0);
    expect(answer.retry_after_s).toBeLessThanOrEqual(86_400);
  },
);

test('a limit without a window that is spent is final', async () => {
  const [request] = REQUESTS;
  if (request === undefined) throw new Error('a request');
  const key = await keyWith({ limit: await requiredOf(request) });
  expect((await ask(key, request)).status).toBe(200);
  const answer = await ask(key, request);
  expect(answer).toMatchObject({ status: 402, should_retry: null, retry_after_s: Number.NaN });
});
