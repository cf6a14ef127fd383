import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const main = new URL('./main.ts', import.meta.url).pathname;
const run = (...args: string[]) => execFileSync(process.execPath, [main, ...args], { encoding: 'utf8' });

test.each([['--help'], ['doctor', '--help'], ['serve', '-h'], ['backup', '--help']])(
  '%s %s explains the commands',
  (...args) => {
    expect(run(...args.filter((word) => word !== undefined))).toMatch(/^Usage: model-gateway COMMAND/);
  },
);

test.each(['users', 'keys', 'credits', 'ledger', 'catalog', 'sandbox'])('%s --help explains that command', (name) => {
  expect(run(name, '--help')).toMatch(new RegExp(`^Usage: model-gateway ${name} `));
  expect(run(name, '-h')).toBe(run(name, '--help'));
});

test('--version prints the version of the package', () => {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  expect(run('--version')).toBe(`${version}\n`);
});
