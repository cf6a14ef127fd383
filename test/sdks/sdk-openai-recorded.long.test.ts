/**
 * Recorded answers of real providers, read through the gateway by OpenAI's own SDK. The expected content is the
 * gateway's plain chat answer, which tests of each wire compare with the recorded bytes.
 */
import OpenAI from 'openai';
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
import { openaiOf, refuseWarnings, wires } from './sdk-gateway.ts';

const all = wires.flatMap((wire) => recordedAnswers(wire));
const isAnswer = ({ kind }: RecordedAnswer) => kind === 'whole' || kind === 'stream';

let recorded: RecordedGateway;
let openai: OpenAI;
beforeAll(async () => {
  recorded = await startRecordedGateway(all);
  openai = openaiOf(recorded.gateway);
});
afterAll(() => recorded.stop());
refuseWarnings();

function callsOf(reading: ClientReading) {
  return reading.calls.map(({ name, arguments: text }) => ({ name, arguments: text }));
}

function expectChat({ choices, usage }: OpenAI.ChatCompletion, reading: ClientReading): void {
  expect(choices).toHaveLength(1);
  const { message, finish_reason } = choices[0]!;
  expect(message.content ?? '').toBe(reading.text);
  expect(message.refusal ?? '').toBe(reading.refusal);
  const calls = (message.tool_calls ?? []).flatMap((call) => (call.type === 'function' ? [call.function] : []));
  expect(calls).toEqual(callsOf(reading));
  expect(finish_reason).toBe(reading.finish);
  expect([usage?.prompt_tokens, usage?.completion_tokens, usage?.total_tokens]).toEqual([
    reading.usage['prompt_tokens'],
    reading.usage['completion_tokens'],
    reading.usage['total_tokens'],
  ]);
}

/** The chat finish reasons in the terms of the Responses API; the others are `completed`. */
const INCOMPLETE: Record<string, string> = { length: 'max_output_tokens', content_filter: 'content_filter' };

function expectResponse(response: OpenAI.Responses.Response, reading: ClientReading): void {
  const { output, usage, status, incomplete_details } = response;
  expect(response.output_text).toBe(reading.text);
  const parts = output.flatMap((item) => (item.type === 'message' ? item.content : []));
  expect(parts.map((part) => (part.type === 'refusal' ? part.refusal : '')).join('')).toBe(reading.refusal);
  const calls = output.flatMap((item) => {
    if (item.type === 'custom_tool_call')
      return [{ name: item.name, arguments: JSON.stringify({ input: item.input }) }];
    return item.type === 'function_call' ? [{ name: item.name, arguments: item.arguments }] : [];
  });
  expect(calls).toEqual(callsOf(reading));
  const reason = INCOMPLETE[String(reading.finish)];
  expect([status, incomplete_details?.reason]).toEqual([reason === undefined ? 'completed' : 'incomplete', reason]);
  const thoughts = output.flatMap((item) =>
    item.type === 'reasoning' ? [...item.summary, ...(item.content ?? [])].map(({ text }) => text) : [],
  );
  const expectedThoughts = reading.details.flatMap(({ text, summary }) => String(text ?? summary ?? ''));
  expect(thoughts.join('')).toBe(expectedThoughts.join(''));
  expect([usage?.input_tokens, usage?.output_tokens, usage?.total_tokens]).toEqual([
    reading.usage['prompt_tokens'],
    reading.usage['completion_tokens'],
    reading.usage['total_tokens'],
  ]);
}

async function errorOf(act: PromiseLike<unknown>): Promise<InstanceType<typeof OpenAI.APIError>> {
  const thrown = await act.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (thrown instanceof OpenAI.APIError) return thrown;
  throw new Error(`no error of the API: ${thrown}`);
}

describe.each(wires)('recorded %s', (wire) => {
  const answers = all.filter((one) => one.wire === wire);
  const isAbsent = answers.length === 0;
  const why = whySkipped(answers, wire);

  test.skipIf(isAbsent)(`enough answers are recorded${why}`, () => {
    expect(answers.filter(isAnswer).length).toBeGreaterThanOrEqual(atLeast(6));
  });

  describe.skipIf(isAbsent)(`chat completions${why}`, () => {
    const request = ({ model }: RecordedAnswer) => ({
      model,
      messages: [{ role: 'user' as const, content: 'Go on.' }],
    });

    test.each(answers.filter(({ kind }) => kind === 'whole'))('whole: $name', async (answer) => {
      expectChat(await openai.chat.completions.create(request(answer)), await chatReading(recorded, answer));
    });

    test.each(answers.filter(isAnswer))('streamed: $name', async (answer) => {
      const stream = openai.chat.completions.stream(request(answer));
      const [completion, reading] = await Promise.all([stream.finalChatCompletion(), chatReading(recorded, answer)]);
      expectChat({ ...completion, usage: await stream.totalUsage() }, reading);
    });
  });

  describe.skipIf(isAbsent)(`responses${why}`, () => {
    const request = ({ model }: RecordedAnswer) => ({ model, input: 'Go on.' });

    test.each(answers.filter(({ kind }) => kind === 'whole'))('whole: $name', async (answer) => {
      expectResponse(await openai.responses.create(request(answer)), await chatReading(recorded, answer));
    });

    test.each(answers.filter(isAnswer))('streamed: $name', async (answer) => {
      const stream = openai.responses.stream(request(answer));
      expectResponse(await stream.finalResponse(), await chatReading(recorded, answer));
    });
  });

  const errors = answers.filter(({ kind }) => kind === 'error');
  describe.skipIf(errors.length === 0)(`an error${why}`, () => {
    test.each(errors)('$name', async ({ model }) => {
      const request = { model, messages: [{ role: 'user' as const, content: 'Go on.' }] };
      const plain = await recorded.gateway.call('POST', '/chat/completions', request);
      const { error: plainError } = (await plain.json()) as { error: { message: string } };
      for (const stream of [false, true]) {
        const error = await errorOf(openai.chat.completions.create({ ...request, stream }));
        expect([error.status, error.message]).toEqual([plain.status, `${plain.status} ${plainError.message}`]);
        expect(error).toBeInstanceOf(plain.status === 400 ? OpenAI.BadRequestError : OpenAI.InternalServerError);
        expect(error.error).toEqual(plainError);
      }
    });
  });
});
