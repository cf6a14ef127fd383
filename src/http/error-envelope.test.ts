import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../test/harness.ts';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway.stop());

test.each([
  ['a path that is no URL', '/keys/%zz', 400],
  ['a path of broken UTF-8', '/models/%E0%A4%A/x/endpoints', 400],
  ['a path with a name that nothing has', `/keys/${'a'.repeat(400)}`, 404],
])('%s is refused in the one envelope', async (_name, path, status) => {
  const response = await gateway.call('GET', path);
  expect(response.status).toBe(status);
  expect(response.headers.get('x-request-id')).toBeTruthy();
  expect(await response.json()).toEqual({
    error: { code: status, message: expect.stringMatching(/\w/), metadata: null },
    gateway_metadata: null,
    user_id: null,
  });
});
