import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { runProgram } from '../test/command-line.ts';

async function run(...args: string[]): Promise<string> {
  const { code, stdout } = await runProgram(args);
  expect(code).toBe(0);
  return stdout;
}

test.each(['--help', '-h'])('%s explains the commands', async (option) => {
  expect(await run(option)).toMatch(/^Usage: model-gateway COMMAND/);
});

test.each(['users', 'keys', 'credits', 'ledger', 'catalog', 'sandbox'])(
  '%s --help explains that command',
  async (name) => {
    expect(await run(name, '--help')).toMatch(new RegExp(`^Usage: model-gateway ${name} `));
    expect(await run(name, '-h')).toBe(await run(name, '--help'));
  },
);

test('--version prints the version of the package', async () => {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  expect(await run('--version')).toBe(`${version}\n`);
});
