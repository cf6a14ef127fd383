/**
 * Recorded answers of Google, sent by a scripted upstream through a running gateway: the client's answer equals an
 * independent reading of the recorded bytes.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/schemas/json.ts';
import { checkChatStream } from '../grammar/chat.ts';
import { startGateway, type TestGateway } from '../harness.ts';
import { type ClientReading, leaksOf, readAnswer, readStream } from '../readings/client.ts';
import { geminiBytes, isGeminiStream, LIVE, readGemini } from '../readings/gemini-generate-content.ts';
import { array, atLeast, type NamedRecording, object, recordingsOf, whySkipped } from '../readings/recordings.ts';
import { responseHead, type Step, slices, startWireServer, type WireServer } from './wire-server.ts';

/**
 * Streams up to this size arrive byte by byte, larger ones in parts of seven. The test of the dialect cuts every byte
 * of every stream.
 */
const SINGLE_BYTES_MAX = 8_000;
const PART_BYTES = 7;
const WIRE = 'gemini-generate-content';

interface Replay extends NamedRecording {
  model: string;
  bytes: Uint8Array;
  kind: 'whole' | 'stream' | 'error' | 'live';
}

const replays: Replay[] = recordingsOf(WIRE).map(({ name, recording }, i) => ({
  name,
  recording,
  model: `recorded/gemini-3-flash-${i}`,
  bytes: geminiBytes(recording),
  kind: LIVE.has(name)
    ? 'live'
    : recording.response.status !== 200
      ? 'error'
      : isGeminiStream(recording)
        ? 'stream'
        : 'whole',
}));
const why = whySkipped(replays, WIRE);
const isAbsent = replays.length === 0;
const of = (kind: Replay['kind']) => replays.filter((replay) => replay.kind === kind);

let upstream: WireServer;
let gateway: TestGateway;
/** How the upstream splits an answer, by the text of the request's only message. */
const splitting = new Map<string, (bytes: Uint8Array) => Step[]>();

beforeAll(async () => {
  const byModel = new Map(replays.map((replay) => [replay.model, replay]));
  upstream = await startWireServer((exchange) => {
    const body = JSON.parse(exchange.body) as JsonObject;
    const model = /models\/([^:]+):/.exec(exchange.path)?.[1] ?? '';
    const replay = byModel.get(decodeURIComponent(model))!;
    const marker = String(object(array(object(array(body['contents'])[0])['parts'])[0])['text']);
    const split = splitting.get(marker) ?? ((bytes) => [bytes]);
    const type = replay.kind === 'stream' || replay.kind === 'live' ? 'text/event-stream' : 'application/json';
    return [responseHead(replay.recording.response.status, type), ...split(replay.bytes), 'END'];
  });
  const endpoint = (model: string) => ({
    provider: 'recorded',
    upstream_model: model,
    pricing: { prompt: 1, completion: 2 },
  });
  const models = Object.fromEntries(replays.map(({ model }) => [model, { endpoints: [endpoint(model)] }]));
  const recorded = { name: 'Recorded', dialect: WIRE, base_url: upstream.url, api_key: 'secret' };
  const file = { bundled_catalog: false, providers: { recorded }, models, ledger: { journal_sync: 'os' } };
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
  const { usage, calls, details, ...reading } = readStream(body);
  const receivedCalls = calls.map(({ name, arguments: text }) => [name, text]);
  return JSON.stringify([reading, receivedCalls, details.length, usage['prompt_tokens'], usage['completion_tokens']]);
}

function expectRecorded(got: ClientReading, { recording }: Replay): void {
  const raw = readGemini(recording);
  expect(got.text).toBe(raw.text);
  expect(got.reasoning).toBe(raw.thoughts);
  // The seal, if there is one, is the gateway's own.
  const own = got.details.filter(({ id }) => !String(id).startsWith('seal_'));
  expect(own.flatMap(({ data, signature }) => data ?? signature ?? [])).toEqual(raw.signatures);
  expect(own.every(({ format }) => format === 'google-gemini-v1')).toBe(true);
  expect(got.calls.map(({ name, arguments: text }) => [name, JSON.parse(text)])).toEqual(
    raw.calls.map(({ name, args }) => [name, args]),
  );
  raw.calls.forEach(({ id }, i) => {
    if (id === '') expect(got.calls[i]!.id).toMatch(/^call_[0-9A-Za-z]{24}$/);
    else expect(got.calls[i]!.id).toBe(id);
  });
  expect([got.finish, got.native_finish]).toEqual([raw.finish, raw.native_finish]);
  if (raw.tokens === undefined) return;
  const { prompt, completion, cached, thoughts } = raw.tokens;
  expect(got.usage).toMatchObject({
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: cached },
    completion_tokens_details: { reasoning_tokens: thoughts },
  });
}

test.skipIf(isAbsent)(`every recording is replayed${why}`, () => {
  const kinds = (['whole', 'stream', 'error', 'live'] as const).map((kind) => of(kind).length);
  expect(kinds.reduce((sum, count) => sum + count, 0)).toBe(replays.length);
  expect(Math.min(...kinds)).toBeGreaterThanOrEqual(atLeast(1, 0));
});

/** The only recording that ends in an error: the gateway reports it, and charges what the provider billed. */
const isUnexpected = ({ recording }: Replay) => readGemini(recording).finish === 'error';

describe.skipIf(isAbsent)(`a whole answer${why}`, () => {
  test.each(of('whole').filter((replay) => !isUnexpected(replay)))('$name', async (replay) => {
    const response = await ask(replay, false);
    const answer = (await response.json()) as JsonObject;
    expect(response.status, JSON.stringify(answer)).toBe(200);
    expect(leaksOf(answer)).toEqual([]);
    expectRecorded(readAnswer(answer), replay);
  });

  test.each(of('whole').filter(isUnexpected))(
    'with a call of an undeclared tool is an error: $name',
    async (replay) => {
      const response = await ask(replay, false);
      const { error } = (await response.json()) as { error: JsonObject };
      expect([response.status, error['code']]).toEqual([502, 502]);
    },
  );
});

describe.skipIf(isAbsent)(`a whole answer to a request for a stream${why}`, () => {
  test.each(of('whole').filter((replay) => !isUnexpected(replay)))('$name', async (replay) => {
    const body = await streamOf(replay);
    expect(leaksOf(checkChatStream(body))).toEqual([]);
    expectRecorded(readStream(body), replay);
  });
});

describe.skipIf(isAbsent)(`a stream in one piece${why}`, () => {
  test.each(of('stream'))('$name', async (replay) => {
    const body = await streamOf(replay);
    expect(leaksOf(checkChatStream(body))).toEqual([]);
    expectRecorded(readStream(body), replay);
  });
});

describe.skipIf(isAbsent)(`a stream in small parts${why}`, () => {
  test.each(of('stream'))('$name', async (replay) => {
    const size = replay.bytes.length <= SINGLE_BYTES_MAX ? 1 : PART_BYTES;
    const expected = essence(await streamOf(replay));
    expect(essence(await streamOf(replay, (bytes) => slices(bytes, size)))).toBe(expected);
  });
});

describe.skipIf(of('live').length === 0)(`messages of a live session${why}`, () => {
  test.each(of('live'))('are not answers: $name', async (replay) => {
    expect((await ask(replay, true)).status).toBe(502);
  });
});

describe.skipIf(isAbsent)(`an error${why}`, () => {
  test.each(of('error'))('$name', async (replay) => {
    const { status, json } = replay.recording.response;
    const message = String(object(object(json)['error'])['message']);
    for (const stream of [false, true]) {
      const response = await ask(replay, stream);
      const { error } = (await response.json()) as { error: JsonObject };
      // A model that the provider does not have is not a fault of the caller.
      expect(response.status).toBe(status === 404 ? 502 : status);
      expect(error['message']).toContain(message);
    }
  });
});
