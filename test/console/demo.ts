import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}

/** Runs `model-gateway demo` on a new data directory; `link` signs in once. */
export async function startDemo(): Promise<{ link: string; dataDir: string; stop(): Promise<void> }> {
  const root = resolve(import.meta.dirname, '../..');
  const dataDir = mkdtempSync(join(tmpdir(), 'gateway-pictures-'));
  const demo = spawn(
    process.execPath,
    [join(root, 'bin/launch.cjs'), 'src/main.ts', 'demo', '--data-dir', dataDir, '--port', String(await freePort())],
    { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] },
  );
  let output = '';
  const link = await new Promise<string>((done, reject) => {
    demo.once('exit', () => reject(new Error(`the demo ended: ${output}`)));
    demo.stdout.on('data', (text: Buffer) => {
      output += text.toString();
      const match = /http:\/\/\S+sign-in\?code=\S+/.exec(output);
      if (match !== null) done(match[0]);
    });
  });
  return {
    link,
    dataDir,
    async stop() {
      demo.removeAllListeners('exit');
      const ended = new Promise((done) => demo.once('exit', done));
      demo.kill('SIGTERM');
      await ended;
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}
