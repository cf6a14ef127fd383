import type { JsonObject } from './json.ts';
import { isObject, textOf } from './prompt.ts';

/** A request before it is parsed. */
export interface SoundRequest {
  raw: Buffer;
  /** Its content type. */
  type: string;
  url: URL;
}

function unknownField(body: JsonObject, known: readonly string[]): string | undefined {
  const extra = Object.keys(body).find((name) => !known.includes(name));
  return extra === undefined ? undefined : `Unknown field: ${extra}`;
}

const isNumberFrom = (text: string, least: number, most: number) =>
  /^\d+(\.\d+)?$/.test(text) && Number(text) >= least && Number(text) <= most;

/** https://platform.openai.com/docs/api-reference/audio/createTranscription */
export function openaiProblem(body: JsonObject, { type }: SoundRequest): string | undefined {
  const { sound, model, response_format, temperature } = body;
  if (!type.startsWith('multipart/form-data')) return "Invalid request. Please provide a 'multipart/form-data' body.";
  if (!isObject(sound)) return "Missing required parameter: 'file'.";
  const extension = /\.(\w+)$/.exec(textOf(sound['filename']))?.[1] ?? '';
  const taken = ['flac', 'm4a', 'mp3', 'mp4', 'mpeg', 'mpga', 'oga', 'ogg', 'wav', 'webm'];
  if (!taken.includes(extension)) return `Invalid file format. Supported formats: ${JSON.stringify(taken)}`;
  if (textOf(model) === '') return 'you must provide a model parameter';
  if (!['json', 'text', 'srt', 'verbose_json', 'vtt'].includes(textOf(response_format) || 'json')) {
    return `Invalid response_format: ${textOf(response_format)}`;
  }
  if (temperature !== undefined && !isNumberFrom(textOf(temperature), 0, 1)) return 'temperature must be from 0 to 1';
  if (body['timestamp_granularities[]'] !== undefined && response_format !== 'verbose_json') {
    return "timestamp_granularities needs response_format 'verbose_json'";
  }
  return unknownField(body, [
    ...['sound', 'model', 'response_format', 'temperature', 'language', 'prompt', 'timestamp_granularities[]'],
    ...['chunking_strategy', 'include[]', 'stream', 'keywords[]', 'sandbox'],
  ]);
}

/** https://developers.deepgram.com/reference/speech-to-text/listen-pre-recorded */
export function deepgramProblem(body: JsonObject, { type }: SoundRequest): string | undefined {
  if (!/^(?:audio|video)\//.test(type)) return 'Bad Request: failed to process audio: unsupported content type';
  if (textOf(body['model']) === '') return 'Bad Request: model is missing';
  if (body['language'] !== undefined && body['detect_language'] === 'true') {
    return 'Bad Request: language and detect_language exclude each other';
  }
  return undefined;
}

/** https://elevenlabs.io/docs/api-reference/speech-to-text/convert */
export function elevenlabsProblem(body: JsonObject, { type }: SoundRequest): string | undefined {
  if (!type.startsWith('multipart/form-data')) return 'Field required: model_id';
  if (!isObject(body['sound'])) return 'Must provide either file or cloud_storage_url parameter.';
  if (textOf(body['model']) === '') return 'Field required: model_id';
  const { temperature } = body;
  return temperature !== undefined && !isNumberFrom(textOf(temperature), 0, 2)
    ? 'temperature must be from 0 to 2'
    : undefined;
}

/** https://www.assemblyai.com/docs/api-reference/transcripts/submit */
export function assemblyaiProblem(body: JsonObject, { type }: SoundRequest): string | undefined {
  if (!type.startsWith('application/json')) return 'Invalid endpoint schema, please refer to documentation.';
  if (!isObject(body['sound'])) return 'audio_url is missing';
  if (body['language_code'] !== undefined && body['language_detection'] === true) {
    return 'language_code and language_detection exclude each other';
  }
  return undefined;
}
