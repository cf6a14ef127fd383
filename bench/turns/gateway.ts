/** The gateway with a heartbeat: its parent requests the processor time of the longest pause between two beats. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startGateway } from '../../src/cli/start-gateway.ts';
import { declaredSandbox } from '../../src/cli/with-sandbox.ts';
import { loadConfig } from '../../src/config.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { declaredProviders } from './provider.ts';

const BEAT_MS = 1;
/** No prompt is too long for its model, so that all of it is processed. */
const CONTEXT_TOKENS = 1_000_000_000;
const MANAGEMENT_KEY = 'bench-management-key-0123456789abcdef';

const home = mkdtempSync(join(tmpdir(), 'bench-turns-'));
const configFile = join(home, 'gateway.yaml');
const [, , sandboxUrl = '', providerUrl = ''] = process.argv;
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
let longestMs = 0;
let lastMs = threadCpuMs();
setInterval(() => {
  const nowMs = threadCpuMs();
  longestMs = Math.max(longestMs, nowMs - lastMs);
  lastMs = nowMs;
}, BEAT_MS).unref();

process.on('message', (message) => {
  if (message === 'read') {
    process.send?.({ longest_ms: longestMs });
    longestMs = 0;
  }
});
process.on('disconnect', () => {
  void gateway.stop().then(() => rmSync(home, { recursive: true, force: true }));
});
process.send?.({ url: gateway.url, management_key: MANAGEMENT_KEY });
