/**
 * Texts that callers and providers choose, as long as a body or an answer may be: each expression reads them once, and not again from each
 * of their characters. The bounds of time are those of any test; work by the square of these lengths takes minutes.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readVector } from '../../src/providers/embeddings/vector.ts';
import { startGateway, type TestGateway } from '../harness.ts';
import { responseHead, startWireServer, type WireServer } from '../wires/wire-server.ts';

const CHARS = 300_000;
/** Long runs of one class of characters, which an expression may read again from each of its characters. */
const ids = ['x', '1', '_', 'x-', 'x1 ', ' '].map((part) => part.repeat(CHARS / part.length));

let gateway: TestGateway;
let upstream: WireServer;
let body = '';
beforeAll(async () => {
  upstream = await startWireServer(() => [responseHead(200, 'application/json'), body, 'END']);
  gateway = await startGateway({
    yaml: JSON.stringify({
      bundled_catalog: false,
      providers: { far: { dialect: 'anthropic-messages', base_url: upstream.url, api_key: 'k' } },
      models: {
        'far/m': {
          context_length: 1_000_000,
          endpoints: [{ provider: 'far', upstream_model: 'm', pricing: { prompt: 1, completion: 1 } }],
        },
      },
    }),
  });
});
afterAll(async () => {
  await gateway.stop();
  await upstream.stop();
});

const answerWith = (id: string) =>
  JSON.stringify({
    id: 'm',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [
      { type: 'thinking', thinking: 'hm', signature: 'c2ln' },
      { type: 'tool_use', id, name: 'f', input: {} },
    ],
    stop_reason: 'tool_use',
    usage: { input_tokens: 5, output_tokens: 5 },
  });

test('ids of tool calls in an answer', async () => {
  for (const id of ids) {
    body = answerWith(id);
    const answer = await gateway.call('POST', '/chat/completions', {
      model: 'far/m',
      messages: [{ role: 'user', content: 'Go.' }],
      tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }],
    });
    expect(answer.status).toBe(200);
    await answer.text();
  }
});

test('ids of tool calls in a history', async () => {
  body = answerWith('toolu_1');
  for (const id of ids) {
    const answer = await gateway.call('POST', '/chat/completions', {
      model: 'far/m',
      messages: [
        { role: 'user', content: 'Go.' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id, type: 'function', function: { name: 'f', arguments: '{}' } }],
        },
        { role: 'tool', tool_call_id: id, content: 'done' },
      ],
    });
    expect(answer.status).toBe(200);
    await answer.text();
  }
});

test('texts that filters and the request log read', async () => {
  body = answerWith('toolu_1');
  const manage = async (method: string, path: string, value?: unknown) => {
    const answer = await fetch(`${gateway.base_url}${path}`, {
      method,
      headers: { authorization: `Bearer ${gateway.management_key}`, 'content-type': 'application/json' },
      ...(value === undefined ? {} : { body: JSON.stringify(value) }),
    });
    return (await answer.json()) as { data: { id: string } & { id: string }[] };
  };
  const { data: workspaces } = await manage('GET', '/workspaces');
  await manage('PATCH', `/workspaces/${workspaces[0]!.id}`, { is_observability_io_logging_enabled: true });
  const { data: guardrail } = await manage('POST', '/guardrails', {
    name: 'filter',
    content_filter_builtins: [{ slug: 'email', action: 'redact' }],
  });
  await manage('POST', `/guardrails/${guardrail.id}/assignments/keys`, { key_hashes: [gateway.key_hash] });
  for (const content of [`\\u0041${'\\'.repeat(CHARS)}`, `${'='.repeat(CHARS)}!`, `${':a'.repeat(CHARS / 2)}!`]) {
    const answer = await gateway.call('POST', '/chat/completions', {
      model: 'far/m',
      messages: [{ role: 'user', content, name: 'n' }],
      metadata_of_caller: content,
    });
    expect(answer.status).toBe(200);
    const { id } = (await answer.json()) as { id: string };
    await expect.poll(async () => (await gateway.call('GET', `/generation/content?id=${id}`)).status).toBe(200);
  }
});

test('vectors of a provider', () => {
  expect(readVector(`${'A'.repeat(16)}${'='.repeat(CHARS)}!`)).toBeUndefined();
});
