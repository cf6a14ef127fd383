import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../../test/harness.ts';

/** `POST /guardrails/test` through a whole gateway. */

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway({
    yaml: `
bundled_catalog: false
providers:
  acme: { name: Acme, dialect: openai-chat, base_url: "http://127.0.0.1:1/v1" }
  other: { name: Other, dialect: openai-chat, base_url: "http://127.0.0.1:1/v1" }
models:
  acme/m: { endpoints: [{ provider: acme, upstream_model: m, pricing: { prompt: 1, completion: 1 } }, { provider: other, upstream_model: m, pricing: { prompt: 1, completion: 1 } }] }
`,
  });
});
afterAll(() => gateway.stop());

async function tried(body: object, status = 200) {
  const authorization = `Bearer ${gateway.management_key}`;
  const response = await gateway.call('POST', '/guardrails/test', body, { authorization });
  const result = (await response.json()) as {
    data: Record<string, unknown>;
    error: { message: string; metadata: object };
  };
  expect(response.status, JSON.stringify(result)).toBe(status);
  return result;
}

const redact = { content_filter_builtins: [{ slug: 'email', action: 'redact' }] };
const EMAIL = 'jane.doe@example.com';

describe('a draft', () => {
  test('shows its findings in a text, and the changed text', async () => {
    const { data } = await tried({ guardrail: redact, text: `To ${EMAIL}.` });
    expect(data).toMatchObject({
      verdict: 'redacted',
      refusal: null,
      findings: [
        { filter: 'email', pattern: null, label: 'Email address', action: 'redact', field: 'text', start: 3, end: 23 },
      ],
      findings_count: 1,
      changes: [{ field: 'text', text: 'To [EMAIL].' }],
      pipeline: [{ name: 'content-filter', data: { action: 'redacted' } }],
      routing: null,
    });
    expect(JSON.stringify(data)).not.toContain(EMAIL);
  });

  test('shows a refusal with its message', async () => {
    const guardrail = { content_filters: [{ pattern: 'x-[0-9]+', action: 'block', label: 'Codes' }] };
    const { data } = await tried({ guardrail, text: 'of x-42' });
    expect(data).toMatchObject({
      verdict: 'blocked',
      refusal: { status: 403, message: 'Request blocked by content filter: Codes', metadata: { filter: 'custom' } },
    });
    expect((await tried({ guardrail, text: 'of y-42' })).data).toMatchObject({ verdict: 'passed', findings: [] });
  });

  test.each([
    ['chat', { model: 'acme/m', messages: [{ role: 'user', content: `To ${EMAIL}` }] }, 'messages[0].content'],
    ['responses', { model: 'acme/m', input: `To ${EMAIL}` }, 'input'],
    [
      'messages',
      { model: 'acme/m', max_tokens: 9, messages: [{ role: 'user', content: `To ${EMAIL}` }] },
      'messages[0].content',
    ],
    ['completions', { model: 'acme/m', prompt: ['x', `To ${EMAIL}`] }, 'prompt'],
  ])('reads a request of %s, and shows the endpoints that its restrictions allow', async (api, request, field) => {
    const guardrail = { ...redact, ignored_providers: ['Other'] };
    const { data } = await tried({ guardrail, api, request });
    expect(data).toMatchObject({
      verdict: 'redacted',
      changes: [{ field, text: 'To [EMAIL]' }],
      routing: {
        models: ['acme/m'],
        endpoints: [expect.stringContaining('acme')],
        excluded: [{ reason: 'a guardrail excludes it (provider-ignored-by-guardrail)' }],
        error: null,
      },
    });
  });

  test('that excludes every endpoint shows the error that the client would get', async () => {
    const request = { model: 'acme/m', messages: [{ role: 'user', content: 'x' }] };
    const { data } = await tried({ guardrail: { ignored_models: ['acme/m'] }, request });
    expect(data['routing']).toMatchObject({ endpoints: [], error: expect.stringContaining('guardrail') });
  });

  test('is validated like a stored one, and so is the request', async () => {
    const text = 'x';
    for (const [draft, path] of [
      [{ content_filters: [{ pattern: '(', action: 'block' }] }, 'guardrail.content_filters[0].pattern'],
      [{ content_filters: [{ pattern: 'a', action: 'block', label: '\u0000' }] }, 'guardrail.content_filters[0].label'],
      [{ allowed_models: ['no/model'] }, 'guardrail.allowed_models[0]'],
      [{ name: 'a\0' }, 'guardrail.name'],
    ] as const) {
      const { error } = await tried({ guardrail: draft, text }, 400);
      expect(error.message.split(' ')[0]).toBe(path);
      expect(error.metadata).toMatchObject({ violations: [{ path }] });
    }
    expect((await tried({ guardrail: redact, request: { model: 'acme/m' } }, 400)).error.message).toContain('messages');
    expect(
      (await tried({ guardrail: redact, api: 'messages', request: { model: 'acme/m', messages: 1 } }, 400)).error
        .message,
    ).toContain('request.messages');
    expect((await tried({ text }, 400)).error.message).toBe('guardrail_id or guardrail is required, and not both');
    expect((await tried({ guardrail: redact, text, request: {} }, 400)).error.message).toBe(
      'text or request or replay is required, and not several',
    );
  });
});

test('a stored guardrail is tested by its id, without an entry in the metrics or the log', async () => {
  const authorization = `Bearer ${gateway.management_key}`;
  const made = await gateway.call('POST', '/guardrails', { name: 'g', ...redact }, { authorization });
  const { id } = ((await made.json()) as { data: { id: string } }).data;
  const { data } = await tried({ guardrail_id: id, text: EMAIL });
  expect(data).toMatchObject({ verdict: 'redacted', pipeline: [{ guardrail_id: id }] });
  await tried({ guardrail_id: '00000000-0000-4000-8000-000000000000', text: EMAIL }, 404);
  const metrics = await (await fetch(`${gateway.url}/metrics`, { headers: { authorization } })).text();
  expect(metrics).not.toMatch(/^gateway_content_filtered_total\{/m);
  expect(gateway.log_lines.join()).not.toContain('jane');
});

test('403: an ordinary key cannot test guardrails', async () => {
  const response = await gateway.call('POST', '/guardrails/test', { guardrail: redact, text: 'x' });
  expect(response.status).toBe(403);
});
