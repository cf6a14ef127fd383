/**
 * Recorded answers of real providers, sent by a scripted upstream through a running gateway: the client's answer equals
 * an independent reading of the recorded bytes.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JsonObject } from '../src/schemas/json.ts';
import { checkChatStream } from './grammar/chat.ts';
import { startGateway, type TestGateway } from './harness.ts';
import {
  type MessagesReading,
  messagesBytes,
  readMessage,
  readMessageStream,
  SPLICED,
} from './readings/anthropic-messages.ts';
import { type ClientReading, leaksOf, readAnswer, readStream } from './readings/client.ts';
import { type ChatReading, chatBytes, FINISH, readChat } from './readings/openai-chat.ts';
import { array, type NamedRecording, object, recordingsOf, whySkipped } from './readings/recordings.ts';
import { inTier } from './tier.ts';
import { responseHead, type Step, slices, startWireServer, type WireServer } from './wires/wire-server.ts';

/**
 * How streams are split. Each two-part cut costs a request of some milliseconds and each part of a feed a turn of the
 * event loop, so only the smallest streams are cut at every byte, the middle ones arrive byte by byte, and the large
 * ones in parts of seven. The tests of the dialects cut every byte of every stream.
 */
const CUT_EVERYWHERE_BYTES_MAX = 2_000;
const SINGLE_BYTES_MAX = 8_000;
/** The distance of cuts. */
const CUT_STEP = inTier(17, 1);
const PART_BYTES = 7;
/**
 * Turns of the event loop after which the gateway has read what was sent and waits for more: parts that merge are not a
 * cut.
 */
const READY: Step[] = Array.from({ length: 4 }, () => ({ wait: 0 }));
/** Concurrent cuts. */
const CUTS_AT_ONCE = 16;

const wires = ['openai-chat', 'anthropic-messages'] as const;
type Wire = (typeof wires)[number];

interface Replay extends NamedRecording {
  wire: Wire;
  model: string;
  bytes: Uint8Array;
  kind: 'whole' | 'stream' | 'error';
}

const all = Object.fromEntries(wires.map((wire) => [wire, replaysOf(wire)])) as Record<Wire, Replay[]>;

function replaysOf(wire: Wire): Replay[] {
  return recordingsOf(wire).map(({ name, recording }, i) => {
    const { status, json } = recording.response;
    const streamed = wire === 'openai-chat' ? chatBytes : messagesBytes;
    return {
      wire,
      name,
      recording,
      model: `recorded/${wire}-${i}`,
      bytes: json === undefined ? streamed(recording) : new TextEncoder().encode(JSON.stringify(json)),
      kind: status !== 200 ? 'error' : json === undefined ? 'stream' : 'whole',
    };
  });
}

let upstream: WireServer;
let gateway: TestGateway;
/** How the upstream splits an answer, by the text of the request's only message. */
const splitting = new Map<string, (bytes: Uint8Array) => Step[]>();

beforeAll(async () => {
  const byModel = new Map(wires.flatMap((wire) => all[wire]).map((replay) => [replay.model, replay]));
  upstream = await startWireServer((exchange) => {
    const body = JSON.parse(exchange.body) as JsonObject;
    const replay = byModel.get(String(body['model']))!;
    const content = object(array(body['messages'])[0])['content'];
    const marker = typeof content === 'string' ? content : String(object(array(content)[0])['text']);
    const split = splitting.get(marker) ?? ((bytes) => [bytes]);
    const type = replay.kind === 'stream' ? 'text/event-stream' : 'application/json';
    return [responseHead(replay.recording.response.status, type), ...split(replay.bytes), 'END'];
  });
  const models = Object.fromEntries(
    wires.flatMap((wire) =>
      all[wire].map((replay) => [
        replay.model,
        {
          endpoints: [
            { provider: wire, upstream_model: replay.model, pricing: { prompt: 1, completion: 2, request: 0.001 } },
          ],
        },
      ]),
    ),
  );
  const providers = Object.fromEntries(
    wires.map((wire) => [
      wire,
      {
        name: `Recorded ${wire}`,
        dialect: wire,
        base_url: upstream.url,
        api_key: 'secret',
        quirks: { inline_media: false },
      },
    ]),
  );
  const file = { bundled_catalog: false, providers, models, ledger: { journal_sync: 'os' } };
  gateway = await startGateway({ yaml: JSON.stringify(file) });
});

afterAll(async () => {
  await gateway.stop();
  await upstream.stop();
});

async function ask(replay: Replay, stream: boolean, split?: (bytes: Uint8Array) => Step[]): Promise<Response> {
  const marker = `${replay.model} ${splitting.size}`;
  if (split !== undefined) splitting.set(marker, split);
  const body = { model: replay.model, stream, messages: [{ role: 'user', content: marker }] };
  return gateway.call('POST', '/chat/completions', body);
}

async function streamOf(replay: Replay, split?: (bytes: Uint8Array) => Step[]): Promise<string> {
  const response = await ask(replay, true, split);
  const body = await response.text();
  if (response.status !== 200) throw new Error(`${response.status} ${body}`);
  return body;
}

/** The parts of two answers to the same recording that must be equal: all except those of the request. */
function essence(body: string): string {
  const { usage, ...reading } = readStream(body);
  return JSON.stringify([reading, usage['prompt_tokens'], usage['completion_tokens']]);
}

// ---------------------------------------------------------------- the expected answers

function expectChat(got: ClientReading, raw: ChatReading): void {
  expect(got.text).toBe(raw.text);
  expect(got.details.map((detail) => detail['text']).join('')).toBe(raw.reasoning);
  expect(got.refusal).toBe(raw.refusal);
  expect(got.calls).toHaveLength(raw.calls.length);
  raw.calls.forEach((call, i) => {
    const { id, name, arguments: argumentsText } = got.calls[i]!;
    expect([name, JSON.parse(argumentsText)]).toEqual([call.name, JSON.parse(call.arguments || '{}')]);
    if (call.id === '') expect(id).toMatch(/^call_[0-9A-Za-z]{24}$/);
    else expect(id).toBe(call.id);
  });
  expect(got.finish).toBe(raw.calls.length > 0 ? 'tool_calls' : FINISH[raw.finish]);
  expect(got.native_finish ?? '').toBe(raw.finish);
  expect(got.error).toBeUndefined();
  expectCounts(got.usage, raw);
}

/** If the provider reported no usage, the gateway counts tokens itself; the count is then never zero. */
function expectCounts(usage: JsonObject, { prompt, completion, cached }: ChatReading): void {
  if (prompt === undefined) {
    expect(Number(usage['prompt_tokens'])).toBeGreaterThan(0);
    expect(Number(usage['completion_tokens'])).toBeGreaterThan(0);
    return;
  }
  expect(usage).toMatchObject({
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion!,
    prompt_tokens_details: { cached_tokens: cached ?? 0 },
  });
}

function expectMessages(got: ClientReading, raw: MessagesReading): void {
  expect(got.text).toBe(raw.text);
  expect(
    got.details.map(({ type, text, signature, data }) =>
      type === 'reasoning.encrypted' ? { data } : { text: text ?? '', signature: signature ?? '' },
    ),
  ).toEqual(raw.thinking);
  expect(got.calls.map(({ id, name, arguments: text }) => ({ id, name, input: JSON.parse(text) }))).toEqual(raw.calls);
  expect(got.finish).toBe(raw.finish);
  expect(got.native_finish).toBe(raw.native_finish);
  expect(got.error).toBeUndefined();
  const { input, read, written, output, thinking, searches } = raw.tokens;
  const prompt = (input ?? 0) + (read ?? 0) + (written ?? 0);
  expect(got.usage).toMatchObject({
    prompt_tokens: prompt,
    completion_tokens: output,
    total_tokens: prompt + output!,
    prompt_tokens_details: { cached_tokens: read ?? 0, cache_write_tokens: written ?? 0 },
    completion_tokens_details: { reasoning_tokens: thinking ?? 0 },
    ...(searches === undefined ? {} : { server_tool_use: { web_search_requests: searches } }),
  });
}

/** `between` is the text in the readable reasoning between two details: a blank line if they arrived whole. */
function expectRecorded(got: ClientReading, replay: Replay, between: string): void {
  const thoughts = got.details.flatMap(({ text, summary }) => text || summary || []);
  expect(got.reasoning).toBe(thoughts.join(between));
  const { json } = replay.recording.response;
  if (replay.wire === 'openai-chat') expectChat(got, readChat(replay.recording));
  else if (json !== undefined) expectMessages(got, readMessage(object(json)));
  else expectMessages(got, readMessageStream(new TextDecoder().decode(replay.bytes)));
}

// ---------------------------------------------------------------- the replays

describe.each(wires)('%s', (wire) => {
  const replays = all[wire];
  const why = whySkipped(replays, wire);
  const whole = replays.filter(({ kind }) => kind === 'whole');
  const streams = replays.filter(({ kind, name }) => kind === 'stream' && !SPLICED.has(name));
  const spliced = replays.filter(({ name }) => SPLICED.has(name));
  const errors = replays.filter(({ kind }) => kind === 'error');
  const isAbsent = replays.length === 0;

  test.skipIf(isAbsent)(`every recording is replayed${why}`, () => {
    expect(whole.length + streams.length + spliced.length + errors.length).toBe(replays.length);
    expect(Math.min(whole.length, streams.length, errors.length)).toBeGreaterThan(0);
  });

  describe.skipIf(isAbsent)(`a whole answer${why}`, () => {
    test.each(whole)('$name', async (replay) => {
      const response = await ask(replay, false);
      const answer = (await response.json()) as JsonObject;
      expect(response.status, JSON.stringify(answer)).toBe(200);
      expect(leaksOf(answer)).toEqual([]);
      expectRecorded(readAnswer(answer), replay, '\n\n');
    });
  });

  describe.skipIf(isAbsent)(`a whole answer to a request for a stream${why}`, () => {
    test.each(whole)('$name', async (replay) => {
      const body = await streamOf(replay);
      expect(leaksOf(checkChatStream(body))).toEqual([]);
      expectRecorded(readStream(body), replay, '\n\n');
    });
  });

  describe.skipIf(isAbsent)(`a stream in one piece${why}`, () => {
    test.each(streams)('$name', async (replay) => {
      const body = await streamOf(replay);
      expect(leaksOf(checkChatStream(body))).toEqual([]);
      expectRecorded(readStream(body), replay, '');
    });
  });

  describe.skipIf(isAbsent)(`a stream that answers a prompt, in both of its forms${why}`, () => {
    test.concurrent.each(streams)('$name', async (replay) => {
      const { text, refusal, reasoning, calls, finish } = readStream(await streamOf(replay));
      // Calls cannot be requested with a prompt.
      if (calls.length > 0) return;
      for (const [path, form] of [
        ['/completions', 'completions'],
        ['/chat/completions', 'prompt'],
      ] as const) {
        for (const size of [replay.bytes.length, Math.max(PART_BYTES, Math.ceil(replay.bytes.length / 100))]) {
          const prompt = `${replay.model} ${splitting.size}`;
          splitting.set(prompt, (bytes) => slices(bytes, size));
          const response = await gateway.call('POST', path, { model: replay.model, prompt, stream: true });
          const choices = checkChatStream(await response.text(), { form })
            .flatMap((chunk) => array(chunk['choices']))
            .map(object);
          const joined = (name: string) => choices.map((choice) => choice[name] ?? '').join('');
          expect([joined('text'), joined('reasoning')]).toEqual([text + refusal, reasoning]);
          expect(choices.at(-1)?.['finish_reason']).toBe(finish);
        }
      }
    });
  });

  describe.skipIf(isAbsent)(`a stream in small parts${why}`, () => {
    test.concurrent.each(streams)('$name', async (replay) => {
      const size = replay.bytes.length <= SINGLE_BYTES_MAX ? 1 : PART_BYTES;
      const expected = essence(await streamOf(replay));
      expect(essence(await streamOf(replay, (bytes) => slices(bytes, size)))).toBe(expected);
    });
  });

  describe.skipIf(isAbsent)(`a stream cut at every byte${why}`, () => {
    const small = streams.filter(({ bytes }) => bytes.length <= CUT_EVERYWHERE_BYTES_MAX);
    test.each(small)('$name', async (replay) => {
      const expected = essence(await streamOf(replay));
      const cutAt = async (at: number) => {
        const got = essence(
          await streamOf(replay, (bytes) => [...READY, bytes.subarray(0, at), ...READY, bytes.subarray(at)]),
        );
        if (got !== expected) expect(got, `cut at byte ${at}`).toBe(expected);
      };
      const cuts = Array.from({ length: Math.floor((replay.bytes.length - 1) / CUT_STEP) }, (_, i) => 1 + i * CUT_STEP);
      for (let from = 0; from < cuts.length; from += CUTS_AT_ONCE) {
        await Promise.all(cuts.slice(from, from + CUTS_AT_ONCE).map(cutAt));
      }
    });
  });

  describe.skipIf(isAbsent || spliced.length === 0)(`a stream that breaks off into another answer${why}`, () => {
    test.each(spliced)('$name', async (replay) => {
      const { finish, error, usage } = readStream(await streamOf(replay));
      expect([finish, error?.['code']]).toEqual(['error', 502]);
      expect(Number(usage['completion_tokens'])).toBeGreaterThan(0);
    });
  });

  describe.skipIf(isAbsent)(`an error${why}`, () => {
    test.each(errors)('$name', async (replay) => {
      const { status, json } = replay.recording.response;
      const message = String(object(object(json)['error'])['message']);
      for (const stream of [false, true]) {
        const response = await ask(replay, stream);
        const { error } = (await response.json()) as { error: JsonObject };
        // A model that the provider does not have is not a fault of the caller.
        expect(response.status).toBe(status === 404 ? 502 : status);
        expect(error['code']).toBe(response.status);
        expect(error['message']).toContain(message);
        expect(object(error['metadata'])['provider_name']).toBe(`Recorded ${wire}`);
      }
    });
  });
});
