/**
 * A provider that ignores the output bound and reports no usage: no strict limit is charged more than the hold by the
 * gateway's estimate.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type FailoverSite, startFailoverSite, wire } from '../routing/failover-site.ts';
import { responseHead, type Step } from '../wires/wire-server.ts';

let site: FailoverSite;
beforeAll(async () => {
  site = await startFailoverSite({});
});
afterAll(() => site.stop());

/** In USD: the first provider's price of one output token. */
const TOKEN_USD = 0.001;
const BOUND = 20;
const LIMIT_USD = 0.05;

const STORY = ' one river house stone';
const words = (count: number) => STORY.repeat(count / 4);

/** A whole answer of the chat wire, with or without reported usage. */
function whole(content: string, completionTokens?: number): Step[] {
  const usage =
    completionTokens === undefined
      ? {}
      : { usage: { prompt_tokens: 10, completion_tokens: completionTokens, total_tokens: 10 + completionTokens } };
  const choices = [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }];
  return [responseHead(200, 'application/json'), JSON.stringify({ id: 'up-1', choices, ...usage }), 'END'];
}

const overruns = async () => {
  const text = await (await fetch(`${site.gateway.url}/metrics`)).text();
  return Number(/^gateway_overruns_total\{provider="a"\} (\d+)/m.exec(text)?.[1] ?? 0);
};

/** Sends one call with a key of its own. Returns what the key was charged, and the record. */
async function charged(body: object, { limit, mode }: { limit?: number; mode?: 'soft' } = {}) {
  const { base_url, management_key } = site.gateway;
  const made = await fetch(`${base_url}/keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${management_key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'k', limit: limit ?? null, budget_mode: mode ?? null }),
  });
  const { key } = (await made.json()) as { key: string };
  const answer = await site.ask({ max_tokens: BOUND, provider: { only: ['a'] }, ...body }, { key });
  await answer.text();
  const generation = await site.generation(answer.headers.get('x-generation-id') ?? '', key);
  const own = await fetch(`${base_url}/key`, { headers: { authorization: `Bearer ${key}` } });
  const { data } = (await own.json()) as { data: { usage: number } };
  return { status: answer.status, usage: data.usage, generation };
}

describe.each([false, true])('stream: %s', (stream) => {
  test('a strict limit is charged up to the hold, and the overrun is counted and shown', async () => {
    site.scripts['a'] = () =>
      stream ? [wire.head, wire.text(words(2_000)), wire.end(0).split('data: ')[0] ?? '', 'END'] : whole(words(2_000));
    const before = await overruns();
    const { usage, generation } = await charged({ stream }, { limit: LIMIT_USD });
    // The prompt is cheap: the hold is for its tokens and those of the bound.
    expect(usage).toBeGreaterThanOrEqual(BOUND * TOKEN_USD);
    expect(usage).toBeLessThan((BOUND + 1) * TOKEN_USD);
    expect(generation).toMatchObject({ total_cost: usage, estimated: true });
    const charges = generation['charges'] as { class: string; amount: string }[];
    expect(charges.find((one) => one.class === 'bound')?.amount).toMatch(/^-/);
    expect(charges.reduce((sum, { amount }) => sum + Number(amount), 0)).toBeCloseTo(usage, 9);
    expect(await overruns()).toBe(before + 1);
    await site.expectSound();
  });
});

test('reported usage is charged in full, also above a strict limit', async () => {
  site.scripts['a'] = () => whole(words(2_000), 2_000);
  expect((await charged({}, { limit: LIMIT_USD })).usage).toBeGreaterThan(2);
});

test.each([
  ['a soft limit', { limit: 10, mode: 'soft' as const }],
  ['a key without a limit', {}],
])('%s is charged the gateway’s estimate', async (_what, key) => {
  site.scripts['a'] = () => whole(words(2_000));
  expect((await charged({}, key)).usage).toBeGreaterThan(1.9);
});

test('many such answers do not exceed a strict limit, and then calls are 402s', async () => {
  site.scripts['a'] = () => whole(words(2_000));
  const key = await site.key(LIMIT_USD);
  const statuses: number[] = [];
  for (let nth = 0; nth < 4; nth += 1) {
    const answer = await site.ask({ max_tokens: BOUND, provider: { only: ['a'] } }, { key });
    await answer.text();
    statuses.push(answer.status);
  }
  const own = await fetch(`${site.gateway.base_url}/key`, { headers: { authorization: `Bearer ${key}` } });
  const { data } = (await own.json()) as { data: { usage: number } };
  expect(data.usage).toBeLessThanOrEqual(LIMIT_USD);
  expect(statuses.slice(0, 2)).toEqual([200, 200]);
  expect(statuses).toContain(402);
});
