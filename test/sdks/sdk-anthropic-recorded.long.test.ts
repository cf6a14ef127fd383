/**
 * Recorded answers of real providers, read through the gateway by Anthropic's own SDK. Those of Anthropic's wire equal
 * what the SDK reads of the recorded bytes themselves; the expected content of others is the gateway's plain chat
 * answer, which tests of each wire compare with the recorded bytes.
 */
import Anthropic from '@anthropic-ai/sdk';
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
import { refuseWarnings, wires } from './sdk-gateway.ts';

const all = wires.flatMap((wire) => recordedAnswers(wire));

let recorded: RecordedGateway;
let anthropic: Anthropic;
/** The same SDK at the upstream itself. */
let direct: Anthropic;

beforeAll(async () => {
  recorded = await startRecordedGateway(all);
  const { url, key: apiKey } = recorded.gateway;
  anthropic = new Anthropic({ baseURL: url, apiKey, maxRetries: 0 });
  direct = new Anthropic({ baseURL: recorded.upstream.url, apiKey: 'secret', maxRetries: 0 });
});
afterAll(() => recorded.stop());
refuseWarnings();

const request = ({ model }: RecordedAnswer): Anthropic.MessageCreateParamsNonStreaming => ({
  model,
  max_tokens: 4_000,
  messages: [{ role: 'user', content: 'Go on.' }],
});

const STOPS: Readonly<Record<string, string>> = {
  stop: 'end_turn',
  tool_calls: 'tool_use',
  length: 'max_tokens',
  content_filter: 'refusal',
};

/** The content of another wire's answer for any client. */
function expectMessage({ content, stop_reason, usage }: Anthropic.Message, reading: ClientReading): void {
  const text = content.map((block) => (block.type === 'text' ? block.text : '')).join('');
  expect(text).toBe(reading.text + reading.refusal);
  const calls = content.flatMap((block) => (block.type === 'tool_use' ? [[block.name, block.input]] : []));
  expect(calls).toEqual(reading.calls.map(({ name, arguments: text }) => [name, JSON.parse(text)]));
  const thoughts = content.map((block) => (block.type === 'thinking' ? block.thinking : '')).join('');
  expect(thoughts.replaceAll('\n', '')).toBe(reading.reasoning.replaceAll('\n', ''));
  expect(stop_reason).toBe(STOPS[String(reading.finish)]);
  const { input_tokens, cache_read_input_tokens, cache_creation_input_tokens, output_tokens } = usage;
  const prompt = input_tokens + (cache_read_input_tokens ?? 0) + (cache_creation_input_tokens ?? 0);
  expect([prompt, output_tokens]).toEqual([reading.usage['prompt_tokens'], reading.usage['completion_tokens']]);
}

/**
 * All except the gateway's own members: the id, the model's name, the provider, members that are null, and additions to
 * the usage.
 */
function own({ id: _id, model: _model, usage, ...message }: Anthropic.Message): unknown {
  const { input_tokens, output_tokens, cache_read_input_tokens, cache_creation_input_tokens } = usage;
  const fields = Object.entries(message).filter(([name, value]) => name !== 'provider' && value !== null);
  return {
    ...Object.fromEntries(fields),
    counts: [input_tokens, output_tokens, cache_read_input_tokens ?? 0, cache_creation_input_tokens ?? 0],
    searches: usage.server_tool_use?.web_search_requests ?? 0,
  };
}

/** Streams that the SDK itself cannot read, because their first event is repeated. */
const UNREADABLE = 3;

describe.each(wires)('recorded %s', (wire) => {
  const answers = all.filter((one) => one.wire === wire);
  const whole = answers.filter(({ kind }) => kind === 'whole');
  const streams = answers.filter(({ kind }) => kind === 'stream');
  const errors = answers.filter(({ kind }) => kind === 'error');

  describe.skipIf(answers.length === 0)(`through the SDK${whySkipped(answers, wire)}`, () => {
    test.each(whole)('whole: $name', async (answer) => {
      expectMessage(await anthropic.messages.create(request(answer)), await chatReading(recorded, answer));
    });

    test.each([...whole, ...streams])('streamed: $name', async (answer) => {
      const message = await anthropic.messages.stream(request(answer)).finalMessage();
      expectMessage(message, await chatReading(recorded, answer));
    });

    test.each([...whole, ...streams])('streamed, of the beta API: $name', async (answer) => {
      const message = await anthropic.beta.messages.stream(request(answer)).finalMessage();
      const plain = await anthropic.messages.stream(request(answer)).finalMessage();
      expect(message.content.map(({ type }) => type)).toEqual(plain.content.map(({ type }) => type));
    });

    test.each(errors)('an error: $name', async (answer) => {
      for (const act of [
        () => anthropic.messages.create(request(answer)),
        () => anthropic.messages.stream(request(answer)).finalMessage(),
      ]) {
        const error = await act().catch((thrown: unknown) => thrown);
        expect(error).toBeInstanceOf(Anthropic.APIError);
        expect((error as InstanceType<typeof Anthropic.APIError>).type).toMatch(/_error$/);
      }
    });

    test.each([...whole, ...streams])('opaque state returns to its provider: $name', async (answer) => {
      const { details } = await chatReading(recorded, answer);
      const opaque = details
        .flatMap(({ signature, data }) => [signature, data])
        .filter((one) => typeof one === 'string');
      const first = await anthropic.messages.stream(request(answer)).finalMessage();
      const calls = first.content.filter((block) => block.type === 'tool_use');
      if (opaque.length === 0 || first.content.length === 0) return;
      const results = calls.map(({ id }) => ({ type: 'tool_result' as const, tool_use_id: id, content: 'Done.' }));
      await anthropic.messages.create({
        ...request(answer),
        stream: true,
        thinking: { type: 'adaptive' },
        tools: [...new Set(calls.map(({ name }) => name))].map((name) => ({ name, input_schema: { type: 'object' } })),
        messages: [
          { role: 'user', content: 'Go on.' },
          { role: 'assistant', content: first.content },
          { role: 'user', content: results.length > 0 ? results : 'And now?' },
        ],
      });
      const sent = recorded.upstream.exchanges.at(-1)!.body;
      for (const state of opaque) {
        // Amazon's wire encodes redacted data in Base64 once more.
        const forms = [JSON.stringify(state).slice(1, -1), Buffer.from(String(state)).toString('base64')];
        expect(forms.filter((form) => sent.includes(form))).not.toEqual([]);
      }
    });

    test.runIf(wire === 'anthropic-messages').each(whole)('whole, as without the gateway: $name', async (answer) => {
      const through = await anthropic.messages.create(request(answer));
      expect(own(through)).toEqual(own(await direct.messages.create(request(answer))));
    });

    test.runIf(wire === 'anthropic-messages')('streamed, as without the gateway', async () => {
      let unreadable = 0;
      for (const answer of streams) {
        const through = await anthropic.messages.stream(request(answer)).finalMessage();
        const read = direct.messages.stream(request(answer)).finalMessage();
        const wanted = await read.catch((error: Error) => {
          if (error.message.includes('got message_start')) return undefined;
          throw error;
        });
        if (wanted === undefined) unreadable += 1;
        else expect(own(through), answer.name).toEqual(own(wanted));
      }
      expect(unreadable).toBe(atLeast(UNREADABLE, 0));
    });
  });
});
