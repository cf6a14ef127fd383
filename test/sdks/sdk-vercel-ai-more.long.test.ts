/**
 * Further features of the provider packages of the Vercel AI SDK: older APIs, vectors, caching, agents, images in
 * results, state over turns.
 */
import { type AnthropicProvider, createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI, type OpenAIProvider } from '@ai-sdk/openai';
import {
  APICallError,
  embed,
  embedMany,
  generateText,
  type ModelMessage,
  stepCountIs,
  streamText,
  ToolLoopAgent,
  tool,
} from 'ai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { page, partsOf, pixel, takeWarnings, tools } from './ai-sdk-rules.ts';
import { clientWires, modelOf, refuseWarnings, type SdkGateway, startSdkGateway } from './sdk-gateway.ts';

let site: SdkGateway;
let openai: OpenAIProvider;
let anthropic: AnthropicProvider;

beforeAll(async () => {
  site = await startSdkGateway(['story;tokens=3000']);
  const { base_url: baseURL, key: apiKey } = site.gateway;
  openai = createOpenAI({ baseURL, apiKey });
  anthropic = createAnthropic({ baseURL, apiKey });
});
afterAll(() => site.stop());
refuseWarnings();

const quiet = { onError: () => undefined, maxRetries: 0 };

describe.each(clientWires('openai'))('older completions over %s', (wire) => {
  test('a text is completed, whole and streamed', async () => {
    const options = { model: openai.completion(modelOf(wire, 'echo')), prompt: 'Once upon a time', maxRetries: 0 };
    const whole = await generateText(options);
    // The package writes a conversation as one text, which this model repeats.
    expect(whole.text).toContain('Once upon a time');
    expect(whole.finishReason).toBe('stop');
    expect(whole.usage.inputTokens).toBeGreaterThan(3);
    const streamed = streamText({ ...options, ...quiet });
    await partsOf(streamed.stream);
    expect([await streamed.text, await streamed.finishReason]).toEqual([whole.text, 'stop']);
    expect((await streamed.usage).outputTokens).toBe(whole.usage.outputTokens);
    // The package warns of a tool choice that the SDK always adds.
    expect(takeWarnings()).toEqual([1, 2].map(() => ({ type: 'unsupported', feature: 'toolChoice' })));
  });
});

test('vectors are returned for one input and for many', async () => {
  const model = openai.embedding('sandbox/embed');
  const { embeddings, usage } = await embedMany({ model, values: ['sunny', 'rainy', 'sunny'] });
  expect(embeddings[0]).toEqual(embeddings[2]);
  expect(embeddings[0]).not.toEqual(embeddings[1]);
  expect(usage.tokens).toBeGreaterThan(0);
  expect((await embed({ model, value: 'sunny' })).embedding).toEqual(embeddings[0]);
  expect(takeWarnings()).toEqual([]);
});

test('a prompt cached at Anthropic is reported as cached tokens', async () => {
  const cached = { anthropic: { cacheControl: { type: 'ephemeral' as const } } };
  const ask = () =>
    generateText({
      model: anthropic(modelOf('anthropic-messages', 'echo')),
      maxOutputTokens: 100,
      instructions: {
        role: 'system',
        content: 'You are a helpful assistant. '.repeat(300),
        providerOptions: cached,
      },
      prompt: 'Hello',
    });
  const first = (await ask()).usage.inputTokenDetails;
  const second = (await ask()).usage.inputTokenDetails;
  expect(first.cacheWriteTokens).toBeGreaterThan(1_000);
  expect([second.cacheReadTokens, second.cacheWriteTokens]).toEqual([first.cacheWriteTokens, 0]);
  expect(takeWarnings()).toEqual([]);
});

const packages: [
  string,
  () => ReturnType<OpenAIProvider>,
  Record<string, Record<string, string | boolean | object>>,
][] = [
  ['openai()', () => openai('anthropic-messages/tools'), { openai: { store: false } }],
  ['openai.chat()', () => openai.chat('anthropic-messages/tools'), {}],
  ['anthropic()', () => anthropic('anthropic-messages/tools'), {}],
];

describe.each(packages)('%s', (_name, model, providerOptions) => {
  test('an agent runs its tools to the answer', async () => {
    const agent = new ToolLoopAgent({
      model: model(),
      instructions: 'Be brief.',
      tools,
      maxOutputTokens: 1_000,
      providerOptions: providerOptions as never,
    });
    const { text, steps } = await agent.generate({ prompt: 'How is the weather?' });
    expect([text, steps.length]).toEqual(['The tools answered: Rain in sample city, 3 celsius; noon', 2]);
    const streamed = await agent.stream({ prompt: 'How is the weather?' });
    await partsOf(streamed.stream);
    expect(await streamed.text).toBe(text);
    expect(takeWarnings()).toEqual([]);
  });

  test('a result may contain images and PDF pages, and a tool may fail', async () => {
    const look = tool({
      inputSchema: z.object({ path: z.string() }),
      execute: async () => 'seen',
      toModelOutput: () => ({
        type: 'content' as const,
        value: [
          { type: 'text' as const, text: 'A picture:' },
          { type: 'file' as const, mediaType: 'image/png', data: { type: 'data' as const, data: pixel } },
          { type: 'file' as const, mediaType: 'application/pdf', data: { type: 'data' as const, data: page } },
        ],
      }),
    });
    const fail = tool({
      inputSchema: z.object({ path: z.string() }),
      execute: ({ path }): string => {
        throw new Error(`No such thing: ${path}`);
      },
    });
    const { text } = await generateText({
      model: model(),
      prompt: 'Look.',
      tools: { look, fail },
      stopWhen: stepCountIs(3),
      maxOutputTokens: 1_000,
      providerOptions: providerOptions as never,
      maxRetries: 0,
    });
    expect(text).toContain('A picture:');
    expect(text).toContain('No such thing');
    takeWarnings();
  });

  test('thirty tools are called in parallel, each with its own result', async () => {
    const many = Object.fromEntries(
      Array.from({ length: 30 }, (_, i) => [
        `tool_${i}`,
        tool({
          description: `The tool of number ${i}. ${'It does many things. '.repeat(20)}`,
          inputSchema: z.object({ path: z.string(), limit: z.number().optional() }),
          execute: async () => `result ${i}`,
        }),
      ]),
    );
    const streamed = streamText({
      model: model(),
      prompt: 'Call them all.',
      tools: many,
      stopWhen: stepCountIs(3),
      maxOutputTokens: 8_000,
      providerOptions: providerOptions as never,
      ...quiet,
    });
    await partsOf(streamed.stream);
    const results = Array.from({ length: 30 }, (_, i) => `result ${i}`);
    expect(await streamed.text).toBe(`The tools answered: ${results.join('; ')}`);
    expect(takeWarnings()).toEqual([]);
  });

  test('a conversation of many turns with thinking and tool calls continues', async () => {
    const reasoning = {
      openai: {
        reasoningEffort: 'high',
        forceReasoning: true,
        // Only one of the two APIs of the package has these.
        ...(_name === 'openai()' ? { reasoningSummary: 'auto', store: false } : {}),
      },
      anthropic: { thinking: { type: 'enabled', budgetTokens: 1_024 } },
    };
    const messages: ModelMessage[] = [];
    for (let turn = 0; turn < 4; turn += 1) {
      messages.push({ role: 'user', content: `Turn ${turn}: how is the weather?` });
      const streamed = streamText({
        model: model(),
        messages,
        tools,
        stopWhen: stepCountIs(3),
        maxOutputTokens: 8_000,
        providerOptions: reasoning as never,
        ...quiet,
      });
      await partsOf(streamed.stream);
      expect(await streamed.text).toBe('The tools answered: Rain in sample city, 3 celsius; noon');
      messages.push(...(await streamed.responseMessages));
    }
    expect(takeWarnings()).toEqual([]);
  });

  test('a long answer is complete', async () => {
    const slug = modelOf('anthropic-messages', 'story;tokens=3000');
    const one = model();
    const long = one.provider.startsWith('anthropic')
      ? anthropic(slug)
      : _name === 'openai()'
        ? openai(slug)
        : openai.chat(slug);
    const streamed = streamText({
      model: long,
      prompt: 'Tell me a long story.',
      maxOutputTokens: 8_000,
      providerOptions: providerOptions as never,
      ...quiet,
    });
    let text = '';
    for await (const piece of streamed.textStream) text += piece;
    expect((await streamed.usage).outputTokens).toBe(3_000);
    expect(text).toBe(await streamed.text);
    expect(text.isWellFormed()).toBe(true);
    expect(await streamed.finishReason).toBe('stop');
  });
});

test('items that were never stored are refused with advice', async () => {
  const model = openai('sandbox/echo');
  const first = await generateText({ model, prompt: 'One.' });
  const messages: ModelMessage[] = [
    { role: 'user', content: 'One.' },
    ...first.responseMessages,
    { role: 'user', content: 'Two.' },
  ];
  const error = await generateText({ model, messages, maxRetries: 0 }).catch((thrown: unknown) => thrown);
  expect(APICallError.isInstance(error)).toBe(true);
  expect(error).toMatchObject({
    statusCode: 400,
    message: expect.stringMatching(/input\[1\].*item_reference.*store: false/),
  });
  const unstored = { model, maxRetries: 0, providerOptions: { openai: { store: false } } };
  expect((await generateText({ ...unstored, messages })).text).toBe('Two.');
});
