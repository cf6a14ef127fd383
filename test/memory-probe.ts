/**
 * Run in a process of its own with `--expose-gc`: sends consecutive requests through a gateway to the sandbox at a
 * given URL, and prints the size of the heap at regular steps as one JSON line.
 */
import { Pool } from 'undici';
import { sandboxModels, sandboxProviders } from '../sandbox/catalog.ts';
import { startGateway } from './harness.ts';

const [, , sandboxUrl = '', count = '10000'] = process.argv;
const requests = Number(count);
const steps = 10;

const gateway = await startGateway({
  yaml: JSON.stringify({
    providers: sandboxProviders(sandboxUrl),
    models: sandboxModels,
    logging: { level: 'silent' },
  }),
});
const pool = new Pool(gateway.url, { connections: 1, pipelining: 1 });
const heapBytes: number[] = [];
const rssBytes: number[] = [];
let failed = 0;
for (let nth = 1; nth <= requests; nth += 1) {
  const { statusCode, body } = await pool.request({
    method: 'POST',
    path: '/api/v1/chat/completions',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${gateway.key}` },
    body: JSON.stringify({
      // Every fifth is refused by the upstream, every other one streams.
      model: nth % 5 === 0 ? 'sandbox/fail-503' : 'sandbox/echo',
      provider: { only: [nth % 3 === 0 ? 'sandbox-anthropic' : 'sandbox'] },
      stream: nth % 2 === 0,
      user: `user-${nth}`,
      messages: [{ role: 'user', content: `Question ${nth}: what do you hold on to?` }],
    }),
  });
  const text = await body.text();
  if ((nth % 5 === 0 ? statusCode < 502 : statusCode !== 200) || text === '') failed += 1;
  if (nth % (requests / steps) === 0) {
    // The store's batches follow the answers; records that wait for them are not a leak.
    await new Promise((resolve) => setTimeout(resolve, 300));
    globalThis.gc?.();
    const { heapUsed, rss } = process.memoryUsage();
    heapBytes.push(heapUsed);
    rssBytes.push(rss);
  }
}
process.stdout.write(`${JSON.stringify({ requests, failed, heap_bytes: heapBytes, rss_bytes: rssBytes })}\n`);
await pool.close();
await gateway.stop();
