/** The public service's own provider package for the AI SDK as a client, its base URL at the gateway. */
import { createOpenRouter, type OpenRouterProvider } from '@openrouter/ai-sdk-provider';
import { embed, embedMany, generateText, streamText } from 'ai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type AiClient, takeWarnings, testAiSdk, tools } from './ai-sdk-rules.ts';
import { clientWires, refuseWarnings, type SdkGateway, startSdkGateway } from './sdk-gateway.ts';

let site: SdkGateway;
let openrouter: OpenRouterProvider;
let client: AiClient;

beforeAll(async () => {
  site = await startSdkGateway();
  openrouter = createOpenRouter({ baseURL: site.gateway.base_url, apiKey: site.gateway.key, compatibility: 'strict' });
  client = {
    model: (name) => openrouter(name),
    always: {},
    reasoning: { providerOptions: { openrouter: { reasoning: { effort: 'high', summary: 'auto' } } } },
    showsReasoning: () => true,
    shows_late_errors: true,
    sends_files: true,
  };
});
afterAll(() => site.stop());
refuseWarnings();

describe.each(clientWires('openai'))('over %s', (dialect) => {
  testAiSdk(
    dialect,
    () => client,
    () => site,
  );
});

const quiet = { onError: () => undefined };

test('the cost and the provider of an answer are in its metadata, whole and streamed', async () => {
  const options = { model: openrouter('sandbox/echo', { usage: { include: true } }), prompt: 'Hello' };
  const whole = await generateText(options);
  const streamed = streamText({ ...options, ...quiet });
  for (const { providerMetadata } of [whole.finalStep, await streamed.finalStep]) {
    const openrouterMetadata = providerMetadata!['openrouter'] as {
      provider: string;
      usage: { cost: number; totalTokens: number };
    };
    expect(openrouterMetadata.provider).toBe('Sandbox');
    expect(openrouterMetadata.usage.cost).toBeGreaterThan(0);
    expect(openrouterMetadata.usage.totalTokens).toBe(whole.usage.totalTokens);
  }
});

test('its settings of routing, fallbacks and extra fields are respected', async () => {
  const only = openrouter('sandbox/echo', { provider: { only: ['sandbox-anthropic'] } });
  const { finalStep } = await generateText({ model: only, prompt: 'Hello' });
  expect(finalStep.providerMetadata!['openrouter']).toMatchObject({ provider: 'Sandbox Anthropic' });
  const fallback = openrouter('sandbox/fail-503', { models: ['sandbox/fail-503', 'sandbox/echo'] });
  const answer = await generateText({ model: fallback, prompt: 'Hello', maxRetries: 0 });
  expect([answer.text, answer.finalStep.response.modelId]).toEqual(['Hello', 'sandbox/echo']);
  const extra = openrouter('sandbox/tools', { parallelToolCalls: false, extraBody: { session_id: 'one' } });
  expect((await generateText({ model: extra, prompt: 'Hello', tools })).toolCalls).toHaveLength(1);
  expect(takeWarnings()).toEqual([]);
});

test('its own form of cache control reaches a wire that has caching, and the cached tokens are reported', async () => {
  const long = 'A long text of many words. '.repeat(400);
  const ask = () =>
    generateText({
      model: openrouter('anthropic-messages/echo'),
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: long, providerOptions: { openrouter: { cacheControl: { type: 'ephemeral' } } } },
            { type: 'text', text: 'Hello' },
          ],
        },
      ],
    });
  const first = await ask();
  const second = await ask();
  expect(first.usage.inputTokenDetails.cacheWriteTokens).toBeGreaterThan(1_000);
  expect(second.usage.inputTokenDetails.cacheReadTokens).toBe(first.usage.inputTokenDetails.cacheWriteTokens);
});

test('its embedding model returns vectors', async () => {
  const model = openrouter.textEmbeddingModel('sandbox/embed');
  const { embeddings, usage } = await embedMany({ model, values: ['sunny', 'rainy', 'sunny'] });
  expect(embeddings).toHaveLength(3);
  expect(embeddings[0]).toEqual(embeddings[2]);
  expect(embeddings[0]).not.toEqual(embeddings[1]);
  expect(usage.tokens).toBeGreaterThan(0);
  expect((await embed({ model, value: 'sunny' })).embedding).toEqual(embeddings[0]);
});
