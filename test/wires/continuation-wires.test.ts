/**
 * A stream of one wire that breaks off and continues on another: the sandbox speaks both, and breaks off as scripted.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bedrockModelPrefix } from '../../sandbox/bedrock-converse.ts';
import { startSandbox } from '../../sandbox/server.ts';
import { startGateway, type TestGateway } from '../harness.ts';
import { chatClient } from './chat-client.ts';

let sandbox: Awaited<ReturnType<typeof startSandbox>>;
let gateway: TestGateway;
const { stream } = chatClient(() => gateway);

const WIRES = {
  chat: { dialect: 'openai-chat', path: '/v1' },
  messages: { dialect: 'anthropic-messages', path: '/v1' },
  bedrock: { dialect: 'bedrock-converse', path: '' },
} as const;
type Name = keyof typeof WIRES;
const names = Object.keys(WIRES) as Name[];

beforeAll(async () => {
  sandbox = await startSandbox();
  const providers = Object.fromEntries(
    names.map((name) => [
      name,
      {
        dialect: WIRES[name].dialect,
        base_url: sandbox.url + WIRES[name].path,
        quirks: { prefill: true, no_prefill: false },
      },
    ]),
  );
  const upstream = (name: Name, model: string) => (name === 'bedrock' ? `${bedrockModelPrefix}${model}` : model);
  const endpoint = (provider: Name, model: string) => ({
    provider,
    upstream_model: upstream(provider, model),
    pricing: { prompt: 1, completion: 2 },
  });
  const models = Object.fromEntries(
    names.flatMap((from) =>
      names
        .filter((to) => to !== from)
        .flatMap((to) =>
          ['echo', 'story'].map((model) => [
            `wires/${model}-${from}-${to}`,
            { endpoints: [endpoint(from, `${model};die_after_chunks=12;flush`), endpoint(to, model)] },
          ]),
        ),
    ),
  );
  const yaml = JSON.stringify({ bundled_catalog: false, logging: { level: 'warn' }, providers, models });
  gateway = await startGateway({ yaml });
});
afterAll(async () => {
  await gateway.stop();
  await sandbox.stop();
});

const WORDS = 'One river and one house stood near the old stone under the tree, and nobody knew since when they had.';
const ask = { messages: [{ role: 'user', content: WORDS }] };
const metadata = { 'x-gateway-experimental-metadata': 'enabled' };
const pairs = names.flatMap((from) => names.filter((to) => to !== from).map((to) => [from, to] as const));

test.each(pairs)('%s breaks off, and %s continues with the rest', async (from, to) => {
  const provider = { continuation: true, order: [from, to] };
  const seen = await stream({ model: `wires/echo-${from}-${to}`, ...ask, provider }, metadata);
  expect(textOf(seen.chunks)).toBe(WORDS);
  expect(seen.chunks.at(-1)!.gateway_metadata!.attempts).toMatchObject([
    { status: 200, failure: 'unavailable' },
    { status: 200, failure: null, continues: true },
  ]);
  expect(seen.done).toBe(true);
});

test.each(pairs)('%s breaks off, and %s, which repeats the text, is cut to the rest', async (from, to) => {
  const whole = await stream({ model: `wires/story-${from}-${to}`, ...ask, provider: { only: [to] } });
  const provider = { continuation: true, order: [from, to] };
  const seen = await stream({ model: `wires/story-${from}-${to}`, ...ask, provider });
  expect(textOf(seen.chunks)).toBe(textOf(whole.chunks));
  expect(textOf(seen.chunks).length).toBeGreaterThan(500);
});

function textOf(chunks: readonly { choices: unknown[] }[]): string {
  return chunks
    .map(({ choices: [choice] }) => (choice as { delta?: { content?: string } } | undefined)?.delta?.content ?? '')
    .join('');
}
