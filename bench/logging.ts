/**
 * What request logs and broadcast cost: the middleware alone around an inference that answers at once, with a store on
 * disk. `npm run bench` does not run it: `node bin/launch.cjs bench/logging.ts`.
 */
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { createVault } from '../src/accounts/vault.ts';
import { createLoggedContents } from '../src/api/chat/logged-contents.ts';
import { METERED } from '../src/http/metered.ts';
import type { Principal } from '../src/http/principal.ts';
import { withSources } from '../src/http/sources.ts';
import { type Call, CallCancellation } from '../src/inference/call.ts';
import type { Engine } from '../src/inference/create-inference.ts';
import type { StreamEvent, WholeAnswer } from '../src/inference/events.ts';
import { NO_USAGE } from '../src/inference/money/answer-usage.ts';
import { createBroadcast } from '../src/inference/observe/broadcast.ts';
import { requestLog } from '../src/inference/observe/request-log.ts';
import { createPipeline } from '../src/inference/pipeline.ts';
import type { ChatChunk } from '../src/schemas/inner.ts';
import { openDatabase } from '../src/storage/database.ts';
import { loggedContentStore } from '../src/storage/logged-contents.ts';
import { organizationStore } from '../src/storage/organizations.ts';
import { generation } from '../test/generation-fixture.ts';

const REQUESTS = 4_000;
const ROUNDS = 3;
/** The number of concurrent calls. */
const AT_ONCE = 32;
const CHUNKS = 200;

const clock = { nowMs: Date.now, monotonicMs: () => performance.now() };
const directory = mkdtempSync(join(tmpdir(), 'bench-logging-'));
const database = await openDatabase({ data_dir: directory });
const home = await organizationStore(database.queries).insertFirst({ at: new Date().toISOString() });
const { organization_id, default_workspace_id: workspaceId } = home;

const words = 'The quick brown fox jumps over the lazy dog, and 42 others watch. ';
const textOf = (chars: number) => words.repeat(Math.ceil(chars / words.length)).slice(0, chars);
const completion: WholeAnswer['completion'] = {
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: textOf(1_000) },
      finish_reason: 'stop',
      native_finish_reason: 'stop',
    },
  ],
  created: 1,
  ext: { wire: 'openai-chat', rest: {} },
};
const chunk: ChatChunk = { delta: { content: 'token ' } };

function settle({ generation_id: id, outcome }: Call): void {
  outcome.isSettled = true;
  outcome.record = generation({ id, organization_id, workspace_id: workspaceId });
}
const refused = () => Promise.reject(new Error('not measured'));
async function* streamed(call: Call): AsyncGenerator<StreamEvent, void, undefined> {
  await nextTurn();
  for (let at = 0; at < CHUNKS; at += 1) yield { type: 'chunks', chunks: [chunk] };
  settle(call);
  yield { type: 'end', usage: NO_USAGE, classes: null, metadata: undefined, error: undefined };
}
const inner: Engine = {
  [METERED]: true,
  async complete(call) {
    await nextTurn();
    settle(call);
    return {
      completion,
      served: { model: 'm', provider: 'p' },
      usage: NO_USAGE,
      classes: null,
      metadata: undefined,
    };
  },
  stream: (call) => withSources(streamed(call)),
  explain: refused,
  countTokens: refused,
  routingOf: async () => undefined,
  run: refused,
};

const quiet = { warn() {}, error() {} };
const contents = createLoggedContents({
  store: loggedContentStore(database.queries),
  vault: createVault('a secret of thirty-two characters!'),
  retention_days: 1,
  nowMs: Date.now,
  log: quiet,
  metrics: { contentsLost() {} },
});
const broadcast = createBroadcast({
  secret: 'a secret of thirty-two characters!',
  destinations: [
    {
      name: 'bench',
      type: 'otel-collector',
      url: 'http://localhost/',
      headers: {},
      secret: undefined,
      workspaces: undefined,
      include_content: false,
      share_bp: 10_000,
    },
  ],
  services: { ask: async () => ({ status: 200, headers: {}, body: Buffer.from('{}') }) },
  version: '0',
  clock,
  chance: Math.random,
  metrics: { broadcast() {} },
  log: quiet,
});
const logged = createPipeline(inner, [requestLog({ contents, broadcast, clock, log: quiet })]);

function callOf(chars: number, logging: Principal['logging']): Call {
  const principal: Principal = {
    kind: 'key',
    key_hash: 'h',
    key_id: 1,
    organization_id,
    workspace_id: workspaceId,
    user_id: null,
    budgets: [],
    guardrails: [],
    budget_mode: null,
    ...(logging === undefined ? {} : { logging }),
  };
  return {
    api_type: 'completions',
    request: { model: 'm', messages: [{ role: 'user', content: textOf(chars) }] },
    generation_id: `gen-${randomUUID()}`,
    request_id: 'r',
    principal,
    attribution: {
      http_referer: null,
      title: null,
      categories: [],
      user_agent: null,
      traceparent: undefined,
      tracestate: undefined,
    },
    accepted_ms: Date.now(),
    accepted_monotonic_ms: performance.now(),
    cancellation: new CallCancellation(),
    wants_metadata: false,
    stages: [],
    outcome: { isSettled: false, record: undefined },
  };
}

const slug = { workspace_slug: 'default' };
const settings: Record<string, { chars: number; stream?: true; logging: Principal['logging'] }> = {
  'off, 2 KB': { chars: 2_000, logging: undefined },
  'broadcast, 2 KB': { chars: 2_000, logging: { kept_bp: undefined, is_broadcast: true, ...slug } },
  'kept, 2 KB': { chars: 2_000, logging: { kept_bp: 10_000, is_broadcast: false, ...slug } },
  'kept and broadcast, 2 KB': { chars: 2_000, logging: { kept_bp: 10_000, is_broadcast: true, ...slug } },
  'off, 100 KB': { chars: 100_000, logging: undefined },
  'kept, 100 KB': { chars: 100_000, logging: { kept_bp: 10_000, is_broadcast: false, ...slug } },
  'off, stream of 200': { chars: 2_000, stream: true, logging: undefined },
  'kept, stream of 200': { chars: 2_000, stream: true, logging: { kept_bp: 10_000, is_broadcast: false, ...slug } },
};

interface Cost {
  thread_us: number;
  process_us: number;
}

async function measure({ chars, stream, logging }: (typeof settings)[string]): Promise<Cost> {
  const requests = chars > 10_000 ? REQUESTS / 8 : REQUESTS;
  const [thread, all] = [process.threadCpuUsage(), process.cpuUsage()];
  let left = requests;
  const client = async () => {
    while (left > 0) {
      left -= 1;
      const call = callOf(chars, logging);
      if (stream) for await (const _event of logged.stream(call));
      else await logged.complete(call);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, client));
  // The writes behind the answers are part of the cost.
  if (logging !== undefined) await sleep(1_500);
  const [threadUsed, allUsed] = [process.threadCpuUsage(thread), process.cpuUsage(all)];
  return {
    thread_us: (threadUsed.user + threadUsed.system) / requests,
    process_us: (allUsed.user + allUsed.system) / requests,
  };
}

const median = (values: number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

try {
  for (const one of Object.values(settings)) await measure(one);
  const rounds = new Map<string, Cost[]>(Object.keys(settings).map((name) => [name, []]));
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [name, one] of Object.entries(settings)) rounds.get(name)?.push(await measure(one));
  }
  process.stdout.write('CPU per request, microseconds\n\n| | serving thread | process |\n|---|---|---|\n');
  for (const [name, costs] of rounds) {
    const [thread, all] = [median(costs.map((one) => one.thread_us)), median(costs.map((one) => one.process_us))];
    process.stdout.write(`| ${name} | ${thread.toFixed(1)} | ${all.toFixed(1)} |\n`);
  }
} finally {
  await Promise.all([contents.stop(), broadcast.stop()]);
  await database.close();
  rmSync(directory, { recursive: true, force: true });
}
