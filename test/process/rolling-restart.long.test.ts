import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { type Backend, startBalancer } from './balancer.ts';
import { chat, type GatewayProcess, makeKey, serve, stop, until } from './gateway-process.ts';

/** The length of a stream, and the grace period of a node after SIGTERM. */
const streamMs = Number(process.env['ROLLING_STREAM_MS'] ?? 1_000);
const graceMs = Number(process.env['ROLLING_GRACE_MS'] ?? 4_000);

test('a rolling restart of four nodes behind a plain balancer fails no call', { timeout: 600_000 }, async () => {
  const yaml = `timeouts: { shutdown_grace_ms: ${graceMs} }\n`;
  const nodes: GatewayProcess[] = await Promise.all([1, 2, 3, 4].map(() => serve({ yaml })));
  const backends: Backend[] = [];
  for (const node of nodes) backends.push({ url: node.url, key: (await makeKey(node)).key });
  const balancer = await startBalancer(backends, 50);
  await until('all are ready', () => backends.every(balancer.isReady));

  const failed: string[] = [];
  let answered = 0;
  let isOver = false;
  const stream = chat('sandbox/story', { stream: true, sandbox: { tokens: 50, chunk_delay_ms: streamMs / 50 } });
  const callAll = async (body: object) => {
    while (!isOver) {
      try {
        const answer = await fetch(`${balancer.url}/api/v1/chat/completions`, {
          method: 'POST',
          body: JSON.stringify(body),
        });
        const text = await answer.text();
        const isWhole = 'stream' in body ? text.endsWith('data: [DONE]\n\n') : text.includes('"choices"');
        if (answer.status === 200 && isWhole && !text.includes('"error"')) answered += 1;
        else failed.push(`${answer.status} ${text.slice(-200)}`);
      } catch (error) {
        failed.push(String((error as Error).cause ?? error));
      }
    }
  };
  const clients = [...Array(8).fill(stream), ...Array(4).fill(chat('sandbox/echo'))].map(callAll);
  await sleep(300);
  for (const [index, node] of nodes.entries()) {
    expect(await stop(node)).toBe(0);
    const { data_dir } = node;
    nodes[index] = await serve({ yaml, data_dir, port: Number(new URL(node.url).port) });
    await until('it serves again', () => balancer.isReady(backends[index]!));
  }
  isOver = true;
  await Promise.all(clients);
  await balancer.stop();
  expect(failed).toEqual([]);
  expect(answered).toBeGreaterThan(50);
});

test('a node in its grace period is not ready, serves new calls, and closes each connection after its answer', async () => {
  // Longer than this test: it ends with the signal that ends a gateway at once.
  const node = await serve({ yaml: 'timeouts: { shutdown_grace_ms: 600000 }\n' });
  const { key } = await makeKey(node);
  node.child.kill('SIGTERM');
  await until('not ready', async () => (await fetch(`${node.url}/health/ready`)).status === 503);
  const readiness = await fetch(`${node.url}/health/ready`);
  expect(readiness.headers.get('connection')).toBe('close');
  expect(await readiness.text()).toContain('Not ready: the gateway is shutting down');
  expect((await fetch(`${node.url}/health/live`)).status).toBe(200);
  const whole = await node.call('POST', '/chat/completions', { key, body: chat('sandbox/echo') });
  expect([whole.status, whole.headers.get('connection')]).toEqual([200, 'close']);
  const streamed = await node.call('POST', '/chat/completions', { key, body: chat('sandbox/echo', { stream: true }) });
  expect([streamed.status, streamed.headers.get('connection')]).toEqual([200, 'close']);
  expect(await streamed.text()).toMatch(/data: \[DONE\]\n\n$/);
  await until('a second signal ends it', () => {
    node.child.kill('SIGTERM');
    return node.child.exitCode !== null;
  });
  expect(await node.ended).toBe(1);
});
