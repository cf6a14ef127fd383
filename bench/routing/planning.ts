import { catalogOf } from '../../src/cli/start-gateway.ts';
import { loadConfig } from '../../src/config.ts';
import { requestedModels } from '../../src/inference/plan/requested-models.ts';
import { UpstreamError } from '../../src/providers/dialect.ts';
import { createHealth } from '../../src/routing/health.ts';
import { healthId, plan } from '../../src/routing/plan.ts';
import type { ChatRequest } from '../../src/schemas/inner.ts';
import { Random } from '../../test/simulation/random.ts';
import { modelName } from './large-catalog.ts';

/** One kind of request, which is planned many times. */
export interface PlanningRow {
  kind: string;
  /** The average number of candidates of a plan. */
  candidates: number;
  /** CPU time of the thread for a plan, which other work on the machine does not change. */
  cpu_us: number;
  p50_us: number;
  p99_us: number;
  /** The first hundred plans of a fresh process. */
  cold_us: number;
}

const MESSAGE_TEXT = 'What do you make of this? '.repeat(20);

function messages(turns: number): ChatRequest['messages'] {
  return Array.from({ length: turns }, (_, at) => ({
    role: at % 2 === 0 ? 'user' : 'assistant',
    content: MESSAGE_TEXT,
  }));
}

/** The kinds of requests, over all models or over those with the most endpoints. */
const KINDS: readonly { kind: string; among: number; more: (random: Random) => Partial<ChatRequest> }[] = [
  { kind: 'a model', among: 2_000, more: () => ({}) },
  { kind: 'a model of 25 endpoints', among: 20, more: () => ({}) },
  { kind: 'tools, a bound, a schema', among: 200, more: () => ({ ...TOOLS, max_tokens: 1_000 }) },
  { kind: 'order and ignore', among: 200, more: (random) => ({ provider: preferred(random) }) },
  { kind: 'sort: price', among: 200, more: () => ({ provider: { sort: 'price' } }) },
  { kind: 'sort: throughput', among: 200, more: () => ({ provider: { sort: 'throughput' } }) },
  {
    kind: 'every filter',
    among: 200,
    more: () => ({
      provider: {
        require_parameters: true,
        data_collection: 'deny',
        max_price: { prompt: 5, completion: 25 },
        quantizations: ['fp8', 'bf16', 'int8', 'unknown'],
      },
    }),
  },
  { kind: 'a suffix: :floor', among: 200, more: (random) => ({ model: `${names(random, 1)[0]}:floor` }) },
  { kind: '~family-latest', among: 200, more: (random) => ({ model: `~author-${random.whole(0, 79)}/model-latest` }) },
  { kind: 'gateway/auto of eight', among: 200, more: () => ({ model: 'gateway/auto' }) },
  { kind: 'gateway/free of all', among: 200, more: () => ({ model: 'gateway/free' }) },
  { kind: 'five models', among: 200, more: (random) => ({ models: names(random, 4) }) },
  { kind: '200 turns', among: 200, more: () => ({ messages: messages(200) }) },
];

const TOOLS: Partial<ChatRequest> = {
  tools: [{ type: 'function', function: { name: 'look_up', parameters: { type: 'object' } } }],
  response_format: { type: 'json_object' },
};

function preferred(random: Random): NonNullable<ChatRequest['provider']> {
  const provider = () => `provider-${random.whole(0, 49)}`;
  return { order: [provider(), provider()], ignore: [provider(), provider(), provider()] };
}

function names(random: Random, count: number): string[] {
  return Array.from({ length: count }, () => modelName(random.whole(0, 199)));
}

const WARM_UPS = 2_000;
const COLD = 100;

/**
 * Measures planning from a request's model name to the ordered plan, each call by itself. A tenth of the endpoints has
 * failed recently.
 */
export function measurePlanning(configFile: string, repeats: number): PlanningRow[] {
  const config = loadConfig({}, { config_file: configFile });
  const catalog = catalogOf(config);
  const health = createHealth();
  const nowMs = 1_000_000;
  const random = new Random(5);
  for (const endpoint of catalog.endpoints()) {
    if (random.chance(0.1))
      health.failed(healthId({ endpoint }), new UpstreamError('unavailable', '').failure, undefined, nowMs);
  }

  const lookup = {
    catalog,
    defaultModel: () => undefined,
    routers: { auto_models: names(random, 8), free_models: 'all' as const },
    draw: () => 0.5,
    home: () => undefined,
  };

  return KINDS.map(({ kind, among, more }) => {
    const requests = Array.from(
      { length: repeats },
      (): ChatRequest => ({
        model: modelName(random.whole(0, among - 1)),
        messages: messages(1),
        ...more(random),
      }),
    );
    let candidates = 0;
    const once = (request: ChatRequest): number => {
      const beganMs = performance.now();
      const { models, variants, strategy, request: worded = request } = requestedModels(request, lookup);
      const planned = plan(worded, {
        models,
        variants,
        strategy,
        provider: (slug) => catalog.provider(slug),
        health,
        now_ms: nowMs,
        draw: 0.5,
        allow_unpriced: false,
      });
      const tookMs = performance.now() - beganMs;
      candidates += planned.candidates.length;
      return tookMs * 1_000;
    };
    const able = requests.filter((request) => {
      try {
        once(request);
        return true;
      } catch {
        // A filter left no endpoint: a refusal takes another path.
        return false;
      }
    });
    const coldUs = middle(able.slice(0, COLD).map(once));
    for (let warmed = 0; warmed < WARM_UPS; warmed += 1) once(able[warmed % able.length]!);
    candidates = 0;
    const cpu = process.threadCpuUsage();
    const times = able.map(once).sort((a, b) => a - b);
    const { user, system } = process.threadCpuUsage(cpu);
    return {
      kind,
      candidates: candidates / able.length,
      cpu_us: (user + system) / able.length,
      p50_us: middle(times),
      p99_us: times[Math.floor(times.length * 0.99)] ?? Number.NaN,
      cold_us: coldUs,
    };
  });
}

function middle(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}
