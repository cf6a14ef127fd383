/**
 * The longest turn of the gateway's loop, in processor time, while one large request goes through it:
 * `node bin/launch.cjs bench/turns.ts [--mib 1,10,62] [--only WORDS] [--json]`. The sandbox answers, in a process of its own.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startSandbox } from '../sandbox/server.ts';
import { startProvider } from './turns/provider.ts';
import { send as sendRaw } from './turns/send.ts';
import { shapes } from './turns/shapes.ts';

const MIB = 1024 * 1024;
/** What the gateway goes on with after its answer is counted as well. */
const AFTER_MS = 300;
const AIM_MS = 50;
const { values } = parseArgs({
  options: {
    mib: { type: 'string', default: '1,10,62' },
    only: { type: 'string', default: '' },
    rounds: { type: 'string', default: '2' },
  },
});

const sandbox = await startSandbox();
const provider = await startProvider();
const child = fork(join(import.meta.dirname, 'turns/gateway.ts'), [sandbox.url, provider.url], {
  execArgv: ['--no-memory-reducer', '--max-old-space-size=3000', ...process.execArgv],
});
const next = async <T>() => (await once(child, 'message'))[0] as T;
const { url, management_key } = await next<{ url: string; management_key: string }>();
const send = (path: string, key: string, body: string) =>
  fetch(`${url}/api/v1${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body,
  });
const keyOf = async (body: object) =>
  ((await (await send('/keys', management_key, JSON.stringify(body))).json()) as { key: string }).key;
const key = await keyOf({ name: 'bench' });
const limitedKey = await keyOf({ name: 'limited', limit: 1_000_000 });
const longestMs = async () => {
  child.send('read');
  return (await next<{ longest_ms: number }>()).longest_ms;
};

let worstMs = 0;
for (const { name, path, body, answer, is_limited, piece_bytes } of shapes) {
  if (!name.includes(values.only)) continue;
  const cells: string[] = [];
  let last = '';
  for (const mib of values.mib.split(',').map(Number)) {
    const text = body(mib * MIB);
    if (answer !== undefined) provider.answer(answer(mib * MIB));
    const shown = is_limited ? limitedKey : key;
    let leastMs = Number.POSITIVE_INFINITY;
    let status = '';
    for (let round = 0; round < Number(values.rounds); round += 1) {
      await longestMs();
      const sending =
        piece_bytes === undefined ? send(path, shown, text) : sendRaw(`${url}/api/v1${path}`, shown, text, piece_bytes);
      const response = await sending.catch((error: Error) => error);
      status = response instanceof Response ? String(response.status) : 'cut';
      if (response instanceof Response) last = (await response.text()).slice(0, 160);
      await new Promise((resolve) => setTimeout(resolve, AFTER_MS));
      leastMs = Math.min(leastMs, await longestMs());
    }
    worstMs = Math.max(worstMs, leastMs);
    cells.push(`${leastMs.toFixed(0).padStart(6)} ms ${status}`);
  }
  process.stdout.write(
    `${name.padEnd(38)} ${cells.join('  ')}${process.env['SHOW'] === undefined ? '' : `  ${last}`}\n`,
  );
}
process.stdout.write(`longest turn: ${worstMs.toFixed(0)} ms; the aim is ${AIM_MS} ms\n`);
child.disconnect();
await once(child, 'exit');
await sandbox.stop();
provider.stop();
