/**
 * Recorded answers of Amazon Bedrock, sent by a scripted upstream through a running gateway: the client's answer equals
 * an independent reading of the recorded bytes.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/schemas/json.ts';
import { checkChatStream } from '../grammar/chat.ts';
import { startGateway, type TestGateway } from '../harness.ts';
import {
  type ConverseReading,
  converseBytes,
  isClaude,
  readConverse,
  readConverseStream,
} from '../readings/bedrock-converse.ts';
import { type ClientReading, leaksOf, readAnswer, readStream } from '../readings/client.ts';
import { type NamedRecording, object, recordingsOf, whySkipped } from '../readings/recordings.ts';
import { responseHead, type Step, slices, startWireServer, type WireServer } from './wire-server.ts';

interface Replay extends NamedRecording {
  model: string;
  bytes: Uint8Array;
  kind: 'whole' | 'stream' | 'error';
}

const replays = recordingsOf('bedrock-converse').map(({ name, recording }, i): Replay => {
  const { status, json } = recording.response;
  return {
    name,
    recording,
    // The family of the model decides whose reasoning state it has.
    model: `recorded/${isClaude(recording) ? 'claude' : 'other'}-${i}`,
    bytes: json === undefined ? converseBytes(recording) : new TextEncoder().encode(JSON.stringify(json)),
    kind: status !== 200 ? 'error' : json === undefined ? 'stream' : 'whole',
  };
});
const why = whySkipped(replays, 'bedrock-converse');
const isAbsent = replays.length === 0;

let upstream: WireServer;
let gateway: TestGateway;
/** How the upstream splits an answer, by the model. */
const splitting = new Map<string, (bytes: Uint8Array) => Step[]>();

beforeAll(async () => {
  const byModel = new Map(replays.map((replay) => [replay.model, replay]));
  upstream = await startWireServer(({ path }) => {
    const model = decodeURIComponent(/\/model\/([^/]+)\//.exec(path)![1]!);
    const replay = byModel.get(model)!;
    const type = replay.kind === 'stream' ? 'application/vnd.amazon.eventstream' : 'application/json';
    const split = splitting.get(model) ?? ((bytes) => [bytes]);
    const head = responseHead(replay.recording.response.status, type, { 'x-amzn-requestid': 'r-1' });
    return [head, ...split(replay.bytes), 'END'];
  });
  const pricing = { prompt: 1, completion: 2, request: 0.001 };
  const models = Object.fromEntries(
    replays.map(({ model }) => [model, { endpoints: [{ provider: 'recorded', upstream_model: model, pricing }] }]),
  );
  const apiKey = JSON.stringify({ accessKeyId: 'a', secretAccessKey: 'b', region: 'eu-west-1' });
  const recorded = { name: 'Recorded', dialect: 'bedrock-converse', base_url: upstream.url, api_key: apiKey };
  const file = { bundled_catalog: false, providers: { recorded }, models, ledger: { journal_sync: 'os' } };
  gateway = await startGateway({ yaml: JSON.stringify(file) });
});

afterAll(async () => {
  await gateway.stop();
  await upstream.stop();
});

async function ask({ model }: Replay, stream: boolean): Promise<Response> {
  return gateway.call('POST', '/chat/completions', { model, stream, messages: [{ role: 'user', content: 'Go on.' }] });
}

function expectReading(got: ClientReading, raw: ConverseReading): void {
  expect(got.text).toBe(raw.text);
  // The last detail may be the gateway's own seal of content that chat cannot express.
  const details = got.details.filter(({ id }) => !String(id).startsWith('seal_'));
  expect(
    details.map(({ type, text, signature, data }) =>
      type === 'reasoning.encrypted' ? { data } : { text: text ?? '', signature: signature ?? '' },
    ),
  ).toEqual(raw.thinking);
  expect(got.calls.map(({ id, name, arguments: text }) => ({ id, name, input: JSON.parse(text) }))).toEqual(raw.calls);
  expect([got.finish, got.native_finish, got.error]).toEqual([raw.finish, raw.native_finish, undefined]);
  const { input, read, written, output } = raw.tokens;
  if (input === undefined) {
    expect(Number(got.usage['completion_tokens'])).toBeGreaterThan(0);
    return;
  }
  const prompt = input + (read ?? 0) + (written ?? 0);
  expect(got.usage).toMatchObject({
    prompt_tokens: prompt,
    completion_tokens: output,
    total_tokens: prompt + output!,
    prompt_tokens_details: { cached_tokens: read ?? 0, cache_write_tokens: written ?? 0 },
  });
}

function readingOf({ recording, bytes }: Replay): ConverseReading {
  const { json } = recording.response;
  return json === undefined
    ? readConverseStream(bytes, isClaude(recording))
    : readConverse(object(json), isClaude(recording));
}

const of = (kind: Replay['kind']) => replays.filter((replay) => replay.kind === kind);

test.skipIf(isAbsent)(`every recording is replayed${why}`, () => {
  expect(of('whole').length + of('stream').length + of('error').length).toBe(replays.length);
  expect(Math.min(of('whole').length, of('stream').length, of('error').length)).toBeGreaterThan(0);
});

describe.skipIf(isAbsent)(`a whole answer${why}`, () => {
  test.each(of('whole'))('$name', async (replay) => {
    const response = await ask(replay, false);
    const answer = (await response.json()) as JsonObject;
    expect(response.status, JSON.stringify(answer)).toBe(200);
    expect(leaksOf(answer)).toEqual([]);
    expectReading(readAnswer(answer), readingOf(replay));
  });
});

describe.skipIf(isAbsent)(`a stream, in one piece and byte by byte${why}`, () => {
  test.each(of('stream'))('$name', async (replay) => {
    for (const size of [replay.bytes.length, replay.bytes.length > 8_000 ? 7 : 1]) {
      splitting.set(replay.model, (bytes) => slices(bytes, size));
      const response = await ask(replay, true);
      const body = await response.text();
      expect(response.status, body).toBe(200);
      expect(leaksOf(checkChatStream(body))).toEqual([]);
      expectReading(readStream(body), readingOf(replay));
    }
  });
});

describe.skipIf(isAbsent)(`an error${why}`, () => {
  test.each(of('error'))('$name', async (replay) => {
    const message = String(object(replay.recording.response.json)['message']);
    for (const stream of [false, true]) {
      const response = await ask(replay, stream);
      const { error } = (await response.json()) as { error: JsonObject };
      expect(error['message']).toContain(message);
      // A model that the region does not have is not a fault of the caller.
      expect(response.status).toBe(/identifier is invalid/.test(message) ? 502 : 400);
    }
  });
});

test.skipIf(isAbsent)(`requests are signed${why}`, async () => {
  const { path, headers } = upstream.exchanges.at(-1)!;
  expect(path).toMatch(/\/model\/recorded%2F(?:claude|other)-\d+\/converse(?:-stream)?$/);
  expect(headers['authorization']).toMatch(
    /^AWS4-HMAC-SHA256 Credential=a\/\d{8}\/eu-west-1\/bedrock\/aws4_request, SignedHeaders=content-length;content-type;host;x-amz-date, Signature=[0-9a-f]{64}$/,
  );
});
