/**
 * The longest turn of the gateway's event loop, in processor time, during one large request: `node bin/launch.cjs
 * bench/turns.ts [--mib 1,10,62] [--only WORDS] [--rounds N] [--profile]`. The sandbox answers in a process of its own.
 */
import { fork } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startSandbox } from '../sandbox/server.ts';
import { startProvider } from './turns/provider.ts';
import { send as sendRaw } from './turns/send.ts';
import { type Shape, shapes } from './turns/shapes.ts';

const MIB = 1024 * 1024;
/** The gateway's work after its answer is included. */
const AFTER_MS = 300;
const AIM_MS = 50;
const { values } = parseArgs({
  options: {
    mib: { type: 'string', default: '1,10,62' },
    only: { type: 'string', default: '' },
    rounds: { type: 'string', default: '2' },
    profile: { type: 'boolean', default: false },
  },
});

const sandbox = await startSandbox();
const provider = await startProvider();
const child = fork(
  join(import.meta.dirname, 'turns/gateway.ts'),
  [sandbox.url, provider.url, values.profile ? 'profile' : ''],
  {
    execArgv: ['--no-memory-reducer', '--max-old-space-size=3000', ...process.execArgv],
  },
);
const next = async <T>() => (await once(child, 'message'))[0] as T;
const { url, management_key } = await next<{ url: string; management_key: string }>();
const send = (path: string, key: string, body: string, type = 'application/json') =>
  fetch(`${url}/api/v1${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': type },
    body: type === 'application/json' ? body : Buffer.from(body, 'latin1'),
  });
const keyOf = async (body: object) =>
  ((await (await send('/keys', management_key, JSON.stringify(body))).json()) as { key: string }).key;
const key = await keyOf({ name: 'bench' });
const limitedKey = await keyOf({ name: 'limited', limit: 1_000_000 });
const workspace = (await (
  await send('/workspaces', management_key, JSON.stringify({ name: 'logged', slug: 'logged' }))
).json()) as { data: { id: string } };
await fetch(`${url}/api/v1/workspaces/${workspace.data.id}`, {
  method: 'PATCH',
  headers: { authorization: `Bearer ${management_key}`, 'content-type': 'application/json' },
  body: JSON.stringify({ is_observability_io_logging_enabled: true }),
});
const loggedKey = await keyOf({ name: 'logged', workspace_id: workspace.data.id });
const filteredKey = await keyOf({ name: 'filtered' });
const hashed = createHash('sha256').update(filteredKey).digest('hex');
const FILTERS = ['email', 'credit-card', 'phone', 'ssn', 'ip-address'].map((slug) => ({ slug, action: 'redact' }));
const guardrail = (await (
  await send(
    '/guardrails',
    management_key,
    JSON.stringify({ name: 'bench', content_filter_builtins: FILTERS, content_filter_output: true }),
  )
).json()) as { data: { id: string } };
await send(
  `/guardrails/${guardrail.data.id}/assignments/keys`,
  management_key,
  JSON.stringify({ key_hashes: [hashed] }),
);
interface Measure {
  longest_ms: number;
  /** Garbage collection of the loop's thread within that turn. */
  collection_ms: number;
  rss_bytes: number;
  functions: string[];
}
const measured = () => {
  child.send('read');
  return next<Measure>();
};

function keyFor({
  is_limited,
  is_filtered,
  is_logged,
  is_managed,
}: Pick<Shape, 'is_limited' | 'is_filtered' | 'is_logged' | 'is_managed'>): string {
  if (is_managed) return management_key;
  return is_limited ? limitedKey : is_filtered ? filteredKey : is_logged ? loggedKey : key;
}

let worstMs = 0;
for (const { name, path, body, answer, piece_bytes, content_type, ...by } of shapes) {
  if (!values.only.split('|').some((words) => name.includes(words))) continue;
  const cells: string[] = [];
  let last = '';
  for (const mib of values.mib.split(',').map(Number)) {
    const text = body(mib * MIB);
    if (answer !== undefined) provider.answer(answer(mib * MIB));
    const shown = keyFor(by);
    let least: Measure | undefined;
    let status = '';
    for (let round = 0; round < Number(values.rounds); round += 1) {
      await measured();
      const sending =
        piece_bytes === undefined
          ? send(path, shown, text, content_type)
          : sendRaw(`${url}/api/v1${path}`, shown, text, piece_bytes);
      const response = await sending.catch((error: Error) => error);
      status = response instanceof Response ? String(response.status) : 'cut';
      if (response instanceof Response) last = (await response.text()).slice(0, 160);
      await new Promise((resolve) => setTimeout(resolve, AFTER_MS));
      const measure = await measured();
      if (least === undefined || measure.longest_ms < least.longest_ms) least = measure;
    }
    const { longest_ms, collection_ms, rss_bytes, functions } = least!;
    worstMs = Math.max(worstMs, longest_ms);
    cells.push(
      `${longest_ms.toFixed(0).padStart(6)} ms (${collection_ms.toFixed(0)}) ${(rss_bytes / MIB).toFixed(0)} MiB ${status}`,
    );
    for (const line of functions) process.stdout.write(`${line}\n`);
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
