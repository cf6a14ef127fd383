import type { Endpoint, Model } from '../../src/catalog/model.ts';
import type { Provider } from '../../src/providers/provider.ts';
import type { Percentiles, Performance } from '../../src/routing/health.ts';
import { NoEndpoint, type Plan, type PlanContext, plan, tagOf } from '../../src/routing/plan.ts';
import type { ChatRequest } from '../../src/schemas/inner.ts';

/** Three providers of different data policies. */
export const PROVIDERS: Record<string, Provider> = Object.fromEntries(
  (
    [
      ['alpha', 'Alpha AI', false, 0],
      ['beta', 'Beta', true, 30],
      ['gamma', 'Gamma', 'unknown', 'unknown'],
    ] as const
  ).map(([slug, name, training, retentionDays]) => [
    slug,
    {
      slug,
      name,
      dialect: 'openai-chat',
      base_url: 'http://127.0.0.1:1/v1',
      credential: undefined,
      quirks: {},
      data_policy: { training, retention_days: retentionDays },
      abort_stops_billing: true,
      headers: {},
    } satisfies Provider,
  ]),
);

/** An endpoint with the same price for prompt and completion. */
export function endpoint(
  model: string,
  provider: string,
  prompt: number | undefined,
  extra: Partial<Endpoint> = {},
): Endpoint {
  const tag = extra.tag ?? provider;
  return {
    id: `${tag}|${model}`,
    model,
    provider,
    tag,
    upstream_model: 'm',
    context_length: 1000,
    max_completion_tokens: undefined,
    max_prompt_tokens: undefined,
    pricing: prompt === undefined ? {} : { prompt, completion: prompt },
    supported_parameters: undefined,
    quantization: 'unknown',
    supports_implicit_caching: false,
    input_modalities: ['text'],
    quirks: {},
    ...extra,
  };
}

/** A model with these endpoints. */
export function model(id: string, endpoints: Endpoint[], extra: Partial<Model> = {}): Model {
  return {
    id,
    canonical_slug: id,
    name: id,
    description: '',
    created: 0,
    context_length: 1000,
    input_modalities: ['text'],
    output_modalities: ['text'],
    tokenizer: 'Other',
    instruct_type: null,
    knowledge_cutoff: null,
    expiration_date: null,
    model_hub_id: null,
    endpoints,
    ...extra,
  };
}

/** A model that every provider has. */
export const ONE = model('a/one', [
  endpoint('a/one', 'alpha', 300, { quantization: 'fp8', supported_parameters: ['temperature'] }),
  endpoint('a/one', 'beta', 100),
  endpoint('a/one', 'beta', 200, { tag: 'beta/turbo' }),
  endpoint('a/one', 'gamma', undefined),
]);
/** A model of one provider. */
export const TWO = model('a/two', [endpoint('a/two', 'alpha', 50)]);

/** The statistics of endpoints, by their id. Nothing is known of others. */
export interface Known {
  cooling?: Record<string, number>;
  outages?: readonly string[];
  performance?: Record<string, Partial<Performance>>;
}

const flat = (value: number): Percentiles => ({ p50: value, p75: value, p90: value, p99: value });
/** An endpoint with this constant throughput in tokens a second. */
export const speed = (tokens: number): Partial<Performance> => ({ throughput: flat(tokens) });
/** An endpoint with this constant time to its first token. */
export const wait = (latencyMs: number): Partial<Performance> => ({ latency_ms: flat(latencyMs) });

const UNKNOWN: Performance = {
  latency_ms: null,
  throughput: null,
  uptime_5m: null,
  uptime_30m: null,
  uptime_1d: null,
  tool_success: null,
};

/** Plans a request of one word for these models, at this time and with these statistics. */
export function planned(
  request: Partial<ChatRequest> = {},
  { known = {}, ...context }: Partial<PlanContext> & { known?: Known } = {},
): Plan {
  return plan(
    { messages: [{ role: 'user', content: 'x' }], ...request },
    {
      models: [ONE],
      provider: (slug) => PROVIDERS[slug],
      health: {
        coolingUntil: (id) => known.cooling?.[id] ?? 0,
        hadOutage: (id) => known.outages?.includes(id) === true,
        performance: (id) => ({ ...UNKNOWN, ...known.performance?.[id] }),
      },
      now_ms: 1000,
      draw: 0,
      allow_unpriced: false,
      ...context,
    },
  );
}

/** The tags of a plan's endpoints, in order. */
export const tagsOf = ({ attempts }: Plan): string[] => attempts.map(tagOf);

/** The refusal of a request that no endpoint may serve. */
export function refused(...input: Parameters<typeof planned>): NoEndpoint {
  try {
    planned(...input);
  } catch (error) {
    if (error instanceof NoEndpoint) return error;
    throw error;
  }
  throw new Error('it was not refused');
}
