import { formatNamed, type SoundFormat, sniffSound, soundFormats, soundMs } from '../../audio/sound.ts';
import { GatewayError, invalidField } from '../../errors.ts';
import { explain, ValidationError } from '../../http/validation.ts';
import { limits } from '../../limits.ts';
import type { Sound, TranscriptionRequest } from '../../providers/transcription/dialect.ts';
import { ProviderPreferences as ProviderSchema } from '../../schemas/chat.ts';
import type { ChatRequest, ProviderPreferences } from '../../schemas/inner.ts';
import { structureBreach } from '../../schemas/json-structure.ts';
import type { ResponseFormat, TranscriptionBody, TranscriptionForm } from '../../schemas/transcription.ts';

/** A request for a transcript, as the dialects read it, as the flow reads every call, and how it is to be answered. */
export interface Transcription {
  request: TranscriptionRequest;
  asked: ChatRequest & { model: string };
  response_format: ResponseFormat;
}

/** Node passes over what is no base64: a text of which something was passed over is none. */
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

/** The sound with the format that its bytes have and its length. `told` is what the client says it is, `field` where it says so. */
function soundOf(bytes: Buffer, told: SoundFormat | undefined, field: string): Sound {
  if (bytes.length > limits.sound_bytes_max) {
    throw new GatewayError(413, `The audio must not be larger than ${limits.sound_bytes_max} bytes`);
  }
  const format = sniffSound(bytes);
  if (format === undefined) {
    throw new GatewayError(400, `The audio is not in one of the formats ${soundFormats.join(', ')}`);
  }
  if (told !== undefined && told !== format) {
    throw new GatewayError(400, `${field} says ${told}, but the audio is ${format}`, { metadata: { field } });
  }
  const durationMs = soundMs(bytes, format);
  if (durationMs === undefined)
    throw new GatewayError(400, `The audio contains no sound that can be read as ${format}`);
  if (durationMs > limits.sound_ms_max) {
    throw new GatewayError(400, `The audio must not last longer than ${limits.sound_ms_max / 3_600_000} hours`);
  }
  return { bytes, format, duration_ms: durationMs };
}

interface Wishes {
  model: string;
  language?: string | null | undefined;
  temperature?: number | null | undefined;
  prompt?: string | null | undefined;
  timestamps: readonly ('segment' | 'word')[];
  response_format: ResponseFormat;
  provider?: unknown;
}

function transcription(sound: Sound, wishes: Wishes): Transcription {
  const { model, language, temperature, prompt, timestamps, response_format, provider } = wishes;
  // OpenAI's default of the form with times: segments.
  const wanted = response_format === 'verbose_json' && timestamps.length === 0 ? (['segment'] as const) : timestamps;
  return {
    request: {
      sound,
      timestamps: wanted,
      ...(language == null ? {} : { language }),
      ...(temperature == null ? {} : { temperature }),
      ...(prompt == null || prompt === '' ? {} : { prompt }),
    },
    asked: {
      model,
      // What routing and records read: that there is sound. The sound itself is kept once.
      messages: [{ role: 'user', content: [{ type: 'input_audio', input_audio: { data: '', format: sound.format } }] }],
      ...(temperature == null ? {} : { temperature }),
      ...(provider == null ? {} : { provider: provider as ProviderPreferences }),
    },
    response_format,
  };
}

/** Reads the JSON body. */
export function transcriptionOf(body: TranscriptionBody): Transcription {
  const { input_audio, response_format, timestamp_granularities, ...wishes } = body;
  const told = formatNamed(input_audio.format);
  if (told === undefined) {
    throw invalidField('input_audio.format', `must be one of ${soundFormats.join(', ')}`);
  }
  const sound = soundOf(bytesOf(input_audio.data), told, 'input_audio.format');
  const timestamps = timestamp_granularities ?? [];
  return transcription(sound, { ...wishes, timestamps, response_format: response_format ?? 'json' });
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
  const found = explain(ProviderSchema as Parameters<typeof explain>[0], value, 'provider');
  if (found.length > 0) throw new ValidationError('body', found);
  return value;
}

/** What a file's name says of its format, else its type: both are often left as a library sets them. */
function toldBy({ filename, type }: TranscriptionForm['file']): SoundFormat | undefined {
  const extension = /\.([A-Za-z0-9]+)$/.exec(filename)?.[1];
  const subtype = /^(?:audio|video)\/([^;\s]+)/i.exec(type)?.[1];
  return (extension && formatNamed(extension)) || (subtype && formatNamed(subtype)) || undefined;
}

/** Reads the form of OpenAI's clients. */
export function transcriptionOfForm(form: TranscriptionForm): Transcription {
  const { file, model, language, temperature, prompt, response_format = 'json', provider } = form;
  if (!Buffer.isBuffer(file.bytes)) throw invalidField('file', 'must be a file');
  const degrees = temperature === undefined ? undefined : Number(temperature);
  if (degrees !== undefined && degrees > 2) throw invalidField('temperature', 'must be at most 2');
  const times = form['timestamp_granularities[]'];
  return transcription(soundOf(file.bytes, toldBy(file), 'The name or type of file'), {
    model,
    language,
    temperature: degrees,
    prompt,
    timestamps: times === undefined ? [] : [times].flat(),
    response_format,
    ...(provider === undefined ? {} : { provider: preferences(provider) }),
  });
}
