import { expect, test } from 'vitest';
import { UpstreamError } from './dialect.ts';
import { createUpstream, wasNeverSent } from './upstream.ts';

const ms = { upstream_connect_ms_max: 1_000, upstream_headers_ms_max: 1_000, upstream_idle_ms_max: 1_000 };

test.each([
  ['a header', { url: 'http://127.0.0.1:9/a', headers: { authorization: 'Bearer a\nb' } }],
  ['an address', { url: 'https://example.test:8080-x.example.test/a', headers: {} }],
])('what cannot be sent for %s was never sent, and what it holds is not told', async (_, request) => {
  const upstream = createUpstream(ms);
  const failure: unknown = await upstream.send({ ...request, payload: 'x' }).response.catch((error: unknown) => error);
  await upstream.close();
  if (!(failure instanceof UpstreamError)) throw failure;
  expect(wasNeverSent(failure)).toBe(true);
  expect(failure.message).toBe('The provider could not be reached');
});
