import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, expect, test } from 'vitest';
import { type Sandbox, startSandbox } from '../../../sandbox/server.ts';
import { generation } from '../../../test/generation-fixture.ts';
import { buildCatalog } from '../../catalog/catalog.ts';
import type { LostAttempt } from '../../ledger/lookup.ts';
import type { Provider } from '../../providers/provider.ts';
import { createServices } from '../../providers/transport/services.ts';
import { clientRequestId } from '../attempt/upstream-call.ts';
import { createLookup } from './lookup.ts';

const services = createServices();
afterAll(() => services.close());

const sandboxes: Sandbox[] = [];
afterEach(async () => {
  for (const sandbox of sandboxes.splice(0)) await sandbox.stop();
});

async function setUp() {
  const sandbox = await startSandbox();
  sandboxes.push(sandbox);
  const provider: Provider = {
    slug: 'asked',
    name: 'Asked',
    dialect: 'openai-chat',
    base_url: `${sandbox.url}/v1`,
    credential: undefined,
    quirks: {},
    data_policy: { training: false, retention_days: 0 },
    abort_stops_billing: true,
    attempts_url: `${sandbox.url}/sandbox/attempts`,
    headers: {},
  };
  const silent: Provider = { ...provider, slug: 'silent', name: 'Silent', attempts_url: undefined };
  const pricing = { prompt: 1_000, completion: 10_000, request: 5_000_000, audio_second: 1_000_000 };
  const endpoint = (slug: string) => ({ provider: slug, upstream_model: 'story', pricing, price_tiers: [] });
  const catalog = buildCatalog({
    bundled: { version: 1, generated: '', models: [] } as never,
    config: { bundled_catalog: false, models: [{ id: 'a/story', endpoints: [endpoint('asked'), endpoint('silent')] }] },
    providers: [provider, silent],
    created_default: 0,
  });
  const lookup = createLookup({ catalog, providers: [provider, silent], services });
  const endpoints = catalog.find('a/story')?.endpoints ?? [];
  const endpointOf = (slug: string) => endpoints.find(({ provider }) => provider === slug)?.id ?? '';
  const lost = (id: string, over: Partial<LostAttempt> = {}): LostAttempt => ({
    id,
    number: 1,
    endpoint: endpointOf('asked'),
    record: generation({ id, model: 'a/story', attempts: [], created_at: new Date().toISOString() }),
    is_byok: false,
    ...over,
  });
  const send = (id: string, number: number, body: object) =>
    fetch(`${sandbox.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-client-request-id': clientRequestId(id, number) },
      body: JSON.stringify({ model: 'story', messages: [{ role: 'user', content: 'Hello' }], ...body }),
    });
  return { sandbox, lookup, lost, send, endpointOf };
}

test('a lost attempt is charged its reported usage at the endpoint’s prices, each attempt by itself', async () => {
  const { lookup, lost, send } = await setUp();
  const first = (await (await send('gen-1', 1, { sandbox: { tokens: 7 } })).json()) as {
    usage: { prompt_tokens: number };
  };
  await (await send('gen-1', 2, { sandbox: { tokens: 9 } })).text();
  const { prompt_tokens } = first.usage;
  expect(await lookup(lost('gen-1'))).toMatchObject({
    usage: { in_uncached: prompt_tokens, out_text: 7 },
    cost_nano: prompt_tokens + 7 * 10 + 5_000,
    charges: [{ class: 'in_uncached' }, { class: 'out_text', units: 7 }, { class: 'request', units: 1 }],
  });
  expect(await lookup(lost('gen-1', { number: 2 }))).toMatchObject({ usage: { out_text: 9 } });
});

test('a transcription is charged the length that the provider bills', async () => {
  const { sandbox, lookup, lost } = await setUp();
  const form = new FormData();
  form.set('model', 'echo');
  const wav = readFileSync(join(import.meta.dirname, '../../../test/audio/speech.wav'));
  form.set('file', new Blob([new Uint8Array(wav)]), 'speech.wav');
  const headers = { 'x-client-request-id': clientRequestId('gen-6', 1) };
  const answer = await fetch(`${sandbox.url}/v1/audio/transcriptions`, { method: 'POST', headers, body: form });
  expect(await answer.json()).toMatchObject({ usage: { seconds: 2 } });
  expect(await lookup(lost('gen-6'))).toMatchObject({
    usage: { audio_ms: 2_000 },
    cost_nano: 2_000 + 5_000,
    charges: [{ class: 'audio_second', units: 2_000, price_units: 1_000 }, { class: 'request' }],
  });
});

test('an attempt that the provider has not received costs nothing and is refused if it arrives later', async () => {
  const { lookup, lost, send } = await setUp();
  const record = generation({ id: 'gen', model: 'a/story', created_at: new Date(Date.now() + 1_000).toISOString() });
  expect(await lookup(lost('gen-2', { record }))).toEqual({
    usage: null,
    cost_nano: 0,
    charges: [],
    upstream_id: null,
  });
  expect((await send('gen-2', 1, {})).status).toBe(409);
  expect((await send('gen-2', 2, {})).status).toBe(200);
});

test('an attempt that was refused before its answer costs nothing', async () => {
  const { lookup, lost, send } = await setUp();
  expect((await send('gen-3', 1, { sandbox: { status: 503 } })).status).toBe(503);
  expect(await lookup(lost('gen-3'))).toMatchObject({ usage: null, cost_nano: 0 });
});

test('a running answer is awaited', async () => {
  const { lookup, lost, send } = await setUp();
  const answer = send('gen-4', 1, { sandbox: { tokens: 3, delay_ms: 300 } });
  await expect.poll(async () => sandboxes[0]?.requests().open).toBe(1);
  expect(await lookup(lost('gen-4'))).toMatchObject({ usage: { out_text: 3 } });
  await (await answer).text();
});

test('the result is unknown before the provider’s memory, for removed endpoints and for providers without a look-up', async () => {
  const { lookup, lost, endpointOf } = await setUp();
  const record = generation({ id: 'gen', model: 'a/story', created_at: new Date(Date.now() - 60_000).toISOString() });
  expect(await lookup(lost('gen-5', { record }))).toBeUndefined();
  expect(await lookup(lost('gen-5', { endpoint: 'gone' }))).toBeUndefined();
  expect(await lookup(lost('gen-5', { endpoint: endpointOf('silent') }))).toBeUndefined();
});

test('several requests of one attempt are added up for embeddings, and unknown for other calls', async () => {
  const { sandbox, lookup, lost } = await setUp();
  const embed = (input: string) =>
    fetch(`${sandbox.url}/v1/embeddings`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-client-request-id': clientRequestId('gen-many', 1) },
      body: JSON.stringify({ model: 'echo', input }),
    });
  await (await embed('one two three')).text();
  await (await embed('one')).text();
  const record = { ...lost('gen-many').record, api_type: 'embeddings' as const };
  // Four tokens at 1,000 pico-USD, and the request fee.
  expect(await lookup(lost('gen-many', { record }))).toMatchObject({
    cost_nano: 4 + 5_000,
    usage: { in_uncached: 4, out_text: 0 },
  });
  expect(await lookup(lost('gen-many'))).toBeUndefined();
  expect((await embed('late')).status).toBe(409);
});
