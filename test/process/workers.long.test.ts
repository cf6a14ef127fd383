import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { describeStores } from '../ledger/store-variants.ts';
import { responseHead, startWireServer } from '../wires/wire-server.ts';
import {
  chat,
  childrenOf,
  freshDir,
  type GatewayProcess,
  isAlive,
  MANAGEMENT_KEY,
  makeKey,
  metric,
  type StartOptions,
  serve,
  stop,
  until,
} from './gateway-process.ts';

/** The kernel assigns connections at random: with this number, no worker remains without one. */
const CONNECTIONS = 48;
/** No answer of the sandbox's echo takes this long. */
const HANG_MS = 5_000;
const ALONE = { connection: 'close' };

async function serveThree(options: StartOptions = {}): Promise<GatewayProcess> {
  const gateway = await serve({ ...options, args: ['--workers', '3'] });
  await until('three workers serve', async () => (await metric(gateway, 'gateway_processes')) === 3);
  return gateway;
}

/** Sends requests on this number of connections, one on each. */
function onEveryWorker<T>(ask: (connection: number) => Promise<T>): Promise<T[]> {
  return Promise.all(Array.from({ length: CONNECTIONS }, (_, connection) => ask(connection)));
}

/**
 * The number of journals in the data directory that name at least one of these generations: each worker has its own.
 */
function journalsWith(dataDir: string, ids: readonly string[]): number {
  const slots = join(dataDir, 'slots');
  return readdirSync(slots).filter((slot) => {
    const files = readdirSync(join(slots, slot), { recursive: true, withFileTypes: true }).filter((entry) =>
      entry.isFile(),
    );
    const text = files.map((file) => readFileSync(join(file.parentPath, file.name), 'latin1')).join('');
    return ids.some((id) => text.includes(id));
  }).length;
}

async function answered(gateway: GatewayProcess, key: string, body: unknown) {
  const answer = await gateway.call('POST', '/chat/completions', { key, body, headers: ALONE });
  expect(answer.status).toBe(200);
  return (await answer.json()) as { id: string; usage: { cost: number; prompt_tokens: number } };
}

describe.skipIf(process.platform !== 'linux')('--workers 3', () => {
  describeStores('keys and generations', ({ freshUrl }) => {
    test('a key created through one works on all at once; a generation can be read through any within a second', async () => {
      const databaseUrl = await freshUrl();
      const gateway = await serveThree(databaseUrl === undefined ? {} : { environment: { DATABASE_URL: databaseUrl } });
      const { key } = await makeKey(gateway);
      const answers = await onEveryWorker(() => answered(gateway, key, chat('sandbox/echo')));
      const ids = answers.map(({ id }) => id);
      expect(journalsWith(gateway.data_dir, ids)).toBe(3);
      const deadline = Date.now() + 1_000;
      for (const { id, usage } of answers) {
        const seen = await onEveryWorker(async () => {
          for (;;) {
            const answer = await gateway.call('GET', `/generation?id=${id}`, { key, headers: ALONE });
            const text = await answer.text();
            if (answer.status === 200 || Date.now() > deadline) return { status: answer.status, text };
            await sleep(20);
          }
        });
        expect(seen.map(({ status }) => status)).toEqual(Array(CONNECTIONS).fill(200));
        for (const { text } of seen) {
          expect(JSON.parse(text)).toMatchObject({
            data: { id, total_cost: usage.cost, tokens_prompt: usage.prompt_tokens },
          });
        }
      }
      expect(await stop(gateway)).toBe(0);
    });
  });

  test('/metrics is the sum over the workers, also for many readers at once, and while one dies', {
    timeout: 180_000,
  }, async () => {
    const gateway = await serveThree();
    const { key } = await makeKey(gateway);
    const DONE = 'gateway_requests_total';
    const LABELS = 'operation="createChatCompletion",status="200"';
    await onEveryWorker(() => answered(gateway, key, chat('sandbox/echo')));
    const counted = await Promise.all(Array.from({ length: 40 }, () => metric(gateway, DONE, LABELS)));
    expect(new Set(counted)).toEqual(new Set([CONNECTIONS]));
    expect(await metric(gateway, 'gateway_request_seconds_count', 'createChatCompletion')).toBe(CONNECTIONS);

    const [victim = 0] = childrenOf(gateway.child.pid ?? 0);
    const during = Array.from({ length: 40 }, async (_, index) => {
      await sleep(index * 10);
      return metric(gateway, DONE, LABELS).catch(() => undefined);
    });
    await sleep(150);
    process.kill(victim, 'SIGKILL');
    const seen = (await Promise.all(during)).filter((value) => value !== undefined);
    expect(new Set(seen)).toEqual(new Set([CONNECTIONS]));
    await until('the worker is replaced', async () => (await metric(gateway, 'gateway_processes')) === 3);
    expect(await metric(gateway, DONE, LABELS)).toBe(CONNECTIONS);
    await onEveryWorker(() => answered(gateway, key, chat('sandbox/echo')));
    expect(await metric(gateway, DONE, LABELS)).toBe(2 * CONNECTIONS);
    expect(await stop(gateway)).toBe(0);
  });

  test('a killed worker is replaced, and its answers are stored', { timeout: 180_000 }, async () => {
    const gateway = await serveThree();
    const { key } = await makeKey(gateway);
    const parent = gateway.child.pid ?? 0;
    const before = childrenOf(parent);
    const answers: { id: string; usage: { cost: number } }[] = [];
    let hung = 0;
    for (let round = 0; round < 4; round += 1) {
      let stopped = false;
      const clients = Array.from({ length: 12 }, async () => {
        while (!stopped) {
          const answer = await gateway
            .call('POST', '/chat/completions', {
              key,
              body: chat('sandbox/echo'),
              headers: ALONE,
              signal: AbortSignal.timeout(HANG_MS),
            })
            .then(async (got) => (got.status === 200 ? ((await got.json()) as (typeof answers)[number]) : undefined))
            .catch((error: unknown) => {
              if (error instanceof Error && error.name === 'TimeoutError') hung += 1;
              return undefined;
            });
          if (answer) answers.push(answer);
        }
      });
      await sleep(300);
      const workers = childrenOf(parent);
      process.kill(workers[round % workers.length] ?? 0, 'SIGKILL');
      await sleep(200);
      stopped = true;
      await Promise.all(clients);
      await until('the worker is replaced', () => childrenOf(parent).length === 3);
      await until('it serves', async () => (await metric(gateway, 'gateway_processes')) === 3);
    }
    expect(childrenOf(parent)).not.toEqual(before);
    expect(hung).toBe(0);
    expect(answers.length).toBeGreaterThan(50);
    for (const { id, usage } of answers) {
      const answer = await gateway.call('GET', `/generation?id=${id}`, { key });
      expect(answer.status, id).toBe(200);
      expect(await answer.json()).toMatchObject({ data: { id, total_cost: usage.cost } });
    }
    expect(gateway.log().filter(({ msg }) => msg === 'a worker ended')).toHaveLength(4);
    expect(await stop(gateway)).toBe(0);
  });

  test('SIGTERM lets streams finish and ends every process with 0', async () => {
    const gateway = await serveThree();
    const { key } = await makeKey(gateway);
    const workers = childrenOf(gateway.child.pid ?? 0);
    const body = chat('sandbox/story', { stream: true, sandbox: { tokens: 60, chunk_delay_ms: 10 } });
    const streams = await onEveryWorker(() => gateway.call('POST', '/chat/completions', { key, body, headers: ALONE }));
    const texts = streams.map((stream) => stream.text());
    // As a supervisor that signals every process of the group.
    for (const worker of workers) process.kill(worker, 'SIGTERM');
    expect(await stop(gateway)).toBe(0);
    for (const text of await Promise.all(texts)) expect(text).toMatch(/data: \[DONE\]\n\n$/);
    expect(workers.some(isAlive)).toBe(false);
    expect(gateway.log().some(({ msg }) => msg === 'a worker ended')).toBe(false);
  });

  test('a parent that is killed leaves no worker behind', async () => {
    const gateway = await serveThree();
    const workers = childrenOf(gateway.child.pid ?? 0);
    expect(workers).toHaveLength(3);
    gateway.child.kill('SIGKILL');
    await until('the workers have ended', () => !workers.some(isAlive));
    const next = await serve({ data_dir: gateway.data_dir });
    expect(await stop(next)).toBe(0);
  });

  test('a parent that is killed does not break off the streams of its workers', async () => {
    const going = Promise.withResolvers<void>();
    const event = (delta: object, finishReason: string | null) =>
      `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finishReason }] })}\n\n`;
    const upstream = await startWireServer(() => [
      `${responseHead(200, 'text/event-stream')}${event({ content: 'begun' }, null)}`,
      { until: going.promise },
      `${event({}, 'stop')}data: [DONE]\n\n`,
      'END',
    ]);
    try {
      const config = join(freshDir(), 'gateway.yaml');
      writeFileSync(
        config,
        `providers: { acme: { dialect: openai-chat, base_url: "${upstream.url}/v1" } }
models: { acme/fast: { endpoints: [{ provider: acme, upstream_model: m, pricing: { prompt: 1, completion: 1 } }] } }`,
      );
      const gateway = await serveThree({ environment: { GATEWAY_CONFIG: config } });
      const { key } = await makeKey(gateway);
      const workers = childrenOf(gateway.child.pid ?? 0);
      const stream = await gateway.call('POST', '/chat/completions', {
        key,
        body: chat('acme/fast', { stream: true }),
      });
      const reader = stream.body?.pipeThrough(new TextDecoderStream()).getReader();
      let text = '';
      const readUntil = async (mark: string) => {
        while (!text.includes(mark)) {
          const { done, value } = (await reader?.read()) ?? { done: true, value: undefined };
          if (done) break;
          text += value;
        }
        expect(text).toContain(mark);
      };
      await readUntil('begun');
      gateway.child.kill('SIGKILL');
      await until('the idle workers have ended', () => workers.filter(isAlive).length === 1);
      going.resolve();
      await readUntil('data: [DONE]');
      await until('the last worker has ended', () => !workers.some(isAlive));
    } finally {
      await upstream.stop();
    }
  });

  test('all workers share one sandbox: its single failure happens once, for any worker', async () => {
    const gateway = await serveThree();
    const { key } = await makeKey(gateway);
    const body = chat('sandbox/fail-once', { user: 'one-and-the-same' });
    for (let count = 0; count < CONNECTIONS; count += 1) await answered(gateway, key, body);
    expect(await metric(gateway, 'gateway_attempts_total', 'outcome="answered"')).toBe(CONNECTIONS);
    expect(await metric(gateway, 'gateway_attempts_total')).toBe(CONNECTIONS + 1);
    expect(await stop(gateway)).toBe(0);
  });

  test('only the parent shows the keys of a first start', async () => {
    const gateway = await serve({ args: ['--workers', '2'], environment: { GATEWAY_MANAGEMENT_KEY: '' } });
    expect(new Set(gateway.out().match(/sk-gw-v1-[0-9a-f]{64}/g)).size).toBe(2);
    const shown = [...gateway.out().matchAll(/Management key.*(sk-gw-v1-[0-9a-f]{64})/g)];
    expect(shown).toHaveLength(1);
    expect((await gateway.call('POST', '/keys', { key: shown[0]?.[1] ?? '', body: { name: 'x' } })).status).toBe(201);
    expect((await gateway.call('POST', '/keys', { key: MANAGEMENT_KEY, body: { name: 'x' } })).status).toBe(401);
    await stop(gateway);
  });
});
