/**
 * How many functions one warm streamed chat request runs, by V8's precise call counts, and how many statements each room has:
 * `node bin/launch.cjs bench/steps.ts [--functions] [--only ROOM]`. Counts, not times: other work on the machine changes nothing.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { SyntaxKind } from 'typescript/unstable/ast';
import { API } from 'typescript/unstable/sync';
import { startGateway } from '../src/cli/start-gateway.ts';
import { loadConfig } from '../src/config.ts';
import { createLog } from '../src/telemetry/log.ts';
import { freePort, Program, stopAll } from './process.ts';
import { requestBody, STREAMS, streamModel } from './workload.ts';

const ROOT = join(import.meta.dirname, '..');
const MANAGEMENT_KEY = 'bench-management-key-0123456789abcdef';
const WARM_REQUESTS = 300;
/**
 * A function that ran in each of the windows belongs to a request; one that ran in only some belongs to the background.
 */
const WINDOWS = 9;
/** After this wait the work of the previous request is over, including its batch in the store. */
const SETTLED_MS = 400;

const { values } = parseArgs({
  options: { functions: { type: 'boolean', default: false }, only: { type: 'string', default: '' } },
});

/** Calls of each function of `src`, as `file:name:offset`. */
type Calls = Map<string, number>;

/** The room of a file: its folder under `src`, or its own name. */
const roomOf = (file: string): string => file.split('/').slice(1, 2).join().replace(/\.ts$/, '');

async function takeCalls(session: Session): Promise<Calls> {
  // Reading the counts resets them to zero.
  const { result } = await session.post('Profiler.takePreciseCoverage');
  const calls: Calls = new Map();
  for (const { url, functions } of result) {
    if (!url.startsWith('file:')) continue;
    const file = relative(ROOT, fileURLToPath(url));
    // The sandbox is the provider.
    if (!file.startsWith('src/')) continue;
    for (const { functionName, ranges } of functions) {
      const [range] = ranges;
      // V8 counts the initialization of class fields as a function of its own.
      if (range === undefined || range.count === 0 || functionName.endsWith('_members_initializer>')) continue;
      calls.set(`${file}:${functionName || '(anonymous)'}:${range.startOffset}`, range.count);
    }
  }
  return calls;
}

/** The functions that ran in all windows, with their lowest number of calls. */
function common(windows: readonly Calls[]): Calls {
  const [first = new Map<string, number>(), ...others] = windows;
  const shared: Calls = new Map();
  for (const [name, calls] of first) {
    const least = Math.min(calls, ...others.map((other) => other.get(name) ?? 0));
    if (least > 0) shared.set(name, least);
  }
  return shared;
}

/**
 * Statements of each file of `src` without its tests: those of the language except blocks and those removed when types are
 * stripped; an arrow function's expression counts as the return that it stands for. Comments and formatting do not count.
 */
function countStatements(): Map<string, number> {
  const api = new API({ cwd: ROOT });
  try {
    const config = join(ROOT, 'tsconfig.json');
    const project = api.updateSnapshot({ openProjects: [config] }).getProject(config);
    if (project === undefined) throw new Error('tsconfig.json is not a project of the compiler.');
    const counts = new Map<string, number>();
    for (const name of project.program.getSourceFileNames()) {
      const file = relative(ROOT, name);
      if (!file.startsWith('src/') || /\.test\.ts$|\.js$/.test(file)) continue;
      let count = 0;
      const visit = (node: {
        kind: SyntaxKind;
        body?: unknown;
        forEachChild: (visitor: (child: never) => void) => unknown;
      }) => {
        const { kind } = node;
        const isStatement = kind >= SyntaxKind.FirstStatement && kind <= SyntaxKind.LastStatement;
        const isDeclaration = kind === SyntaxKind.FunctionDeclaration || kind === SyntaxKind.ClassDeclaration;
        if (isStatement || isDeclaration) count += 1;
        if (kind === SyntaxKind.ArrowFunction && (node.body as { kind: SyntaxKind }).kind !== SyntaxKind.Block)
          count += 1;
        node.forEachChild(visit as (child: never) => void);
      };
      visit(project.program.getSourceFile(name) as never);
      counts.set(file, count);
    }
    return counts;
  } finally {
    api.close();
  }
}

async function measure(upstreamPort: number, directory: string): Promise<Calls> {
  const shape = STREAMS.check;
  const model = streamModel(shape);
  const configFile = join(directory, 'gateway.yaml');
  const provider = {
    name: 'Bench',
    dialect: 'openai-chat',
    base_url: `http://127.0.0.1:${upstreamPort}/v1`,
    api_key: 'k',
  };
  writeFileSync(
    configFile,
    JSON.stringify({
      bundled_catalog: false,
      providers: { bench: provider },
      models: {
        [model]: { endpoints: [{ provider: 'bench', upstream_model: model, pricing: { prompt: 1, completion: 2 } }] },
      },
    }),
  );
  const environment = {
    GATEWAY_HOST: '127.0.0.1',
    GATEWAY_PORT: '0',
    GATEWAY_DATA_DIR: join(directory, 'data'),
    GATEWAY_MANAGEMENT_KEY: MANAGEMENT_KEY,
  };
  const log = createLog('info', { write: () => {} });
  const gateway = await startGateway({ config: loadConfig(environment, { config_file: configFile }), log });
  const session = new Session();
  session.connect();
  try {
    const post = async (path: string, key: string, body: string) => {
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
      const response = await fetch(`${gateway.url}/api/v1${path}`, { method: 'POST', headers, body });
      const text = await response.text();
      if (!response.ok) throw new Error(`${response.status} ${text}`);
      return text;
    };
    const { key } = JSON.parse(await post('/keys', MANAGEMENT_KEY, '{"name":"bench"}')) as { key: string };
    const body = requestBody(model, true);
    await session.post('Profiler.enable');
    await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
    for (let sent = 0; sent < WARM_REQUESTS; sent += 1) await post('/chat/completions', key, body);
    const windows: Calls[] = [];
    while (windows.length < WINDOWS) {
      await sleep(SETTLED_MS);
      await takeCalls(session);
      await post('/chat/completions', key, body);
      await gateway.app.server.running.idle();
      windows.push(await takeCalls(session));
    }
    return common(windows);
  } finally {
    session.disconnect();
    await gateway.stop();
  }
}

interface Row {
  files: Set<string>;
  functions: number;
  calls: number;
  statements: number;
}

function report(calls: Calls, statements: ReadonlyMap<string, number>): string {
  const rooms = new Map<string, Row>();
  const rowOf = (room: string): Row => {
    const row = rooms.get(room) ?? { files: new Set(), functions: 0, calls: 0, statements: 0 };
    rooms.set(room, row);
    return row;
  };
  const perFile = new Map<string, string[]>();
  for (const [name, count] of calls) {
    const [file = '', called = ''] = name.split(':');
    const row = rowOf(roomOf(file));
    row.files.add(file);
    row.functions += 1;
    row.calls += count;
    perFile.set(file, [...(perFile.get(file) ?? []), count === 1 ? called : `${called} x ${count}`]);
  }
  for (const [file, count] of statements) rowOf(roomOf(file)).statements += count;
  const rows = [...rooms].sort(([, a], [, b]) => b.functions - a.functions);
  const columns = ({ files, functions, calls, statements }: Row) =>
    [files.size, functions, calls, statements].map((number) => String(number).padStart(11)).join('');
  const sum: Row = {
    files: new Set(perFile.keys()),
    functions: 0,
    calls: 0,
    statements: 0,
  };
  for (const [, row] of rows) {
    sum.functions += row.functions;
    sum.calls += row.calls;
    sum.statements += row.statements;
  }
  const lines = [
    `One warm streamed chat request of ${STREAMS.check.chunks} chunks, and the statements of each room`,
    `${'room'.padEnd(14)}${['files', 'functions', 'calls', 'statements'].map((head) => head.padStart(11)).join('')}`,
    ...rows.map(([room, row]) => `${room.padEnd(14)}${columns(row)}`),
    `${'all'.padEnd(14)}${columns(sum)}`,
    '',
    'Functions that ran, by file',
  ];
  for (const [file, functions] of [...perFile].sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (!roomOf(file).startsWith(values.only)) continue;
    lines.push(
      `${String(functions.length).padStart(4)}  ${file}${values.functions ? `: ${functions.join(', ')}` : ''}`,
    );
  }
  return `${lines.join('\n')}\n`;
}

const directory = mkdtempSync(join(tmpdir(), 'bench-steps-'));
try {
  const port = await freePort();
  const upstream = new Program({
    args: [join(import.meta.dirname, 'servers/upstream.ts'), String(port)],
    log: join(directory, 'upstream.log'),
    core: undefined,
  });
  await upstream.ready(port, '/', () => true);
  process.stdout.write(report(await measure(port, directory), countStatements()));
} finally {
  await stopAll();
  rmSync(directory, { recursive: true, force: true });
}
