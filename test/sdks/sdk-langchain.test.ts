/** LangChain's client of OpenAI's APIs, over every wire. */
import {
  AIMessageChunk,
  type BaseMessage,
  HumanMessage,
  SystemMessage,
  type ToolMessage,
} from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { ChatOpenAI, type ChatOpenAIFields } from '@langchain/openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { Wire } from '../../src/schemas/inner.ts';
import {
  checkedFetch,
  clientWires,
  modelOf,
  refuseWarnings,
  type SdkGateway,
  startSdkGateway,
  wireFacts,
} from './sdk-gateway.ts';

let served: SdkGateway;
beforeAll(async () => {
  served = await startSdkGateway();
});
afterAll(() => served.stop());
refuseWarnings();

const weather = tool(({ city }) => `Rain in ${city}`, {
  name: 'get_weather',
  description: 'Tells the weather.',
  schema: z.object({ city: z.string() }),
});
const clock = tool(() => 'Noon', {
  name: 'get_time',
  description: 'Tells the time.',
  schema: z.object({ zone: z.string() }),
});
const City = z.object({ city: z.string(), unit: z.enum(['celsius', 'kelvin']) });

const apis = [
  ['chat', false],
  ['responses', true],
] as const;

describe.each(apis)('by %s', (_api, useResponsesApi) => {
  describe.each(clientWires('openai'))('over %s', (wire) => {
    const chat = (slug: string, fields: ChatOpenAIFields = {}) =>
      new ChatOpenAI({
        model: modelOf(wire, slug),
        apiKey: served.gateway.key,
        configuration: { baseURL: served.gateway.base_url, fetch: checkedFetch },
        maxRetries: 0,
        useResponsesApi,
        ...fields,
      });

    test('an answer has its text and its usage', async () => {
      const answer = await chat('echo').invoke('Good morning, world.');
      expect(answer.text).toBe('Good morning, world.');
      expect(answer.usage_metadata).toMatchObject(usageOf(wire));
    });

    test('a conversation with a system message is understood', async () => {
      const turns = [new SystemMessage('Be brief.'), new HumanMessage('One')];
      const first = await chat('echo').invoke(turns);
      const second = await chat('echo').invoke([...turns, first, new HumanMessage('Two')]);
      expect([first.text, second.text]).toEqual(['One', 'Two']);
    });

    test('a stream accumulates to the whole answer', async () => {
      const chunks = await all(chat('echo').stream('Good morning, world.'));
      const whole = together(chunks);
      expect(whole.text).toBe('Good morning, world.');
      expect(whole.usage_metadata).toMatchObject(usageOf(wire));
      expect(chunks.filter(({ text }) => text !== '').length).toBeGreaterThan(1);
    });

    test.each(['invoke', 'stream'] as const)('tools are called and their results answered: %s', async (way) => {
      const model = chat('tools').bindTools([weather, clock]);
      const turns: BaseMessage[] = [new HumanMessage('How is it?')];
      const ask = async () => (way === 'invoke' ? model.invoke(turns) : together(await all(model.stream(turns))));
      const first = await ask();
      expect(first.invalid_tool_calls).toEqual([]);
      expect(first.tool_calls?.map(({ name, args }) => [name, args])).toEqual([
        ['get_weather', { city: 'sample city' }],
        ['get_time', { zone: 'sample zone' }],
      ]);
      turns.push(first);
      for (const call of first.tool_calls ?? []) {
        turns.push((call.name === weather.name ? await weather.invoke(call) : await clock.invoke(call)) as ToolMessage);
      }
      const last = await ask();
      expect(last.text).toBe('The tools answered: Rain in sample city; Noon');
      expect(last.tool_calls).toEqual([]);
    });

    test.each(['jsonSchema', 'functionCalling', 'jsonMode'] as const)('structured output by %s', async (method) => {
      const model = chat('json').withStructuredOutput(method === 'jsonMode' ? z.object({}) : City, {
        name: 'weather',
        method,
      });
      const answer = await model.invoke('How is it, as JSON?');
      expect(answer).toEqual(method === 'jsonMode' ? {} : { city: 'sample city', unit: 'celsius' });
    });

    test('requested reasoning is in the message', async () => {
      // LangChain sends `reasoning` of its own only to models whose names it knows.
      const modelKwargs = useResponsesApi
        ? { reasoning: { effort: 'high', summary: 'auto' } }
        : { reasoning_effort: 'high' };
      const fields = { modelKwargs };
      const answer = await chat('think', fields).invoke('Good morning, world.');
      expect(answer.text).toContain('Good morning, world.');
      const reasoningTokens = answer.usage_metadata?.output_token_details?.reasoning ?? 0;
      if (wireFacts.reasoning_uncounted.has(wire)) expect(reasoningTokens).toBe(0);
      else expect(reasoningTokens).toBeGreaterThan(0);
      if (useResponsesApi) expect(reasoningItemOf(answer)).toContain('The user says 4 tokens.');
    });

    test('images reach the model', async () => {
      const content = [
        { type: 'text', text: 'What is this?' },
        { type: 'image_url', image_url: { url: pixel } },
      ];
      const answer = await chat('echo').invoke([new HumanMessage({ content })]);
      expect(answer.text).toBe('[1 image] What is this?');
    });

    test('an error keeps its status and its message', async () => {
      const error = await chat('fail-429')
        .invoke('Hello')
        .then(
          () => undefined,
          (thrown: unknown) => thrown as Error & { status?: number },
        );
      expect(error?.status).toBe(429);
      expect(error?.message).toContain('rate');
    });

    test.each(['fail-mid-stream', 'fail-late'])('an answer that breaks off is an error: %s', async (slug) => {
      await expect(chat(slug).invoke('Hello')).rejects.toThrow();
      const stream = all(chat(slug).stream('Hello'));
      if (!useResponsesApi) {
        await expect(stream).rejects.toThrow();
        return;
      }
      // LangChain ignores `response.failed`; its answer then has no finish reason.
      const { response_metadata, usage_metadata } = together(await stream);
      expect([response_metadata['status'], usage_metadata]).toEqual([undefined, undefined]);
    });
  });
});

const pixel =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

function usageOf(wire: Wire) {
  const outputTokens = wireFacts.thinks_unasked.has(wire) ? 12 : 4;
  return { input_tokens: 8, output_tokens: outputTokens, total_tokens: 8 + outputTokens };
}

async function all<T>(stream: Promise<AsyncIterable<T>>): Promise<T[]> {
  const chunks: T[] = [];
  for await (const chunk of await stream) chunks.push(chunk);
  return chunks;
}

function together(chunks: AIMessageChunk[]): AIMessageChunk {
  return chunks.reduce((sum, chunk) => sum.concat(chunk), new AIMessageChunk({ content: '' }));
}

/** The item as the API returned it: LangChain shows only summaries as blocks of their own. */
function reasoningItemOf({ additional_kwargs }: BaseMessage): string {
  const { summary = [], content = [] } = additional_kwargs['reasoning'] as Record<string, { text: string }[]>;
  return [...summary, ...content].map(({ text }) => text).join('');
}
