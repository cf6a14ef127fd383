/**
 * Recorded answers of Anthropic, sent by a scripted upstream through a running gateway to a client of the Messages API:
 * they are unchanged, except for the members that every answer of the gateway has.
 */
import Anthropic, { type APIError } from '@anthropic-ai/sdk';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JsonObject, JsonValue } from '../../src/schemas/json.ts';
import { checkMessagesStream } from '../grammar/messages.ts';
import { startGateway, type TestGateway } from '../harness.ts';
import { messagesBytes, SPLICED } from '../readings/anthropic-messages.ts';
import { type Allowed, differences, reasonFor } from '../readings/differences.ts';
import { leaksOf } from '../readings/leaks.ts';
import { atLeast, object, recordingsOf, whySkipped } from '../readings/recordings.ts';
import { CHANGED_FOR_CLIENTS, recordedMessage } from './messages-recorded.ts';
import { responseHead, type Step, slices, startWireServer, type WireServer } from './wire-server.ts';

const PART_BYTES = 11;

const replays = recordingsOf('anthropic-messages').map(({ name, recording }, i) => {
  const { status, json } = recording.response;
  return {
    name,
    recording,
    model: `recorded/messages-${i}`,
    bytes: json === undefined ? messagesBytes(recording) : new TextEncoder().encode(JSON.stringify(json)),
    kind: status !== 200 ? 'error' : json === undefined ? 'stream' : 'whole',
  };
});
type Replay = (typeof replays)[number];

const isAbsent = replays.length === 0;
const why = whySkipped(replays, 'anthropic-messages');
const whole = replays.filter(({ kind }) => kind === 'whole');
const streams = replays.filter(({ kind, name }) => kind === 'stream' && !SPLICED.has(name));
const spliced = replays.filter(({ name }) => SPLICED.has(name));
const errors = replays.filter(({ kind }) => kind === 'error');

let upstream: WireServer;
let gateway: TestGateway;

beforeAll(async () => {
  const byModel = new Map(replays.map((replay) => [replay.model, replay]));
  upstream = await startWireServer(({ body }) => {
    const { model, stream } = JSON.parse(body) as JsonObject;
    const { kind, recording, bytes } = byModel.get(String(model))!;
    const type = kind === 'stream' ? 'text/event-stream' : 'application/json';
    const parts: Step[] = stream === true ? slices(bytes, PART_BYTES) : [bytes];
    return [responseHead(recording.response.status, type), ...parts, 'END'];
  });
  const models = Object.fromEntries(
    replays.map(({ model }) => [
      model,
      { endpoints: [{ provider: 'recorded', upstream_model: model, pricing: { prompt: 1, completion: 2 } }] },
    ]),
  );
  const recorded = { name: 'Recorded', dialect: 'anthropic-messages', base_url: upstream.url, api_key: 'secret' };
  gateway = await startGateway({
    yaml: JSON.stringify({
      bundled_catalog: false,
      providers: { recorded },
      models,
      ledger: { journal_sync: 'os' },
    }),
  });
});

afterAll(async () => {
  await gateway.stop();
  await upstream.stop();
});

async function ask({ model }: Replay, stream: boolean): Promise<Response> {
  const body = { model, stream, max_tokens: 64, messages: [{ role: 'user', content: 'Hello' }] };
  return gateway.call('POST', '/messages', body, { 'x-gateway-metadata': 'enabled' });
}

async function streamed(replay: Replay) {
  const response = await ask(replay, true);
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${response.status} ${text}`);
  expect(response.headers.get('content-type')).toContain('text/event-stream');
  return { ...checkMessagesStream(text), generation_id: response.headers.get('x-generation-id') };
}

const ALLOWED: readonly Allowed[] = [
  ...CHANGED_FOR_CLIENTS,
  { place: /^\.gateway_metadata added$/, reason: 'requested by the client' },
];

function expectSame(before: JsonObject, after: JsonObject): void {
  expect(differences(before, after).filter((one) => reasonFor(one, ALLOWED) === undefined)).toEqual([]);
}

test.skipIf(isAbsent)(`every recording is replayed${why}`, () => {
  expect(whole.length + streams.length + spliced.length + errors.length).toBe(replays.length);
  expect(Math.min(whole.length, streams.length, errors.length)).toBeGreaterThan(0);
  expect(spliced.length).toBeGreaterThanOrEqual(atLeast(1, 0));
});

describe.skipIf(isAbsent)(`a whole answer${why}`, () => {
  test.each(whole)('$name', async (replay) => {
    const response = await ask(replay, false);
    const message = (await response.json()) as JsonObject;
    expect(response.status, JSON.stringify(message)).toBe(200);
    expect(leaksOf(message)).toEqual([]);
    expect(message['id']).toBe(response.headers.get('x-generation-id'));
    expect(response.headers.get('request-id')).toBe(message['id']);
    expectSame(object(replay.recording.response.json), message);
  });
});

describe.skipIf(isAbsent)(`a whole answer to a request for a stream${why}`, () => {
  test.each(whole)('$name', async (replay) => {
    const { message } = await streamed(replay);
    expectSame(object(replay.recording.response.json), message!);
  });
});

describe.skipIf(isAbsent)(`a stream in small parts${why}`, () => {
  test.each(streams)('$name', async (replay) => {
    const { message, events, generation_id } = await streamed(replay);
    expect(message!['id']).toBe(generation_id);
    expect(events.at(-1)).toMatchObject({ type: 'message_stop', gateway_metadata: { attempt: 1 } });
    expectSame(await recordedMessage(replay.bytes), message!);
  });
});

describe.skipIf(spliced.length === 0)(`a stream that breaks off into another answer${why}`, () => {
  test.each(spliced)('$name', async (replay) => {
    const { error, events } = await streamed(replay);
    expect(error).toMatchObject({ type: 'api_error', error_type: 'provider_unavailable' });
    expect(Number(object(events.at(-1)!['usage'])['cost'])).toBeGreaterThan(0);
  });
});

describe.skipIf(isAbsent)(`an error${why}`, () => {
  test.each(errors)('$name', async (replay) => {
    const { status, json } = replay.recording.response;
    const message = String(object(object(json)['error'])['message']);
    for (const stream of [false, true]) {
      const response = await ask(replay, stream);
      const body = (await response.json()) as Record<string, JsonValue>;
      expect(response.status).toBe(status);
      expect(body).toMatchObject({
        type: 'error',
        error: { type: 'invalid_request_error', error_type: 'invalid_request' },
        request_id: response.headers.get('x-generation-id'),
      });
      expect(object(body['error'])['message']).toContain(message);
    }
  });
});

describe('errors before a stream', () => {
  const client = (apiKey: string) => new Anthropic({ apiKey, baseURL: `${gateway.url}/api`, maxRetries: 0 });
  const caught = (promise: Promise<unknown>): Promise<APIError> =>
    promise.then(
      () => expect.fail('no error'),
      (error: unknown) => error as APIError,
    );
  const hello = { max_tokens: 1, messages: [{ role: 'user' as const, content: 'Hello' }] };

  test('have the classes that their client knows', async () => {
    const unknown = await caught(client(gateway.key).messages.create({ ...hello, model: 'nobody/knows' }));
    expect(unknown).toBeInstanceOf(Anthropic.BadRequestError);
    expect(unknown.type).toBe('invalid_request_error');
    expect(unknown.requestID).toMatch(/^gen-/);

    const stranger = await caught(client('sk-nobody').messages.create({ ...hello, model: 'a/b' }));
    expect(stranger).toBeInstanceOf(Anthropic.AuthenticationError);
    expect(stranger.type).toBe('authentication_error');
    expect(stranger.requestID).toBeTruthy();

    const manager = await caught(client(gateway.management_key).messages.create({ ...hello, model: 'a/b' }));
    expect(manager).toBeInstanceOf(Anthropic.PermissionDeniedError);
    expect(manager.type).toBe('permission_error');
  });

  test.each([
    ['{', 400, 'invalid_request_error'],
    ['{}', 400, 'invalid_request_error'],
  ])('with the body %s have the form of this API', async (body, status, type) => {
    const response = await gateway.call('POST', '/messages', body);
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ type: 'error', error: { type }, request_id: null });
  });
});
