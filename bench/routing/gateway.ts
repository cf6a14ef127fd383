import { buildCatalog, type Catalog } from '../../src/catalog/catalog.ts';
import { type Call, CallCancellation } from '../../src/inference/call.ts';
import { createInference } from '../../src/inference/create-inference.ts';
import { UsualOutput } from '../../src/inference/money/attempt-cost.ts';
import { createTraffic } from '../../src/inference/observe/traffic.ts';
import { createPipeline } from '../../src/inference/pipeline.ts';
import type { TurnStates } from '../../src/inference/reasoning/states.ts';
import type { Recorder } from '../../src/ledger/recorder.ts';
import { limits } from '../../src/limits.ts';
import { UpstreamError } from '../../src/providers/dialect.ts';
import type { Provider } from '../../src/providers/provider.ts';
import type { Exchange, Upstream, UpstreamResponse } from '../../src/providers/transport/upstream.ts';
import { createEndpointStatistics } from '../../src/routing/endpoint-statistics.ts';
import { createHealth } from '../../src/routing/health.ts';
import { createStickiness } from '../../src/routing/stickiness.ts';
import type { ProviderPreferences } from '../../src/schemas/inner.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import type { Exchange as FarExchange, ProviderFacts, Wanted } from './far-side.ts';
import type { RequestOutcome, Router, Strategy, World } from './strategy.ts';

const MODEL = 'bench/model';

/** The request's options and the operator's settings. */
interface RouterOptions {
  provider?: ProviderPreferences;
  /** Settings of `routing`. */
  hedge?: boolean;
  continuation?: boolean;
  first_token_ms_max?: number;
}

const USD_PER_MILLION_PICO = 1e6;

function catalogOf(providers: readonly ProviderFacts[]): Catalog {
  return buildCatalog({
    bundled: { format: 1, models: [] },
    config: {
      bundled_catalog: false,
      models: [
        {
          id: MODEL,
          context_length: 128_000,
          endpoints: providers.map(({ name, prompt_usd, completion_usd }) => ({
            provider: name,
            upstream_model: 'model',
            pricing: { prompt: prompt_usd * USD_PER_MILLION_PICO, completion: completion_usd * USD_PER_MILLION_PICO },
          })),
        },
      ],
    },
    providers: providers.map(
      ({ name }): Provider => ({
        slug: name,
        name,
        dialect: 'openai-chat',
        base_url: `http://${name}.invalid/v1`,
        credential: 'bench',
        // Another endpoint of a stream that broke off, to continue it.
        quirks: { prefill: true },
        data_policy: { training: false, retention_days: 0 },
        abort_stops_billing: true,
        headers: {},
      }),
    ),
    created_default: 0,
  });
}

function eventOf(fields: object): string {
  return `data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 0, model: 'model', ...fields })}\n\n`;
}

/** A text of its own, so that a continuation repeats nothing. */
function firstOf(text: string): Buffer {
  const delta = { role: 'assistant', content: text };
  return Buffer.from(eventOf({ choices: [{ index: 0, delta, finish_reason: null }] }));
}

function lastOf({ prompt_tokens, completion_tokens }: Wanted): Buffer {
  const usage = { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens };
  const end = eventOf({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] });
  return Buffer.from(`${end}${eventOf({ choices: [], usage })}data: [DONE]\n\n`);
}

/** The wire of one request to a provider of the simulation. */
function exchangeOf({ time }: World, far: FarExchange, wanted: Wanted, text: string): Exchange {
  const answered = Promise.withResolvers<UpstreamResponse>();
  answered.promise.catch(() => undefined);
  const unread: Buffer[] = [];
  let failure: Error | undefined;
  let isWhole = false;
  let wake: (() => void) | undefined;
  const exchange = {
    response: answered.promise,
    ended: false,
    abort(reason: Error) {
      if (exchange.ended) return;
      far.end();
      stop(reason);
    },
  };
  function stop(reason?: Error): void {
    exchange.ended = true;
    failure = reason;
    isWhole = reason === undefined;
    if (reason !== undefined) answered.reject(reason);
    wake?.();
  }
  function come(bytes: Buffer): void {
    unread.push(bytes);
    wake?.();
  }
  function coming(): Promise<void> | undefined {
    if (unread.length > 0 || isWhole || failure !== undefined) return undefined;
    return new Promise((resolve) => {
      wake = resolve;
    });
  }
  function take(): Buffer | undefined {
    const next = unread.shift();
    if (next === undefined && failure !== undefined) throw failure;
    return next;
  }
  const after = (ms: number, run: () => void) => time.after(ms, () => exchange.ended || run());

  const { reply } = far;
  if (reply.is === 'refusal' && reply.status === null) {
    const refused = new UpstreamError('unavailable', 'no connection', { never_sent: true });
    after(reply.after_ms, () => stop(refused));
  } else if (reply.is === 'refusal') {
    const { status, retry_after_ms } = reply;
    after(reply.after_ms, () => {
      come(Buffer.from('{"error":{"message":"not now"}}'));
      const retryAfter =
        retry_after_ms === undefined ? {} : { 'retry-after': String(Math.ceil(retry_after_ms / 1_000)) };
      const headers = { 'content-type': 'application/json', ...retryAfter };
      answered.resolve({ status: status ?? 0, headers, ready: coming, read: take, complete: true });
      stop();
    });
  } else if (reply.is === 'stream') {
    const { first_ms, total_ms, dies_ms } = reply;
    after(first_ms, () => {
      come(firstOf(text));
      answered.resolve({
        status: 200,
        headers: { 'content-type': 'text/event-stream' },
        ready: coming,
        read: take,
        complete: true,
      });
    });
    after(dies_ms ?? total_ms, () => {
      far.end();
      if (dies_ms === undefined) come(lastOf(wanted));
      stop(dies_ms === undefined ? undefined : new UpstreamError('unavailable', 'the connection broke'));
    });
  }
  return exchange;
}

/** No money is limited here and nothing is stored: the journal of requests is not measured. */
const forgetful: Recorder = {
  reserve: ({ id }) => ({ id, lines: [], granted_nano: 0 }),
  reserveNow: () => true,
  preview: async () => ({ granted_nano: 0, lines: [], refusal: undefined }),
  extend: async () => true,
  keep() {},
  release() {},
  attempt: async () => {},
  progress() {},
  outcome: async () => {},
  lose: async () => {},
  find: () => undefined,
  flush: async () => {},
  state: () => ({
    node: 'bench',
    epoch: 0,
    unflushed: 0,
    refused: 0,
    reduced: 0,
    oldest_unflushed_ms: 0,
    admitting: true,
    store_failing: false,
    problem: undefined,
    journal_bytes: 0,
    journal_discarded_bytes: 0,
    disk_free_bytes: 0,
    batches: 0,
    held_nano: 0,
    leased_nano: 0,
    waiting: 0,
  }),
  admits: () => true,
  stop: async () => {},
};

/** Conversations of one turn have no state. */
const stateless: TurnStates = {
  restore: (call) => ({ call, report: [], issuer: undefined }),
  recorder: () => undefined,
};

/** The part of the answer that a broken stream has generated. */
function deadTokens({ reply }: FarExchange, { completion_tokens }: Wanted): number {
  if (reply.is !== 'stream' || reply.dies_ms === undefined) return 0;
  return Math.round(((reply.dies_ms - reply.first_ms) / (reply.total_ms - reply.first_ms)) * completion_tokens);
}

function idOf({ index }: Wanted): string {
  return `gen-1-${index}`;
}

function callOf(wanted: Wanted, nowMs: number, elapsedMs: number, { provider }: RouterOptions): Call {
  return {
    api_type: 'completions',
    request: {
      model: MODEL,
      messages: [{ role: 'user', content: 'Is it?' }],
      stream: true,
      ...(provider === undefined ? {} : { provider }),
    },
    generation_id: idOf(wanted),
    request_id: idOf(wanted),
    principal: {
      kind: 'key',
      key_hash: 'bench',
      key_id: 1,
      organization_id: 'bench',
      workspace_id: 'bench',
      user_id: null,
      budgets: [],
      guardrails: [],
      budget_mode: null,
    },
    attribution: {
      http_referer: null,
      title: null,
      categories: [],
      user_agent: null,
      traceparent: undefined,
      tracestate: undefined,
    },
    accepted_ms: nowMs,
    accepted_monotonic_ms: elapsedMs,
    cancellation: new CallCancellation(),
    wants_metadata: false,
    stages: [],
    outcome: { isSettled: false, record: undefined },
  };
}

/** A request in progress, and what was sent for it. */
interface Under {
  wanted: Wanted;
  sent: { provider: ProviderFacts; at_ms: number; dead_tokens: number }[];
}

/**
 * The complete inference of the gateway: plan, attempt loop, timeouts, wire, meter, health. Only sockets and clocks are
 * those of the simulation.
 */
function createRouter(world: World, options: RouterOptions): Router {
  const { time, farSide, random } = world;
  const catalog = catalogOf(farSide.providers);
  const byHost = new Map(farSide.providers.map((provider) => [`${provider.name}.invalid`, provider]));
  /** The requests in progress, and when each was sent to which provider. */
  const open = new Map<string, Under>();
  const clock = { nowMs: () => Math.floor(time.nowMs()), monotonicMs: time.elapsedMs };
  const statistics = createEndpointStatistics();

  const upstream: Upstream = {
    send({ url, headers, payload }) {
      const provider = byHost.get(new URL(url).host);
      const call = open.get((headers['x-client-request-id'] ?? '').replace(/\.\d+$/, ''));
      if (provider === undefined || call === undefined) throw new Error(`no request for ${url} is open`);
      const { wanted, sent } = call;
      const nth = sent.filter((one) => one.provider === provider).length;
      const isContinued = String(payload).includes('"role":"assistant"');
      const made = isContinued ? sent.reduce((sum, one) => sum + one.dead_tokens, 0) : 0;
      const rest = { ...wanted, completion_tokens: Math.max(1, wanted.completion_tokens - made) };
      const far = farSide.send(provider, rest, nth);
      sent.push({ provider, at_ms: time.elapsedMs(), dead_tokens: deadTokens(far, rest) });
      return exchangeOf(world, far, rest, `Word ${sent.length} of ${provider.name}, which goes on. `);
    },
    google: { show: (credential) => credential, forget: () => undefined },
    close: async () => {},
  };
  const engine = createInference({
    catalog: () => catalog,
    wholeCatalog: () => catalog,
    ownCredentials: () => [],
    recorder: forgetful,
    health: createHealth(statistics.performance),
    traffic: createTraffic(statistics, clock),
    clock,
    routing: () => ({
      auto_models: undefined,
      free_models: undefined,
      users: new Map(),
      continuation: options.continuation ?? false,
      hedge: options.hedge ?? false,
      hedge_share_max: limits.hedge_share_max,
    }),
    stickiness: createStickiness(),
    chance: () => random.next(),
    allow_unpriced: false,
    upstream,
    adapters: [],
    server_tools: () => undefined,
    media: { fetch: () => Promise.reject(new Error('the simulation fetches nothing')) },
    states: stateless,
    usual: new UsualOutput(),
    tokenizer: { count: async () => undefined, stop: async () => {} },
    metrics: createMetrics(),
    log: { warn() {}, error() {} },
    rules: {
      budgets: 'strict',
      hold: 'full',
      default_output_tokens: 4_096,
      min_output_tokens: 16,
      unknown_outcome: 'hold',
    },
    default_model: undefined,
    first_token_ms_max: options.first_token_ms_max ?? world.first_token_ms_max,
    total_ms_max: 3_600_000,
  });
  const inference = createPipeline(engine, []);

  return async (wanted) => {
    const arrivedMs = time.elapsedMs();
    const call = callOf(wanted, Math.floor(time.nowMs()), arrivedMs, options);
    const mine: Under = { wanted, sent: [] };
    open.set(call.generation_id, mine);
    let firstMs: number | undefined;
    let by: string | undefined;
    let ok = false;
    try {
      for await (const event of inference.stream(call)) {
        if (event.type === 'open') by = event.served.provider;
        else if (event.type === 'chunks') firstMs ??= time.elapsedMs() - arrivedMs;
        else ok = event.error === undefined;
      }
    } catch {
      // No provider answered.
    }
    open.delete(call.generation_id);
    const answered = mine.sent.findLast(({ provider }) => provider.name === by);
    const lostMs = (answered?.at_ms ?? time.elapsedMs()) - arrivedMs;
    return { ok, first_ms: firstMs, lost_ms: lostMs, attempts: mine.sent.length, by } satisfies RequestOutcome;
  };
}

/** This gateway with each of its routing options. */
export const GATEWAY: readonly Strategy[] = [
  {
    name: 'gateway',
    description: 'the default order: a draw by 1/price²',
    create: (world) => createRouter(world, {}),
  },
  {
    name: 'gateway, sort: price',
    description: 'provider.sort: price, also :floor',
    create: (world) => createRouter(world, { provider: { sort: 'price' } }),
  },
  {
    name: 'gateway, sort: price, continued',
    description: 'the same with routing.continuation',
    create: (world) => createRouter(world, { provider: { sort: 'price' }, continuation: true }),
  },
  {
    name: 'gateway, sort: price, hedged',
    description: 'the same with routing.hedge',
    create: (world) => createRouter(world, { provider: { sort: 'price' }, hedge: true }),
  },
  {
    name: 'gateway, sort: latency',
    description: 'provider.sort: latency',
    create: (world) => createRouter(world, { provider: { sort: 'latency' } }),
  },
];
