import { expect, test } from 'vitest';
import { common, readArguments, UsageError } from './command.ts';

const options = { ...common, name: { type: 'string' }, workers: { type: 'string' } } as const;

test.each([
  [['--workes', '2'], 'There is no option --workes; did you mean "--workers"?'],
  [['--wings'], 'There is no option --wings.'],
  [['-1'], 'There is no option -1.'],
  [['--name'], '--name needs a value.'],
  [['--name', '--json'], '--name needs a value; write one that begins with a dash as --name=--json'],
  [['--json=yes'], '--json takes no value.'],
  [['all'], "'all' is not expected here."],
])('%j is refused with the gateway’s own message', (args, sentence) => {
  expect(() => readArguments({ args, options })).toThrow(new UsageError(sentence));
});

test('valid arguments are read', () => {
  const { values } = readArguments({ args: ['--name=-x', '--json', '--config', 'f'], options });
  expect({ ...values }).toEqual({ name: '-x', json: true, config: 'f' });
});
