/**
 * Run by `allocations.long.test.ts` in a process of its own, with `--expose-gc` and a young generation that no
 * measurement fills: a gateway and a key with a spend limit. It answers each message of the parent with the bytes
 * allocated on the heap of the serving thread and the number of collections so far.
 */
import { PerformanceObserver } from 'node:perf_hooks';
import { startGateway } from './harness.ts';

const [, , upstreamUrl = ''] = process.argv;
let collections = 0;
new PerformanceObserver((list) => {
  collections += list.getEntries().length;
}).observe({ entryTypes: ['gc'] });

const gateway = await startGateway({
  yaml: JSON.stringify({
    bundled_catalog: false,
    providers: {
      bench: { name: 'Bench', dialect: 'openai-chat', base_url: `${upstreamUrl}/v1`, api_key: 'bench-credential' },
    },
    models: {
      'bench/answer': {
        name: 'Bench',
        context_length: 128_000,
        endpoints: [{ provider: 'bench', upstream_model: 'bench/answer', pricing: { prompt: 0.25, completion: 2 } }],
      },
    },
  }),
});
const authorization = { authorization: `Bearer ${gateway.management_key}` };
const made = await gateway.call('POST', '/keys', { name: 'limited', limit: 1_000_000 }, authorization);
const { key } = (await made.json()) as { key: string };

process.on('message', async (message) => {
  if (message === 'stop') {
    await gateway.stop();
    process.exit(0);
  }
  if (message === 'collect') globalThis.gc?.();
  // Entries of the observer arrive in a later turn.
  await new Promise((resolve) => setTimeout(resolve, 50));
  process.send?.({ heap_bytes: process.memoryUsage().heapUsed, collections });
});
process.send?.({ url: gateway.url, key });
