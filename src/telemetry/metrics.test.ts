import { expect, test } from 'vitest';
import { createMetrics, METRIC_LABEL_VALUES_MAX } from './metrics.ts';

const GENERATION = {
  model: 'a/b',
  provider: 'p',
  outcome: 'completed',
  prompt_tokens: 3,
  completion_tokens: 5,
  cost_usd: 0.25,
  first_token_s: 0.1,
};

test('each count is in every later reading once', async () => {
  const metrics = createMetrics();
  metrics.generation(GENERATION);
  metrics.generation({ ...GENERATION, outcome: 'failed' });
  metrics.attempt('p', 'answered');
  metrics.request({ operation: 'o', status: 200, seconds: 1 });
  await metrics.registry.metrics();
  metrics.generation(GENERATION);
  metrics.attempt('p', 'answered');
  metrics.request({ operation: 'o', status: 200, seconds: 1 });
  await metrics.registry.metrics();
  const text = await metrics.registry.metrics();
  for (const line of [
    'gateway_requests_total{operation="o",status="200"} 2',
    'gateway_attempts_total{provider="p",outcome="answered"} 2',
    'gateway_generations_total{model="a/b",provider="p",outcome="completed"} 2',
    'gateway_generations_total{model="a/b",provider="p",outcome="failed"} 1',
    'gateway_tokens_total{model="a/b",provider="p",direction="prompt"} 9',
    'gateway_tokens_total{model="a/b",provider="p",direction="completion"} 15',
    'gateway_cost_usd_total{model="a/b",provider="p"} 0.75',
  ]) {
    expect(text.split('\n')).toContain(line);
  }
});

test('unresolved amounts are read from the store rarely, and keep their last value while the store fails', async () => {
  const metrics = createMetrics();
  let reads = 0;
  metrics.watchDoubt(async () => {
    reads += 1;
    return { in_doubt_nano: 1_500_000_000, booked_nano: 2_000_000_000, estimated_nano: 500_000_000 };
  });
  for (let reading = 0; reading < 3; reading += 1) {
    expect((await metrics.registry.metrics()).split('\n')).toEqual(
      expect.arrayContaining([
        'gateway_ledger_in_doubt_usd 1.5',
        'gateway_ledger_booked_usd 2',
        'gateway_ledger_estimated_usd 0.5',
      ]),
    );
  }
  expect(reads).toBe(1);
  const failing = createMetrics();
  failing.watchDoubt(() => Promise.reject(new Error('no store')));
  expect(await failing.registry.metrics()).toContain('gateway_ledger_in_doubt_usd 0');
});

test('the ledger reports held and leased amounts in USD', async () => {
  const metrics = createMetrics();
  const journal = {
    unflushed: 0,
    refused: 0,
    reduced: 0,
    oldest_unflushed_ms: 0,
    journal_bytes: 0,
    journal_discarded_bytes: 0,
    disk_free_bytes: 0,
  };
  metrics.watchRecorder(() => ({ ...journal, held_nano: 250_000_000, leased_nano: 2_000_000_000, waiting: 3 }));
  const text = (await metrics.registry.metrics()).split('\n');
  expect(text).toContain('gateway_ledger_held_usd 0.25');
  expect(text).toContain('gateway_ledger_leased_usd 2');
  expect(text).toContain('gateway_ledger_waiting_requests 3');
});

test('endpoints are reported with their current state, forgotten ones disappear, and their number is bounded', async () => {
  const metrics = createMetrics();
  let states = [
    { endpoint: 'a', uptime: 0.5, status: -5 },
    { endpoint: 'b', uptime: null, status: 0 },
  ];
  metrics.watchEndpoints(() => states);
  const first = (await metrics.registry.metrics()).split('\n');
  expect(first).toContain('gateway_endpoint_uptime_ratio{endpoint="a"} 0.5');
  expect(first).toContain('gateway_endpoint_status{endpoint="a"} -5');
  expect(first).toContain('gateway_endpoint_status{endpoint="b"} 0');
  expect(first.join()).not.toContain('gateway_endpoint_uptime_ratio{endpoint="b"}');
  states = Array.from({ length: METRIC_LABEL_VALUES_MAX + 5 }, (_, n) => ({
    endpoint: `e${n}`,
    uptime: 1,
    status: 0,
  }));
  const second = (await metrics.registry.metrics()).split('\n');
  expect(second.filter((line) => line.startsWith('gateway_endpoint_status{'))).toHaveLength(METRIC_LABEL_VALUES_MAX);
  expect(second.join()).not.toContain('endpoint="a"');
});
