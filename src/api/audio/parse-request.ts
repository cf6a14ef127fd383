import { formatNamed, type SoundFormat, sniffSound, soundFormats, soundSteps } from '../../audio/sound.ts';
import type { Steps } from '../../audio/steps.ts';
import { GatewayError, invalidField } from '../../errors.ts';
import { explain, ValidationError } from '../../http/validation.ts';
import { limits } from '../../limits.ts';
import type { Sound, TranscriptionRequest } from '../../providers/transcription/dialect.ts';
import { ProviderPreferences as ProviderSchema } from '../../schemas/chat.ts';
import type { ChatRequest, ProviderPreferences } from '../../schemas/inner.ts';
import { structureBreach } from '../../schemas/json-structure.ts';
import type { ResponseFormat, TranscriptionBody, TranscriptionForm } from '../../schemas/transcription.ts';

/** A transcription in three parts: the request for dialects, the chat request for routing and records, and the form of the answer. */
export interface Transcription {
  request: TranscriptionRequest;
  routed: ChatRequest & { model: string };
  response_format: ResponseFormat;
}

/** Decodes base64. Node ignores invalid characters: a text with any is refused. */
function bytesOf(data: string): Buffer {
  if (data.startsWith('data:')) {
    throw invalidField('input_audio.data', 'must be plain base64, not a data URI');
  }
  const bytes = Buffer.from(data, 'base64');
  const padding = data.endsWith('==') ? 2 : data.endsWith('=') ? 1 : 0;
  if (bytes.length !== Math.floor(((data.length - padding) * 3) / 4)) {
    throw invalidField('input_audio.data', 'must be base64');
  }
  return bytes;
}

/** The audio with its actual format and duration. `declared` is the format that the client states in `field`. */
function* soundOf(bytes: Buffer, declared: SoundFormat | undefined, field: string): Steps<Sound> {
  if (bytes.length > limits.joined_slice_bytes) yield;
  if (bytes.length > limits.sound_bytes_max) {
    throw new GatewayError(413, `The audio must not be larger than ${limits.sound_bytes_max} bytes`);
  }
  const format = sniffSound(bytes);
  if (format === undefined) {
    throw new GatewayError(400, `The audio is not in one of the formats ${soundFormats.join(', ')}`);
  }
  if (declared !== undefined && declared !== format) {
    throw new GatewayError(400, `${field} says ${declared}, but the audio is ${format}`, { metadata: { field } });
  }
  const durationMs = yield* soundSteps(bytes, format);
  if (durationMs === undefined)
    throw new GatewayError(400, `The audio contains no sound that can be read as ${format}`);
  if (durationMs > limits.sound_ms_max) {
    throw new GatewayError(400, `The audio must not last longer than ${limits.sound_ms_max / 3_600_000} hours`);
  }
  return { bytes, format, duration_ms: durationMs };
}

interface TranscriptionFields {
  model: string;
  language?: string | null | undefined;
  temperature?: number | null | undefined;
  prompt?: string | null | undefined;
  timestamps: readonly ('segment' | 'word')[];
  response_format: ResponseFormat;
  provider?: unknown;
}

function transcription(sound: Sound, fields: TranscriptionFields): Transcription {
  const { model, language, temperature, prompt, timestamps, response_format, provider } = fields;
  // OpenAI's default for verbose_json: segments.
  const granularities =
    response_format === 'verbose_json' && timestamps.length === 0 ? (['segment'] as const) : timestamps;
  return {
    request: {
      sound,
      timestamps: granularities,
      ...(language == null ? {} : { language }),
      ...(temperature == null ? {} : { temperature }),
      ...(prompt == null || prompt === '' ? {} : { prompt }),
    },
    routed: {
      model,
      // Routing and records only read that there is audio; its data is kept once, in `request`.
      messages: [{ role: 'user', content: [{ type: 'input_audio', input_audio: { data: '', format: sound.format } }] }],
      ...(temperature == null ? {} : { temperature }),
      ...(provider == null ? {} : { provider: provider as ProviderPreferences }),
    },
    response_format,
  };
}

/** Reads the JSON body. Yields while a long sound is measured. */
export function* transcriptionOf(body: TranscriptionBody): Steps<Transcription> {
  const { input_audio, response_format, timestamp_granularities, ...fields } = body;
  const declared = formatNamed(input_audio.format);
  if (declared === undefined) {
    throw invalidField('input_audio.format', `must be one of ${soundFormats.join(', ')}`);
  }
  const sound = yield* soundOf(bytesOf(input_audio.data), declared, 'input_audio.format');
  const timestamps = timestamp_granularities ?? [];
  return transcription(sound, { ...fields, timestamps, response_format: response_format ?? 'json' });
}

function preferences(text: string): unknown {
  const breach = structureBreach(text);
  if (breach !== undefined) throw invalidField('provider', breach);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw invalidField('provider', 'must be JSON');
  }
  const violations = explain(ProviderSchema as Parameters<typeof explain>[0], value, 'provider');
  if (violations.length > 0) throw new ValidationError('body', violations);
  return value;
}

/** The format that the name of a file states, or else its type. Libraries often set neither correctly. */
function declaredBy({ filename, type }: TranscriptionForm['file']): SoundFormat | undefined {
  const extension = /\.([A-Za-z0-9]+)$/.exec(filename)?.[1];
  const subtype = /^(?:audio|video)\/([^;\s]+)/i.exec(type)?.[1];
  return (extension && formatNamed(extension)) || (subtype && formatNamed(subtype)) || undefined;
}

/** Reads the form of OpenAI's clients, in the same way. */
export function* transcriptionOfForm(form: TranscriptionForm): Steps<Transcription> {
  const { file, model, language, temperature, prompt, response_format = 'json', provider } = form;
  if (!Buffer.isBuffer(file.bytes)) throw invalidField('file', 'must be a file');
  const degrees = temperature === undefined ? undefined : Number(temperature);
  if (degrees !== undefined && degrees > 2) throw invalidField('temperature', 'must be at most 2');
  const times = form['timestamp_granularities[]'];
  const sound = yield* soundOf(file.bytes, declaredBy(file), 'The name or type of file');
  return transcription(sound, {
    model,
    language,
    temperature: degrees,
    prompt,
    timestamps: times === undefined ? [] : [times].flat(),
    response_format,
    ...(provider === undefined ? {} : { provider: preferences(provider) }),
  });
}
