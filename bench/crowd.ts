/**
 * How long a health probe waits, in processor time of the gateway's loop, while many connections of one key receive long answers at
 * the same time: `node bin/launch.cjs bench/crowd.ts [--connections 400] [--mib 3] [--path /chat/completions] [--stream] [--rounds 3]
 * [--profile]`.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startSandbox } from '../sandbox/server.ts';
import { Connection, exchange, requestBytes } from './connection.ts';
import { wholeTexts } from './turns/answers.ts';
import { loopMs, startProber } from './turns/prober.ts';
import { startProvider } from './turns/provider.ts';

const MIB = 1024 * 1024;
const AIM_MS = 100;
const { values } = parseArgs({
  options: {
    connections: { type: 'string', default: '400' },
    mib: { type: 'string', default: '3' },
    path: { type: 'string', default: '/chat/completions' },
    stream: { type: 'boolean', default: false },
    rounds: { type: 'string', default: '3' },
    profile: { type: 'boolean', default: false },
  },
});
const connections = Number(values.connections);

const sandbox = await startSandbox();
const provider = await startProvider();
provider.answer(wholeTexts['openai-chat']!(Number(values.mib) * MIB));
const child = fork(
  join(import.meta.dirname, 'turns/gateway.ts'),
  [sandbox.url, provider.url, values.profile ? 'profile' : ''],
  { execArgv: ['--no-memory-reducer', '--max-old-space-size=3000', ...process.execArgv] },
);
const next = async <T>() => (await once(child, 'message'))[0] as T;
const { url, management_key } = await next<{ url: string; management_key: string }>();
const pid = child.pid!;
const port = Number(new URL(url).port);
const target = (path: string, key: string) => ({
  port,
  path: `/api/v1${path}`,
  headers: { authorization: `Bearer ${key}` },
});
const made = await exchange(port, requestBytes(target('/keys', management_key), '{"name":"crowd"}'));
const { key } = JSON.parse(made.body) as { key: string };

const body =
  values.path === '/responses'
    ? `{"model":"scripted/openai-chat","input":"a","stream":${values.stream}}`
    : `{"model":"scripted/openai-chat","max_tokens":5,"messages":[{"role":"user","content":"a"}],"stream":${values.stream}}`;
const bytes = requestBytes(target(values.path, key), body);
const statuses = new Map<number, number>();

async function send(): Promise<void> {
  await new Promise<void>((resolve) => {
    const connection = new Connection(port);
    connection.send(bytes, {
      onEnd(status) {
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        connection.close();
        resolve();
      },
    });
  });
}

for (let round = 1; round <= Number(values.rounds); round += 1) {
  child.send('read');
  await next();
  statuses.clear();
  const prober = startProber({ port, pid });
  const beganMs = loopMs(pid);
  const wallMs = performance.now();
  const sending = Array.from({ length: connections }, send);
  await Promise.all(sending);
  const tookMs = performance.now() - wallMs;
  const waits = await prober.stop();
  const allMs = loopMs(pid) - beganMs;
  child.send('read');
  const { longest_ms, rss_bytes, functions } = await next<{
    longest_ms: number;
    rss_bytes: number;
    functions: string[];
  }>();
  for (const line of functions) process.stdout.write(`${line}\n`);
  const shown = [...statuses].map(([status, count]) => `${count} × ${status}`).join(', ');
  const worst = waits.slice(0, 5).map((ms) => ms.toFixed(0));
  process.stdout.write(
    `${connections} × ${values.mib} MiB of ${values.path}${values.stream ? ', streamed' : ''}: ${shown}; ${allMs.toFixed(0)} ms in all, ${(tookMs / 1000).toFixed(1)} s by the clock, ` +
      `${(rss_bytes / MIB).toFixed(0)} MiB; longest turn ${longest_ms.toFixed(0)} ms; ${waits.length} probes waited at most ` +
      `${worst.join(', ')} ms; the aim is ${AIM_MS} ms\n`,
  );
}
child.disconnect();
await once(child, 'exit');
await sandbox.stop();
provider.stop();
