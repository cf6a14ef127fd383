import { existsSync, globSync, readFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { expect, test } from 'vitest';

const root = resolve(import.meta.dirname, '..');
const sources = globSync(['src/**/*.ts', 'sandbox/*.ts'], { cwd: root })
  .map((file) => ({ file, text: readFileSync(join(root, file), 'utf8') }))
  .sort((a, b) => (a.file < b.file ? -1 : 1));
const production = sources.filter(({ file }) => !file.endsWith('.test.ts'));

/**
 * The import rules: a room, and the other rooms that it may use. `errors.ts`, `limits.ts` and `next-turn.ts` may be
 * imported from anywhere. ARCHITECTURE.md shows the same table.
 */
const ROOMS: Record<string, readonly string[]> = {
  schemas: [],
  audio: [],
  providers: ['schemas', 'audio'],
  catalog: ['schemas', 'providers'],
  routing: ['schemas', 'catalog', 'providers'],
  ledger: ['schemas'],
  accounts: ['schemas'],
  guardrails: ['schemas'],
  telemetry: [],
  storage: ['schemas', 'ledger', 'accounts', 'guardrails'],
  http: ['schemas', 'telemetry'],
  inference: ['schemas', 'audio', 'catalog', 'providers', 'routing', 'ledger', 'guardrails', 'http', 'telemetry'],
  plugins: ['schemas', 'catalog', 'providers', 'routing', 'guardrails', 'http', 'inference', 'telemetry'],
  api: [
    'schemas',
    'audio',
    'catalog',
    'providers',
    'routing',
    'ledger',
    'accounts',
    'guardrails',
    'storage',
    'http',
    'inference',
    'plugins',
    'telemetry',
  ],
  sandbox: ['audio'],
  config: ['schemas', 'audio', 'catalog', 'providers'],
  cli: ['*'],
};

/** Packages that only one place may import. */
const PACKAGES: Record<string, readonly RegExp[]> = {
  fastify: [/^src\/http\//, /^src\/api\//],
  'fast-json-stringify': [/^src\/http\/serialization/],
  aws4: [/^src\/providers\/bedrock-converse\/sign\.ts$/],
  undici: [/^src\/providers\/transport\/(undici|upstream|fetch-media|services|proxy)\.ts$/],
  'ipaddr.js': [
    /^src\/providers\/transport\/addresses\.ts$/,
    /^src\/http\/trusted-proxies\.ts$/,
    /^src\/config\/http\.ts$/,
  ],
  kysely: [/^src\/storage\//],
  pg: [/^src\/storage\//],
  'prom-client': [/^src\/telemetry\//, /^src\/cli\//],
  pino: [/^src\/telemetry\//],
  'openid-client': [/^src\/http\/issuer\.ts$/],
  yaml: [/^src\/config\//],
  re2js: [/^src\/guardrails\//],
  'libphonenumber-js': [/^src\/guardrails\/detect\//],
  'gpt-tokenizer': [/^src\/inference\//],
  compromise: [/^src\/inference\/guardrails\/name-analyzer-thread\.ts$/],
  unpdf: [/^src\/plugins\/files\//],
  ajv: [/^src\/plugins\/healing\//],
  jsonrepair: [/^src\/plugins\/healing\//],
  htmlparser2: [/^src\/plugins\/tools\/html-text\.ts$/],
  '@datadog/sketches-js': [/^src\/routing\/sketch\.ts$/],
  'node:sqlite': [/^src\/storage\//, /^src\/ledger\/journal\/slot\.ts$/],
};

/** Rooms that decide: no clock, no randomness, no socket, no file. Exceptions inside them are listed. */
const PURE = /^src\/(schemas|audio|providers|catalog|routing|ledger|accounts|guardrails)\//;
const EDGES =
  /^src\/(providers\/transport\/(?:upstream|fetch-media|services|pieces|http1\/(?:client|connection|wheel))|ledger\/(journal\/(?:disk|journal|group-sync|segments|slot|replay)|ledger-clock|pipe|node|resend|start-recorder|store-time|lookup)|accounts\/key)\.ts$/;

function roomOf(file: string): string {
  const [top, first = '', second] = file.split('/');
  if (top === 'sandbox') return top;
  return second === undefined ? first.replace(/\.ts$/, '') : first;
}

function importsOf(text: string): string[] {
  return [...text.matchAll(/^(?:import|export)\b[^;]*?from '([^']+)'|\bimport\('([^']+)'\)|^import '([^']+)'/gm)].map(
    (match) => match[1] ?? match[2] ?? match[3] ?? '',
  );
}

test('rooms import only the rooms that the table allows', () => {
  const wrong: string[] = [];
  for (const { file, text } of production) {
    const from = roomOf(file);
    const allowed = ROOMS[from];
    for (const name of importsOf(text)) {
      if (!name.startsWith('.')) continue;
      const target = relative(root, resolve(root, dirname(file), name));
      const to = roomOf(target);
      if (to === from || (from !== 'sandbox' && ['errors', 'limits', 'next-turn'].includes(to))) continue;
      if (['main', 'app'].includes(from)) continue;
      if (!allowed?.includes('*') && !allowed?.includes(to)) wrong.push(`${file} imports ${target}`);
    }
  }
  expect(wrong, 'ARCHITECTURE.md has the rooms that a room may import.').toEqual([]);
});

test('the gateway imports only the entry of the sandbox, and the sandbox imports only the gateway’s audio measuring', () => {
  const crossings = production.flatMap(({ file, text }) =>
    importsOf(text)
      .filter((name) => name.startsWith('.'))
      .map((name) => relative(root, resolve(root, dirname(file), name)))
      .filter((target) => target.startsWith('sandbox/') !== file.startsWith('sandbox/'))
      .map((target) => `${file} imports ${target}`),
  );
  expect(crossings).toEqual([
    'sandbox/transcription.ts imports src/audio/sound.ts',
    'src/cli/demo.ts imports sandbox/index.ts',
    'src/cli/sandbox.ts imports sandbox/index.ts',
    'src/cli/with-sandbox.ts imports sandbox/index.ts',
  ]);
});

test('every folder of src is a room of the table, as is the sandbox, and every room exists', () => {
  const folders = [
    ...new Set(production.filter(({ file }) => /^src\/.*\/|^sandbox\//.test(file)).map(({ file }) => roomOf(file))),
  ];
  expect(folders.sort()).toEqual(Object.keys(ROOMS).sort());
});

test('ARCHITECTURE.md shows the same table', () => {
  const text = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8');
  const rows = Object.fromEntries(
    [...text.matchAll(/^\| `(\w+)` \| ([^|]*) \|/gm)].map(([, room = '', list = '']) => [
      room,
      list.includes('everything') ? ['*'] : [...list.matchAll(/\w+/g)].map(([name]) => name),
    ]),
  );
  expect(rows).toEqual(Object.fromEntries(Object.entries(ROOMS).map(([room, list]) => [room, [...list]])));
});

test('a package is imported only in its rooms', () => {
  const wrong = production.flatMap(({ file, text }) =>
    importsOf(text).flatMap((name) => {
      const homes = PACKAGES[name] ?? PACKAGES[name.split('/')[0] ?? ''];
      return homes && !homes.some((home) => home.test(file)) ? [`${file} imports ${name}`] : [];
    }),
  );
  expect(wrong).toEqual([]);
});

test('only inference, which meters, gets access to the providers', () => {
  const holders = production.filter(({ text }) => /\bcreateUpstream\b/.test(text)).map(({ file }) => file);
  expect(holders).toEqual(['src/app.ts', 'src/providers/transport/upstream.ts']);
  const senders = production.filter(({ text }) => /from '[^']*\/upstream\.ts'/.test(text)).map(({ file }) => file);
  expect(senders.filter((file) => !file.startsWith('src/inference/'))).toEqual(['src/app.ts']);
});

test('the core has no clock, no randomness and no input or output', () => {
  const banned =
    /\bDate\.now\b|\bnew Date\(\)|\bMath\.random\b|\bperformance\.now\b|\bsetTimeout\b|\bsetInterval\b|from 'node:(?:fs|net|http|https|dns|child_process|worker_threads)/;
  const wrong = production.filter(({ file, text }) => PURE.test(file) && !EDGES.test(file) && banned.test(text));
  expect(wrong.map(({ file }) => file)).toEqual([]);
});

test('only the configuration reads the environment', () => {
  const wrong = production.filter(({ file, text }) => /\bprocess\.env\b/.test(text) && file !== 'src/config.ts');
  expect(wrong.map(({ file }) => file)).toEqual([]);
});

test('no source has a TODO, a suppressed type check, a focused test or debug output', () => {
  const banned = /\bFIXME\b|\bTODO\b|\bXXX\b|@ts-ignore|@ts-nocheck|\.only\(|console\.log/;
  const files = [
    ...sources,
    ...globSync('test/**/*.ts', { cwd: root }).map((file) => ({ file, text: readFileSync(join(root, file), 'utf8') })),
  ];
  const wrong = files.filter(({ file, text }) => file !== 'test/tidy.test.ts' && banned.test(text));
  expect(wrong.map(({ file }) => file)).toEqual([]);
});

test('no source cites a document outside the project', () => {
  const cites = /\b(?:api-facts|rivals-and-pitfalls|DESIGN\.md|model-gateway-api)\b/;
  const tests = globSync('test/**/*.ts', { cwd: root }).map((file) => ({
    file,
    text: readFileSync(join(root, file), 'utf8'),
  }));
  const wrong = [...sources, ...tests].filter(({ file, text }) => file !== 'test/tidy.test.ts' && cites.test(text));
  expect(wrong.map(({ file }) => file)).toEqual([]);
});

// V8 gives an object whose getters are closures a shape of its own: two microseconds each, and garbage that only a full
// collection finds. A class creates its getters once.
test('getters are in classes, not in objects that a function returns', () => {
  const wrong = production.filter(({ text }) => /^ {4,}get \w+\(/m.test(text));
  expect(wrong.map(({ file }) => file)).toEqual([]);
});

// Fastify sets each decoration by its name on every request; the first hook of `http/create-server.ts` sets ours.
test('requests and answers are not decorated', () => {
  const wrong = production.filter(({ text }) => /\.decorate(Request|Reply)\(/.test(text));
  expect(wrong.map(({ file }) => file)).toEqual([]);
});

test('no list that clients or upstreams send is spread into the arguments of a call', () => {
  const rooms = /^src\/(schemas|providers|api|http)\//;
  const wrong = production.filter(({ file, text }) => rooms.test(file) && /\.(push|unshift)\(\.\.\./.test(text));
  expect(wrong.map(({ file }) => file)).toEqual([]);
});

test('every operation is registered: the code of the service imports it', () => {
  const imported = new Set(
    production.flatMap(({ file, text }) =>
      importsOf(text)
        .filter((name) => name.startsWith('.'))
        .map((name) => relative(root, resolve(root, dirname(file), name))),
    ),
  );
  const operations = production.filter(({ file, text }) => file.startsWith('src/api/') && /operationId:/.test(text));
  const unregistered = operations.filter(({ file }) => !imported.has(file));
  const advice = 'Add these to the list in src/api/management.ts, or register them in src/app.ts.';
  expect(
    unregistered.map(({ file }) => file),
    advice,
  ).toEqual([]);
});

test('every operation has a test: its own, or one in its folder that registers it', () => {
  const operations = production.filter(({ file, text }) => file.startsWith('src/api/') && /operationId:/.test(text));
  expect(operations.length).toBeGreaterThan(5);
  const tests = sources.filter(({ file }) => file.endsWith('.test.ts'));
  const setUps = new Map(
    globSync('test/**/*-server.ts', { cwd: root }).map((file) => [
      basename(file),
      readFileSync(join(root, file), 'utf8'),
    ]),
  );
  const missing = operations.filter(({ file }) => {
    const importOfIt = `from './${basename(file)}'`;
    const registers = (text: string) =>
      [...setUps].some(([name, code]) => text.includes(`/${name}'`) && code.includes(`/${file}'`));
    return !tests.some(
      (one) => dirname(one.file) === dirname(file) && (one.text.includes(importOfIt) || registers(one.text)),
    );
  });
  const own = missing.filter(({ file }) => !existsSync(join(root, file.replace(/\.ts$/, '.test.ts'))));
  expect(
    own.map(({ file }) => file),
    'Add a test beside each of these operations.',
  ).toEqual([]);
});

test('every dialect folder has the same files', () => {
  const folders = globSync('src/providers/*/index.ts', { cwd: root }).map(dirname);
  expect(folders.length).toBeGreaterThan(1);
  const missing = folders.flatMap((folder) =>
    ['wire.ts', 'request.ts', 'response.ts', 'stream.ts', 'errors.ts', 'index.ts'].flatMap((name) =>
      existsSync(join(root, folder, name)) ? [] : [`${folder}/${name}`],
    ),
  );
  expect(missing).toEqual([]);
});

test('no folder of inference or guardrails has more than 15 files without their tests', () => {
  const counts = new Map<string, number>();
  for (const { file } of production) counts.set(dirname(file), (counts.get(dirname(file)) ?? 0) + 1);
  const large = [...counts].filter(
    ([folder, count]) => /^src\/(inference|guardrails)(\/|$)/.test(folder) && count > 15,
  );
  expect(large).toEqual([]);
});
