/**
 * A field that the gateway itself reads, with a wrong type, is a 400 or is passed on as sent, and never a fault of the
 * gateway.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../harness.ts';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway.stop());

const VALUES = [1.5, true, {}, [1], 'text'];
const FIELDS = ['prompt_cache_key', 'session_id', 'audio', 'image_config', 'web_search_options', 'user', 'metadata'];
const REQUESTS = {
  '/chat/completions': { messages: [{ role: 'user', content: 'Hi' }] },
  '/completions': { prompt: 'Hi' },
  '/responses': { input: 'Hi' },
  '/messages': { messages: [{ role: 'user', content: 'Hi' }], max_tokens: 9 },
};

test.each(Object.entries(REQUESTS))('%s', async (path, request) => {
  const cases = FIELDS.flatMap((field) => VALUES.map((value) => ({ field, value })));
  const statuses = await Promise.all(
    cases.map(async ({ field, value }) => {
      const response = await gateway.call('POST', path, { model: 'sandbox/echo', ...request, [field]: value });
      await response.text();
      return { field, value, status: response.status };
    }),
  );
  expect(statuses.filter(({ status }) => status >= 500)).toEqual([]);
});

test('a prompt_cache_key that is not a text is a 400 that names it', async () => {
  const body = { model: 'sandbox/echo', messages: [{ role: 'user', content: 'Hi' }], prompt_cache_key: 7 };
  const response = await gateway.call('POST', '/chat/completions', body);
  expect([response.status, await response.text()]).toEqual([400, expect.stringContaining('prompt_cache_key')]);
});

test('a part of an item that is null is a 400 that names it', async () => {
  const types = ['function_call', 'reasoning', 'web_search_call', 'mcp_call', 'function_call_output'];
  for (const type of types) {
    const item = { type, id: 'i', call_id: 'c', name: 'f', arguments: '{}', summary: [], output: [null] };
    const response = await gateway.call('POST', '/responses', { model: 'sandbox/echo', input: [item] });
    expect([type, response.status, await response.text()]).toEqual([type, 400, expect.stringContaining('input')]);
  }
});

test('an id with a NUL character, which PostgreSQL accepts in no text, is a 400 or an unknown id', async () => {
  const authorization = `Bearer ${gateway.management_key}`;
  const requests = [
    ['GET', '/ledger/status?after=a%00b', undefined],
    ['POST', '/ledger/release', { node_id: 'a\u0000b' }],
  ] as const;
  for (const [method, path, body] of requests) {
    const response = await gateway.call(method, path, body, { authorization });
    expect([path, response.status, await response.text()]).toEqual([path, 400, expect.stringContaining('NUL')]);
  }
});
