/**
 * A gateway started as an operator would start it, in a network with a proxy as its only exit, and an upstream with a
 * certificate of a private authority.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type PrivateCa, privateCa } from './private-ca.ts';
import { freePort, type GatewayProcess, makeKey, serve, stop, until } from './process/gateway-process.ts';

/** An address of this machine other than its loopback, for which no proxy is used. */
const address = Object.values(networkInterfaces())
  .flatMap((all) => all ?? [])
  .find(({ family, internal }) => family === 'IPv4' && !internal)?.address;

/** Proxies of Debian, and how the addresses and log file of each are configured. */
const PROXIES = {
  tinyproxy: {
    program: '/usr/bin/tinyproxy',
    args: (config: string) => ['-d', '-c', config],
    config: (port: number, folder: string) =>
      `Port ${port}\nListen 127.0.0.1\nTimeout 60\nAllow 127.0.0.1\nLogFile "${folder}/log"\nLogLevel Connect\n`,
  },
};

const absent = Object.values(PROXIES).filter(({ program }) => !existsSync(program));
for (const { program } of absent)
  process.stdout.write(`Tests with the proxy ${program} are skipped: it is not installed\n`);

describe.skipIf(address === undefined)('to an upstream with a private authority', () => {
  let ca: PrivateCa;
  let upstream: Server;
  let requests = 0;
  beforeAll(async () => {
    ca = privateCa([`IP:${address}`]);
    upstream = createServer({ cert: ca.cert, key: ca.key }, (request, response) => {
      requests += 1;
      request.resume().on('end', () => {
        response.setHeader('content-type', 'application/json');
        response.end(
          JSON.stringify({
            id: 'chatcmpl-1',
            object: 'chat.completion',
            created: 1,
            model: 'm',
            choices: [{ index: 0, message: { role: 'assistant', content: 'through' }, finish_reason: 'stop' }],
            usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
          }),
        );
      });
    }).listen(0, address);
    await once(upstream, 'listening');
  });
  afterAll(() => {
    upstream.closeAllConnections();
    upstream.close();
    ca.remove();
  });

  const yaml = () =>
    JSON.stringify({
      providers: {
        inner: {
          dialect: 'openai-chat',
          base_url: `https://${address}:${(upstream.address() as AddressInfo).port}/v1`,
        },
      },
      models: {
        'inner/m': {
          name: 'M',
          context_length: 1000,
          endpoints: [{ provider: 'inner', upstream_model: 'm', pricing: { prompt: 0, completion: 0 } }],
        },
      },
    });
  const ask = async (gateway: GatewayProcess) => {
    const { key } = await makeKey(gateway);
    const body = { model: 'inner/m', messages: [{ role: 'user', content: 'Hello' }] };
    const answer = await gateway.call('POST', '/chat/completions', { key, body });
    return { status: answer.status, text: await answer.text() };
  };

  test.each(Object.entries(PROXIES).filter(([, { program }]) => existsSync(program)))(
    'an answer arrives through %s, without it for hosts of NO_PROXY, and not at all without the certificate authority',
    async (_, proxy) => {
      const folder = mkdtempSync(join(tmpdir(), 'upstream-proxy-'));
      const port = await freePort();
      const config = join(folder, 'proxy.conf');
      writeFileSync(config, proxy.config(port, folder));
      const processOfProxy: ChildProcess = spawn(proxy.program, proxy.args(config), { stdio: 'ignore' });
      const ended = once(processOfProxy, 'exit');
      const log = () => (existsSync(join(folder, 'log')) ? readFileSync(join(folder, 'log'), 'utf8') : '');
      try {
        await until('the proxy listens', async () => {
          const socket = connect(port, '127.0.0.1');
          const listens = await once(socket, 'connect').then(
            () => true,
            () => false,
          );
          socket.destroy();
          return listens;
        });
        const environment = { HTTPS_PROXY: `http://127.0.0.1:${port}`, NODE_EXTRA_CA_CERTS: ca.ca_file };
        const through = await serve({ yaml: yaml(), environment });
        expect(await ask(through)).toMatchObject({ status: 200, text: expect.stringContaining('through') });
        await stop(through);
        await until('the proxy has logged the tunnel', () => log().includes(`CONNECT ${address}:`));

        const logged = log();
        const beside = await serve({ yaml: yaml(), environment: { ...environment, NO_PROXY: `${address}/32` } });
        expect(await ask(beside)).toMatchObject({ status: 200 });
        await stop(beside);
        expect(log().split('CONNECT').length).toBe(logged.split('CONNECT').length);

        const before = requests;
        const strange = await serve({ yaml: yaml(), environment: { HTTPS_PROXY: environment.HTTPS_PROXY } });
        expect((await ask(strange)).status).toBeGreaterThanOrEqual(502);
        await stop(strange);
        expect(requests).toBe(before);
      } finally {
        processOfProxy.kill('SIGTERM');
        await ended;
        rmSync(folder, { recursive: true, force: true });
      }
    },
  );
});
