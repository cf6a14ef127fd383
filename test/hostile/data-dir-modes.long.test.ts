import { chmodSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { chat, freshDir, makeKey, run, serve, stop } from '../process/gateway-process.ts';

const LAUNCHER = join(import.meta.dirname, '../../bin/model-gateway.cjs');

/** Every file and folder below a folder that other users may access, with its mode. */
function exposed(dir: string): string[] {
  return readdirSync(dir, { recursive: true, encoding: 'utf8' }).filter(
    (name) => (statSync(join(dir, name)).mode & 0o077) !== 0,
  );
}

let umask: number;
beforeEach(() => {
  // The umask of processes that a test starts: as open as a system can be.
  umask = process.umask(0);
});
afterEach(() => {
  process.umask(umask);
});

test.skipIf(process.platform === 'win32').each([[1], [2]])(
  'only the gateway’s user can read its files from their creation: store, write-ahead log, journal, secret, backup (%i workers)',
  async (workers) => {
    const home = freshDir();
    const dataDir = join(home, 'made', 'data');
    const gateway = await serve({ data_dir: dataDir, args: ['--workers', String(workers)] });
    const { key } = await makeKey(gateway);
    const answer = await gateway.call('POST', '/chat/completions', { key, body: chat('sandbox/echo') });
    expect(answer.status).toBe(200);
    expect(readdirSync(dataDir)).toEqual(
      expect.arrayContaining(['gateway.db', 'gateway.db-wal', 'gateway.db-shm', 'secret', 'slots']),
    );
    expect(exposed(join(home, 'made'))).toEqual([]);
    const backup = run(process.execPath, [LAUNCHER, 'backup', join(home, 'made', 'today.db')], {
      env: { GATEWAY_DATA_DIR: dataDir },
    });
    expect(await backup.ended).toBe(0);
    expect(await stop(gateway)).toBe(0);
    expect(exposed(join(home, 'made'))).toEqual([]);
  },
);

test.skipIf(process.platform === 'win32')(
  'the start removes other users’ access to the files, with a warning; doctor names the files before',
  async () => {
    const first = await serve();
    await makeKey(first);
    await stop(first);
    const { data_dir } = first;
    const names = readdirSync(data_dir, { recursive: true, encoding: 'utf8' });
    for (const name of names) chmodSync(join(data_dir, name), 0o777);
    const doctor = run(process.execPath, [LAUNCHER, 'doctor'], { env: { GATEWAY_DATA_DIR: data_dir } });
    expect(await doctor.ended).toBe(1);
    expect(doctor.out()).toContain(`Warning: other users of this machine may read ${names.length} files`);
    const second = await serve({ data_dir });
    expect(second.log()).toContainEqual(
      expect.objectContaining({
        level: 'warn',
        files: expect.any(Number),
        msg: expect.stringMatching(/^other users .* could read/),
      }),
    );
    expect(exposed(data_dir)).toEqual([]);
    await stop(second);
    const third = await serve({ data_dir });
    expect(third.log().filter(({ level }) => level === 'warn')).toEqual([]);
    await stop(third);
  },
);
