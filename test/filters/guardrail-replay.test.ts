import { afterAll, beforeAll, expect, test } from 'vitest';
import { type LoggingGateway, startLoggingGateway } from '../logging-gateway.ts';

let gateway: LoggingGateway;

beforeAll(async () => {
  gateway = await startLoggingGateway();
  await gateway.set({ is_observability_io_logging_enabled: true });
});
afterAll(() => gateway.stop());

interface Tested {
  data: {
    verdict: string;
    findings_count: number;
    replay: {
      requests: number;
      blocked: number;
      redacted: number;
      flagged: number;
      filters: { filter: string; requests: number; findings: number }[];
      examples: { generation_id: string; action: string; filters: string[] }[];
      is_complete: boolean;
    };
  };
}

const draft = {
  content_filter_builtins: [
    { slug: 'email', action: 'redact' },
    { slug: 'credit-card', action: 'block' },
  ],
  content_filters: [{ pattern: 'project-x\\d+', action: 'block', label: 'Projects' }],
};
const tried = (replay: object, guardrail: object = draft) =>
  gateway.managed<Tested>('POST', '/guardrails/test', { guardrail, replay });

async function say(text: string, path = '/chat/completions'): Promise<string> {
  const body =
    path === '/responses'
      ? { model: 'sandbox/echo', input: text }
      : { model: 'sandbox/echo', max_tokens: 50, messages: [{ role: 'user', content: text }] };
  const answer = await gateway.call('POST', path, body);
  await answer.text();
  expect(answer.status).toBe(200);
  return answer.headers.get('x-generation-id') ?? '';
}

test('a draft is replayed on the kept requests of a workspace, of every API, and the result contains no matched text', async () => {
  await say('nothing of note');
  const mail = await say('write to ann@example.com and bob@example.com', '/messages');
  const card = await say('pay with 4111 1111 1111 1111, tell ann@example.com', '/responses');
  const custom = await say('about project-x12');
  const kept = async () => (await tried({ workspace_id: 'default' })).body.data.replay.requests;
  await expect.poll(kept).toBe(4);
  const { status, body } = await tried({ workspace_id: gateway.workspace_id });
  expect(status).toBe(200);
  expect(body.data).toMatchObject({
    verdict: 'blocked',
    replay: { requests: 4, blocked: 2, redacted: 1, flagged: 0, is_complete: true },
  });
  expect(body.data.replay.filters).toMatchObject([
    { filter: 'email', requests: 2, findings: 3 },
    { filter: 'credit-card', requests: 1, findings: 1 },
    { filter: 'custom', requests: 1, findings: 1 },
  ]);
  const examples = new Map(body.data.replay.examples.map(({ generation_id, action }) => [generation_id, action]));
  expect(examples).toEqual(
    new Map([
      [custom, 'blocked'],
      [card, 'blocked'],
      [mail, 'redacted'],
    ]),
  );
  expect(JSON.stringify(body)).not.toMatch(/ann@|4111|project-x12/);
  expect((await tried({ workspace_id: 'default', limit: 1 })).body.data.replay).toMatchObject({
    requests: 1,
    blocked: 1,
  });
  const later = new Date(Date.now() + 60_000).toISOString();
  expect((await tried({ workspace_id: 'default', since: later })).body.data).toMatchObject({
    verdict: 'passed',
    replay: { requests: 0 },
  });
});

test.each<[string, object, object, string]>([
  ['an unknown workspace', { workspace_id: 'nowhere' }, draft, 'replay.workspace_id'],
  ['a count above the maximum', { workspace_id: 'default', limit: 100_000 }, draft, 'limit'],
  ['an invalid time', { workspace_id: 'default', since: 'yesterday' }, draft, 'since'],
  ['a draft without filters', { workspace_id: 'default' }, { limit_usd: 1 }, 'filter'],
])('%s is refused', async (_what, replay, guardrail, named) => {
  const { status, body } = await gateway.managed<{ error: { message: string } }>('POST', '/guardrails/test', {
    guardrail,
    replay,
  });
  expect(status).toBe(400);
  expect(body.error.message).toContain(named);
});

test('a text together with a replay is refused, and so is an ordinary key', async () => {
  const replay = { workspace_id: 'default' };
  expect((await gateway.managed('POST', '/guardrails/test', { guardrail: draft, replay, text: 'x' })).status).toBe(400);
  expect((await gateway.call('POST', '/guardrails/test', { guardrail: draft, replay })).status).toBe(403);
});

test('a workspace that keeps nothing is refused', async () => {
  await gateway.set({ is_observability_io_logging_enabled: false });
  const { status, body } = await tried({ workspace_id: 'default' });
  expect(status).toBe(400);
  expect(JSON.stringify(body)).toContain('I/O logging is off');
});
