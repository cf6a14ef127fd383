/** Chat clients in front of the simulated Cohere: every story and fault of the sandbox, by the same door as ever. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { sandboxModels, sandboxProviders } from '../src/sandbox/catalog.ts';
import { type Sandbox, startSandbox } from '../src/sandbox/server.ts';
import type { JsonObject } from '../src/schemas/json.ts';
import { startGateway, type TestGateway } from './harness.ts';
import { readAnswer, readStream } from './readings/client.ts';
import { object } from './readings/recordings.ts';
import { twentyRequests } from './twenty-requests.ts';

let sandbox: Sandbox;
let gateway: TestGateway;
beforeAll(async () => {
  sandbox = await startSandbox();
  const file = { bundled_catalog: false, providers: sandboxProviders(sandbox.url), models: sandboxModels };
  gateway = await startGateway({ yaml: JSON.stringify({ ...file, ledger: { journal_sync: 'os' } }) });
});
afterAll(async () => {
  await gateway.stop();
  await sandbox.stop();
});

async function ask(slug: string, change: object = {}) {
  const body = { model: `sandbox/cohere-${slug}`, messages: [{ role: 'user', content: 'Good morning.' }], ...change };
  const response = await gateway.call('POST', '/chat/completions', body);
  return { status: response.status, text: await response.text() };
}

const weather = {
  type: 'function',
  function: { name: 'get_weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } },
};

test.each(['echo', 'story', 'json', 'refuse', 'think'])('%s says the same whole and streamed', async (slug) => {
  const reasoning = slug === 'think' ? { reasoning: { enabled: true } } : {};
  const whole = readAnswer(JSON.parse((await ask(slug, reasoning)).text) as JsonObject);
  const { usage, details, ...streamed } = readStream((await ask(slug, { stream: true, ...reasoning })).text);
  expect(whole).toMatchObject(streamed);
  expect(whole.text).not.toBe('');
  expect(whole.details).toEqual(details);
  expect(whole.usage['completion_tokens']).toBe(usage['completion_tokens']);
  expect(whole.reasoning === '').toBe(slug !== 'think');
});

test('a tool is called, and its result answered', async () => {
  const first = JSON.parse((await ask('tools', { tools: [weather] })).text) as JsonObject;
  const message = object(object((first['choices'] as JsonObject[])[0])['message']);
  const [called] = readAnswer(first).calls;
  expect(called).toMatchObject({ name: 'get_weather' });
  const messages = [
    { role: 'user', content: 'Good morning.' },
    message,
    { role: 'tool', tool_call_id: called?.id, content: 'rain' },
  ];
  const second = readAnswer(JSON.parse((await ask('tools', { tools: [weather], messages })).text) as JsonObject);
  expect([second.text, second.finish]).toEqual(['The tools answered: rain', 'stop']);
});

test.each<[string, number]>([
  ['fail-503', 502],
  ['fail-429', 429],
  ['fail-500-html', 502],
])('%s is an error with a status of ours', async (slug, status) => {
  for (const stream of [false, true]) expect((await ask(slug, { stream })).status).toBe(status);
});

test.each(['fail-mid-stream', 'fail-late', 'no-done', 'truncate'])('%s ends in an error chunk', async (slug) => {
  const { error, finish, usage, text } = readStream((await ask(slug, { stream: true })).text);
  expect([finish, typeof error?.['message']]).toEqual(['error', 'string']);
  expect(text).not.toBe('');
  expect(Number(usage['completion_tokens'])).toBeGreaterThan(0);
});

test('where the provider tells no usage, it is counted', async () => {
  const { usage } = readStream((await ask('no-usage', { stream: true })).text);
  expect(Number(usage['prompt_tokens'])).toBeGreaterThan(0);
});

// Sound, film and pages have no place on this wire, and the model says so in its modalities.
const refused = ['a PDF', 'audio', 'video'];
test.each(Object.keys(twentyRequests))('of the twenty requests: %s', async (name) => {
  const { status, text } = await ask('echo', { ...twentyRequests[name], stream: false });
  expect(status, text).toBe(refused.includes(name) ? (status === 404 ? 404 : 400) : 200);
});
