/** After the cool-down of an endpoint one call at a time tries it, while other concurrent calls go elsewhere. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { COOL_DOWN_MS_DEFAULT, OUTAGE_RECENT_MS } from '../../src/routing/health.ts';
import { startGateway } from '../harness.ts';
import { responseHead, type Step, startWireServer } from '../wires/wire-server.ts';

const answer = JSON.stringify({
  id: 'up-1',
  object: 'chat.completion',
  created: 1,
  model: 'scripted',
  choices: [{ index: 0, message: { role: 'assistant', content: 'yes' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 },
});
const OK: Step[] = [responseHead(200, 'application/json'), answer, 'END'];
const DOWN: Step[] = [responseHead(503, 'application/json'), '{"error":{"message":"down"}}', 'END'];

const chunk = (delta: object, finishReason: string | null = null) =>
  `data: ${JSON.stringify({ id: 'up-1', object: 'chat.completion.chunk', created: 1, model: 'scripted', choices: [{ index: 0, delta, finish_reason: finishReason }] })}\n\n`;
const STREAM: Step[] = [
  responseHead(200, 'text/event-stream'),
  chunk({ role: 'assistant', content: 'yes' }),
  chunk({}, 'stop'),
  'data: [DONE]\n\n',
  'END',
];
/** Sends a text, and breaks off a while later. */
const DIES: Step[] = [
  responseHead(200, 'text/event-stream'),
  chunk({ role: 'assistant', content: 'ye' }),
  { wait: 300 },
  'RESET',
];

const providerOf = (path: string) => path.split('/')[2];

async function startSite() {
  const scripts: Record<string, () => Step[]> = {};
  const upstream = await startWireServer(({ path }) => (scripts[providerOf(path) ?? ''] ?? (() => OK))());
  const row = (name: string) => ({ dialect: 'openai-chat', base_url: `${upstream.url}/${name}` });
  let aheadMs = 0;
  const gateway = await startGateway({
    clock: { nowMs: () => Date.now() + aheadMs, monotonicMs: () => performance.now() + aheadMs },
    yaml: JSON.stringify({
      bundled_catalog: false,
      providers: { cheap: row('cheap'), fair: row('fair'), dear: row('dear') },
      models: {
        'wire/model': {
          endpoints: [
            { provider: 'cheap', upstream_model: 'x', pricing: { prompt: 0.001, completion: 0.001 } },
            { provider: 'dear', upstream_model: 'x', pricing: { prompt: 1000, completion: 1000 } },
          ],
        },
        'wire/three': {
          endpoints: [
            { provider: 'cheap', upstream_model: 'x', pricing: { prompt: 0.001, completion: 0.001 } },
            { provider: 'fair', upstream_model: 'x', pricing: { prompt: 1, completion: 1 } },
            { provider: 'dear', upstream_model: 'x', pricing: { prompt: 1000, completion: 1000 } },
          ],
        },
      },
    }),
  });
  const seen = (name: string) => upstream.exchanges.filter(({ path }) => providerOf(path) === name).length;
  return {
    gateway,
    seen,
    plays(next: () => Step[], provider = 'cheap') {
      scripts[provider] = next;
    },
    pass(ms: number) {
      aheadMs += ms;
    },
    async ask(count: number, model = 'wire/model', provider: object = {}, stream = false): Promise<number[]> {
      const body = { model, messages: [{ role: 'user', content: 'x' }], max_tokens: 5, provider, stream };
      const asked = Array.from({ length: count }, async () => {
        const response = await gateway.call('POST', '/chat/completions', body);
        await response.text();
        return response.status;
      });
      return Promise.all(asked);
    },
    async stop() {
      await gateway.stop();
      await upstream.stop();
    },
  };
}

const OVER = Math.max(COOL_DOWN_MS_DEFAULT, OUTAGE_RECENT_MS);

test('one of many concurrent calls probes the endpoint; after its answer the endpoint is used again', async () => {
  const site = await startSite();
  try {
    site.plays(() => DOWN);
    expect(await site.ask(1)).toEqual([200]);
    expect([site.seen('cheap'), site.seen('dear')]).toEqual([1, 1]);
    await site.ask(5);
    expect([site.seen('cheap'), site.seen('dear')]).toEqual([1, 6]);

    site.pass(OVER);
    site.plays(() => [{ wait: 300 }, ...OK]);
    expect(new Set(await site.ask(20))).toEqual(new Set([200]));
    expect([site.seen('cheap'), site.seen('dear')]).toEqual([2, 25]);

    site.plays(() => OK);
    await site.ask(5);
    expect([site.seen('cheap'), site.seen('dear')]).toEqual([7, 25]);
  } finally {
    await site.stop();
  }
});

test('if the probe fails, all calls go to other endpoints, and none of them fails', async () => {
  const site = await startSite();
  try {
    site.plays(() => DOWN);
    await site.ask(1);
    site.pass(OVER);
    expect(new Set(await site.ask(20))).toEqual(new Set([200]));
    await site.ask(20);
    expect([site.seen('cheap'), site.seen('dear')]).toEqual([2, 41]);
  } finally {
    await site.stop();
  }
});

test('a stream proves its endpoint healthy when it ends, not when it begins', async () => {
  const site = await startSite();
  const stream = (count: number) => site.ask(count, 'wire/model', {}, true);
  try {
    site.plays(() => DIES);
    site.plays(() => STREAM, 'dear');
    await stream(1);
    site.pass(OVER);
    const trial = stream(1);
    await vi.waitFor(() => expect(site.seen('cheap')).toBe(2), { timeout: 60_000 });
    // Its answer has begun by then.
    await sleep(150);
    await stream(5);
    await trial;
    await stream(5);
    expect([site.seen('cheap'), site.seen('dear')]).toEqual([2, 10]);

    site.plays(() => STREAM);
    site.pass(4 * OVER);
    await stream(1);
    await stream(5);
    expect([site.seen('cheap'), site.seen('dear')]).toEqual([8, 10]);
  } finally {
    await site.stop();
  }
});

test('a probe whose client disconnects leaves the trial to the next call', async () => {
  const site = await startSite();
  try {
    site.plays(() => DOWN);
    await site.ask(1);
    site.pass(OVER);
    site.plays(() => [{ wait: 2_000 }, ...OK]);
    const leaving = new AbortController();
    const left = fetch(`${site.gateway.base_url}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${site.gateway.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'wire/model', messages: [{ role: 'user', content: 'x' }], stream: true }),
      signal: leaving.signal,
    }).catch(() => undefined);
    while (site.seen('cheap') < 2) await sleep(10);
    leaving.abort();
    await left;
    await sleep(200);
    site.plays(() => OK);
    await site.ask(1);
    expect(site.seen('cheap')).toBe(3);
  } finally {
    await site.stop();
  }
});

test('calls that failed at another endpoint do not all move to it at once', async () => {
  const site = await startSite();
  try {
    site.plays(() => DOWN, 'fair');
    await site.ask(1, 'wire/three', { only: ['fair'] });
    site.pass(OVER);
    // All calls have begun at `cheap` before the first one fails there.
    site.plays(() => [{ wait: 1_000 }, ...DOWN]);
    site.plays(() => [{ wait: 1_000 }, ...OK], 'fair');
    expect(new Set(await site.ask(20, 'wire/three'))).toEqual(new Set([200]));
    expect(['cheap', 'fair', 'dear'].map(site.seen)).toEqual([20, 2, 19]);
  } finally {
    await site.stop();
  }
});

test("the client's order is kept, whichever call probes", async () => {
  const site = await startSite();
  try {
    site.plays(() => DOWN, 'fair');
    await site.ask(1, 'wire/three', { only: ['fair'] });
    site.pass(OVER);
    // All calls have begun at `cheap` before the first one fails there.
    site.plays(() => [{ wait: 1_000 }, ...DOWN]);
    site.plays(() => [{ wait: 1_000 }, ...OK], 'fair');
    await site.ask(20, 'wire/three', { order: ['cheap', 'fair'] });
    expect(['cheap', 'fair', 'dear'].map(site.seen)).toEqual([20, 21, 0]);
  } finally {
    await site.stop();
  }
});
