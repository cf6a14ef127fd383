import { expect, test } from 'vitest';
import { createMetrics } from './metrics.ts';

const GENERATION = {
  model: 'a/b',
  provider: 'p',
  outcome: 'completed',
  prompt_tokens: 3,
  completion_tokens: 5,
  cost_usd: 0.25,
  first_token_s: 0.1,
};

test('what was counted is in every later reading once', async () => {
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
