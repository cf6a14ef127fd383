import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import OpenAI, { toFile } from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sandboxSpeechModels } from '../../../sandbox/catalog.ts';
import { startGateway, type TestGateway } from '../../../test/harness.ts';

const read = (name: string) => readFileSync(join(import.meta.dirname, '../../../test/audio', name));
const wav = read('speech.wav');
const inputAudio = { data: wav.toString('base64'), format: 'wav' };

let gateway: TestGateway;
let openai: OpenAI;
beforeAll(async () => {
  gateway = await startGateway();
  openai = new OpenAI({ baseURL: gateway.base_url, apiKey: gateway.key, maxRetries: 0 });
});
afterAll(() => gateway.stop());

interface Answer {
  text: string;
  usage: {
    type: string;
    seconds: number;
    cost: number;
    input_tokens?: number;
    output_tokens?: number;
    total_tokens?: number;
  };
  language?: string;
  duration?: number;
  segments?: { text: string; start: number; end: number }[];
  words?: { word: string; start: number; end: number }[];
  gateway_metadata?: { attempts: { provider: string; status: number }[]; adjusted_parameters: { field: string }[] };
  error?: { code: number; message: string; metadata: Record<string, unknown> | null };
}

async function post(body: object, headers?: Record<string, string>) {
  const response = await gateway.call('POST', '/audio/transcriptions', body, headers);
  return { status: response.status, headers: response.headers, answer: (await response.json()) as Answer };
}

async function postForm(form: FormData) {
  const response = await fetch(`${gateway.base_url}/audio/transcriptions`, {
    method: 'POST',
    body: form,
    headers: { authorization: `Bearer ${gateway.key}` },
  });
  return { status: response.status, text: await response.text() };
}

async function generationOf(headers: Headers): Promise<Record<string, unknown>> {
  const response = await gateway.call('GET', `/generation?id=${headers.get('x-generation-id')}`);
  return ((await response.json()) as { data: Record<string, unknown> }).data;
}

describe('200', () => {
  test('the answer has the text, the length and the cost', async () => {
    const { status, answer, headers } = await post({ model: 'sandbox/transcribe', input_audio: inputAudio });
    expect(status).toBe(200);
    expect(answer.text).toBe('The sandbox heard 1172 ms of wav.');
    // The provider bills by whole seconds.
    expect(answer.usage).toEqual({
      type: 'duration',
      seconds: 2,
      cost: 0.0002,
      is_byok: false,
      cost_details: {
        upstream_inference_cost: null,
        upstream_inference_prompt_cost: 0.0002,
        upstream_inference_completions_cost: 0,
      },
    });
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(await generationOf(headers)).toMatchObject({
      api_type: 'stt',
      model: 'sandbox/transcribe',
      provider_name: 'Sandbox',
      total_cost: 0.0002,
      num_input_audio_prompt: 1,
      outcome: 'completed',
      streamed: false,
      estimated: false,
      charges: [{ class: 'audio_second', units: 2, unit_price: '0.0001', amount: '0.0002' }],
    });
  });

  const others = Object.keys(sandboxSpeechModels).filter((model) => model !== 'sandbox/transcribe-fallback');
  test.each(others)('%s transcribes', async (model) => {
    const { status, answer } = await post({ model, input_audio: inputAudio, temperature: 0 });
    expect([status, answer.error]).toEqual([200, undefined]);
    if (model !== 'sandbox/transcribe-gemini') expect(answer.text).toBe('The sandbox heard 1172 ms of wav.');
    expect(answer.usage.seconds).toBeGreaterThanOrEqual(1.172);
    expect(answer.usage.cost).toBeGreaterThan(0);
  });

  test.each([
    ['speech.mp3', 'mp3'],
    ['speech.flac', 'flac'],
    ['speech.m4a', 'mp4'],
    ['speech-opus.ogg', 'opus'],
    ['speech.webm', 'webm'],
  ])('%s is accepted as %s', async (name, format) => {
    const audio = { data: read(name).toString('base64'), format };
    const { status, answer } = await post({ model: 'sandbox/transcribe', input_audio: audio, language: 'en' });
    expect(status).toBe(200);
    expect(answer.text).toMatch(/^The sandbox heard 1\d\d\d ms/);
  });

  test('usage reported in milliseconds is charged in milliseconds', async () => {
    const { answer, headers } = await post(
      { model: 'sandbox/transcribe-deepgram', input_audio: inputAudio },
      { 'x-gateway-experimental-metadata': 'enabled' },
    );
    expect(answer.usage).toMatchObject({ seconds: 1.172, cost: 0.0001172 });
    expect(answer.gateway_metadata?.attempts).toMatchObject([
      { provider: 'Sandbox Deepgram', model: 'sandbox/transcribe-deepgram', status: 200, is_byok: false },
    ]);
    expect(await generationOf(headers)).toMatchObject({ estimated: false });
  });

  test('timestamps are included if requested and known', async () => {
    const { answer } = await post({
      model: 'sandbox/transcribe',
      input_audio: inputAudio,
      response_format: 'verbose_json',
      timestamp_granularities: ['word', 'segment'],
    });
    expect(answer).toMatchObject({ task: 'transcribe', language: 'english', duration: 1.172 });
    expect(answer.segments).toEqual([{ id: 0, text: answer.text, start: 0, end: 1.172 }]);
    expect(answer.words?.map(({ word }) => word).join(' ')).toBe(answer.text);
  });

  test('a provider that fails is followed by the next', async () => {
    const { status, answer } = await post(
      { model: 'sandbox/transcribe-fallback', input_audio: inputAudio },
      { 'x-gateway-experimental-metadata': 'enabled' },
    );
    expect(status).toBe(200);
    expect(answer.gateway_metadata?.attempts.map(({ provider, status: seen }) => [provider, seen])).toEqual([
      ['Sandbox', 503],
      ['Sandbox Deepgram', 200],
    ]);
    expect(answer.usage.cost).toBe(0.0002344);
  });

  test('provider options are added to its request, except for fields of the gateway', async () => {
    const options = { sandbox: { prompt: 'tokens_usage', file: 'x', response_format: 'srt', stream: true } };
    const { status, answer } = await post(
      { model: 'sandbox/transcribe-tokens', input_audio: inputAudio, provider: { options } },
      { 'x-gateway-experimental-metadata': 'enabled' },
    );
    expect(status).toBe(200);
    expect(answer.usage).toMatchObject({ type: 'tokens', input_tokens: 12, output_tokens: 8, total_tokens: 20 });
    expect(answer.gateway_metadata?.adjusted_parameters.map(({ field }) => field)).toEqual([
      'provider.options.sandbox.file',
      'provider.options.sandbox.response_format',
      'provider.options.sandbox.stream',
    ]);
  });
});

test('transcription models are listed separately, with their price per second', async () => {
  const list = async (query: string) => {
    const response = await gateway.call('GET', `/models${query}`);
    return ((await response.json()) as { data: { id: string; pricing: Record<string, string> }[] }).data;
  };
  expect((await list('')).some(({ id }) => id === 'sandbox/transcribe')).toBe(false);
  const listed = (await list('?output_modalities=transcription')).find(({ id }) => id === 'sandbox/transcribe');
  expect(listed?.pricing).toEqual({ prompt: '0', completion: '0', audio_second: '0.0001' });
});

describe('multipart forms of OpenAI clients', () => {
  test('are accepted from its SDK', async () => {
    const file = await toFile(wav, 'speech.wav');
    const plain = await openai.audio.transcriptions.create({
      file,
      model: 'sandbox/transcribe',
      language: 'en',
      temperature: 0,
    });
    expect(plain).toMatchObject({ text: 'The sandbox heard 1172 ms of wav.', usage: { type: 'duration', seconds: 2 } });
  });

  test('return times and plain text to its SDK', async () => {
    const create = openai.audio.transcriptions;
    const verbose = await create.create({
      file: await toFile(wav, 'speech.wav'),
      model: 'sandbox/transcribe',
      response_format: 'verbose_json',
      timestamp_granularities: ['word'],
    });
    expect(verbose.words?.length).toBe(7);
    const text = await create.create({
      file: await toFile(read('speech.mp3'), 'speech.mp3'),
      model: 'sandbox/transcribe',
      response_format: 'text',
    });
    expect(text).toBe('The sandbox heard 1172 ms of mp3.\n');
  });

  test('may have a file without a known extension, and a wrong extension is refused', async () => {
    const form = new FormData();
    form.set('model', 'sandbox/transcribe');
    form.set('file', new Blob([new Uint8Array(wav)]), 'blob');
    form.set('provider', JSON.stringify({ only: ['sandbox'] }));
    expect(await postForm(form)).toMatchObject({ status: 200 });
    form.set('file', new Blob([new Uint8Array(wav)]), 'speech.mp3');
    const wrong = await postForm(form);
    expect(wrong.status).toBe(400);
    expect(wrong.text).toContain('says mp3, but the audio is wav');
  });

  test.each<[string, (form: FormData) => void, RegExp]>([
    ['no file', (form) => form.delete('file'), /file is required/],
    ['a file that is text', (form) => form.set('file', 'x'), /file must be a file/],
    ['no model', (form) => form.delete('model'), /model is required/],
    ['a stream', (form) => form.set('stream', 'true'), /stream must be/],
    ['an unsupported response format', (form) => form.set('response_format', 'srt'), /response_format must be one of/],
    ['preferences that are not JSON', (form) => form.set('provider', '{'), /provider must be JSON/],
    ['preferences of a wrong type', (form) => form.set('provider', '{"only":1}'), /provider\.only/],
    ['a temperature that is not a number', (form) => form.set('temperature', 'warm'), /temperature/],
  ])('400 for %s', async (_what, change, message) => {
    const form = new FormData();
    form.set('model', 'sandbox/transcribe');
    form.set('file', new Blob([new Uint8Array(wav)]), 'speech.wav');
    change(form);
    const { status, text } = await postForm(form);
    expect([status, text]).toEqual([400, expect.stringMatching(message)]);
  });

  test('400 for a body that is not a form', async () => {
    for (const [type, body] of [
      ['multipart/form-data', 'x'],
      ['multipart/form-data; boundary=b', 'x'],
      ['multipart/form-data; boundary=b', '--b\r\ncontent-disposition: form-data; name="model"\r\n\r\nx'],
    ]) {
      const response = await gateway.call('POST', '/audio/transcriptions', body, { 'content-type': type as string });
      expect([response.status, await response.text()]).toEqual([
        400,
        expect.stringContaining('multipart form is not valid'),
      ]);
    }
  });
});

describe('refusals', () => {
  const body = { model: 'sandbox/transcribe', input_audio: inputAudio };

  test.each<[string, object, number, RegExp]>([
    ['no audio', { input_audio: undefined }, 400, /input_audio is required/],
    ['a data URI', { input_audio: { data: 'data:audio/wav;base64,AAAA', format: 'wav' } }, 400, /not a data URI/],
    ['a text that is not base64', { input_audio: { data: '%%%%', format: 'wav' } }, 400, /must be base64/],
    ['an unknown format', { input_audio: { ...inputAudio, format: 'wma' } }, 400, /format must be one of wav, mp3/],
    ['another format', { input_audio: { ...inputAudio, format: 'mp3' } }, 400, /says mp3, but the audio is wav/],
    [
      'data without recognizable audio',
      { input_audio: { data: 'AAAA', format: 'wav' } },
      400,
      /is not in one of the formats/,
    ],
    [
      'a file without audio',
      { input_audio: { data: wav.subarray(0, 30).toString('base64'), format: 'wav' } },
      400,
      /contains no sound/,
    ],
    ['a language in words', { language: 'English please' }, 400, /language/],
    ['a wrong temperature', { temperature: 3 }, 400, /temperature/],
    ['an unknown model', { model: 'sandbox/nothing' }, 404, /not a valid model ID/],
    ['a chat model', { model: 'sandbox/echo' }, 404, /does not transcribe audio/],
    ['unavailable providers', { provider: { only: ['nobody'] } }, 404, /No allowed providers/],
  ])('%s', async (_what, change, code, message) => {
    const { status, answer } = await post({ ...body, ...change });
    expect([status, answer.error?.message]).toEqual([code, expect.stringMatching(message)]);
  });

  test('400 for options that are nested too deeply, and for a stream', async () => {
    const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`;
    const options = { options: { sandbox: { a: 'DEEP' } } };
    const text = JSON.stringify({ ...body, provider: options }).replace('"DEEP"', deep);
    const response = await gateway.call('POST', '/audio/transcriptions', text);
    expect([response.status, await response.text()]).toEqual([400, expect.stringMatching(/nested/)]);
    const { status, answer } = await post({ ...body, stream: true });
    expect([status, answer.error?.message]).toEqual([400, expect.stringMatching(/stream/)]);
    expect((await post({ ...body, stream: false })).status).toBe(200);
  });

  test('401 without a key, 403 with a management key', async () => {
    const call = (headers: Record<string, string>) => gateway.call('POST', '/audio/transcriptions', body, headers);
    expect((await call({ authorization: '' })).status).toBe(401);
    expect((await call({ authorization: `Bearer ${gateway.management_key}` })).status).toBe(403);
  });

  test('413 for a file above the bound', async () => {
    const large = Buffer.concat([wav, Buffer.alloc(26 * 1024 * 1024)]);
    const { status } = await post({ ...body, input_audio: { data: large.toString('base64'), format: 'wav' } });
    expect(status).toBe(413);
  });

  test('a transcription model does not answer chat', async () => {
    const messages = [{ role: 'user', content: 'x' }];
    const response = await gateway.call('POST', '/chat/completions', { model: 'sandbox/transcribe', messages });
    expect(response.status).toBe(400);
  });
});

describe('output guardrails', () => {
  async function held(settings: object): Promise<TestGateway> {
    const filtered = await startGateway();
    const authorization = `Bearer ${filtered.management_key}`;
    const body = { name: 'g', content_filter_output: true, ...settings };
    const made = await filtered.call('POST', '/guardrails', body, { authorization });
    const { data } = (await made.json()) as { data: { id: string } };
    const keyHashes = [filtered.key_hash];
    await filtered.call(
      'POST',
      `/guardrails/${data.id}/assignments/keys`,
      { key_hashes: keyHashes },
      { authorization },
    );
    return filtered;
  }
  const timed = {
    model: 'sandbox/transcribe',
    input_audio: inputAudio,
    response_format: 'verbose_json',
    timestamp_granularities: ['word', 'segment'],
  };

  test('apply to the transcript, including its words and segments', async () => {
    const filtered = await held({ content_filters: [{ pattern: 'heard \\d+ ms', action: 'redact', label: 'TIME' }] });
    try {
      const response = await filtered.call('POST', '/audio/transcriptions', timed);
      const answer = (await response.json()) as Answer;
      expect(answer.text).toBe('The sandbox [TIME] of wav.');
      expect(answer.segments?.map(({ text }) => text).join('')).toBe('The sandbox [TIME] of wav.');
      expect(answer.words?.map(({ word }) => word)).toEqual(['The', 'sandbox', '[TIME]', 'of', 'wav.']);
      expect(answer.words!.length).toBeGreaterThan(0);
      const id = response.headers.get('x-generation-id')!;
      const record = await (await filtered.call('GET', `/generation?id=${id}`)).text();
      expect(record).toContain('"in":"answer"');
      expect(record).not.toContain('1172 ms of');
    } finally {
      await filtered.stop();
    }
  });

  test('refuse a blocked transcript, which is charged', async () => {
    const filtered = await held({ content_filters: [{ pattern: 'sandbox heard', action: 'block' }] });
    try {
      const response = await filtered.call('POST', '/audio/transcriptions', timed);
      const text = await response.text();
      expect(response.status, text).toBe(403);
      expect(text).not.toContain('1172');
      const id = response.headers.get('x-generation-id')!;
      const record = (await (await filtered.call('GET', `/generation?id=${id}`)).json()) as {
        data: { total_cost: number };
      };
      expect(record.data.total_cost).toBeGreaterThan(0);
    } finally {
      await filtered.stop();
    }
  });
});
