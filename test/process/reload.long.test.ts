import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { childrenOf, freshDir, type GatewayProcess, isAlive, metric, serve, stop, until } from './gateway-process.ts';

const CONNECTIONS = 16;
/** Time for several starts of processes on a busy machine. */
const SLOW = { timeout: 120_000 };
const ALONE = { connection: 'close' };

const declared = (id: string) => `
providers:
  acme: { name: Acme AI, dialect: openai-chat, base_url: "http://127.0.0.1:9/v1" }
models:
  ${id}: { endpoints: [{ provider: acme, upstream_model: m, pricing: { prompt: 1, completion: 2 } }] }
`;

/** The distinct answers of all workers to the list of models: the models, and the tag. */
async function answers(gateway: GatewayProcess): Promise<string[]> {
  const clients = Array.from({ length: CONNECTIONS }, async () => {
    const answer = await gateway.call('GET', '/models', { headers: ALONE });
    const { data } = (await answer.json()) as { data: { id: string }[] };
    return `${data.map(({ id }) => id).join(',')} ${answer.headers.get('etag')}`;
  });
  return [...new Set(await Promise.all(clients))];
}

/** Waits until every worker lists only this model, with one tag. */
function allList(gateway: GatewayProcess, id: string): Promise<void> {
  return until(`all list ${id}`, async () => {
    const [first, ...others] = await answers(gateway);
    return others.length === 0 && first?.split(' ')[0] === id;
  });
}

const logged = (gateway: GatewayProcess, msg: string) => gateway.log().filter((line) => line['msg'] === msg);

describe.skipIf(process.platform === 'win32')('a changed configuration', () => {
  test.each([
    ['one process', []],
    ['--workers 2', ['--workers', '2']],
  ])(
    '%s: every process applies a valid change with one report, and none applies an invalid one',
    SLOW,
    async (_, args) => {
      const file = join(freshDir(), 'gateway.yaml');
      writeFileSync(file, declared('acme/first'));
      const gateway = await serve({ args, environment: { GATEWAY_CONFIG: file } });
      if (args.length > 0) await until('both serve', async () => (await metric(gateway, 'gateway_processes')) === 2);
      await allList(gateway, 'acme/first');

      writeFileSync(file, declared('acme/second'));
      await allList(gateway, 'acme/second');
      const reloads = () => logged(gateway, 'the configuration was reloaded');
      await until('the reload is reported', () => reloads().length > 0);

      writeFileSync(file, declared('acme/third').replace('dialect:', 'dialekt:'));
      const refused = () => logged(gateway, 'the configuration cannot be reloaded; the previous one stays in force');
      await until('it is refused', () => refused().length > 0);
      expect(refused()).toHaveLength(1);
      expect(reloads()).toHaveLength(1);
      expect(refused()[0]?.['reason']).toContain('providers.acme.dialekt is not a known setting');
      await allList(gateway, 'acme/second');

      const children = args.length > 0 ? childrenOf(gateway.child.pid ?? 0) : [];
      for (const pid of children) process.kill(pid, 'SIGKILL');
      if (children.length > 0) {
        // Replacements of workers start with the checked configuration, not with the current content of the file.
        await until('other workers have replaced them', async () => {
          const now = childrenOf(gateway.child.pid ?? 0);
          return now.length === 2 && now.every((pid) => !children.includes(pid) && isAlive(pid));
        });
        await until('they serve', () =>
          gateway.call('GET', '/models', { headers: ALONE }).then(
            ({ ok }) => ok,
            () => false,
          ),
        );
        await allList(gateway, 'acme/second');
      }
      expect(await stop(gateway)).toBe(0);
    },
  );

  test('is loaded at SIGHUP if the file is not watched', SLOW, async () => {
    const file = join(freshDir(), 'gateway.yaml');
    writeFileSync(file, declared('acme/first'));
    const gateway = await serve({
      args: ['--workers', '2'],
      environment: { GATEWAY_CONFIG: file, GATEWAY_CONFIG_WATCH: 'off' },
    });
    await until('both serve', async () => (await metric(gateway, 'gateway_processes')) === 2);
    writeFileSync(file, declared('acme/second'));
    gateway.child.kill('SIGHUP');
    await allList(gateway, 'acme/second');
    expect(await stop(gateway)).toBe(0);
  });
});
