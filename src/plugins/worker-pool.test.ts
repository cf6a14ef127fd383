import { afterEach, expect, test } from 'vitest';
import { createWorkerPool, type WorkerPool, type WorkerPoolOptions } from './worker-pool.ts';

const code = `
export default ({ does }) => {
  if (does === 'answer') return Object.keys(process.env).filter((name) => name !== 'NODE_CHANNEL_FD').length;
  else if (does === 'stall') for (;;);
  else if (does === 'throw') throw new Error('no');
  else if (does === 'exit') process.exit(3);
  else if (does === 'fill') { const all = []; for (;;) all.push(new Array(1e5).fill(Math.random())); }
  else if (does === 'leap') { const all = []; for (let n = 0; n < 2e9; n += 1) all[n] = n; }
  else if (does === 'hoard') { const all = []; for (let n = 0; n < 64; n += 1) all.push(new Uint8Array(8e6).fill(1)); for (;;); }
};`;
const script = new URL(`data:text/javascript,${encodeURIComponent(code)}`);

let pool: WorkerPool;
const made = (more: Partial<WorkerPoolOptions> = {}) => {
  pool = createWorkerPool({
    script,
    processes_max: 2,
    waiting_max: 4,
    waiting_per_owner_max: 2,
    wait_ms_max: 20_000,
    ms_max: 20_000,
    heap_mb_max: 64,
    buffers_bytes_max: 100e6,
    ...more,
  });
  return (does: string, owner = 'a', signal?: AbortSignal) =>
    pool.run({ does }, { owner, ...(signal ? { signal } : {}) });
};
afterEach(() => pool.stop());

test('work runs in a process without environment variables', async () => {
  expect(await made()('answer')).toBe(0);
});

test.each<[string, object]>([
  ['throw', { reason: 'died' }],
  ['exit', { reason: 'died' }],
  ['fill', { reason: 'large' }],
  ['leap', { reason: 'large' }],
  ['hoard', { reason: 'large' }],
])('a process that does %s ends its work, and the next work gets a new process', async (does, failure) => {
  const run = made();
  await expect(run(does)).rejects.toMatchObject(failure);
  expect(await run('answer')).toBe(0);
});

test('work above its time limit is ended', async () => {
  const run = made({ ms_max: 300 });
  await expect(run('stall')).rejects.toMatchObject({ reason: 'late' });
  expect(await run('answer')).toBe(0);
});

test('an owner has at most one process', async () => {
  const run = made();
  const ending = new AbortController();
  const first = run('stall', 'a', ending.signal);
  const second = run('answer', 'a');
  expect(await run('answer', 'b')).toBe(0);
  ending.abort(new Error('gone'));
  await expect(first).rejects.toThrow('gone');
  expect(await second).toBe(0);
});

test('an owner with too much waiting work is refused at once, and waiting too long fails', async () => {
  const run = made({ wait_ms_max: 200 });
  const ending = new AbortController();
  const running = run('stall', 'a', ending.signal).catch(() => undefined);
  const waiting = [run('answer'), run('answer')].map((one) => one.catch((error: unknown) => error));
  await expect(run('answer')).rejects.toMatchObject({ reason: 'busy' });
  for (const error of await Promise.all(waiting)) expect(error).toMatchObject({ reason: 'busy' });
  ending.abort(new Error('gone'));
  await running;
});

test('aborted work does not run', async () => {
  const run = made();
  const ending = new AbortController();
  const running = run('stall');
  const waiting = run('answer', 'a', ending.signal);
  ending.abort(new Error('gone'));
  await expect(waiting).rejects.toThrow('gone');
  await expect(run('answer', 'b', ending.signal)).rejects.toThrow('gone');
  const ended = expect(running).rejects.toMatchObject({ reason: 'died' });
  await pool.stop();
  await ended;
});

test('stop rejects waiting work', async () => {
  const run = made();
  const all = [run('stall'), run('answer'), run('answer')].map((one) => one.catch((error: unknown) => error));
  await pool.stop();
  for (const error of await Promise.all(all)) expect(error).toMatchObject({ reason: 'died' });
});
