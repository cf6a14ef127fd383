/** Recorded answers of real providers, read through the gateway by LangChain's client of OpenAI's APIs. */
import type { AIMessage, AIMessageChunk } from '@langchain/core/messages';
import { concat } from '@langchain/core/utils/stream';
import { ChatOpenAI } from '@langchain/openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ClientReading } from '../readings/client.ts';
import { atLeast, whySkipped } from '../readings/recordings.ts';
import {
  chatReading,
  type RecordedAnswer,
  type RecordedGateway,
  recordedAnswers,
  startRecordedGateway,
} from '../wires/recorded-upstream.ts';
import { checkedFetch, refuseWarnings, wires } from './sdk-gateway.ts';

const all = wires.flatMap((wire) => recordedAnswers(wire));
const isAnswer = ({ kind }: RecordedAnswer) => kind === 'whole' || kind === 'stream';

let recorded: RecordedGateway;
beforeAll(async () => {
  recorded = await startRecordedGateway(all);
});
afterAll(() => recorded.stop());
refuseWarnings();

const apis = [
  ['chat completions', false],
  ['responses', true],
] as const;

function clientOf({ model }: RecordedAnswer, useResponsesApi: boolean): ChatOpenAI {
  return new ChatOpenAI({
    model,
    apiKey: recorded.gateway.key,
    configuration: { baseURL: recorded.gateway.base_url, fetch: checkedFetch },
    maxRetries: 0,
    useResponsesApi,
  });
}

/** Arguments in LangChain's form: parsed if they are an object. */
function argumentsOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function expectMessage(message: AIMessage | AIMessageChunk, reading: ClientReading): void {
  const { tool_calls = [], invalid_tool_calls = [], usage_metadata } = message;
  expect(message.text).toBe(reading.text);
  const calls = [...tool_calls, ...invalid_tool_calls].map(({ name, args }) => ({ name, arguments: args }));
  const expected = reading.calls.map(({ name, arguments: text }) => ({ name, arguments: argumentsOf(text) }));
  expect(calls).toEqual(expected);
  // LangChain omits a usage of zero.
  const { input_tokens = 0, output_tokens = 0, total_tokens = 0 } = usage_metadata ?? {};
  expect([input_tokens, output_tokens, total_tokens]).toEqual([
    reading.usage['prompt_tokens'],
    reading.usage['completion_tokens'],
    reading.usage['total_tokens'],
  ]);
}

async function streamed(client: ChatOpenAI): Promise<AIMessageChunk> {
  let whole: AIMessageChunk | undefined;
  for await (const chunk of await client.stream('Go on.')) whole = whole === undefined ? chunk : concat(whole, chunk);
  if (whole === undefined) throw new Error('nothing was streamed');
  return whole;
}

describe.each(apis)('by %s', (_api, useResponsesApi) => {
  describe.each(wires)('recorded %s', (wire) => {
    const answers = all.filter((one) => one.wire === wire);
    const why = whySkipped(answers, wire);

    test.skipIf(answers.length === 0)(`enough answers are recorded${why}`, () => {
      expect(answers.filter(isAnswer).length).toBeGreaterThanOrEqual(atLeast(6));
    });

    test.each(answers.filter(({ kind }) => kind === 'whole'))('whole: $name', async (answer) => {
      const message = await clientOf(answer, useResponsesApi).invoke('Go on.');
      expectMessage(message, await chatReading(recorded, answer));
    });

    test.each(answers.filter(isAnswer))('streamed: $name', async (answer) => {
      const message = await streamed(clientOf(answer, useResponsesApi));
      expectMessage(message, await chatReading(recorded, answer));
    });
  });
});
