import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { limits } from '../limits.ts';

/** What the ledger's recorder tells of itself when metrics are read. */
export interface RecorderState {
  unflushed: number;
  refused: number;
  oldest_unflushed_ms: number;
  journal_bytes: number;
}

export interface Metrics {
  registry: Registry;
  attempt(provider: string, outcome: string): void;
  generation(facts: {
    model: string;
    provider: string;
    outcome: string;
    prompt_tokens: number;
    completion_tokens: number;
    cost_usd: number;
    first_token_s: number | undefined;
  }): void;
  request(facts: { operation: string; status: number; seconds: number }): void;
  streamOpened(): void;
  streamClosed(): void;
  /** Where the gauges of the journal read their values. */
  watchRecorder(state: () => RecorderState): void;
}

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];

/** Bounds a label's values: a client can name any number of models where a provider takes any. */
function boundedLabel(): (value: string) => string {
  const seen = new Set<string>();
  return (value) => {
    if (seen.has(value)) return value;
    if (seen.size >= limits.metric_label_values_max) return 'other';
    seen.add(value);
    return value;
  };
}

/** Makes the process's metrics, in a registry of their own. Labels hold operations, models and providers; never keys. */
export function createMetrics(): Metrics {
  const registry = new Registry();
  const modelLabel = boundedLabel();
  const registers = [registry];
  const requests = new Counter({
    name: 'gateway_requests_total',
    help: 'HTTP requests by operation and status.',
    labelNames: ['operation', 'status'],
    registers,
  });
  const duration = new Histogram({
    name: 'gateway_request_seconds',
    help: 'Time from the request to the end of its answer.',
    labelNames: ['operation'],
    buckets: SECONDS,
    registers,
  });
  const firstToken = new Histogram({
    name: 'gateway_first_token_seconds',
    help: 'Time from the request to the first token (to the answer, when it is not streamed).',
    labelNames: ['provider'],
    buckets: SECONDS,
    registers,
  });
  const generations = new Counter({
    name: 'gateway_generations_total',
    help: 'Finished generations by outcome.',
    labelNames: ['model', 'provider', 'outcome'],
    registers,
  });
  const tokens = new Counter({
    name: 'gateway_tokens_total',
    help: 'Tokens by direction.',
    labelNames: ['model', 'provider', 'direction'],
    registers,
  });
  const cost = new Counter({
    name: 'gateway_cost_usd_total',
    help: 'What generations cost, in USD.',
    labelNames: ['model', 'provider'],
    registers,
  });
  const attempts = new Counter({
    name: 'gateway_attempts_total',
    help: 'Attempts at upstreams by outcome.',
    labelNames: ['provider', 'outcome'],
    registers,
  });
  const streams = new Gauge({ name: 'gateway_open_streams', help: 'Streams open to clients.', registers });
  streams.set(0);
  new Gauge({ name: 'gateway_processes', help: 'Processes that serve.', registers }).set(1);

  return {
    registry,
    attempt: (provider, outcome) => attempts.inc({ provider, outcome }),
    generation({ model: named, provider, outcome, prompt_tokens, completion_tokens, cost_usd, first_token_s }) {
      const model = modelLabel(named);
      generations.inc({ model, provider, outcome });
      tokens.inc({ model, provider, direction: 'prompt' }, prompt_tokens);
      tokens.inc({ model, provider, direction: 'completion' }, completion_tokens);
      cost.inc({ model, provider }, cost_usd);
      if (first_token_s !== undefined) firstToken.observe({ provider }, first_token_s);
    },
    request({ operation, status, seconds }) {
      requests.inc({ operation, status });
      duration.observe({ operation }, seconds);
    },
    streamOpened: () => streams.inc(),
    streamClosed: () => streams.dec(),
    watchRecorder(state) {
      const gauge = (
        name: string,
        help: string,
        read: (now: RecorderState) => number,
        aggregator: 'sum' | 'max' = 'sum',
      ) =>
        new Gauge({
          name,
          help,
          aggregator,
          registers,
          collect() {
            this.set(read(state()));
          },
        });
      gauge('gateway_journal_unflushed_records', 'Outcomes not yet acknowledged by the store.', (now) => now.unflushed);
      gauge(
        'gateway_flush_lag_seconds',
        'Age of the oldest outcome not yet acknowledged by the store.',
        (now) => now.oldest_unflushed_ms / 1000,
        'max',
      );
      gauge('gateway_journal_refused_records', 'Of these, what the store refuses.', (now) => now.refused);
      gauge('gateway_journal_bytes', 'Size of the journal on disk.', (now) => now.journal_bytes);
    },
  };
}
