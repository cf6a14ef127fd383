/**
 * The language of names, comments and titles of tests. Biome checks casing (`language/biome-naming.json`), a scan of tokens the words
 * that the project has retired. `language/remaining.json` holds how many faults each folder still has: a count that differs from it, up or down, fails.
 * After faults are removed: `npm test -- test/language.test.ts --update=all`.
 */
import { execFile } from 'node:child_process';
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '..');
const folders = ['src', 'test', 'bench'];

/** Words that say nothing of what a thing is, as whole names or as parts of names, in any number. */
const RETIRED =
  /^(?:told|asked|given|came|gone|said|heard|wish|skin|door|grip|sieve|passage|citer|spare|manners|sofar)(?:s|es)?$/;
/** Names in which such a word is a term of the field or of a wire. */
const TERMS = /^(?:given_?names?|.*_given_names?|retrieval_passage)$/i;
/** Words and openings of comments that a reader has to decode. Write `Undefined if …`, `Not set if …`, `again`, `continues`, `at most 5`. */
const RIDDLE =
  /\b(?:told|nowhere|anew|all the same|whom|hear[ds]|brings?|brought|gone by|given up|goes on|so many|so often|without ado|else than)\b|\b(?:Absent|Undefined|Null|Empty|Nowhere|False|True):(?=\s)|\bAsked for\b/g;

/** The same in titles of tests, and subjects without a noun. Write `an unknown model is …`, not `what nobody knows is …`. */
const RIDDLE_TITLE =
  /\b(?:told|nowhere|nobody|anew|all the same|whom|heard|hears|said|brings?|brought|wish|gone by|given up|goes on|so many|without ado)\b|^(?:what|who)\b/g;
/** The text before a title: the opening of a test or a suite, or of the second call after `test.each(…)` or `test.runIf(…)`. */
const BEFORE_TITLE = /(?:\b(?:test|it|describe\w*)(?:\.\w+)?|\))\(\s*$/;

/** Comments, strings, templates, regular expressions, names; `#` is part of a private name. */
const TOKEN =
  /\/\/.*|\/\*[\s\S]*?\*\/|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\$]|\\[\s\S]|\$(?!\{)|\$\{(?:[^`{}]|`[^`]*`|\{[^{}]*\})*\})*`|(?<=(?:[=(,:[!&|?{};\n]|\breturn\b)\s*)\/(?![*/])(?:[^\\/[\n]|\\.|\[(?:[^\\\]\n]|\\.)*\])+\/[a-z]*|#?[A-Za-z_$][\w$]*/g;

const KINDS = ['names', 'comments', 'titles', 'casing'] as const;
type Kind = (typeof KINDS)[number];

interface Fault {
  readonly file: string;
  readonly line: number;
  readonly kind: Kind;
  readonly text: string;
}

const usesRetiredWord = (name: string): boolean =>
  !TERMS.test(name) &&
  (/^#?found$/.test(name) ||
    name.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+/g)?.some((word) => RETIRED.test(word.toLowerCase())) === true);

/** The faults of one source, but for casing: that of private `#names` is here, since Biome does not check it. */
function scan(file: string, source: string): Fault[] {
  const faults: Fault[] = [];
  const add = (kind: Kind, text: string, offset: number) => {
    const line = source.slice(0, offset).split('\n').length;
    faults.push({ file, line, kind, text });
  };
  for (const { 0: token, index } of source.matchAll(TOKEN)) {
    if (/^\/[/*]/.test(token)) {
      for (const riddle of token.matchAll(RIDDLE)) add('comments', riddle[0], index + riddle.index);
    } else if (/^['"`]/.test(token)) {
      const isTitle = file.endsWith('.test.ts') && BEFORE_TITLE.test(source.slice(Math.max(0, index - 80), index));
      if (isTitle) for (const riddle of token.slice(1, -1).matchAll(RIDDLE_TITLE)) add('titles', riddle[0], index);
    } else if (/^[#\w$]/.test(token)) {
      if (usesRetiredWord(token)) add('names', token, index);
      if (/^#[a-z\d]+_/.test(token)) add('casing', token, index);
    }
  }
  return faults;
}

interface Report {
  diagnostics: { message: string; category: string; location: { path: string; start: { line: number } } }[];
}

/** The faults of casing that Biome reports in these files and folders. */
async function checkCasing(paths: readonly string[]): Promise<Fault[]> {
  const biome = join(root, 'node_modules/@biomejs/biome/bin/biome');
  const config = join(import.meta.dirname, 'language/biome-naming.json');
  const options = ['--reporter=json', '--max-diagnostics=none', '--diagnostic-level=error'];
  const output = await new Promise<string>((resolve, reject) => {
    const args = [biome, 'lint', `--config-path=${config}`, ...options, ...paths];
    // Biome exits with 1 if it reports a fault, so only an empty output is an error.
    const done = (error: Error | null, stdout: string, stderr: string) =>
      stdout === '' ? reject(error ?? new Error(stderr)) : resolve(stdout);
    execFile(process.execPath, args, { cwd: root, maxBuffer: 64 * 1024 * 1024 }, done);
  });
  const { diagnostics } = JSON.parse(output) as Report;
  const strange = diagnostics.filter(({ category }) => category !== 'lint/style/useNamingConvention');
  expect(strange).toEqual([]);
  return diagnostics.map(({ message, location }) => ({
    file: location.path.replaceAll('\\', '/'),
    line: location.start.line,
    kind: 'casing',
    text: message,
  }));
}

type Counts = Record<string, Partial<Record<Kind, number>>>;

/** A room of `src`, a folder of `test`, or the files beside them. */
const folderOf = (file: string): string => file.split('/').slice(0, -1).slice(0, 2).join('/');

function countByFolder(faults: readonly Fault[]): Counts {
  const counts: Counts = {};
  for (const folder of [...new Set(faults.map(({ file }) => folderOf(file)))].sort()) {
    const row: Partial<Record<Kind, number>> = {};
    for (const kind of KINDS) {
      const count = faults.filter((fault) => fault.kind === kind && folderOf(fault.file) === folder).length;
      if (count > 0) row[kind] = count;
    }
    counts[folder] = row;
  }
  return counts;
}

test('names are in camelCase, and names, comments and titles use no retired word, except listed remains', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'language-'));
  try {
    const planted = join(directory, 'planted.ts');
    writeFileSync(
      planted,
      'export function f(first_one: number): number {\n  const one_more = first_one;\n  return one_more;\n}\n',
    );
    const isPlanted = ({ file }: Fault) => file.includes(basename(directory));
    const casing = await checkCasing([...folders, planted]);
    expect(
      casing
        .filter(isPlanted)
        .map(({ line }) => line)
        .sort(),
    ).toEqual([1, 2]);
    const files = globSync(`{${folders.join()}}/**/*.{ts,js}`, { cwd: root, exclude: ['**/node_modules/**'] })
      .map((file) => file.replaceAll('\\', '/'))
      .filter((file) => file !== 'test/language.test.ts');
    const scanned = files.flatMap((file) => scan(file, readFileSync(join(root, file), 'utf8')));
    const faults = [...scanned, ...casing.filter((fault) => !isPlanted(fault))];
    const counts = countByFolder(faults);
    const list = join(import.meta.dirname, 'language/remaining.json');
    const allowed = existsSync(list) ? (JSON.parse(readFileSync(list, 'utf8')) as Counts) : {};
    // Of a folder that has more faults of a kind than it may, all are listed: the new ones are among them.
    const places = faults
      .filter(({ file, kind }) => (counts[folderOf(file)]?.[kind] ?? 0) > (allowed[folderOf(file)]?.[kind] ?? 0))
      .map(({ file, line, text }) => `${file}:${line} ${text}`)
      .sort();
    const advice =
      places.length > 0 ? `Rename these: ${places.join('\n')}` : 'Fewer faults than listed: update the list.';
    await expect(`${JSON.stringify(counts, null, 2)}\n`, advice).toMatchFileSnapshot(list);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});

test.each([
  ['a retired word as a whole name', 'const told = 1;', 'told'],
  ['a retired word in camelCase', 'const isAsked = 1;', 'isAsked'],
  ['a retired word in PascalCase', 'type SearchWish = 1;', 'SearchWish'],
  ['a retired word in snake_case', 'const x = { is_given: 1 };', 'is_given'],
  ['a retired word in a constant', 'const ASKED_AT = 1;', 'ASKED_AT'],
  ['a retired word in a private name', 'this.#gone = 1;', '#gone'],
  ['the plural of a retired word', 'const doors = [];', 'doors'],
  ['a private name in snake_case', 'this.#held_bytes = 1;', '#held_bytes'],
  ['a name after a regular expression with a quote', `const x = /'/.test(y); const found = 1;`, 'found'],
  ['a verb in a comment', '// What was told.', 'told'],
  ['a phrase in a comment', '/** The vectors of so many inputs. */', 'so many'],
  ['an adverb in a comment', '// The stream begins anew.', 'anew'],
  ['a participle that opens a comment', '/** Asked for each time a request needs it. */', 'Asked for'],
  ['an opening of a comment', '/** Absent: the default. */', 'Absent:'],
])('the scan reports %s', (_, source, text) => {
  expect(scan('src/x.ts', source).map((fault) => fault.text)).toEqual([text]);
});

test.each([
  ['a test', `test('the price is told', () => {});`, 'told'],
  ['a suite', `describe("what nobody has", () => {});`, 'what nobody'],
  ['a suite for several stores', `describeStores('a key that nobody has', () => {});`, 'nobody'],
  ['a test of a table', `test.each([['a', 1]])(\n  '%s is told', () => {},\n);`, 'told'],
  ['a test with a condition', `test.runIf(isPostgres)('the lock is told', () => {});`, 'told'],
  ['a template', 'test(`${name} is told`, () => {});', 'told'],
])('the scan reports the title of %s', (_, source, texts) => {
  const faults = scan('src/x.test.ts', source);
  expect(faults.map(({ kind, text }) => `${kind} ${text}`)).toEqual(texts.split(' ').map((text) => `titles ${text}`));
});

test.each([
  ['a term of which it is a part', 'notFound(camel, wishful, foundKey, given_name);'],
  ['texts for users', `fail('the client asked', "told", \`given \${name}\`);`],
  ['a comment in plain English', '// The client asked for it. Undefined if nothing was found.'],
  ['a title in plain English', `test('an unknown model is a 404', () => {});`],
  ['a text inside a test', `test('a', () => { expect(reply).toBe('Nobody told me.'); ask('told'); });`],
])('the scan does not report %s', (_, source) => {
  expect(scan('src/x.ts', source)).toEqual([]);
  expect(scan('src/x.test.ts', source)).toEqual([]);
});
