/** The programs in `examples/` run as their first lines say, against the sandbox. */
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { root } from './documents.ts';
import { startGateway, type TestGateway } from './harness.ts';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway.stop());

async function run(command: string, file: string, env: Record<string, string>): Promise<string> {
  const { stdout } = await promisify(execFile)(command, [join(root, 'examples', file)], {
    env: { PATH: process.env['PATH'], GATEWAY_URL: gateway.url, ...env },
  });
  return stdout;
}

test('limited-key.sh makes a key with a limit and prints the cost of a request and the remaining amount', async () => {
  const output = await run('bash', 'limited-key.sh', { MANAGEMENT_KEY: gateway.management_key });
  const [, cost, left] = /\ncost: ([\d.e-]+) USD\nleft: ([\d.]+) USD\n$/.exec(output) ?? [];
  expect(Number(cost) + Number(left)).toBeCloseTo(5, 9);
});

test('tools.mjs shows the call of the model and its answer', async () => {
  const output = await run(process.execPath, 'tools.mjs', { GATEWAY_KEY: gateway.key });
  expect(output).toMatch(/^get_temperature\(\{"city":.*\}\)\n.+/);
});

// stream.py needs Python and its openai package, which the tests do not install.
test('the first lines of every example say how to run it', () => {
  const examples = readdirSync(join(root, 'examples')).filter((name) => name !== 'README.md');
  const silent = examples.filter(
    (name) => !/Run it: /.test(readFileSync(join(root, 'examples', name), 'utf8').slice(0, 600)),
  );
  expect([examples.length > 0, silent]).toEqual([true, []]);
});
