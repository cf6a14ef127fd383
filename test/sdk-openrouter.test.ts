/** The public service's own provider package for the AI SDK as a client, its base URL at the gateway. */
import { createOpenRouter, type OpenRouterProvider } from '@openrouter/ai-sdk-provider';
import { embed, embedMany, generateText, type StepResult, streamText, type ToolSet } from 'ai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type AiClient, partsOf, takeWarnings, testAiSdk, tools } from './ai-sdk-rules.ts';
import type { ClientReading } from './readings/client.ts';
import { whySkipped } from './readings/recordings.ts';
import { chatReading, type RecordedGateway, recordedAnswers, startRecordedGateway } from './recorded-upstream.ts';
import { refuseWarnings, type SdkGateway, startSdkGateway, wires } from './sdk-gateway.ts';

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
    shows_reasoning: true,
    sends_files: true,
  };
});
afterAll(() => site.stop());
refuseWarnings();

describe.each(wires)('over %s', (dialect) => {
  testAiSdk(
    dialect,
    () => client,
    () => site,
  );
});

/** The id of a call as two answers to one recording have it: some wires have none, and one is made for each answer. */
function callId(id: string): string {
  return /^call_[0-9A-Za-z]{24}$/.test(id) ? 'made' : id;
}

const quiet = { onError: () => undefined };

test('the cost and the provider of an answer are told, whole and streamed', async () => {
  const asked = { model: openrouter('sandbox/echo', { usage: { include: true } }), prompt: 'Hello' };
  const whole = await generateText(asked);
  const streamed = streamText({ ...asked, ...quiet });
  for (const { providerMetadata } of [whole.finalStep, await streamed.finalStep]) {
    const told = providerMetadata!['openrouter'] as { provider: string; usage: { cost: number; totalTokens: number } };
    expect(told.provider).toBe('Sandbox');
    expect(told.usage.cost).toBeGreaterThan(0);
    expect(told.usage.totalTokens).toBe(whole.usage.totalTokens);
  }
});

test('its settings of routing, fallbacks and extra fields are honoured', async () => {
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

test('cache control in its own words reaches a wire that has it, and the cached tokens come back', async () => {
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

test('vectors come through its embedding model', async () => {
  const model = openrouter.textEmbeddingModel('sandbox/embed');
  const { embeddings, usage } = await embedMany({ model, values: ['sunny', 'rainy', 'sunny'] });
  expect(embeddings).toHaveLength(3);
  expect(embeddings[0]).toEqual(embeddings[2]);
  expect(embeddings[0]).not.toEqual(embeddings[1]);
  expect(usage.tokens).toBeGreaterThan(0);
  expect((await embed({ model, value: 'sunny' })).embedding).toEqual(embeddings[0]);
});

describe.each(wires)('recorded answers of %s', (wire) => {
  const answers = recordedAnswers(wire);
  const why = whySkipped(answers, wire);
  const whole = answers.filter(({ kind }) => kind === 'whole');
  const streams = answers.filter(({ kind }) => kind === 'stream');
  let recorded: RecordedGateway;
  let provider: OpenRouterProvider;

  beforeAll(async () => {
    recorded = await startRecordedGateway(answers);
    const { base_url: baseURL, key: apiKey } = recorded.gateway;
    provider = createOpenRouter({ baseURL, apiKey, compatibility: 'strict' });
  });
  afterAll(() => recorded.stop());

  /** What of an answer must be the same to any client of chat completions. */
  const told = ({ text, finalStep }: { text: string; finalStep: StepResult<ToolSet> }) => ({
    text,
    calls: finalStep.toolCalls.map(({ toolCallId, toolName, input }) => [callId(toolCallId), toolName, input]),
    // How paragraphs of it are joined is each client's own.
    reasoning: (finalStep.reasoningText ?? '').replaceAll('\n\n', ''),
    tokens: [finalStep.usage.inputTokens, finalStep.usage.outputTokens],
  });
  const wanted = ({ text, calls, reasoning, usage }: ClientReading) => ({
    text,
    calls: calls.map(({ id, name, arguments: input }) => [callId(id), name, JSON.parse(input)]),
    reasoning: reasoning.replaceAll('\n\n', ''),
    tokens: [usage['prompt_tokens'], usage['completion_tokens']],
  });
  const asked = (model: string) => ({ model: provider(model), prompt: 'Go on.', maxRetries: 0 });

  test.skipIf(whole.length === 0).each(whole)(
    `a whole one, asked for whole and as a stream: $name${why}`,
    async (answer) => {
      const expected = wanted(await chatReading(recorded, answer));
      expect(told(await generateText(asked(answer.model)))).toEqual(expected);
      const streamed = streamText({ ...asked(answer.model), ...quiet });
      await partsOf(streamed.stream);
      expect(told({ text: await streamed.text, finalStep: await streamed.finalStep })).toEqual(expected);
      expect(takeWarnings()).toEqual([]);
    },
  );

  test.skipIf(streams.length === 0).each(streams)(`a stream: $name${why}`, async (answer) => {
    const streamed = streamText({ ...asked(answer.model), ...quiet });
    await partsOf(streamed.stream);
    const expected = wanted(await chatReading(recorded, answer));
    expect(told({ text: await streamed.text, finalStep: await streamed.finalStep })).toEqual(expected);
    expect(takeWarnings()).toEqual([]);
  });
});
