/**
 * Attempts that fail, break off, are late or lose their client: one case each, for every client API, whole and
 * streamed.
 */
import type { JsonObject } from '../../src/schemas/json.ts';
import { type Exchange, responseHead, type Step } from '../wires/wire-server.ts';
import type { ClientApi } from './clients.ts';
import { type GroupRun, quiet, type ReplayExchange, type ReplayGroup, type Seen } from './run-group.ts';
import { answer, end, event, failure, isStreamed, requestOf, streamHead, type Turn, text } from './scripted-turns.ts';

const APIS = ['chat', 'responses', 'messages'] as const satisfies readonly ClientApi[];
const PROVIDERS = ['a', 'b', 'c'] as const;
type Name = (typeof PROVIDERS)[number];

/** The steps of each provider for a request, in the form that the request wants. */
type Scripts = Partial<Record<Name, (exchange: Exchange, seen: Seen) => Step[]>>;

interface Case {
  name: string;
  scripts(run: GroupRun): Scripts;
  more?: JsonObject;
  max_tokens?: number;
  /** Only streamed, if the case is about parts of an answer. */
  streamed_only?: true;
  leave?: ReplayExchange['leave'];
  /** Default: each API. */
  apis?: readonly (typeof APIS)[number][];
}

const USAGE = { prompt_tokens: 10, completion_tokens: 6 };
const STORY = ['One river', ' and one house', ' stood near', ' the old stone'];
const from = (name: string): Turn => ({ text: ['From ', `${name}.`], usage: USAGE });
const WHOLE_START = '{"id":"up-1","object":"chat.completion","created":1,"choices":[{"index":0,"message":{"role":';
/** No heartbeat, not even on a busy machine. */
const NEVER_MS = 600_000;

/** The provider sends part of an answer, and its connection breaks. */
function breaks(run: GroupRun, exchange: Exchange, pieces: readonly string[]): Step[] {
  if (!isStreamed(exchange))
    return [run.pass(100), responseHead(200, 'application/json'), WHOLE_START, run.pass(50), 'RESET'];
  return [run.pass(100), streamHead, text(...pieces), run.pass(50), 'RESET'];
}

async function until(holds: () => boolean): Promise<void> {
  const deadline = performance.now() + 60_000;
  while (!holds()) {
    if (performance.now() > deadline) throw new Error('what a case waits for does not come');
    await quiet();
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await quiet();
}

/** The gateway has noticed it as well. */
const afterLeaving = ({ left }: Seen): Step => ({
  run: async () => {
    await left;
    await quiet();
  },
});

const CONTINUED = { provider: { continuation: true } };

const CASES: readonly Case[] = [
  { name: 'the first answers', scripts: (run) => ({ a: (one) => answer(run, one, from('a')) }) },
  {
    name: 'no usage is reported',
    scripts: (run) => ({ a: (one) => answer(run, one, { text: STORY }) }),
  },
  ...[400, 401, 404, 408, 409, 413, 429, 500, 503].map(
    (status): Case => ({
      name: `fallback after ${status}`,
      scripts: (run) => ({ a: () => failure(run, status), b: (one) => answer(run, one, from('b')) }),
    }),
  ),
  {
    name: 'all fail, each otherwise',
    scripts: (run) => ({ a: () => failure(run, 500), b: () => failure(run, 429), c: () => [run.pass(10), 'RESET'] }),
  },
  {
    name: 'fallback is not wanted',
    more: { provider: { allow_fallbacks: false } },
    scripts: (run) => ({ a: () => failure(run, 500), b: (one) => answer(run, one, from('b')) }),
  },
  {
    name: 'fallback after a connection that breaks before its head',
    scripts: (run) => ({ a: () => [run.pass(10), 'RESET'], b: (one) => answer(run, one, from('b')) }),
  },
  {
    name: 'fallback after a head without content',
    scripts: (run) => ({
      a: () => [run.pass(100), streamHead, event({ role: 'assistant', content: '' }), run.pass(50), 'RESET'],
      b: (one) => answer(run, one, from('b')),
    }),
  },
  {
    name: 'a break after partial content',
    scripts: (run) => ({ a: (one) => breaks(run, one, STORY), b: (one) => answer(run, one, from('b')) }),
  },
  {
    name: 'an error event after partial content',
    streamed_only: true,
    scripts: (run) => ({
      a: () => [
        run.pass(100),
        streamHead,
        text(...STORY),
        `data: ${JSON.stringify({ error: { message: 'overloaded', code: 503 } })}\n\n`,
        'END',
      ],
      b: (one) => answer(run, one, from('b')),
    }),
  },
  {
    name: 'a continuation after a break',
    more: CONTINUED,
    scripts: (run) => ({ a: (one) => breaks(run, one, STORY), b: (one) => answer(run, one, from('b')) }),
  },
  {
    name: 'a continuation that breaks as well, and its continuation',
    more: CONTINUED,
    scripts: (run) => ({
      a: (one) => breaks(run, one, STORY),
      b: (one) => breaks(run, one, [' under', ' the']),
      c: (one) => answer(run, one, { text: [' tree', ' at last.'], usage: USAGE }),
    }),
  },
  {
    name: 'a continuation that no endpoint gives',
    more: CONTINUED,
    scripts: (run) => ({ a: (one) => breaks(run, one, STORY), b: () => failure(run, 503), c: () => failure(run, 429) }),
  },
  {
    name: 'a continuation that repeats the end of the text',
    more: CONTINUED,
    scripts: (run) => ({
      a: (one) => breaks(run, one, STORY),
      b: (one) => answer(run, one, { text: [' the old stone', ' under the tree.'], usage: USAGE }),
    }),
  },
  {
    name: 'an answer beyond its bound',
    max_tokens: 8,
    scripts: (run) => ({
      a: (one) => answer(run, one, { text: Array.from({ length: 40 }, (_, at) => ` word ${at} of many`.repeat(8)) }),
    }),
  },
  {
    name: 'an answer that is cut by its length',
    scripts: (run) => ({ a: (one) => answer(run, one, { ...from('a'), finish: 'length' }) }),
  },
  {
    name: 'usage after the end',
    streamed_only: true,
    scripts: (run) => ({
      a: () => [
        run.pass(100),
        streamHead,
        text('Done.'),
        event({}, {}, 'stop'),
        run.pass(100),
        end({ usage: USAGE }),
        'END',
      ],
    }),
  },
  {
    name: 'a stream without an end',
    streamed_only: true,
    scripts: (run) => ({ a: () => [run.pass(100), streamHead, text('Half'), run.pass(10), 'END'] }),
  },
  {
    name: 'an empty answer',
    scripts: (run) => ({
      a: (one) => answer(run, one, { text: [], usage: { prompt_tokens: 10, completion_tokens: 0 } }),
      b: (one) => answer(run, one, from('b')),
    }),
  },
  {
    name: 'a client that leaves before the head, and the provider hangs up',
    leave: ({ sent }) => until(() => sent().length === 1),
    scripts: () => ({ a: (_, seen) => [afterLeaving(seen), 'RESET'] }),
  },
  {
    name: 'a client that leaves before the head, and the provider answers',
    leave: ({ sent }) => until(() => sent().length === 1),
    scripts: (run) => ({ a: (one, seen) => [afterLeaving(seen), ...answer(run, one, from('a'))] }),
  },
  {
    name: 'a client that leaves in the middle',
    streamed_only: true,
    leave: ({ read }) => until(() => read().includes('stone')),
    scripts: (run) => ({ a: (one) => [run.pass(100), streamHead, text(...STORY), { until: one.closed }] }),
  },
  {
    name: 'a client that leaves an endpoint that bills all the same',
    more: { provider: { only: ['c'] } },
    streamed_only: true,
    leave: ({ read }) => until(() => read().includes('stone')),
    scripts: (run) => ({
      c: (_, seen) => [
        run.pass(100),
        streamHead,
        text(...STORY),
        afterLeaving(seen),
        run.pass(10),
        text(' under.') + end({ usage: USAGE }),
        'END',
      ],
    }),
  },
  {
    name: 'a client that leaves between an attempt and its fallback',
    leave: ({ sent }) => until(() => sent().length === 2),
    scripts: (run) => ({ a: () => failure(run, 500), b: (_, seen) => [afterLeaving(seen), 'RESET'] }),
  },
];

const providerOf = ({ path }: Exchange): Name => (path.split('/')[2] ?? 'a') as Name;

function fileOf(upstreamUrl: string, more: object): object {
  const rows = {
    a: {},
    b: { quirks: { prefill: true } },
    c: { quirks: { prefill: true }, abort_stops_billing: false },
  } satisfies Record<Name, object>;
  const providers = PROVIDERS.map((name) => [
    name,
    { name: name.toUpperCase(), dialect: 'openai-chat', base_url: `${upstreamUrl}/${name}`, ...rows[name] },
  ]);
  const endpoints = PROVIDERS.map((provider, at) => ({
    provider,
    upstream_model: 'scripted',
    pricing: { prompt: at + 1, completion: 1_000 * (at + 1) },
    max_completion_tokens: 1_000,
  }));
  return {
    bundled_catalog: false,
    timeouts: { heartbeat_first_ms: NEVER_MS, heartbeat_ms: NEVER_MS },
    providers: Object.fromEntries(providers),
    models: { 'case/model': { context_length: 100_000, endpoints } },
    ledger: { journal_sync: 'os' },
    ...more,
  };
}

function exchangesOf(run: GroupRun, cases: readonly Case[]): ReplayExchange[] {
  return cases.flatMap(({ name, scripts, more, max_tokens = 100, streamed_only, leave, apis = APIS }) =>
    apis.flatMap((api) =>
      (streamed_only ? [true] : [false, true]).map((stream): ReplayExchange => {
        const own = scripts(run);
        return {
          name: `${name}/${api} ${stream ? 'stream' : 'whole'}`,
          ...requestOf(api, { prompt: 'Tell me a story.', stream, max_tokens, ...(more ? { more } : {}) }),
          upstream: (exchange, seen) => own[providerOf(exchange)]?.(exchange, seen) ?? failure(run, 500),
          ...(leave ? { leave } : {}),
        };
      }),
    ),
  );
}

export function failoverCases(run: GroupRun): ReplayGroup {
  return { name: 'cases/failover', file: (url) => fileOf(url, {}), exchanges: exchangesOf(run, CASES) };
}

const afterHeartbeat = ({ read }: Seen): Step => ({ run: () => until(() => read() !== '') });

/** One heartbeat, and the rest after it. */
const HEARTBEATS: readonly Case[] = [
  {
    name: 'an answer after a heartbeat',
    streamed_only: true,
    scripts: (run) => ({ a: (one, seen) => [afterHeartbeat(seen), ...answer(run, one, from('a'))] }),
  },
  {
    name: 'a failure after a heartbeat',
    streamed_only: true,
    scripts: (run) => ({
      a: (_, seen) => [afterHeartbeat(seen), ...failure(run, 500)],
      b: () => failure(run, 500),
      c: () => failure(run, 429),
    }),
  },
  {
    name: 'a fallback after a heartbeat',
    streamed_only: true,
    scripts: (run) => ({
      a: (_, seen) => [afterHeartbeat(seen), ...failure(run, 500)],
      b: (one) => answer(run, one, from('b')),
    }),
  },
];

export function heartbeatCases(run: GroupRun): ReplayGroup {
  const timeouts = { heartbeat_first_ms: 50, heartbeat_ms: NEVER_MS };
  return {
    name: 'cases/heartbeats',
    file: (url) => fileOf(url, { timeouts }),
    exchanges: exchangesOf(run, HEARTBEATS),
  };
}

/** Enough answers that the gateway knows when the endpoint is late. */
const KNOWN = 12;
const ONLY = (name: Name): JsonObject => ({ provider: { only: [name] } });
const HEDGED: JsonObject = { provider: { hedge: true } };
const untilSent =
  (name: Name) =>
  ({ sent }: Seen): Step => ({ run: () => until(() => sent().some((one) => providerOf(one) === name)) });
const silent = (one: Exchange): Step[] => [{ until: one.closed }];

const HEDGES: readonly Case[] = [
  ...Array.from({ length: KNOWN }, (_, nth) =>
    (['a', 'b'] as const).map(
      (name): Case => ({
        name: `warm-up ${nth} of ${name}`,
        more: ONLY(name),
        scripts: (run) => ({ [name]: (one: Exchange) => answer(run, one, from(name)) }),
      }),
    ),
  ).flat(),
  {
    name: 'the second answers, the first is given up',
    more: HEDGED,
    scripts: (run) => ({ a: silent, b: (one) => answer(run, one, from('b')) }),
  },
  {
    name: 'the first answers, the second is given up',
    more: HEDGED,
    scripts: (run) => ({ a: (one, seen) => [untilSent('b')(seen), ...answer(run, one, from('a'))], b: silent }),
  },
  {
    name: 'the second answers, the first has reported usage',
    more: HEDGED,
    scripts: (run) => ({
      a: (one) => [streamHead, event(undefined, { usage: { ...USAGE, total_tokens: 16 } }), { until: one.closed }],
      b: (one) => answer(run, one, from('b')),
    }),
  },
  {
    // 409 does not change the health of an endpoint, so that it gets calls at once.
    name: 'both fail, the third answers',
    more: HEDGED,
    scripts: (run) => ({
      a: (_, seen) => [untilSent('b')(seen), run.pass(10), ...failure(run, 409)],
      b: () => [{ wait: 50 }, ...failure(run, 409)],
      c: (one) => answer(run, one, from('c')),
    }),
  },
  {
    name: 'the client leaves while both are under way',
    more: HEDGED,
    leave: ({ sent }) => until(() => sent().length === 2),
    scripts: () => ({ a: silent, b: silent }),
  },
  {
    name: 'the winner breaks after partial content',
    more: HEDGED,
    // The last one, because its endpoint gets no calls for a while.
    apis: ['chat'],
    scripts: (run) => ({ a: silent, b: (one) => breaks(run, one, STORY), c: (one) => answer(run, one, from('c')) }),
  },
];

export function hedgeCases(run: GroupRun): ReplayGroup {
  return {
    name: 'cases/hedges',
    // Lateness is measured by the answers of the last minutes.
    between_ms: 5_000,
    file: (url) => fileOf(url, { routing: { hedge_share: 1 } }),
    // Whole answers are not hedged.
    exchanges: exchangesOf(
      run,
      HEDGES.map((one) => ({ ...one, streamed_only: true })),
    ),
  };
}
