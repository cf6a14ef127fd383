/** A field that the gateway itself reads, of a type that it does not have, is a 400 or goes on as sent: never a fault of the gateway. */
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
