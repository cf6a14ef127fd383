import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Sandbox, startSandbox } from './server.ts';

const wav = new Uint8Array(readFileSync(join(import.meta.dirname, '../test/audio/speech.wav')));

let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await startSandbox({ api_key: 'k' });
});
afterAll(() => sandbox.stop());

interface Sent {
  path: string;
  method?: string;
  body?: string | Uint8Array<ArrayBuffer> | FormData;
  headers: Record<string, string>;
}

async function send({ path, method = 'POST', body, headers }: Sent) {
  const answered = await fetch(`${sandbox.url}${path}`, { method, headers, ...(body === undefined ? {} : { body }) });
  return { status: answered.status, body: (await answered.json()) as Record<string, unknown> };
}

function form(change: (form: FormData) => void = () => undefined, name = 'a.wav'): FormData {
  const made = new FormData();
  made.set('model', 'echo');
  made.set('file', new Blob([wav], { type: 'audio/wav' }), name);
  change(made);
  return made;
}

const bearer = { authorization: 'Bearer k' };
const token = { authorization: 'Token k', 'content-type': 'audio/wav' };

test.each<[string, Sent]>([
  [
    'a body that is not a form',
    { path: '/v1/audio/transcriptions', body: '{}', headers: { ...bearer, 'content-type': 'application/json' } },
  ],
  ['no file', { path: '/v1/audio/transcriptions', body: form((made) => made.delete('file')), headers: bearer }],
  [
    'a file of another extension',
    { path: '/v1/audio/transcriptions', body: form(undefined, 'a.aac'), headers: bearer },
  ],
  ['an unknown field', { path: '/v1/audio/transcriptions', body: form((made) => made.set('x', 'y')), headers: bearer }],
  [
    'timestamps without the verbose format',
    {
      path: '/v1/audio/transcriptions',
      body: form((made) => made.set('timestamp_granularities[]', 'word')),
      headers: bearer,
    },
  ],
  [
    'a temperature above 1',
    { path: '/v1/audio/transcriptions', body: form((made) => made.set('temperature', '1.5')), headers: bearer },
  ],
  ['a request to Deepgram without a model', { path: '/deepgram/v1/listen', body: wav, headers: token }],
  [
    'a language together with its detection',
    { path: '/deepgram/v1/listen?model=echo&language=en&detect_language=true', body: wav, headers: token },
  ],
  ['bytes that are not audio', { path: '/deepgram/v1/listen?model=echo', body: 'x', headers: token }],
  [
    'a request to ElevenLabs without a model',
    { path: '/elevenlabs/v1/speech-to-text', body: form(), headers: { 'xi-api-key': 'k' } },
  ],
  [
    'an upload that the sandbox did not create',
    {
      path: '/assemblyai/v2/transcript',
      body: JSON.stringify({ speech_models: ['echo'], audio_url: 'https://x.test/y' }),
      headers: { authorization: 'k', 'content-type': 'application/json' },
    },
  ],
])('400 for %s', async (_what, sent) => {
  const { status, body } = await send(sent);
  expect([status, Object.keys(body).length]).toEqual([400, expect.any(Number)]);
});

test('each wire expects its credential where the real service does', async () => {
  const wrong = { authorization: 'Bearer other' };
  for (const path of [
    '/v1/audio/transcriptions',
    '/deepgram/v1/listen',
    '/elevenlabs/v1/speech-to-text',
    '/assemblyai/v2/upload',
  ]) {
    expect([path, (await send({ path, body: form(), headers: wrong })).status]).toEqual([path, 401]);
  }
  expect((await send({ path: '/v1/audio/transcriptions', body: form(), headers: bearer })).status).toBe(200);
});

test('the faults are those of the other wires', async () => {
  const named = (model: string) => form((made) => made.set('model', model));
  const path = '/v1/audio/transcriptions';
  expect((await send({ path, body: named('fail-429'), headers: bearer })).status).toBe(429);
  expect((await send({ path, body: named('no-usage'), headers: bearer })).body).toEqual({
    text: 'The sandbox heard 1172 ms of wav.',
  });
  expect((await send({ path, body: named('nobody'), headers: bearer })).status).toBe(404);
});
