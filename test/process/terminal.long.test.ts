/** The output of a start in a terminal. `script` (util-linux) gives a process a terminal of its own. */
import { execFileSync, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { freePort, freshDir, run, until } from './gateway-process.ts';

const hasScript = spawnSync('script', ['--version']).status === 0;
const bin = join(import.meta.dirname, '../../bin/model-gateway.cjs');

test.skipIf(!hasScript)(
  'on a terminal a first start prints one block, later ones three lines, and the log is text',
  {
    timeout: 120_000,
  },
  async () => {
    const home = freshDir();
    const port = await freePort();
    const session = async (environment: Record<string, string> = {}) => {
      const started = run(
        'script',
        ['--quiet', '--command', `${process.execPath} ${bin} --port ${port}`, '/dev/null'],
        {
          cwd: home,
          env: { TERM: 'xterm-256color', ...environment },
        },
      );
      await until('it serves', () => started.out().includes('API reference: '));
      await until(
        'it answers',
        async () => (await fetch(`http://127.0.0.1:${port}/nothing`).catch(() => undefined)) !== undefined,
      );
      await until('the line of the request', () => started.out().includes('GET /nothing'));
      const pid = execFileSync('pgrep', ['-P', String(started.child.pid)], { encoding: 'utf8' }).trim();
      process.kill(Number(pid.split('\n')[0]), 'SIGTERM');
      await started.ended;
      return started.out().replaceAll('\r', '');
    };
    const first = await session();
    expect(first).toMatch(
      /^\n {2}Model Gateway \S+ listens on http:\/\/127\.0\.0\.1:\d+\n\n {2}Keys \(shown only this once/,
    );
    expect(first.match(/listens on/g)).toHaveLength(1);
    expect(first).toContain('\u001b[33m404\u001b[0m');

    const second = await session({ NO_COLOR: '1' });
    const [listens, providers, reference, request] = second.split('\n');
    expect(listens).toMatch(/^Model Gateway \S+ listens on http:\/\/127\.0\.0\.1:\d+$/);
    expect(providers).toMatch(/^Providers: the sandbox\. API keys: .*keys create --name NAME$/);
    expect(reference).toMatch(/^API reference: http:\/\/127\.0\.0\.1:\d+\/docs$/);
    expect(request).toMatch(/^\d\d:\d\d:\d\d {2}GET \/nothing {2}404 {2}\d+ ms$/);
  },
);
