import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { runProgram } from '../../test/command-line.ts';
import { backupCommand } from './backup.ts';
import { catalogCommand } from './catalog-refresh.ts';
import { type Command, UsageError } from './command.ts';
import { consoleCommand } from './console.ts';
import { creditsCommand } from './credits.ts';
import { demoCommand } from './demo.ts';
import { doctorCommand } from './doctor.ts';
import { explainCommand } from './explain.ts';
import { healthCommand } from './health.ts';
import { keysCommand } from './keys.ts';
import { ledgerCommand } from './ledger.ts';
import { sandboxCommand } from './sandbox.ts';
import { serveCommand } from './serve-command.ts';
import { usersCommand } from './users.ts';

const commands: Readonly<Record<string, Command>> = {
  serve: serveCommand,
  doctor: doctorCommand,
  explain: explainCommand,
  users: usersCommand,
  keys: keysCommand,
  credits: creditsCommand,
  ledger: ledgerCommand,
  console: consoleCommand,
  health: healthCommand,
  backup: backupCommand,
  catalog: catalogCommand,
  sandbox: sandboxCommand,
  demo: demoCommand,
};

test('the program lists its commands, suggests one for a misspelt one, and --help runs nothing', async () => {
  const [listed, near, help] = await Promise.all([
    runProgram(['--help']),
    runProgram(['doktor']),
    runProgram(['keys', 'create', '--name', 'x', '--help']),
  ]);
  expect([...listed.stdout.matchAll(/^ {2}(\w+) {2,}/gm)].map(([, name]) => name)).toEqual(Object.keys(commands));
  const sentence = /^There is no command 'doktor'; did you mean "doctor"\?/;
  expect(near).toMatchObject({ code: 2, stderr: expect.stringMatching(sentence) });
  expect(help).toMatchObject({ code: 0, stdout: keysCommand.usage, stderr: '' });
});

test.each(Object.entries(commands))('%s has a usage of one screen', (name, { usage }) => {
  expect(usage).toMatch(new RegExp(`^Usage: model-gateway ${name}\\b.*[^\\n]+\\n`));
  expect(usage.split('\n').length).toBeLessThan(25);
});

test('keys create prints the key alone, and stores its limit', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'gateway-keys-'));
  const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  const run = (...args: string[]) => keysCommand.run(args, { GATEWAY_DATA_DIR: dataDir });
  try {
    expect(await run('create', '--name', 'laptop', '--limit', '5', '--limit-reset', 'daily')).toBe(0);
    expect(write.mock.calls.join('')).toMatch(/^sk-gw-v1-[0-9a-f]{64}\n$/);
    for (const [args, message] of [
      [['--limit', 'five'], "--limit must be an amount of USD such as 5 or 0.50, not 'five'."],
      [['--limit-reset', 'daily'], '--limit-reset must be daily, weekly or monthly, beside a --limit.'],
      [['--management', '--limit', '5'], 'Management keys cannot call models: remove --limit.'],
    ] as const) {
      await expect(run('create', '--name', 'x', ...args)).rejects.toThrow(new UsageError(message));
    }
    write.mockClear();
    await run('list', '--json');
    const laptop = { name: 'laptop', limit: 5, limit_reset: 'daily', is_management: false };
    expect(JSON.parse(write.mock.calls.join(''))).toMatchObject([laptop]);
  } finally {
    write.mockRestore();
    rmSync(dataDir, { recursive: true });
  }
});
