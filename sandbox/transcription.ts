import { sniffSound, soundMs } from '../src/audio/sound.ts';
import type { JsonObject } from './json.ts';
import { openAiChat } from './openai-chat.ts';
import { isObject, type Prompt, Refusal, textOf } from './prompt.ts';
import { countTokens } from './tokens.ts';
import {
  assemblyaiProblem,
  deepgramProblem,
  elevenlabsProblem,
  openaiProblem,
  type SoundRequest,
} from './transcription-checks.ts';
import type { Envelope, SandboxWire } from './wire.ts';

/** Tokens of a second of sound, on wires that count tokens. */
const TOKENS_PER_SECOND = 10;

/** The prompt for a sound. The answer of the model `echo` to it is the transcript. */
function transcriptOf({ format, ms }: { format: string; ms: number }): string {
  return `The sandbox heard ${ms} ms of ${format}.`;
}

function measured(bytes: Buffer): JsonObject {
  const format = sniffSound(bytes);
  const ms = format === undefined ? undefined : soundMs(bytes, format);
  if (format === undefined || ms === undefined) {
    throw new Refusal(400, 'Audio file might be corrupted or unsupported', 'invalid_value', 'file');
  }
  return { format, ms, bytes: bytes.length };
}

/** A form as an object: texts and lists by their names, and the format and length of the sound. */
async function readForm(raw: Buffer, content_type: string): Promise<JsonObject> {
  let form: FormData;
  try {
    form = await new Response(new Uint8Array(raw), { headers: { 'content-type': content_type } }).formData();
  } catch {
    throw new Refusal(400, 'Could not parse multipart form', 'invalid_request_error');
  }
  const body: JsonObject = {};
  for (const name of new Set(form.keys())) {
    const values = form.getAll(name);
    const [first] = values;
    if (name === 'file' && first instanceof File) {
      body['sound'] = { ...measured(Buffer.from(await first.arrayBuffer())), filename: first.name, type: first.type };
    } else {
      const texts = values.filter((value) => typeof value === 'string');
      body[name] = name.endsWith('[]') || texts.length > 1 ? texts : (texts[0] ?? '');
    }
  }
  return body;
}

function soundOf(body: JsonObject): { format: string; ms: number } {
  const sound = isObject(body['sound']) ? body['sound'] : {};
  return { format: textOf(sound['format']), ms: typeof sound['ms'] === 'number' ? sound['ms'] : 0 };
}

/** The parts of a wire of speech to text that differ. Its errors are those of `openAiChat` unless it has its own. */
interface SpeechWire {
  path: RegExp;
  method?: 'GET';
  read(request: SoundRequest): JsonObject | Promise<JsonObject>;
  problem(body: JsonObject, request: SoundRequest): string | undefined;
  /** Whether this step of the wire transcribes nothing. */
  is_silent?: true;
  /** Whether it bills whole seconds. */
  rounds_up?: true;
  encode(input: { text: string; body: JsonObject; ms: number; envelope: Envelope }): JsonObject;
  errors?: Partial<Pick<SandboxWire, 'credentialOf' | 'errorBody'>>;
}

function wireOf({
  path,
  method,
  read,
  problem,
  is_silent,
  rounds_up,
  encode,
  errors: manners,
}: SpeechWire): SandboxWire {
  const { credentialOf, credentialRefused, modelUnknown, promptTooLong, errorBody, errorEvent, answerHeaders } =
    openAiChat;
  return {
    path,
    ...(method === undefined ? {} : { method }),
    makes_vectors: true,
    ...{ credentialOf, credentialRefused, modelUnknown, promptTooLong, errorBody, errorEvent, answerHeaders },
    ...manners,
    async readBody(raw, { headers, url }) {
      const request: SoundRequest = { raw, type: headers['content-type'] ?? '', url: new URL(url, 'http://sandbox') };
      const body = await read(request);
      const fault = problem(body, request);
      if (fault !== undefined) throw new Refusal(400, fault, 'invalid_request_error');
      return body;
    },
    check: () => undefined,
    soundMs(body) {
      const { ms } = soundOf(body);
      if (is_silent) return 0;
      return rounds_up ? Math.ceil(ms / 1000) * 1000 : ms;
    },
    readPrompt: (body): Prompt => ({
      user_text: transcriptOf(soundOf(body)),
      images: 0,
      files: 0,
      tool_results: [],
      prefill: '',
      tools: [],
      tool_choice: 'none',
      parallel: false,
      schema: undefined,
      reasoning: false,
      tokens_max: 1_000,
      stop: [],
      conversation: JSON.stringify(body['sound'] ?? ''),
      input_tokens: 0,
      cache_prefixes: [],
    }),
    encodeBody(envelope) {
      const { body, answer } = envelope;
      const text = answer.blocks.flatMap((block) => (block.kind === 'text' ? block.pieces : [])).join('');
      return encode({ text, body, ms: soundOf(body).ms, envelope });
    },
    encodeStream: () => [],
  };
}

function wordsOf(text: string, ms: number, units: number): { word: string; start: number; end: number }[] {
  const words = text.split(' ');
  const step = ((ms / 1000) * units) / words.length;
  return words.map((word, index) => ({ word, start: index * step, end: (index + 1) * step }));
}

/** Requests whose prompt has the word `tokens_usage` are billed by tokens, others by seconds, rounded up. */
const openai = wireOf({
  path: /^\/v1\/audio\/transcriptions$/,
  read: ({ raw, type }) => readForm(raw, type),
  problem: openaiProblem,
  rounds_up: true,
  encode({ text, body, ms, envelope }) {
    const seconds = Math.ceil(ms / 1000);
    const audio_tokens = Math.ceil((ms / 1000) * TOKENS_PER_SECOND);
    const output_tokens = countTokens(text);
    const usage: JsonObject = /tokens_usage/.test(textOf(body['prompt']))
      ? {
          type: 'tokens',
          input_tokens: audio_tokens,
          input_token_details: { audio_tokens, text_tokens: 0 },
          output_tokens,
          total_tokens: audio_tokens + output_tokens,
        }
      : { type: 'duration', seconds };
    const billed: JsonObject = envelope.faults.no_usage ? {} : { usage };
    if (body['response_format'] !== 'verbose_json') return { text, ...billed };
    const segments = [{ id: 0, seek: 0, start: 0, end: ms / 1000, text, tokens: [], temperature: 0 }];
    const words = (body['timestamp_granularities[]'] as string[] | undefined)?.includes('word')
      ? { words: wordsOf(text, ms, 1) }
      : {};
    return { task: 'transcribe', language: 'english', duration: ms / 1000, text, segments, ...words, ...billed };
  },
});

const deepgram = wireOf({
  path: /^\/deepgram\/v1\/listen$/,
  read: ({ raw, url }) => ({ ...Object.fromEntries(url.searchParams), sound: measured(raw) }),
  problem: deepgramProblem,
  errors: {
    credentialOf: ({ authorization }) => /^token (.+)$/i.exec(authorization ?? '')?.[1],
    errorBody: ({ code, message }, request_id) => ({ err_code: code ?? 'Bad Request', err_msg: message, request_id }),
  },
  encode: ({ text, ms, body, envelope: { id, faults } }) => ({
    metadata: { request_id: id, channels: 1, ...(faults.no_usage ? {} : { duration: ms / 1000 }) },
    results: {
      channels: [
        {
          ...(body['detect_language'] === 'true' ? { detected_language: 'en', language_confidence: 0.99 } : {}),
          alternatives: [{ transcript: text, confidence: 0.99, words: wordsOf(text, ms, 1) }],
        },
      ],
    },
  }),
});

const elevenlabs = wireOf({
  path: /^\/elevenlabs\/v1\/speech-to-text$/,
  read: async ({ raw, type }) => {
    const { model_id, model: _other, ...form } = await readForm(raw, type);
    return { ...form, ...(model_id === undefined ? {} : { model: model_id }) };
  },
  problem: elevenlabsProblem,
  errors: {
    credentialOf: (headers) => {
      const key = headers['xi-api-key'];
      return typeof key === 'string' ? key : undefined;
    },
    errorBody: ({ code, message }) => ({ detail: { status: code ?? 'error', message } }),
  },
  encode: ({ text, ms, body, envelope: { id, faults } }) => ({
    language_code: textOf(body['language_code']) || 'eng',
    language_probability: 0.99,
    text,
    words: wordsOf(text, ms, 1).flatMap(({ word, start, end }) => [
      { text: word, start, end, type: 'word', logprob: 0 },
      { text: ' ', start: end, end, type: 'spacing', logprob: 0 },
    ]),
    transcription_id: id,
    ...(faults.no_usage ? {} : { audio_duration_secs: ms / 1000 }),
  }),
});

/** An address or id that contains all that the next step needs, so that no state is kept. */
const packed = (facts: JsonObject) => Buffer.from(JSON.stringify(facts)).toString('base64url');

function unpacked(text: string): JsonObject {
  try {
    const facts: unknown = JSON.parse(Buffer.from(text, 'base64url').toString());
    if (isObject(facts)) return facts;
  } catch {
    // Refused below, like every address of another service.
  }
  throw new Refusal(400, 'Cannot access uploaded file, are you using the wrong API key?');
}

const assemblyErrors: SpeechWire['errors'] = {
  credentialOf: ({ authorization }) => authorization,
  errorBody: ({ message }) => ({ error: message }),
};

const assemblyUpload = wireOf({
  path: /^\/assemblyai\/v2\/upload$/,
  // The request has no model yet.
  read: ({ raw }) => ({ model: 'echo', sound: measured(raw) }),
  problem: () => undefined,
  is_silent: true,
  errors: assemblyErrors,
  encode: ({ body }) => ({
    upload_url: `https://cdn.sandbox.invalid/upload/${packed({ sound: body['sound'] ?? null })}`,
  }),
});

const assemblyOrder = wireOf({
  path: /^\/assemblyai\/v2\/transcript$/,
  read({ raw }) {
    const body = JSON.parse(raw.toString()) as JsonObject;
    const { speech_models, audio_url, ...rest } = body;
    const [model = ''] = Array.isArray(speech_models) ? speech_models : [];
    return { ...rest, model, ...unpacked(textOf(audio_url).split('/').at(-1) ?? '') };
  },
  problem: assemblyaiProblem,
  rounds_up: true,
  errors: assemblyErrors,
  encode: ({ body: { model = '', sound = null, language_code = 'en' } }) => ({
    id: packed({ model, sound, language_code }),
    status: 'queued',
  }),
});

const assemblyTranscript = wireOf({
  path: /^\/assemblyai\/v2\/transcript\/[\w-]+$/,
  method: 'GET',
  read: ({ url }) => unpacked(url.pathname.split('/').at(-1) ?? ''),
  problem: () => undefined,
  is_silent: true,
  errors: assemblyErrors,
  encode: ({ text, body, ms, envelope: { faults } }) => ({
    status: 'completed',
    language_code: textOf(body['language_code']),
    text,
    words: wordsOf(text, ms, 1000).map(({ word, start, end }) => ({ text: word, start, end, confidence: 0.99 })),
    ...(faults.no_usage ? {} : { audio_duration: Math.ceil(ms / 1000) }),
  }),
});

/** The wires of speech to text. */
export const speechWires: readonly SandboxWire[] = [
  openai,
  deepgram,
  elevenlabs,
  assemblyUpload,
  assemblyOrder,
  assemblyTranscript,
];
