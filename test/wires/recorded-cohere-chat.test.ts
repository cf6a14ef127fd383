/** Every recorded exchange with Cohere: read by the dialect at every cut, and through a running gateway. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cohereChat } from '../../src/providers/cohere-chat/index.ts';
import { createFramer } from '../../src/providers/transport/frames.ts';
import { accumulate } from '../../src/schemas/accumulate.ts';
import type { ChatCompletion, ChatRequest } from '../../src/schemas/inner.ts';
import type { JsonObject } from '../../src/schemas/json.ts';
import { checkChatStream } from '../grammar/chat.ts';
import { startGateway, type TestGateway } from '../harness.ts';
import { type ClientReading, leaksOf, readAnswer, readStream } from '../readings/client.ts';
import { cohereBytes, FINISH, readCohere } from '../readings/cohere-chat.ts';
import { array, atLeast, type NamedRecording, object, recordingsOf, whySkipped } from '../readings/recordings.ts';
import { responseHead, type Step, slices, startWireServer, type WireServer } from './wire-server.ts';

const recordings = recordingsOf('cohere-chat');
const isThere = recordings.length > 0;
const why = whySkipped(recordings, 'cohere-chat');
const streams = recordings.filter(({ recording }) => recording.response.json === undefined);
const wholes = recordings.filter(({ recording }) => recording.response.json !== undefined);
const STATE = { generation_id: 'gen-recorded' };

test.runIf(isThere)(`all recordings are there, and all are answers${why}`, () => {
  expect(recordings.length).toBeGreaterThanOrEqual(atLeast(6));
  expect(recordings.filter(({ recording }) => recording.response.status !== 200)).toEqual([]);
});

describe.runIf(isThere)('recorded answers', () => {
  test.each(wholes)('$name is read like the raw body', ({ recording }) => {
    expectRecorded(essence(accumulate(cohereChat.decodeResponse(recording.response.json!, STATE), 0)), recording);
  });

  test.each(wholes)('$name is the same when it is streamed', ({ recording }) => {
    const whole = accumulate(cohereChat.decodeResponse(recording.response.json!, STATE), 0);
    const bytes = cohereBytes({ ...recording, response: { ...recording.response, events: streamOf(recording) } });
    expect(decode(bytes, [])).toEqual(whole);
  });

  test.each(streams)('$name is read like the raw stream, wherever it is cut', ({ recording }) => {
    const bytes = cohereBytes(recording);
    const whole = decode(bytes, []);
    expectRecorded(essence(whole), recording);
    const text = JSON.stringify(whole);
    for (let at = 1; at < bytes.length; at += 1) {
      if (JSON.stringify(decode(bytes, [at])) !== text) expect.fail(`differs when cut at byte ${at}`);
    }
    const everywhere = Array.from({ length: bytes.length - 1 }, (_, i) => i + 1);
    expect(JSON.stringify(decode(bytes, everywhere))).toBe(text);
  });
});

describe.runIf(isThere)('recorded requests are unchanged', () => {
  test.each(wholes)('$name', ({ recording }) => {
    const { model, stream, messages, tools, tool_choice } = recording.request!.body!;
    const choices = { REQUIRED: 'required', NONE: 'none' } as const;
    const request = {
      messages,
      ...(stream === true ? { stream } : {}),
      ...(tools === undefined ? {} : { tools }),
      ...(tool_choice === undefined ? {} : { tool_choice: choices[tool_choice as 'REQUIRED'] }),
    } as unknown as ChatRequest;
    const { body, path, report } = cohereChat.encodeRequest(request, endpoint(String(model)), {
      media: new Map(),
      strip_state: false,
    });
    expect(body).toEqual(recording.request!.body);
    expect(`/v2${path}`).toBe(recording.request!.path);
    expect(report).toEqual([]);
  });
});

describe.runIf(isThere)('through a running gateway', () => {
  let upstream: WireServer;
  let gateway: TestGateway;
  let parts: (bytes: Uint8Array) => Step[] = (bytes) => [bytes];

  beforeAll(async () => {
    upstream = await startWireServer(({ body, path, headers }) => {
      expect([path, headers['authorization']]).toEqual(['/v1/chat', 'Bearer secret']);
      const { recording } = recordings[Number(object(JSON.parse(body))['model'])]!;
      const { json } = recording.response;
      if (json === undefined) return [responseHead(200, 'text/event-stream'), ...parts(cohereBytes(recording)), 'END'];
      return [responseHead(200, 'application/json'), JSON.stringify(json), 'END'];
    });
    const models = Object.fromEntries(
      recordings.map((_, i) => [
        `recorded/cohere-${i}`,
        { endpoints: [{ provider: 'recorded', upstream_model: `${i}`, pricing: { prompt: 1, completion: 2 } }] },
      ]),
    );
    const provider = { name: 'Recorded', dialect: 'cohere-chat', base_url: upstream.url, api_key: 'secret' };
    const file = { bundled_catalog: false, providers: { recorded: provider }, models, ledger: { journal_sync: 'os' } };
    gateway = await startGateway({ yaml: JSON.stringify(file) });
  });
  afterAll(async () => {
    await gateway.stop();
    await upstream.stop();
  });

  async function ask(named: NamedRecording, stream: boolean): Promise<string> {
    const model = `recorded/cohere-${recordings.indexOf(named)}`;
    const body = { model, stream, messages: [{ role: 'user', content: 'Hello' }] };
    const response = await gateway.call('POST', '/chat/completions', body);
    expect(response.status).toBe(200);
    return response.text();
  }

  test.each(wholes)('$name, whole', async (named) => {
    const answer = JSON.parse(await ask(named, false)) as JsonObject;
    expect(leaksOf(answer)).toEqual([]);
    expectRecorded(essenceOf(readAnswer(answer)), named.recording);
  });

  test.each(streams)('$name, streamed in one piece and byte by byte', async (named) => {
    for (const size of [Number.POSITIVE_INFINITY, 1]) {
      parts = (bytes) => (size === 1 ? slices(bytes, 1) : [bytes]);
      const body = await ask(named, true);
      expect(leaksOf(checkChatStream(body))).toEqual([]);
      expectRecorded(essenceOf(readStream(body)), named.recording);
    }
  });
});

// ---- The parts that the tests compare.

type Essence = Pick<ClientReading, 'text' | 'reasoning' | 'calls' | 'finish' | 'native_finish'> & {
  counts: [prompt: number, cached: number, completion: number];
};

function expectRecorded(got: Essence, recording: NamedRecording['recording']): void {
  const { text, thinking, calls, finish, input, output, cached } = readCohere(recording);
  expect(got).toEqual({
    text,
    reasoning: thinking,
    calls: calls.map((call) => ({ ...call, arguments: call.arguments || '{}' })),
    finish: FINISH[finish],
    native_finish: finish,
    counts: [input, cached, output],
  });
}

function essence({ choices: [choice], ext }: ChatCompletion): Essence {
  const { content, reasoning, tool_calls } = choice.message;
  const usage = ext.usage ?? {};
  const cached = usage.in_cache_read ?? 0;
  return {
    text: typeof content === 'string' ? content : '',
    reasoning: reasoning ?? '',
    calls: (tool_calls ?? []).map(({ id, function: { name, arguments: text } }) => ({ id, name, arguments: text })),
    finish: choice.finish_reason,
    native_finish: choice.native_finish_reason,
    counts: [(usage.in_uncached ?? 0) + cached, cached, usage.out_text ?? 0],
  };
}

function essenceOf({ text, reasoning, calls, finish, native_finish, usage }: ClientReading): Essence {
  const { prompt_tokens, prompt_tokens_details, completion_tokens } = usage;
  const cached = object(prompt_tokens_details)['cached_tokens'];
  const counts: Essence['counts'] = [Number(prompt_tokens), Number(cached), Number(completion_tokens)];
  return { text, reasoning, calls, finish, native_finish, counts };
}

function decode(bytes: Uint8Array, cuts: number[]): ChatCompletion {
  const framer = createFramer(cohereChat.frames);
  const decoder = cohereChat.createStreamDecoder({ ...STATE });
  const chunks = [];
  let from = 0;
  for (const to of [...cuts, bytes.length]) {
    for (const frame of framer.push(bytes.subarray(from, to))) chunks.push(...decoder.push(frame));
    from = to;
  }
  for (const frame of framer.end()) chunks.push(...decoder.push(frame));
  chunks.push(...decoder.end());
  return accumulate(chunks, 0);
}

/** A whole answer as the provider would have streamed it. */
function streamOf({ response: { json } }: NamedRecording['recording']): JsonObject[] {
  const { id, message, finish_reason, usage } = object(json);
  const { content, tool_plan, tool_calls } = object(message);
  const pieces = (value: unknown) => (typeof value === 'string' ? (value.match(/[\s\S]{1,5}/g) ?? []) : []);
  const event = (type: string, fields: JsonObject, index?: number): JsonObject => ({
    type,
    ...(index === undefined ? {} : { index }),
    delta: { message: fields },
  });
  return [
    { ...event('message-start', { role: 'assistant', content: [] }), id },
    ...pieces(tool_plan).map((piece) => event('tool-plan-delta', { tool_plan: piece })),
    ...array(content).flatMap((part, index) => [
      event('content-start', { content: { type: object(part)['type'], text: '' } }, index),
      ...pieces(object(part)['text']).map((text) => event('content-delta', { content: { text } }, index)),
      { type: 'content-end', index },
    ]),
    ...array(tool_calls).flatMap((call, index) => {
      const { arguments: text, ...definition } = object(object(call)['function']);
      return [
        event('tool-call-start', { tool_calls: { ...object(call), function: definition } }, index),
        ...pieces(text).map((piece) =>
          event('tool-call-delta', { tool_calls: { function: { arguments: piece } } }, index),
        ),
        { type: 'tool-call-end', index },
      ];
    }),
    { type: 'message-end', delta: { finish_reason, usage } },
  ];
}

function endpoint(upstreamModel: string) {
  return {
    model: 'cohere/command',
    provider: 'cohere',
    upstream_model: upstreamModel,
    max_completion_tokens: undefined,
    context_length: undefined,
    input_modalities: ['text'],
    quirks: {},
  };
}
