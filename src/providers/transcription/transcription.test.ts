import fc from 'fast-check';
import type OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import { inTier } from '../../../test/tier.ts';
import type { SoundFormat } from '../../audio/sound.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { type DialectEndpoint, UpstreamError } from '../dialect.ts';
import type { TranscriptionAsk, TranscriptionDialect, TranscriptionRequest } from './dialect.ts';
import { transcriptionDialectOf, transcriptionDialects } from './dialects.ts';
import { multipart } from './multipart.ts';

const sound = { bytes: Buffer.from('RIFFsound'), format: 'wav' as SoundFormat, duration_ms: 1_172 };
const request = (over: Partial<TranscriptionRequest> = {}): TranscriptionRequest => ({
  sound,
  timestamps: [],
  ...over,
});
const endpoint = (over: Partial<DialectEndpoint> = {}): DialectEndpoint => ({
  model: 'wire/model',
  provider: 'wire',
  upstream_model: 'scripted',
  max_completion_tokens: undefined,
  context_length: undefined,
  input_modalities: ['audio'],
  quirks: {},
  ...over,
});

const { openai, deepgram, elevenlabs, assemblyai, gemini } = Object.fromEntries(
  Object.entries(transcriptionDialects).map(([wire, dialect]) => [wire.replace('-transcription', ''), dialect]),
) as Record<'openai' | 'deepgram' | 'elevenlabs' | 'assemblyai' | 'gemini', TranscriptionDialect>;

function begin(dialect: TranscriptionDialect, over: Partial<TranscriptionRequest> = {}, at = endpoint()) {
  const { fields, report } = dialect.fields(request(over), at);
  const firstRequest = dialect.begin(request(over), at, fields);
  return { ask: firstRequest, fields, dropped: report.map(({ field }) => field) };
}

function answered(upstreamRequest: TranscriptionAsk, body: JsonValue, headers = {}) {
  const next = upstreamRequest.read(body, headers);
  if (!('answer' in next)) throw new Error('another question');
  return next.answer;
}

const everything = { language: 'en', temperature: 0.5, prompt: 'Names.', timestamps: ['word', 'segment'] as const };

describe('openai-transcription', () => {
  test('the form has the fields of OpenAI’s own types, and the file is last', () => {
    const { ask, fields, dropped } = begin(openai, everything);
    const typed: Omit<OpenAI.Audio.TranscriptionCreateParamsNonStreaming, 'file'> = {
      model: 'scripted',
      language: 'en',
      temperature: 0.5,
      prompt: 'Names.',
      timestamp_granularities: ['word', 'segment'],
      response_format: 'verbose_json',
    };
    expect(fields).toEqual(typed);
    expect(dropped).toEqual([]);
    expect(ask.path).toBe('/audio/transcriptions');
    const boundary = /^multipart\/form-data; boundary=(gateway-form-[0-9a-f]{32})$/.exec(
      ask.headers['content-type'] ?? '',
    )?.[1];
    expect(boundary).toBeDefined();
    const part = (name: string, value: string) =>
      `--${boundary}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
    expect(ask.payload.toString()).toBe(
      [
        part('model', 'scripted'),
        part('language', 'en'),
        part('temperature', '0.5'),
        part('prompt', 'Names.'),
        part('timestamp_granularities[]', 'word'),
        part('timestamp_granularities[]', 'segment'),
        part('response_format', 'verbose_json'),
        `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="audio.wav"\r\n`,
        `content-type: audio/wav\r\n\r\nRIFFsound\r\n--${boundary}--\r\n`,
      ].join(''),
    );
  });

  test('later models are requested with text format only', () => {
    const at = endpoint({ upstream_model: 'gpt-4o-transcribe' });
    const { fields, dropped } = begin(openai, everything, at);
    expect(fields['response_format']).toBe('json');
    expect(dropped).toEqual(['timestamp_granularities']);
  });

  test('Mistral gets neither prompt nor format', () => {
    const at = endpoint({ upstream_model: 'voxtral-mini-transcribe-2507', quirks: { transcription_plain: true } });
    const { fields, dropped } = begin(openai, everything, at);
    expect(Object.keys(fields).sort()).toEqual(['language', 'model', 'temperature', 'timestamp_granularities']);
    expect(dropped).toEqual(['prompt']);
  });

  test('the path follows that of a deployment', () => {
    const at = endpoint({ quirks: { path: '/deployments/{model}/chat/completions', query: 'api-version=1' } });
    expect(begin(openai, {}, at).ask.path).toBe('/deployments/scripted/audio/transcriptions?api-version=1');
  });

  test.each<[string, JsonObject, object]>([
    ['Whisper', { text: 'a', usage: { type: 'duration', seconds: 2 } }, { text: 'a', seconds: 2 }],
    [
      'tokens',
      {
        text: 'a',
        usage: { type: 'tokens', input_tokens: 14, input_token_details: { audio_tokens: 12 }, output_tokens: 3 },
      },
      { text: 'a', tokens: { in_uncached: 2, in_audio: 12, out_text: 3 } },
    ],
    [
      'Mistral',
      {
        text: 'a',
        language: null,
        segments: [],
        usage: { prompt_audio_seconds: 2, prompt_tokens: 4, completion_tokens: 9, total_tokens: 381 },
      },
      { text: 'a', seconds: 2, tokens: { in_uncached: 4, out_text: 9 } },
    ],
    ['Groq', { text: 'a', x_groq: { id: 'req_1' } }, { text: 'a', upstream_id: 'req_1' }],
    [
      'times',
      {
        text: 'a b',
        language: 'english',
        duration: 1.5,
        segments: [{ id: 0, text: 'a b', start: 0, end: 1.5, tokens: [1] }, { text: 1 }],
        words: [{ word: 'a', start: 0, end: 0.5 }],
      },
      {
        text: 'a b',
        language: 'english',
        seconds: 1.5,
        segments: [{ text: 'a b', start: 0, end: 1.5 }],
        words: [{ text: 'a', start: 0, end: 0.5 }],
      },
    ],
    ['silence', { text: '' }, { text: '' }],
  ])('an answer of %s', (_what, body, expected) => {
    expect(answered(begin(openai).ask, body)).toEqual(expected);
  });

  test('an audio format that the endpoint does not accept is refused before a request is sent', () => {
    expect(() => begin(openai, { sound: { ...sound, format: 'aac' } })).toThrow('does not accept aac audio');
    const at = endpoint({ quirks: { transcription_formats: ['aac'] } });
    expect(() => begin(openai, { sound: { ...sound, format: 'aac' } }, at)).not.toThrow();
  });
});

test('deepgram-transcription: bytes in the body, all parameters in the query', () => {
  const { ask, dropped } = begin(deepgram, everything);
  expect(ask.path).toBe('/listen?model=scripted&smart_format=true&language=en');
  expect(begin(deepgram).ask.path).toBe('/listen?model=scripted&smart_format=true&detect_language=true');
  expect(ask.headers).toEqual({ 'content-type': 'audio/wav' });
  expect(ask.payload).toBe(sound.bytes);
  expect(dropped).toEqual(['temperature', 'prompt']);
  const words = [{ word: 'a', punctuated_word: 'A', start: 0, end: 0.5, confidence: 0.9 }];
  const body = {
    metadata: { request_id: 'r-1', duration: 1.172, channels: 1 },
    results: { channels: [{ detected_language: 'en', alternatives: [{ transcript: 'A.', words }] }] },
  };
  expect(answered(ask, body)).toEqual({
    text: 'A.',
    language: 'en',
    words: [{ text: 'a', start: 0, end: 0.5 }],
    seconds: 1.172,
    upstream_id: 'r-1',
  });
  expect(deepgram.authAndErrors?.authorize('k', {} as never, 0, {})).toEqual({ authorization: 'Token k' });
});

test('elevenlabs-transcription: a form, and spaces between words are removed', () => {
  const { ask, fields } = begin(elevenlabs, everything);
  expect(fields).toEqual({ model_id: 'scripted', tag_audio_events: false, language_code: 'en', temperature: 0.5 });
  expect(ask.path).toBe('/speech-to-text');
  const words = [
    { text: 'A', start: 0, end: 0.5, type: 'word' },
    { text: ' ', start: 0.5, end: 0.6, type: 'spacing' },
  ];
  const body = { language_code: 'eng', text: 'A ', words, transcription_id: 't-1', audio_duration_secs: 1.2 };
  expect(answered(ask, body)).toEqual({
    text: 'A ',
    language: 'eng',
    words: [{ text: 'A', start: 0, end: 0.5 }],
    seconds: 1.2,
    upstream_id: 't-1',
  });
  expect(elevenlabs.authAndErrors?.authorize('k', {} as never, 0, {})).toEqual({ 'xi-api-key': 'k' });
});

test('assemblyai-transcription: an upload, an order, and polls at growing intervals', () => {
  const { ask } = begin(assemblyai);
  expect([ask.path, ask.headers, ask.payload, ask.is_billed]).toEqual([
    '/upload',
    { 'content-type': 'application/octet-stream' },
    sound.bytes,
    false,
  ]);
  const order = ask.read({ upload_url: 'https://cdn.test/1' }, {}) as TranscriptionAsk;
  expect([order.path, JSON.parse(String(order.payload)), order.is_billed]).toEqual([
    '/transcript',
    { speech_models: ['scripted'], language_detection: true, audio_url: 'https://cdn.test/1' },
    true,
  ]);
  expect(() => order.read({ id: 'a\ud800', status: 'queued' }, {})).toThrow('has no transcript id');
  let poll = order.read({ id: 'a/b', status: 'queued' }, {}) as TranscriptionAsk;
  const waits: (number | undefined)[] = [];
  for (let step = 0; step < 8; step += 1) {
    expect([poll.method, poll.path, poll.payload]).toEqual(['GET', '/transcript/a%2Fb', '']);
    waits.push(poll.wait_ms);
    poll = poll.read({ status: 'processing' }, {}) as TranscriptionAsk;
  }
  expect(waits).toEqual([500, 750, 1125, 1687.5, 2531.25, 3796.875, 5000, 5000]);
  const words = [{ text: 'A', start: 0, end: 500 }];
  const whole = { status: 'completed', text: 'A.', words, audio_duration: 2, language_code: 'en' };
  expect(answered(poll, whole)).toEqual({
    text: 'A.',
    language: 'en',
    words: [{ text: 'A', start: 0, end: 0.5 }],
    seconds: 2,
    upstream_id: 'a/b',
  });
  expect(() => poll.read({ status: 'error', error: 'Too short' }, {})).toThrow('Too short');
  expect(assemblyai.authAndErrors?.authorize('k', {} as never, 0, {})).toEqual({ authorization: 'k' });
});

describe('gemini-transcription', () => {
  test('sends a chat request with the audio and an output bound', () => {
    const { ask, dropped } = begin(gemini, everything, endpoint({ upstream_model: 'gemini-2.5-flash' }));
    expect(ask.path).toBe('/models/gemini-2.5-flash:generateContent');
    const body = JSON.parse(String(ask.payload)) as {
      contents: { parts: JsonObject[] }[];
      generationConfig: JsonObject;
    };
    const data = sound.bytes.toString('base64');
    expect(body.contents[0]?.parts[0]).toEqual({ inlineData: { mimeType: 'audio/wav', data } });
    expect(String(body.contents[0]?.parts[1]?.['text'])).toMatch(/word for word.*\n.*en \(ISO 639-1\).*\n.*Names\./);
    expect(body.generationConfig).toMatchObject({ temperature: 0.5, maxOutputTokens: 8_192 + 24 });
    expect(dropped).toEqual(['timestamp_granularities']);
  });

  const bodyWith = (finishReason: string): JsonValue => ({
    candidates: [{ content: { role: 'model', parts: [{ text: ' Hear. ' }] }, finishReason, index: 0 }],
    usageMetadata: {
      promptTokenCount: 60,
      promptTokensDetails: [
        { modality: 'TEXT', tokenCount: 22 },
        { modality: 'AUDIO', tokenCount: 38 },
      ],
      candidatesTokenCount: 3,
      totalTokenCount: 63,
    },
    responseId: 'r-1',
  });

  test('the answer is the text, with the usage of a chat', () => {
    expect(answered(begin(gemini).ask, bodyWith('STOP'))).toMatchObject({
      text: 'Hear.',
      tokens: { in_uncached: 22, in_audio: 38, out_text: 3 },
    });
  });

  test('a truncated transcript is a failure, and its usage is charged', () => {
    const { ask } = begin(gemini);
    expect(ask.read(bodyWith('MAX_TOKENS'), {})).toMatchObject({
      failure: { message: expect.stringContaining('longer than its bound') },
      tokens: { in_uncached: 22, in_audio: 38, out_text: 3 },
    });
  });
});

test.each<[TranscriptionDialect, JsonObject, object]>([
  [openai, { text: null, usage: { input_tokens: 60, output_tokens: 3 } }, { tokens: { in_uncached: 60, out_text: 3 } }],
  [deepgram, { metadata: { duration: 2.5 }, results: { channels: [] } }, { seconds: 2.5 }],
  [elevenlabs, { audio_duration_secs: 2.5 }, { seconds: 2.5 }],
])('%#: an answer without text is a failure, and its reported usage is charged', (dialect, body, expected) => {
  const { ask } = begin(dialect);
  expect(ask.read(body, {})).toMatchObject({ failure: { message: "The provider's answer has no text" }, ...expected });
  expect(() => ask.read({}, {})).toThrow('has no text');
});

describe('errors keep the provider’s message', () => {
  test.each<[TranscriptionDialect, number, string, object]>([
    [
      deepgram,
      401,
      '{"err_code":"INVALID_AUTH","err_msg":"Invalid credentials.","request_id":"r"}',
      { failure: 'credential', message: 'Invalid credentials.', native_code: 'INVALID_AUTH' },
    ],
    [
      elevenlabs,
      401,
      '{"detail":{"status":"invalid_api_key","message":"Invalid API key"}}',
      { failure: 'credential', message: 'Invalid API key', native_code: 'invalid_api_key' },
    ],
    [elevenlabs, 422, '{"detail":[{"loc":["body","file"],"msg":"field required"}]}', { failure: 'invalid_request' }],
    [assemblyai, 429, '{"error":"Too many requests"}', { failure: 'rate_limited', message: 'Too many requests' }],
    [deepgram, 502, '<html>bad gateway</html>', { failure: 'unavailable' }],
    [elevenlabs, 500, '', { failure: 'unavailable' }],
  ])('%#', (dialect, status, body, expected) => {
    expect(dialect.authAndErrors?.decodeError(status, {}, body)).toMatchObject({ ...expected, status });
  });
});

test('a provider’s own transcription wire is used, or else the one that belongs to its chat wire', () => {
  expect(transcriptionDialectOf({ dialect: 'openai-chat' })).toBe(openai);
  expect(transcriptionDialectOf({ dialect: 'gemini-generate-content' })).toBe(gemini);
  expect(transcriptionDialectOf({ dialect: 'openai-chat', transcription_dialect: 'deepgram-transcription' })).toBe(
    deepgram,
  );
  expect(transcriptionDialectOf({ dialect: 'anthropic-messages' })).toBeUndefined();
});

describe('arbitrary input', () => {
  const anything = fc.jsonValue().map((value) => value as JsonValue);
  test.each(Object.entries(transcriptionDialects))(
    '%s reads an answer or throws an UpstreamError',
    (_wire, dialect) => {
      const { ask } = begin(dialect);
      const near = fc.record(
        {
          text: anything,
          usage: anything,
          words: anything,
          segments: anything,
          metadata: anything,
          results: fc.oneof(anything, fc.record({ channels: anything })),
          candidates: anything,
          upload_url: anything,
        },
        { requiredKeys: [] },
      );
      fc.assert(
        fc.property(fc.oneof(anything, near as typeof anything), (body) => {
          try {
            const next = ask.read(body, {});
            if ('failure' in next) expect(next.failure).toBeInstanceOf(UpstreamError);
            else expect('answer' in next ? typeof next.answer.text : next.path.startsWith('/')).toBeTruthy();
          } catch (error) {
            expect(error).toBeInstanceOf(UpstreamError);
          }
        }),
        { seed: 5, numRuns: inTier(100, 400) },
      );
    },
  );

  test('audio that contains millions of boundary candidates is searched once', () => {
    const guesses = Array.from({ length: 1_000_000 }, (_, count) => `gateway-form-${count}`).join('');
    const bytes = Buffer.from(`gateway-form${guesses}`);
    expect(multipart({ ...sound, bytes }, {}).payload.length).toBeGreaterThan(bytes.length);
  });

  test('a form is read back unchanged, whatever its values', async () => {
    const text = fc.string({ unit: 'binary', maxLength: 40 });
    const boundaries = fc.constantFrom('gateway-form', '--gateway-form-1', '\r\n--gateway-form\r\n', '"', '%22');
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.oneof(text, boundaries)),
        fc.uint8Array(),
        boundaries,
        async (values, bytes, trap) => {
          const file = Buffer.concat([Buffer.from(bytes), Buffer.from(trap), Buffer.from(bytes)]);
          const { headers, payload } = multipart({ ...sound, bytes: file }, { values });
          const form = await new Response(new Uint8Array(payload), { headers }).formData();
          expect(form.getAll('values[]')).toEqual(values.map((value) => value.toWellFormed()));
          const read = form.get('file') as File;
          expect([read.name, read.type, Buffer.from(await read.arrayBuffer()).equals(file)]).toEqual([
            'audio.wav',
            'audio/wav',
            true,
          ]);
        },
      ),
      { seed: 3 },
    );
  });
});
