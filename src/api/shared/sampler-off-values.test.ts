import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../../test/harness.ts';

const OFF = [
  ['top_k', 0],
  ['top_k', -1],
  ['top_p', 0],
  ['repetition_penalty', 0],
] as const;
const METADATA = { 'x-gateway-experimental-metadata': 'enabled' };

const requests: Record<string, Record<string, unknown>> = {
  '/chat/completions': { model: 'sandbox/echo', messages: [{ role: 'user', content: 'Hello' }] },
  '/completions': { model: 'sandbox/echo', prompt: 'Hello' },
  '/responses': { model: 'sandbox/echo', input: 'Hello' },
  '/route/explain': { model: 'sandbox/echo', messages: [{ role: 'user', content: 'Hello' }] },
};
const paths = Object.keys(requests);
const fields = (path: string) => OFF.filter(([field]) => path !== '/responses' || field !== 'repetition_penalty');

let strict: TestGateway;
let lenient: TestGateway;
beforeAll(async () => {
  [strict, lenient] = await Promise.all([
    startGateway(),
    startGateway({ yaml: 'compatibility: { sampler_off_values: ignore }' }),
  ]);
});
afterAll(async () => {
  await Promise.all([strict.stop(), lenient.stop()]);
});

test.each(paths)('a sampler value that disables the sampler is a 400 that names the setting: %s', async (path) => {
  for (const [field, value] of fields(path)) {
    const response = await strict.call('POST', path, { ...requests[path], [field]: value });
    expect(response.status).toBe(400);
    const { error } = (await response.json()) as { error: { message: string } };
    expect(error.message).toMatch(new RegExp(`^${field} must be .*compatibility\\.sampler_off_values: ignore`));
  }
});

test.each(paths)('such a value is dropped and reported if the operator allows it: %s', async (path) => {
  for (const [field, value] of fields(path)) {
    const response = await lenient.call('POST', path, { ...requests[path], [field]: value }, METADATA);
    const text = await response.text();
    expect([response.status, text.includes(`"field":"${field}"`)], text).toEqual([200, true]);
    expect(text).toContain(`${value} turns it off`);
  }
});

test('other values out of range stay a 400', async () => {
  for (const [field, value] of [
    ['top_k', -2],
    ['top_p', -0.1],
    ['repetition_penalty', -1],
  ] as const) {
    const response = await lenient.call('POST', '/chat/completions', {
      ...requests['/chat/completions'],
      [field]: value,
    });
    expect(response.status, field).toBe(400);
  }
});

test('the Messages API follows its own rules', async () => {
  const body = { model: 'sandbox/echo', max_tokens: 20, top_k: 0, messages: [{ role: 'user', content: 'Hello' }] };
  expect((await strict.call('POST', '/messages', body)).status).toBe(200);
});
