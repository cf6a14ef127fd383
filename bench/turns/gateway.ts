/** The gateway with a heartbeat: its parent requests the processor time of the longest pause between two beats. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PerformanceObserver } from 'node:perf_hooks';
import { startGateway } from '../../src/cli/start-gateway.ts';
import { declaredSandbox } from '../../src/cli/with-sandbox.ts';
import { loadConfig } from '../../src/config.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { startProfiler } from './profiler.ts';
import { declaredProviders } from './provider.ts';

const BEAT_MS = 1;
/** No prompt is too long for its model, so that all of it is processed. */
const CONTEXT_TOKENS = 1_000_000_000;
const MANAGEMENT_KEY = 'bench-management-key-0123456789abcdef';

const home = mkdtempSync(join(tmpdir(), 'bench-turns-'));
const configFile = join(home, 'gateway.yaml');
const [, , sandboxUrl = '', providerUrl = ''] = process.argv;
const profiles = process.argv[4] === 'profile';
const sandbox = declaredSandbox(sandboxUrl);
const scripted = declaredProviders(providerUrl);
const models = Object.fromEntries(
  Object.entries({ ...sandbox.models, ...scripted.models }).map(([id, model]) => [
    id,
    { ...model, context_length: CONTEXT_TOKENS },
  ]),
);
const providers = { ...sandbox.providers, ...scripted.providers };
writeFileSync(configFile, JSON.stringify({ ...sandbox, providers, models }));
const environment = {
  GATEWAY_HOST: '127.0.0.1',
  GATEWAY_PORT: '0',
  GATEWAY_DATA_DIR: join(home, 'data'),
  GATEWAY_MANAGEMENT_KEY: MANAGEMENT_KEY,
};
const config = loadConfig(environment, { config_file: configFile });
const gateway = await startGateway({
  config,
  log: createLog('error', { write: (line) => void process.stderr.write(line) }),
});

const threadCpuMs = () => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
};
/** The longest pause between two beats since the last question, and the most memory at a beat. */
let longest = { ms: 0, from_ms: 0, to_ms: 0 };
let rssBytes = 0;
let lastMs = threadCpuMs();
let lastAtMs = performance.now();
const collections: { from_ms: number; ms: number }[] = [];
new PerformanceObserver((list) => {
  for (const { startTime, duration } of list.getEntries()) collections.push({ from_ms: startTime, ms: duration });
}).observe({ entryTypes: ['gc'] });
setInterval(() => {
  const nowMs = threadCpuMs();
  const atMs = performance.now();
  if (nowMs - lastMs > longest.ms) longest = { ms: nowMs - lastMs, from_ms: lastAtMs, to_ms: atMs };
  lastMs = nowMs;
  lastAtMs = atMs;
  rssBytes = Math.max(rssBytes, process.memoryUsage.rss());
}, BEAT_MS).unref();

const profiler = profiles ? await startProfiler() : undefined;

async function report() {
  const { ms, from_ms, to_ms } = longest;
  const isWithin = (at: number) => at >= from_ms && at <= to_ms;
  const collected = collections.filter((one) => isWithin(one.from_ms)).reduce((sum, one) => sum + one.ms, 0);
  const functions = (await profiler?.within(from_ms, to_ms)) ?? [];
  process.send?.({ longest_ms: ms, collection_ms: collected, rss_bytes: rssBytes, functions });
  longest = { ms: 0, from_ms: 0, to_ms: 0 };
  rssBytes = 0;
  collections.length = 0;
  lastMs = threadCpuMs();
}

process.on('message', (message) => {
  if (message === 'read') void report();
});
process.on('disconnect', () => {
  void gateway.stop().then(() => rmSync(home, { recursive: true, force: true }));
});
process.send?.({ url: gateway.url, management_key: MANAGEMENT_KEY });
