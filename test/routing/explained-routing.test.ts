/**
 * Explanations match execution: for thousands of random requests over random catalogs, credentials, budgets and health,
 * with upstreams that fail or answer at random. The ledger, its store and every room in between are real.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { afterAll, expect, test } from 'vitest';
import type { Endpoint, Model } from '../../src/catalog/model.ts';
import { GatewayError } from '../../src/errors.ts';
import { type Call, CallCancellation } from '../../src/inference/call.ts';
import { createInference, type Inference } from '../../src/inference/create-inference.ts';
import { UsualOutput } from '../../src/inference/money/attempt-cost.ts';
import { createTraffic } from '../../src/inference/observe/traffic.ts';
import { createPipeline } from '../../src/inference/pipeline.ts';
import type { ExplainedAttempt, Explanation } from '../../src/inference/plan/explain.ts';
import type { ModelSource } from '../../src/inference/plan/requested-models.ts';
import type { TurnStates } from '../../src/inference/reasoning/states.ts';
import type { Hold } from '../../src/ledger/leases/hold.ts';
import { realClock } from '../../src/ledger/ledger-clock.ts';
import type { Recorder } from '../../src/ledger/recorder.ts';
import { UpstreamError } from '../../src/providers/dialect.ts';
import type { Provider } from '../../src/providers/provider.ts';
import type { Exchange, Upstream, UpstreamRequest } from '../../src/providers/transport/upstream.ts';
import { createEndpointStatistics } from '../../src/routing/endpoint-statistics.ts';
import { createHealth } from '../../src/routing/health.ts';
import type { OwnCredential } from '../../src/routing/own-credential.ts';
import { type Candidate, tagOf } from '../../src/routing/plan.ts';
import { createStickiness } from '../../src/routing/stickiness.ts';
import type { Budget } from '../../src/schemas/budget.ts';
import type { ChatRequest, ProviderPreferences, Wire } from '../../src/schemas/inner.ts';
import { type Database, openDatabase } from '../../src/storage/database.ts';
import { ledgerStore } from '../../src/storage/ledger.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { budgetOf, recorders } from '../ledger/recorder-fixture.ts';
import { inTier } from '../tier.ts';
import { endpoint, model } from './routing-fixture.ts';

const REQUESTS = inTier(400, 10_000);
/** The number of parallel gateways. */
const LANES = 5;
const REQUESTS_A_WORLD = 100;

/** Mulberry32: the same numbers for the same seed. */
class Chance {
  #state: number;
  constructor(seed: number) {
    this.#state = seed >>> 0;
  }
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }
  below(most: number): number {
    return Math.floor(this.next() * most);
  }
  in(probability: number): boolean {
    return this.next() < probability;
  }
  one<T>(of: readonly T[]): T {
    return of[this.below(of.length)] as T;
  }
  some<T>(of: readonly T[], probability: number): T[] {
    return of.filter(() => this.in(probability));
  }
}

const WIRES: readonly Wire[] = [
  'openai-chat',
  'openai-chat',
  'anthropic-messages',
  'gemini-generate-content',
  'cohere-chat',
  'openai-responses',
];

/** The routing state of one section of requests. */
interface World {
  models: Model[];
  providers: Provider[];
  own: OwnCredential[];
  budgets: Budget[];
  source: ModelSource;
}

function providersOf(chance: Chance): Provider[] {
  return Array.from({ length: 5 }, (_, at) => ({
    slug: `p${at}`,
    name: `Provider ${at}`,
    dialect: chance.one(WIRES),
    base_url: `http://p${at}.invalid/v1`,
    credential: `shared-p${at}`,
    quirks: {},
    data_policy: {
      training: chance.one([true, false, 'unknown'] as const),
      retention_days: chance.one([0, 30, 'unknown'] as const),
    },
    abort_stops_billing: true,
    headers: {},
    ...(chance.in(0.1) ? { is_own_only: true } : {}),
  }));
}

function endpointOf(chance: Chance, id: string, provider: Provider, ordinal: number): Endpoint {
  const price = () => 100_000 * (1 + chance.below(50));
  const pricing = chance.in(0.1) ? {} : { prompt: price(), completion: price() };
  const isFree = chance.in(0.1);
  const supported = ['max_tokens', 'temperature', ...chance.some(['tools', 'top_k', 'seed', 'response_format'], 0.6)];
  return endpoint(id, provider.slug, 1, {
    tag: chance.in(0.3) ? `${provider.slug}/v${ordinal}` : provider.slug,
    id: `${provider.slug}/${ordinal}|${id}`,
    upstream_model: `up-${ordinal}-${id.slice(2)}`,
    pricing: isFree ? { prompt: 0, completion: 0 } : pricing,
    context_length: chance.one([4_000, 32_000, 200_000]),
    max_completion_tokens: chance.one([undefined, 200, 4_000]),
    supported_parameters: chance.in(0.4) ? undefined : supported,
    quantization: chance.one(['fp8', 'bf16', 'int4', 'unknown']),
    input_modalities: chance.in(0.7) ? ['text', 'image'] : ['text'],
    ...(chance.in(0.3) && !isFree
      ? { service_tiers: { [chance.one(['flex', 'priority'])]: { pricing: { prompt: price(), completion: price() } } } }
      : {}),
    ...(chance.in(0.3) && 'prompt' in pricing
      ? { pricing: { ...pricing, input_cache_read: 10_000 }, supports_implicit_caching: true }
      : {}),
  });
}

function ownOf(chance: Chance, providers: readonly Provider[], models: readonly Model[]): OwnCredential[] {
  return Array.from({ length: chance.below(4) }, (_, at) => ({
    id: `own${at}`,
    version: 1,
    provider: chance.one(providers).slug,
    label: 'label',
    name: null,
    is_fallback: chance.in(0.4),
    allow_shared_fallback: chance.in(0.7),
    sort_order: chance.below(3),
    allowed_models: chance.in(0.2) ? [chance.one(models).canonical_slug] : null,
    allowed_api_key_hashes: chance.in(0.1) ? ['another'] : null,
    allowed_user_ids: null,
    declared_zdr: null,
    is_byok_only: false,
    unusable: chance.in(0.1) ? 'it cannot be read' : undefined,
    secret: () => `own-secret-${at}`,
  }));
}

async function worldOf(chance: Chance, database: Database, nth: number): Promise<World> {
  const providers = providersOf(chance);
  const models = Array.from({ length: 4 }, (_, at) => {
    const id = `a/m${at}`;
    const endpoints = Array.from({ length: 1 + chance.below(5) }, (_, ordinal) =>
      endpointOf(chance, id, chance.one(providers), ordinal),
    );
    return model(id, endpoints, { context_length: 200_000, input_modalities: ['text', 'image'], created: at });
  });
  const budgets: Budget[] = [];
  for (let at = Math.max(0, chance.below(5) - 2); at > 0; at -= 1) {
    const scope = chance.one(['key', 'workspace', 'organization'] as const);
    const resetInterval = chance.one(['never', 'daily'] as const);
    const limitNano = Math.floor(10 ** (4 + chance.next() * 5));
    budgets.push(
      await budgetOf(database, limitNano, {
        id: `${scope}:${nth}-${at}:${resetInterval}`,
        scope,
        reset_interval: resetInterval,
        include_byok: chance.in(0.3),
      }),
    );
  }
  const byId = new Map(models.map((one) => [one.id, one]));
  const bySlug = new Map(providers.map((one) => [one.slug, one]));
  const source: ModelSource = {
    find: (id) => byId.get(id),
    models: () => models,
    provider: (slug) => bySlug.get(slug),
  };
  return { models, providers, own: ownOf(chance, providers, models), budgets, source };
}

function preferencesOf(chance: Chance, { providers, models }: World): ProviderPreferences {
  const names = [
    ...providers.map(({ slug }) => slug),
    ...providers.map(({ name }) => name.toUpperCase()),
    ...models.flatMap(({ endpoints }) => endpoints.map(({ tag }) => tag)),
  ];
  const list = () => Array.from({ length: 1 + chance.below(3) }, () => chance.one(names));
  const preferences: ProviderPreferences = {};
  if (chance.in(0.2)) preferences.order = list();
  if (chance.in(0.1)) preferences.only = list();
  if (chance.in(0.15)) preferences.ignore = list();
  if (chance.in(0.2)) preferences.allow_fallbacks = chance.in(0.5);
  if (chance.in(0.1)) preferences.require_parameters = true;
  if (chance.in(0.1)) preferences.data_collection = 'deny';
  if (chance.in(0.05)) preferences.zdr = true;
  if (chance.in(0.1)) preferences.quantizations = ['fp8', 'bf16'];
  if (chance.in(0.2)) {
    const by = chance.one(['price', 'throughput', 'latency', 'exacto']);
    preferences.sort = chance.in(0.5) ? by : { by, partition: chance.one(['none', 'model']) };
  }
  if (chance.in(0.1)) preferences.max_price = { prompt: chance.below(6), completion: 5 };
  if (chance.in(0.1)) preferences.preferred_max_latency = 1;
  if (chance.in(0.1)) preferences.preferred_min_throughput = { p50: 20 };
  return preferences;
}

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

function requestOf(chance: Chance, world: World): ChatRequest {
  const name = () =>
    `${chance.one(world.models).id}${chance.in(0.2) ? chance.one([':nitro', ':floor', ':exacto']) : ''}`;
  const text = chance.one(['Hello', 'word '.repeat(1 + chance.below(400)), '数字と文字', '{"a":[1,2,3]}'.repeat(20)]);
  const request: ChatRequest = { messages: [{ role: 'user', content: text }] };
  if (chance.in(0.1)) {
    const url = chance.in(0.5) ? `data:image/png;base64,${PIXEL}` : 'https://far.invalid/a.png';
    request.messages = [
      {
        role: 'user',
        content: [
          { type: 'text', text },
          { type: 'image_url', image_url: { url } },
        ],
      },
    ];
  }
  request.model = chance.in(0.05) ? chance.one(['gateway/auto', 'gateway/free']) : name();
  if (chance.in(0.25)) request.models = Array.from({ length: 1 + chance.below(3) }, name);
  if (chance.in(0.6)) request.provider = preferencesOf(chance, world);
  if (chance.in(0.7)) request.max_tokens = chance.one([1, 50, 200, 2_000, 10_000]);
  if (chance.in(0.3)) request.temperature = 0.5;
  if (chance.in(0.2)) request.top_k = 5;
  if (chance.in(0.2)) request.seed = 7;
  if (chance.in(0.2)) request.tools = [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }];
  if (chance.in(0.1)) request.response_format = { type: 'json_object' };
  if (chance.in(0.1)) request.service_tier = chance.one(['flex', 'priority', 'auto']);
  if (chance.in(0.3)) request.session_id = `s${chance.below(5)}`;
  if (chance.in(0.5)) request.stream = true;
  return request;
}

/** The upstream's answers to the attempts of one request, in order. */
type Replies = readonly ('broken' | 'limited' | 'closed' | 'refused' | 'answer')[];

function repliesOf(chance: Chance): Replies {
  const replies = Array.from({ length: 40 }, () => chance.one(['broken', 'broken', 'limited', 'closed'] as const));
  const last = chance.below(3);
  if (chance.in(0.15)) return replies.with(last, 'answer' as never);
  return chance.in(0.05) ? replies.with(last, 'refused' as never) : replies;
}

const ANSWER = JSON.stringify({
  id: 'x',
  object: 'chat.completion',
  created: 0,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Yes' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 8, completion_tokens: 3, total_tokens: 11, prompt_tokens_details: { cached_tokens: 4 } },
});

function exchangeOf(reply: Replies[number]): Exchange {
  if (reply === 'closed') {
    const refused = new UpstreamError('unavailable', 'no connection', { never_sent: true });
    return { response: Promise.reject(refused), ended: true, abort() {} };
  }
  const status = { broken: 500, limited: 429, refused: 400, answer: 200 }[reply];
  const unread = [Buffer.from(reply === 'answer' ? ANSWER : '{"error":{"message":"no"}}')];
  const headers = { 'content-type': 'application/json', ...(reply === 'limited' ? { 'retry-after': '7' } : {}) };
  const response = { status, headers, complete: true, ready: () => undefined, read: () => unread.shift() };
  return { response: Promise.resolve(response), ended: true, abort() {} };
}

/** The requests that reached the upstream: model, provider, credential, and output bound. */
interface SentAttempt {
  host: string;
  model: string;
  secret: string;
}

function seen({ url, headers, payload }: UpstreamRequest): SentAttempt {
  const text = `${url} ${String(payload)}`;
  return {
    host: new URL(url).host,
    model: /up-\d+-m\d/.exec(text)?.[0] ?? text,
    secret: /(?:shared-p|own-secret-)\d/.exec(JSON.stringify(headers))?.[0] ?? '',
  };
}

function expectedOf({ endpoint: { upstream_model }, provider, own }: Candidate): SentAttempt {
  const secret = own === undefined ? provider.credential : own.secret();
  return { host: `${provider.slug}.invalid`, model: upstream_model, secret: secret ?? '' };
}

const stateless: TurnStates = {
  restore: (call) => ({ call, report: [], issuer: undefined }),
  recorder: () => undefined,
};

interface Held {
  granted_nano: number;
  budgets: string[];
}

function heldOf({ granted_nano, lines }: Hold): Held {
  const budgets = lines
    .filter(({ granted }) => granted > 0)
    .map(({ budget }) => budget.id)
    .sort();
  return { granted_nano: budgets.length === 0 ? 0 : granted_nano, budgets };
}

/** The state of one gateway. */
interface State {
  world: World;
  replies: Replies;
  draws: Chance;
  sent: SentAttempt[];
  held: Held[];
  /** The number of the attempt that answered, or that the upstream refused finally; from 1. */
  ended_at: number | undefined;
  /** The number of attempts after which the request itself was refused. */
  refused_at: Set<number>;
  /** The number of the call's attempts in the journal. */
  durable: number;
  /** The calls whose outcome is in the journal. */
  settled: Set<string>;
}

/** Events that happened before the journal had their required records. */
const early: string[] = [];

/** A gateway with scripted upstreams, clock and random numbers. */
async function gatewayOf(database: Database, start: ReturnType<typeof recorders>['start'], dir: string) {
  let passedMs = 0;
  const wall = realClock(() => Date.now() + passedMs);
  const ledgerClock = { ...wall, monotonic: () => wall.monotonic() + passedMs };
  // No time passes between an explanation and its execution, because a cool-down may end at any moment.
  const beganMs = Date.now();
  const clock = { nowMs: () => beganMs + passedMs, monotonicMs: () => passedMs };
  const real = await start(ledgerStore(database.queries, database.engine), dir, {
    journal_sync: 'os',
    clock: ledgerClock,
  });
  const state: State = {
    world: undefined as unknown as World,
    replies: [],
    draws: new Chance(0),
    sent: [],
    held: [],
    ended_at: undefined,
    refused_at: new Set(),
    durable: 0,
    settled: new Set(),
  };
  // Both resolve a turn after the journal: code that does not wait for them is ahead of it.
  const recorder: Recorder = {
    ...real,
    reserve: (ask, hold) => real.reserve(ask, hold),
    async attempt(attempt) {
      state.held.push(heldOf(attempt.hold));
      await real.attempt(attempt);
      await turn();
      state.durable += 1;
    },
    async outcome(record, hold) {
      await real.outcome(record, hold);
      await turn();
      state.settled.add(record.id);
    },
  };
  const upstream: Upstream = {
    send(request) {
      const wanted = state.replies[state.sent.length] ?? 'broken';
      const sent = seen(request);
      state.sent.push(sent);
      if (state.durable < state.sent.length) early.push(`bytes of attempt ${state.sent.length}`);
      // It speaks one wire: on others it can only fail.
      const provider = state.world.providers.find(({ slug }) => sent.host === `${slug}.invalid`);
      const isUnderstood = provider?.dialect === 'openai-chat';
      const ends = wanted === 'answer' || wanted === 'refused';
      if (wanted === 'answer' && isUnderstood) state.ended_at = state.sent.length;
      if (wanted === 'refused' && isUnderstood) state.refused_at.add(state.sent.length);
      return exchangeOf(ends && !isUnderstood ? 'broken' : wanted);
    },
    google: { show: (credential) => credential, forget: () => undefined },
    close: async () => {},
  };
  const statistics = createEndpointStatistics();
  const engine = createInference({
    catalog: () => state.world.source,
    wholeCatalog: () => state.world.source,
    ownCredentials: () => state.world.own,
    recorder,
    health: createHealth(statistics.performance),
    traffic: createTraffic(statistics, clock),
    clock,
    chance: () => state.draws.next(),
    allow_unpriced: false,
    routing: () => ({
      auto_models: ['a/m3', 'a/m1', 'a/m0'],
      free_models: 'all',
      users: new Map(),
      continuation: false,
      hedge: false,
      hedge_share_max: 0,
    }),
    stickiness: createStickiness(),
    upstream,
    adapters: [],
    server_tools: () => undefined,
    media: { fetch: async () => ({ mime_type: 'image/png', base64: PIXEL, bytes: 70 }) as never },
    states: stateless,
    usual: new UsualOutput(),
    tokenizer: { count: async (text) => Math.ceil(text.length / 2), stop: async () => {} },
    metrics: createMetrics(),
    log: { warn() {}, error() {} },
    rules: {
      budgets: 'strict',
      hold: 'full',
      default_output_tokens: undefined,
      min_output_tokens: 16,
      unknown_outcome: 'hold',
    },
    default_model: undefined,
    first_token_ms_max: 60_000,
    total_ms_max: 60_000,
  });
  const inference = createPipeline(engine, []);
  const pass = (ms: number) => {
    passedMs += ms;
  };
  return { inference, state, clock, pass, flush: () => real.flush() };
}

function callOf(request: ChatRequest, { budgets }: World, id: string, nowMs: number, elapsedMs: number): Call {
  return {
    api_type: 'completions',
    request: structuredClone(request),
    generation_id: id,
    request_id: id,
    principal: {
      kind: 'key',
      key_hash: 'k',
      key_id: 1,
      organization_id: 'o',
      workspace_id: 'w',
      user_id: 'u',
      budgets,
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
    wants_metadata: true,
    stages: [],
    outcome: { isSettled: false, record: undefined },
  };
}

/** The result of a call, and its reported routing. */
interface Outcome {
  error: GatewayError | undefined;
  metadata: Metadata | undefined;
}

interface Metadata {
  hold: { amount: number } | null;
  endpoints: { excluded: { endpoint_id: string; tag: string; step: string; reason: string; byok?: { id: string } }[] };
}

async function outcomeOf(work: Promise<Record<string, unknown> | undefined>): Promise<Outcome> {
  try {
    return { error: undefined, metadata: (await work) as Metadata | undefined };
  } catch (error) {
    if (error instanceof GatewayError) return { error, metadata: error.gateway_metadata as Metadata | undefined };
    throw error;
  }
}

async function run(
  inference: Inference,
  call: Call,
  { sent: sentAttempts, settled }: State,
): Promise<Record<string, unknown> | undefined> {
  const noteEnd = (what: string) => {
    if (sentAttempts.length > 0 && !settled.has(call.generation_id)) early.push(`the end of ${what}`);
  };
  if (call.request.stream !== true) {
    const { metadata } = await inference.complete(call).finally(() => noteEnd('a whole answer'));
    return metadata;
  }
  let metadata: Record<string, unknown> | undefined;
  for await (const event of inference.stream(call)) {
    if (event.type !== 'end') continue;
    noteEnd('a stream');
    if (event.error) throw event.error;
    metadata = event.metadata;
  }
  return metadata;
}

/** A refusal names one of several budgets that lack money, depending on which of them the node knew first. */
const whyOf = (step: string, reason: string | undefined) => (step === 'Admit' ? step : `${step}, ${reason}`);

/** The excluded endpoints, with step and reason; `before`: by the plan alone, not at an attempt. */
function leftOut({ plan: { candidates } }: Explanation, before: boolean): string[] {
  const isLate = (step: string) => step === 'Encode' || step === 'Admit';
  return candidates
    .flatMap((candidate) => {
      const { endpoint: one, own, excluded } = candidate;
      if (excluded === undefined || (before && isLate(excluded.step))) return [];
      return [`${one.id} ${tagOf(candidate)} ${own?.id ?? ''}: ${whyOf(excluded.step, excluded.reason)}`];
    })
    .sort();
}

function shownLeftOut(metadata: Metadata | undefined, before: boolean): string[] {
  const excluded = metadata?.endpoints.excluded ?? [];
  const shown = before ? excluded.filter(({ step }) => step !== 'Encode' && step !== 'Admit') : excluded;
  return shown
    .map(
      ({ endpoint_id, tag, byok, step, reason }) => `${endpoint_id} ${tag} ${byok?.id ?? ''}: ${whyOf(step, reason)}`,
    )
    .sort();
}

const counts = { unroutable: 0, unpaid: 0, passed: 0, lowered: 0, answered: 0, fallbacks: 0, own: 0, drawn: 0 };

/**
 * The explained attempts that are made with these outcomes. After a refusal of the request the client's other models
 * follow.
 */
function triedOf({ attempts, names = [] }: Explanation, { ended_at, refused_at }: State): ExplainedAttempt[] {
  const tried: ExplainedAttempt[] = [];
  let left = attempts.filter(({ is_reached }) => is_reached);
  for (let next = left.shift(); next !== undefined; next = left.shift()) {
    if (next.refusal !== undefined) continue;
    tried.push(next);
    const { model } = next.candidate;
    if (tried.length === ended_at) break;
    if (!refused_at.has(tried.length)) continue;
    left = left.filter(({ candidate }) => {
      const all = names.filter(({ models }) => models.includes(candidate.model));
      const isNamedElse = all.length === 0 || all.some(({ models }) => !models.includes(model));
      return candidate.model !== model && isNamedElse;
    });
  }
  return tried;
}

/** Compares the executed attempts with the explanation. */
function compare(explanation: Explanation, { error, metadata }: Outcome, state: State, where: string): void {
  const { sent: sentAttempts, held, ended_at, refused_at } = state;
  const isWhole = ended_at === undefined && refused_at.size === 0 && explanation.error?.status !== 402;
  expect(shownLeftOut(metadata, !isWhole), where).toEqual(leftOut(explanation, !isWhole));
  if (explanation.error !== undefined) {
    const isUnpaid = explanation.error.status === 402;
    const statusAndReason = (one: GatewayError | undefined) => [
      one?.status,
      whyOf(isUnpaid ? 'Admit' : '', one?.message),
    ];
    expect([statusAndReason(error), sentAttempts], where).toEqual([statusAndReason(explanation.error), []]);
    counts[isUnpaid ? 'unpaid' : 'unroutable'] += 1;
    return;
  }
  const sent = explanation.attempts.filter(({ is_reached, refusal }) => is_reached && refusal === undefined);
  const tried = triedOf(explanation, state);
  expect(sentAttempts, where).toEqual(tried.map(({ candidate }) => expectedOf(candidate)));
  expect(held, where).toEqual(
    tried.map(({ hold: { granted_nano, lines } = { granted_nano: 0, lines: [] } }) => ({
      granted_nano,
      budgets: granted_nano === 0 ? [] : lines.map(({ budget }) => budget.id).sort(),
    })),
  );
  expect(Math.round((metadata?.hold?.amount ?? 0) * 1e9), where).toBe(tried.at(-1)?.hold?.granted_nano ?? 0);
  counts.passed += explanation.attempts.length > sent.length ? 1 : 0;
  counts.lowered += sent.some(({ hold }) => hold !== undefined && hold.granted_nano < hold.full_nano) ? 1 : 0;
  counts.answered += error === undefined ? 1 : 0;
  counts.fallbacks += tried.length > 1 ? 1 : 0;
  counts.own += tried.some(({ candidate }) => candidate.own !== undefined) ? 1 : 0;
  counts.drawn += sent.some(({ candidate }) => (candidate.weight ?? 1) < 1) ? 1 : 0;
}

const { freshDir, start } = recorders(() => openDatabase({}));
const databases: Database[] = [];
// After the nodes have stopped, so that their last state is included.
afterAll(async () => {
  for (const database of databases) await database.close();
});

/** One gateway's share of the run. */
async function lane(seed: number): Promise<void> {
  const database = await openDatabase({});
  databases.push(database);
  const { inference, state, clock, pass, flush } = await gatewayOf(database, start, freshDir());
  const chance = new Chance(seed);
  for (let nth = 0; nth < REQUESTS / LANES; nth += 1) {
    if (nth % REQUESTS_A_WORLD === 0) state.world = await worldOf(chance, database, nth);
    pass(chance.one([120, 500, 3_000, 20_000]));
    const request = requestOf(chance, state.world);
    const draws = chance.below(2 ** 31);
    const make = () => callOf(request, state.world, `gen-${nth}`, clock.nowMs(), clock.monotonicMs());
    if (state.world.budgets.length > 0) await flush();

    Object.assign(state, { draws: new Chance(draws), sent: [], held: [], ended_at: undefined, refused_at: new Set() });
    Object.assign(state, { durable: 0, settled: new Set() });
    let explanation: Explanation | undefined;
    const { error: refused } = await outcomeOf(
      inference.explain({ ...make(), wants_metadata: false }).then((result) => {
        explanation = result;
        return undefined;
      }),
    );
    expect([state.sent, state.held]).toEqual([[], []]);

    Object.assign(state, { draws: new Chance(draws), replies: repliesOf(chance) });
    const done = await outcomeOf(run(inference, make(), state));
    const where = `request ${nth} of ${seed}: ${JSON.stringify(request)}`;
    if (explanation === undefined) {
      expect([done.error?.status, done.error?.message], where).toEqual([refused?.status, refused?.message]);
    } else {
      compare(explanation, done, state, where);
    }
  }
}

test('explanation and execution agree on every request of a random run', { timeout: 240_000 }, async () => {
  await Promise.all(Array.from({ length: LANES }, (_, at) => lane(20_261_121 + at)));
  // The run has covered all of its subjects.
  for (const [name, count] of Object.entries(counts)) expect(count, name).toBeGreaterThan(inTier(2, 50));
});

test('in that run every attempt was durable before its bytes were sent, and every outcome before its client saw the end', () => {
  expect(early).toEqual([]);
});
