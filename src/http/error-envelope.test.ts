import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../test/harness.ts';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway.stop());

test.each([
  ['a path that is not a URL', '/keys/%zz', 400],
  ['a path with broken UTF-8', '/models/%E0%A4%A/x/endpoints', 400],
  ['an unknown path', `/keys/${'a'.repeat(400)}`, 404],
])('%s is refused in the standard envelope', async (_name, path, status) => {
  const response = await gateway.call('GET', path);
  expect(response.status).toBe(status);
  expect(response.headers.get('x-request-id')).toBeTruthy();
  expect(await response.json()).toEqual({
    error: { code: status, message: expect.stringMatching(/\w/), metadata: null },
    gateway_metadata: null,
    user_id: null,
  });
});

test.each([
  ['GET', '/messages', 405, 'invalid_request_error'],
  ['POST', '/messages/batches', 404, 'not_found_error'],
  ['GET', '/messages/count_tokens', 405, 'invalid_request_error'],
  ['POST', '/messages/count_tokens/more/', 404, 'not_found_error'],
])('the error of %s %s is in the format of the Messages API', async (method, path, status, type) => {
  const response = await gateway.call(method, path);
  expect(response.status).toBe(status);
  expect(await response.json()).toMatchObject({ type: 'error', error: { type }, request_id: null });
});

test.each([
  ['GET', '/responses', 405],
  ['POST', '/responses/resp_1/cancel', 404],
  ['PUT', '/responses/resp_1', 405],
])('the error of %s %s is in the format of the Responses API', async (method, path, status) => {
  const response = await gateway.call(method, path);
  expect(response.status).toBe(status);
  expect(await response.json()).toMatchObject({
    error: { code: status, type: 'invalid_request_error', param: null },
    error_type: status === 404 ? 'not_found' : 'invalid_request',
  });
});

test.each([
  ['GET', '/chat/completions', 405],
  ['GET', '/messagesx', 404],
  ['GET', '/', 404],
])('the error of %s %s is in the standard envelope', async (method, path, status) => {
  const response = await gateway.call(method, path);
  expect(response.status).toBe(status);
  expect(Object.keys((await response.json()) as object)).toEqual(['error', 'gateway_metadata', 'user_id']);
});
