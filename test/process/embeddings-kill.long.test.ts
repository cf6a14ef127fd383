import { expect, onTestFinished, test } from 'vitest';
import { startSandbox } from '../../sandbox/server.ts';
import { freePort, freshDir, makeKey, serve, stop, until } from './gateway-process.ts';

const DELAY_MS = 250;
const INPUTS = 40;

test('embeddings that a kill interrupts cost what the provider billed for the received requests, once', async () => {
  const sandbox = await startSandbox();
  onTestFinished(() => sandbox.stop());
  const yaml = JSON.stringify({
    bundled_catalog: false,
    logging: { level: 'warn' },
    providers: {
      reporting: {
        dialect: 'openai-chat',
        base_url: `${sandbox.url}/v1`,
        attempts_url: `${sandbox.url}/sandbox/attempts`,
        quirks: { embedding_batch: { inputs_max: 1 } },
      },
    },
    models: {
      'money/vectors': {
        output_modalities: ['embeddings'],
        endpoints: [{ provider: 'reporting', upstream_model: `echo;delay_ms=${DELAY_MS}`, pricing: { prompt: 1000 } }],
      },
    },
  });
  const options = { data_dir: freshDir(), port: await freePort(), yaml };
  const first = await serve(options);
  const { key, hash } = await makeKey(first);
  const input = Array.from({ length: INPUTS }, (_, at) => `text ${at}`);
  const cut = first
    .call('POST', '/embeddings', { key, body: { model: 'money/vectors', input } })
    .catch(() => undefined);
  await until('some were answered', () => sandbox.requests().completed >= 8);
  first.child.kill('SIGKILL');
  await Promise.all([first.ended, cut]);

  const again = await serve(options);
  const usageOf = async () => {
    const answer = await again.call('GET', `/keys/${hash}`);
    return ((await answer.json()) as { data: { usage: number } }).data.usage;
  };
  const seen = (await (await fetch(`${sandbox.url}/sandbox/requests`)).json()) as {
    completed: number;
    requests: number;
  };
  expect(seen.completed).toBeLessThan(INPUTS);
  // Each text has two tokens in the sandbox, at a thousandth of a USD.
  await expect.poll(usageOf).toBeCloseTo(seen.completed * 0.002, 9);
  expect(await stop(again)).toBe(0);
  expect(sandbox.requests().requests).toBe(seen.requests);
});
