import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, existsSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const [bin] = globSync('/usr/lib/postgresql/*/bin')
  .filter((path) => existsSync(join(path, 'initdb')))
  .sort()
  .reverse();

/** Why a test cannot have a PostgreSQL of its own; undefined if it can. */
export const noOwnPostgres = bin === undefined ? 'no PostgreSQL is installed in /usr/lib/postgresql' : undefined;

/** Root may not run PostgreSQL, so PostgreSQL's own user does. */
const isRoot = process.getuid?.() === 0;

function run(command: string, args: readonly string[], cwd: string): string {
  const [file, ...rest] = isRoot ? ['runuser', '-u', 'postgres', '--', command, ...args] : [command, ...args];
  return execFileSync(file ?? '', rest, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  return typeof address === 'object' && address !== null ? address.port : 0;
}

/** A folder that PostgreSQL's user may write to. */
function folderForPostgres(): string {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-postgres-'));
  if (!isRoot) return folder;
  const id = (flag: string) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  chownSync(folder, id('-u'), id('-g'));
  chmodSync(folder, 0o700);
  return folder;
}

/** A PostgreSQL server of a test, which it may stop and freeze. */
export interface OwnPostgres {
  url: string;
  port: number;
  folder: string;
  start(): void;
  /** At once, as in a crash. */
  stop(): void;
  /** Every process of the server is frozen, but exists. */
  freeze(): void;
  thaw(): void;
  remove(): void;
}

export async function startOwnPostgres(settings: Record<string, string | number> = {}): Promise<OwnPostgres> {
  if (bin === undefined) throw new Error(noOwnPostgres);
  const folder = folderForPostgres();
  const data = join(folder, 'data');
  const port = await freePort();
  run(join(bin, 'initdb'), ['-D', data, '-U', 'postgres', '-A', 'trust', '--no-sync'], folder);
  const all = { port, listen_addresses: '127.0.0.1', unix_socket_directories: folder, fsync: 'off', ...settings };
  const options = Object.entries(all).map(([name, value]) => `-c ${name}=${value}`);
  const control = (...args: string[]) => run(join(bin, 'pg_ctl'), ['-D', data, '-w', ...args], folder);
  const pid = () => Number(readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')[0]);
  const signal = (name: 'SIGSTOP' | 'SIGCONT') => {
    const children = execFileSync('ps', ['-o', 'pid=', '--ppid', String(pid())], { encoding: 'utf8' });
    for (const one of [pid(), ...children.trim().split(/\s+/).map(Number)]) {
      try {
        process.kill(one, name);
      } catch {
        // It ended meanwhile.
      }
    }
  };
  const start = () => void control('-l', join(folder, 'log'), '-o', options.join(' '), 'start');
  start();
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    port,
    folder,
    start,
    stop: () => void control('-m', 'immediate', 'stop'),
    freeze: () => signal('SIGSTOP'),
    thaw: () => signal('SIGCONT'),
    remove() {
      signal('SIGCONT');
      control('-m', 'immediate', 'stop');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
