/**
 * The conditions of the two tiers of tests: the first needs nothing but this checkout, and files that share modules do
 * not depend on each other.
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { dialects } from '../src/providers/dialects.ts';
import type { Recording } from './readings/recordings.ts';
import { filesOf } from './tier-files.ts';

const root = join(import.meta.dirname, '..');
const read = (file: string) => readFileSync(join(root, file), 'utf8');
const testFiles = globSync(['src/**/*.test.ts', 'sandbox/*.test.ts', 'test/**/*.ts', 'bench/*.test.ts'], { cwd: root });
const samples = globSync('test/recordings/*/*.json', { cwd: root }).map((file) => ({
  file,
  text: read(file),
  recording: JSON.parse(read(file)) as Recording & { dialect: string },
}));

test('a module that files share registers no hook while it is loaded, since it is loaded only once', () => {
  const shared = testFiles.filter((file) => !file.endsWith('.test.ts'));
  expect(shared.filter((file) => /^(?:before|after)(?:Each|All)\(|^onTestF/m.test(read(file)))).toEqual([]);
});

test('folders beside the checkout are read only if the tier allows it', () => {
  const readers = testFiles.filter(
    (file) => /\.\.\/shared\/(?:catalog|transcripts)/.test(read(file)) && file !== 'test/tiers.test.ts',
  );
  expect(readers.sort()).toEqual(['src/catalog/models-dev.test.ts', 'test/readings/recordings.ts', 'test/reporter.ts']);
  for (const file of readers.slice(0, 2)) expect(read(file)).toContain('inTier(false, existsSync(');
});

test('the second tier runs the long files, and those of which the first tier runs a part', () => {
  const { include } = filesOf('second');
  expect(include).toEqual(
    expect.arrayContaining([
      '**/*.long.test.ts',
      'test/simulation/simulation.test.ts',
      'src/guardrails/injection/injection.test.ts',
    ]),
  );
  expect(include).not.toContain('test/tidy.test.ts');
  expect(include).not.toContain('src/errors.test.ts');
  expect(filesOf('first').exclude).toContain('**/*.long.test.ts');
});

test.each([...dialects.keys()])('the sample of %s has whole answers, streamed answers, and tool calls', (wire) => {
  const own = samples.filter(({ recording }) => recording.dialect === wire);
  const answers = own.filter(({ recording }) => recording.response.status === 200);
  expect(answers.filter(({ recording }) => recording.response.json !== undefined)).not.toEqual([]);
  expect(answers.filter(({ recording }) => recording.response.json === undefined)).not.toEqual([]);
  expect(
    own.filter(({ text }) => /"tool_?calls"|tool_use|toolUse|function_?call|executableCode/i.test(text)),
  ).not.toEqual([]);
});

test('the sample is small, and holds no credentials', () => {
  expect(samples.length).toBeGreaterThan(20);
  expect(samples.reduce((sum, { text }) => sum + text.length, 0)).toBeLessThan(250_000);
  const credential =
    /\b(?:sk|pk|rk|xai|gsk|hf|key)[-_][\w-]{16,}|\bAIza[\w-]{30,}|\bA[KS]IA[A-Z0-9]{16}\b|\bgh[opsu]_\w{20,}|\bbearer\s+\S+|"(?:authorization|cookie|set-cookie|x-api-key|api-key)"|\b[\w.+-]+@[\w-]+\.(?:com|org|io|dev|ai|net)\b/i;
  expect(
    samples.flatMap(
      ({ file, text }) =>
        credential
          .exec(text)
          ?.slice(0, 1)
          .map((match) => `${file}: ${match}`) ?? [],
    ),
  ).toEqual([]);
});
