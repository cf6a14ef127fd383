import { once } from 'node:events';
import { request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { checkStreamOf } from '../grammar/check-stream.ts';
import { type GatewayProcess, makeKey, serve, start, stop, until } from './gateway-process.ts';
import { COMPLETION_USD, generationOf, PROMPT_USD, silentSite, silentSound } from './silent-site.ts';

const BOUND = { timeouts: { shutdown_ms_max: 700, heartbeat_first_ms: 300, heartbeat_ms: 5_000 } };
const MESSAGE = 'The gateway is shutting down';
const TEXT = 'Tell me a story about a gateway that was stopped.';

const chat = (content: string, more: object = {}) => ({
  model: 'wire/text',
  messages: [{ role: 'user', content }],
  max_tokens: 100,
  ...more,
});

/** Streams, with the failure that their client must receive at the bound, in the form of the API. */
const STREAMS: [path: string, body: object, end: RegExp[]][] = [
  ['/chat/completions', chat(TEXT), [/"finish_reason":"error"/, /"code":503/, /"usage":\{/, /data: \[DONE\]\n\n$/]],
  [
    '/completions',
    { model: 'wire/text', prompt: [TEXT, TEXT, 'mute'] },
    [/"finish_reason":"error"/, /"code":503/, /"usage":\{/, /data: \[DONE\]\n\n$/],
  ],
  ['/messages', chat(TEXT), [/event: error\n/, /"type":"overloaded_error"/]],
  ['/responses', { model: 'wire/text', input: TEXT }, [/"type":"response.failed"/]],
  // A heartbeat has sent the 200, and nothing else.
  ['/chat/completions', chat('mute'), [/^: /, /"finish_reason":"error"/, /"code":503/, /data: \[DONE\]\n\n$/]],
];

const WHOLE: [path: string, body: object][] = [
  ['/chat/completions', chat(TEXT)],
  ['/completions', { model: 'wire/text', prompt: [TEXT, TEXT] }],
  ['/messages', chat(TEXT)],
  ['/responses', { model: 'wire/text', input: TEXT }],
  ['/embeddings', { model: 'wire/vectors', input: [TEXT] }],
  ['/audio/transcriptions', { model: 'wire/speech', input_audio: { data: silentSound(), format: 'wav' } }],
];

interface Generation {
  outcome: string;
  cancelled: boolean;
  finish_reason: string | null;
  total_cost: number;
  streamed: boolean;
  estimated: boolean;
  tokens_completion: number | null;
  provider_responses: { failure: string | null }[];
}

async function generation(gateway: GatewayProcess, id: string): Promise<Generation> {
  const answer = await gateway.call('GET', `/generation?id=${id}`);
  expect(answer.status, id).toBe(200);
  return ((await answer.json()) as { data: Generation }).data;
}

/** The log lines of inference requests, with their results. */
function requestLines(gateway: GatewayProcess) {
  return gateway.log().filter(({ msg, generation_id }) => msg === 'request' && generation_id !== undefined);
}

test.each([['1'], ['2']])(
  'calls that run at the bound are ended as failed by the gateway, and their clients get the error, in every API; --workers %s',
  async (workers) => {
    const { wire, options } = await silentSite(BOUND);
    const gateway = await serve({ ...options, args: ['--workers', workers] });
    const { key } = await makeKey(gateway);
    const streams = STREAMS.map(async ([path, body, ends]) => {
      const answer = await gateway.call('POST', path, { key, body: { ...body, stream: true } });
      return { path, body, ends, status: answer.status, text: await answer.text() };
    });
    const whole = WHOLE.map(async ([path, body]) => {
      const answer = await gateway.call('POST', path, { key, body });
      return { path, status: answer.status, text: await answer.text() };
    });
    const requests = 7 + 7;
    await until('all calls are in progress', () => wire.exchanges.length === requests);
    await sleep(500);
    const signalledAt = performance.now();
    expect(await stop(gateway)).toBe(0);
    expect(performance.now() - signalledAt).toBeLessThan(15_000);

    for (const { path, body, ends, status, text } of await Promise.all(streams)) {
      expect(status, path).toBe(200);
      expect(text).toContain(MESSAGE);
      for (const end of ends) expect(text, path).toMatch(end);
      checkStreamOf(path, body, text);
    }
    for (const { path, status, text } of await Promise.all(whole)) {
      expect(status, path).toBe(503);
      expect(JSON.parse(text), path).toMatchObject({ error: { message: MESSAGE } });
    }
    const lines = requestLines(gateway);
    expect(lines).toHaveLength(STREAMS.length + WHOLE.length);
    for (const line of lines) {
      expect(line).toMatchObject({ gateway_stopped: true });
      expect(line).not.toHaveProperty('client_left');
    }

    const again = await start({ ...options });
    await again.ready();
    for (const exchange of wire.exchanges) {
      const record = await generation(again, generationOf(exchange));
      expect(record, exchange.body.slice(0, 200)).toMatchObject({
        outcome: 'failed',
        cancelled: false,
        finish_reason: 'error',
        provider_responses: [{ failure: 'gateway_stopped' }],
      });
      // Disconnecting from a stream without content stops its billing; any other attempt is charged as one that broke
      // off.
      if (exchange.body.includes('mute')) expect(record.total_cost).toBe(0);
      else expect(record.total_cost).toBeGreaterThan(PROMPT_USD * (exchange.path.endsWith('transcriptions') ? 0 : 5));
      if (record.streamed && record.total_cost > 0) expect(record.total_cost).toBeGreaterThan(COMPLETION_USD);
    }
    expect(await stop(again)).toBe(0);
  },
  90_000,
);

test('a client that does not read cannot delay the end, and is not recorded as disconnected', async () => {
  const { wire, options } = await silentSite(BOUND);
  const gateway = await serve(options);
  const { key } = await makeKey(gateway);
  const asking = request(`${gateway.base_url}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
  });
  asking.end(JSON.stringify(chat('flood', { stream: true })));
  const [answer] = await once(asking, 'response');
  answer.on('error', () => undefined);
  asking.on('error', () => undefined);
  const { written } = await wire.exchange(0);
  await until('no connection is accepted any more', async () => {
    const before = wire.exchanges[0]!.written;
    await sleep(300);
    return before > written && wire.exchanges[0]!.written === before;
  });
  const signalledAt = performance.now();
  expect(await stop(gateway)).toBe(0);
  expect(performance.now() - signalledAt).toBeLessThan(15_000);
  expect(requestLines(gateway)).toMatchObject([{ status: 200, gateway_stopped: true }]);
  answer.destroy();
  const again = await serve(options);
  const record = await generation(again, generationOf(wire.exchanges[0]!));
  expect(record).toMatchObject({
    outcome: 'failed',
    cancelled: false,
    provider_responses: [{ failure: 'gateway_stopped' }],
  });
  expect(record.total_cost).toBeGreaterThan(COMPLETION_USD);
  expect(await stop(again)).toBe(0);
});

test('a client that is still sending its request at the end is not recorded as disconnected', async () => {
  const gateway = await serve((await silentSite(BOUND)).options);
  const { key } = await makeKey(gateway);
  const asking = request(`${gateway.base_url}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'content-length': 10_000 },
  });
  asking.on('error', () => undefined);
  asking.write('{"model":');
  await sleep(500);
  expect(await stop(gateway)).toBe(0);
  const lines = gateway.log().filter(({ msg, path }) => msg === 'request' && path === '/api/v1/chat/completions');
  expect(lines).toMatchObject([{ gateway_stopped: true }]);
  expect(lines[0]).not.toHaveProperty('client_left');
});
