/** The rules that the Vercel AI SDK must satisfy through each of its providers, over each dialect. */
import {
  APICallError,
  generateText,
  type LanguageModel,
  Output,
  type StepResult,
  stepCountIs,
  streamText,
  type TextStreamPart,
  type ToolSet,
  tool,
} from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import type { Wire } from '../../src/schemas/inner.ts';
import { modelOf, type SdkGateway, wireFacts } from './sdk-gateway.ts';

/** One provider package at the gateway. */
export interface AiClient {
  model(name: string): LanguageModel;
  /** Options of this package for every call. */
  always: CallSettings;
  /** Options that enable reasoning. */
  reasoning: CallSettings;
  /** Whether the package shows the text of reasoning over this wire. */
  showsReasoning(wire: Wire): boolean;
  /**
   * Whether it reports an error after the start of a stream as an error; otherwise only the finish reason shows the
   * failure.
   */
  shows_late_errors: boolean;
  /** Whether it can send files other than images. */
  sends_files: boolean;
}

export interface CallSettings {
  maxOutputTokens?: number;
  providerOptions?: NonNullable<Parameters<typeof generateText>[0]['providerOptions']>;
}

export const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
export const page = Buffer.from('%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF').toString(
  'base64',
);

/** Two tools, as a program would declare them. */
export const tools = {
  get_weather: tool({
    description: 'Tells the weather.',
    inputSchema: z.object({ city: z.string(), unit: z.enum(['celsius', 'kelvin']) }),
    execute: async ({ city, unit }) => `Rain in ${city}, 3 ${unit}`,
  }),
  get_time: tool({
    description: 'Tells the time.',
    inputSchema: z.object({ zone: z.string() }),
    execute: async () => 'noon',
  }),
};

const warnings: unknown[] = [];
globalThis.AI_SDK_LOG_WARNINGS = (event) => void warnings.push(...event.warnings);

/** The warnings of the SDK since the last call. */
export function takeWarnings(): unknown[] {
  return warnings.splice(0);
}

/** Every part of a stream. Parts that the SDK treats as errors are thrown. */
export async function partsOf<TOOLS extends ToolSet>(
  stream: AsyncIterable<TextStreamPart<TOOLS>>,
): Promise<TextStreamPart<TOOLS>[]> {
  const parts: TextStreamPart<TOOLS>[] = [];
  for await (const part of stream) {
    if (part.type === 'error') throw part.error;
    parts.push(part);
  }
  return parts;
}

/** The types of parts of an answer in order, without repetitions and without a package's own parts (`custom`). */
function outline(parts: readonly { type: string }[]): string[] {
  const types = parts.map(({ type }) => type).filter((type) => type !== 'custom');
  return types.filter((type, i) => type !== types[i - 1]);
}

function expectLoop(steps: StepResult<typeof tools>[], text: string): void {
  expect(steps.map(({ finishReason }) => finishReason)).toEqual(['tool-calls', 'stop']);
  expect(steps[0]!.toolCalls.map(({ toolName, input }) => [toolName, input])).toEqual([
    ['get_weather', { city: 'sample city', unit: 'celsius' }],
    ['get_time', { zone: expect.any(String) }],
  ]);
  expect(text).toBe('The tools answered: Rain in sample city, 3 celsius; noon');
}

/** The rules for one package over one dialect. `client` and `site` are set when the tests run. */
export function testAiSdk(dialect: Wire, client: () => AiClient, site: () => SdkGateway): void {
  const call = (slug: string, prompt = 'Good morning, world.') => ({
    model: client().model(modelOf(dialect, slug)),
    ...client().always,
    prompt,
    maxRetries: 0,
  });
  const thinking = (slug: string) => ({ ...call(slug), ...client().reasoning });
  const quiet = { onError: () => undefined };
  const countsReasoning = !wireFacts.reasoning_uncounted.has(dialect);
  const reasonsByDefault = wireFacts.thinks_unasked.has(dialect);
  // https://docs.cohere.com/reference/chat: images, and documents of another type.
  const takesFiles = dialect !== 'cohere-chat';

  test('a whole answer has text, a finish reason and a usage that adds up', async () => {
    const { text, finishReason, usage, finalStep } = await generateText(call('echo'));
    expect([text, finishReason]).toEqual(['Good morning, world.', 'stop']);
    expect(finalStep.response).toMatchObject({ id: expect.stringMatching(/^gen-/), modelId: `${dialect}/echo` });
    expect(usage.inputTokens).toBeGreaterThan(3);
    expect(usage.outputTokens! - (usage.outputTokenDetails.reasoningTokens ?? 0)).toBe(4);
    expect(usage.totalTokens).toBe(usage.inputTokens! + usage.outputTokens!);
    expect(takeWarnings()).toEqual([]);
  });

  test('a stream has the same content, part by part', async () => {
    const whole = await generateText(call('echo'));
    const result = streamText({ ...call('echo'), ...quiet });
    const parts = await partsOf(result.stream);
    const shown = reasonsByDefault ? parts.filter(({ type }) => !type.startsWith('reasoning')) : parts;
    expect(outline(shown)).toEqual([
      'start',
      'start-step',
      'text-start',
      'text-delta',
      'text-end',
      'finish-step',
      'finish',
    ]);
    expect(await result.text).toBe('Good morning, world.');
    expect(await result.finishReason).toBe('stop');
    const { inputTokens, outputTokens, totalTokens } = await result.usage;
    expect({ inputTokens, outputTokens, totalTokens }).toEqual({
      inputTokens: whole.usage.inputTokens,
      outputTokens: whole.usage.outputTokens,
      totalTokens: whole.usage.totalTokens,
    });
    expect(takeWarnings()).toEqual([]);
  });

  test('a stream passes a long text of many scripts completely', async () => {
    const prompt = '雪の話を、☕ と 🌍 と žluťoučký kůň で 👩‍👩‍👧‍👦';
    const { text } = await generateText(call('story', prompt));
    expect(await streamText({ ...call('story', prompt), ...quiet }).text).toBe(text);
    expect(await generateText(call('echo', prompt))).toMatchObject({ text: prompt });
    expect(await streamText({ ...call('echo', prompt), ...quiet }).text).toBe(prompt);
  });

  test('a loop of tools runs to its answer, whole and streamed', async () => {
    const options = { ...call('tools'), tools, stopWhen: stepCountIs(4) };
    const whole = await generateText(options);
    expectLoop(whole.steps, whole.text);
    const streamed = streamText({ ...options, ...quiet });
    const parts = await partsOf(streamed.stream);
    expectLoop(await streamed.steps, await streamed.text);
    const started = parts.flatMap((part) => (part.type === 'tool-input-start' ? part.id : []));
    const called = parts.flatMap((part) => (part.type === 'tool-call' ? part.toolCallId : []));
    expect(started).toEqual(called);
    expect(new Set(called).size).toBe(2);
    expect(takeWarnings()).toEqual([]);
  });

  test('a loop with thinking keeps its reasoning over the steps, whole and streamed', async () => {
    const options = { ...thinking('tools'), tools, stopWhen: stepCountIs(4) };
    const whole = await generateText(options);
    const streamed = streamText({ ...options, ...quiet });
    await partsOf(streamed.stream);
    for (const { steps, text } of [whole, { steps: await streamed.steps, text: await streamed.text }]) {
      expectLoop(steps, text);
      if (client().showsReasoning(dialect)) {
        for (const { reasoningText } of steps) expect(reasoningText).toContain('The user says 4 tokens.');
      }
      const { reasoningTokens } = steps[0]!.usage.outputTokenDetails;
      if (countsReasoning) expect(reasoningTokens).toBeGreaterThan(0);
    }
    expect(takeWarnings()).toEqual([]);
  });

  test('a conversation continues with earlier answers and their reasoning', async () => {
    const first = await generateText({ ...thinking('think'), prompt: 'One.' });
    const { prompt: _, ...second } = thinking('think');
    const messages = [
      { role: 'user' as const, content: 'One.' },
      ...first.responseMessages,
      { role: 'user' as const, content: 'Two.' },
    ];
    expect((await generateText({ ...second, messages })).text).toBe('Two.');
    expect(await streamText({ ...second, messages, ...quiet }).text).toBe('Two.');
    expect(takeWarnings()).toEqual([]);
  });

  test('an answer with a schema is an object of it, whole and streamed', async () => {
    const output = Output.object({ schema: z.object({ city: z.string(), unit: z.enum(['celsius', 'kelvin']) }) });
    const wanted = { city: 'sample city', unit: 'celsius' };
    expect((await generateText({ ...call('json'), output })).output).toEqual(wanted);
    expect(await streamText({ ...call('json'), output, ...quiet }).output).toEqual(wanted);
    expect(takeWarnings()).toEqual([]);
  });

  test('images and files reach the model', async () => {
    const { prompt: _, ...rest } = call('echo');
    const image = { type: 'file' as const, mediaType: 'image/png', data: pixel };
    const file = { type: 'file' as const, mediaType: 'application/pdf', data: page, filename: 'page.pdf' };
    const content = [
      { type: 'text' as const, text: 'What is this?' },
      image,
      image,
      ...(client().sends_files && takesFiles ? [file] : []),
    ];
    const { text } = await generateText({ ...rest, messages: [{ role: 'user', content }] });
    expect(text).toMatch(/^\[2 images(?:, 1 file)?\] What is this\?$/);
    expect(text.includes('1 file')).toBe(content.length === 4);
    expect(takeWarnings()).toEqual([]);
  });

  test('the output bound ends an answer with length', async () => {
    const { finishReason, usage } = await generateText({ ...call('story'), maxOutputTokens: 20 });
    expect([finishReason, usage.outputTokens]).toEqual(['length', 20]);
    const streamed = streamText({ ...call('story'), maxOutputTokens: 20, ...quiet });
    expect(await streamed.finishReason).toBe('length');
  });

  test('an aborted stream ends the upstream request', async () => {
    const before = site().sandbox.requests().aborted;
    const controller = new AbortController();
    const result = streamText({ ...call('slow'), abortSignal: controller.signal, ...quiet });
    const seen: string[] = [];
    for await (const part of result.stream) {
      seen.push(part.type);
      if (part.type === 'text-delta') controller.abort();
    }
    expect(seen.at(-1)).toBe('abort');
    await expect.poll(() => site().sandbox.requests().aborted).toBe(before + 1);
  });

  test.each([
    ['fail-429', 429, true],
    ['fail-503', 503, true],
  ])("an upstream's failure is an error with its status: %s", async (slug, statusCode, isRetryable) => {
    const whole = await generateText(call(slug)).catch((error: unknown) => error);
    const streamed = await partsOf(streamText({ ...call(slug), ...quiet }).stream).catch((error: unknown) => error);
    for (const error of [whole, streamed]) {
      expect(APICallError.isInstance(error), String(error)).toBe(true);
      expect(error).toMatchObject({ statusCode, isRetryable });
      expect((error as Error).message.length).toBeGreaterThan(10);
    }
  });

  test.each(['fail-late', 'fail-mid-stream', 'truncate'])('an answer that breaks off is an error: %s', async (slug) => {
    await expect(generateText(call(slug))).rejects.toThrow();
    const result = streamText({ ...call(slug), ...quiet });
    const seen: TextStreamPart<ToolSet>[] = [];
    for await (const part of result.stream) seen.push(part);
    expect(seen.some(({ type }) => type === 'error')).toBe(client().shows_late_errors);
    const finishes = seen.flatMap((part) =>
      part.type === 'finish-step' ? [part.finishReason, part.rawFinishReason] : [],
    );
    if (client().shows_late_errors) expect(finishes.filter((reason) => reason === 'stop')).toEqual([]);
    else expect(finishes).toEqual(['other', 'error']);
  });

  test('many streams at once do not mix', async () => {
    const prompts = Array.from({ length: 24 }, (_, i) => `Stream ${i} says ☕ ${'word '.repeat(i)}`.trim());
    const texts = await Promise.all(prompts.map((prompt) => streamText({ ...call('echo', prompt), ...quiet }).text));
    expect(texts).toEqual(prompts);
  });
}
