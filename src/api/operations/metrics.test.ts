import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../../test/harness.ts';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway.stop());

test('200: counts requests, tokens, cost and attempts, and reports the lag of the journal', async () => {
  const send = (model: string) =>
    gateway.call('POST', '/chat/completions', { model, messages: [{ role: 'user', content: 'Hello' }] });
  await (await send('sandbox/echo')).text();
  await (await send('sandbox/fail-503')).text();
  const response = await fetch(`${gateway.url}/metrics`);
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toMatch(/^text\/plain/);
  const text = await response.text();
  for (const line of [
    /^gateway_requests_total\{operation="createChatCompletion",status="200"\} 1$/m,
    /^gateway_requests_total\{operation="createChatCompletion",status="503"\} 1$/m,
    /^gateway_attempts_total\{provider="sandbox",outcome="answered"\} 1$/m,
    /^gateway_attempts_total\{provider="sandbox",outcome="(overloaded|unavailable)"\} 1$/m,
    /^gateway_tokens_total\{model="sandbox\/echo",provider="sandbox",direction="prompt"\} [1-9]/m,
    /^gateway_cost_usd_total\{model="sandbox\/echo",provider="sandbox"\} [0-9.e-]+$/m,
    /^gateway_first_token_seconds_count\{provider="sandbox"\} 1$/m,
    /^gateway_open_streams 0$/m,
    /^gateway_journal_unflushed_records \d+$/m,
    /^gateway_flush_lag_seconds [0-9.]+$/m,
  ]) {
    expect(text).toMatch(line);
  }
  expect(text).not.toContain(gateway.key);
  expect(text).not.toContain(gateway.key_hash);
});

test('an attempt that breaks off late is counted once, with its failure', async () => {
  const before = await attempts();
  const body = { model: 'sandbox/fail-late', messages: [{ role: 'user', content: 'Hello' }], stream: true };
  expect(await (await gateway.call('POST', '/chat/completions', body)).text()).toContain('"finish_reason":"error"');
  const after = await attempts();
  const risen = [...after].flatMap(([outcome, count]) => {
    const rise = count - (before.get(outcome) ?? 0);
    return rise === 0 ? [] : [[outcome, rise]];
  });
  expect(risen).toEqual([['sandbox overloaded', 1]]);
});

/** `gateway_attempts_total` by provider and outcome. */
async function attempts(): Promise<Map<string, number>> {
  const text = await (await fetch(`${gateway.url}/metrics`)).text();
  const lines = text.matchAll(/^gateway_attempts_total\{provider="(.+)",outcome="(.+)"\} (\d+)$/gm);
  return new Map([...lines].map(([, provider, outcome, count]) => [`${provider} ${outcome}`, Number(count)]));
}
