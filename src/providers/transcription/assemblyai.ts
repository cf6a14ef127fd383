/**
 * AssemblyAI's recorded audio (https://www.assemblyai.com/docs/api-reference/overview): the audio is uploaded, a transcript is
 * ordered, and polled until it is complete.
 */
import { type SoundFormat, soundFormats } from '../../audio/sound.ts';
import { limits } from '../../limits.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { UpstreamError } from '../dialect.ts';
import { decodeError } from '../openai-chat/errors.ts';
import { asText } from '../shared/json-shape.ts';
import { amount, dropped, requireFormat, textOf, timed } from './answer.ts';
import type { TranscriptionAnswer, TranscriptionAsk, TranscriptionDialect } from './dialect.ts';

/** The first wait between two polls of a provider that transcribes in the background. */
const TRANSCRIPTION_POLL_MS_MIN = 500;

const FORMATS: readonly SoundFormat[] = soundFormats;

const JSON_HEADERS = { 'content-type': 'application/json' };

function objectOf(value: JsonValue): JsonObject {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  throw new UpstreamError('invalid_response', "The provider's answer is not an object");
}

function answerOf(body: JsonObject, id: string): TranscriptionAnswer {
  const answer: TranscriptionAnswer = { text: textOf(body), upstream_id: id };
  if (typeof body['language_code'] === 'string') answer.language = body['language_code'];
  const words = timed(body['words'], 'text', 1000);
  if (words !== undefined && words.length > 0) answer.words = words;
  const seconds = amount(body['audio_duration']);
  if (seconds !== undefined) answer.seconds = seconds;
  return answer;
}

/** Requests the state of a transcript; the wait grows each time. */
function poll(id: string, waitMs: number): TranscriptionAsk {
  return {
    method: 'GET',
    path: `/transcript/${encodeURIComponent(id)}`,
    headers: {},
    payload: '',
    wait_ms: waitMs,
    is_billed: true,
    read(value) {
      const body = objectOf(value);
      const { status } = body;
      if (status === 'completed') return { answer: answerOf(body, id) };
      if (status === 'queued' || status === 'processing') {
        return poll(id, Math.min(waitMs * 1.5, limits.transcription_poll_ms_max));
      }
      // A failed transcript is not billed (documentation page "Error handling").
      const message = asText(body['error']) || 'The provider could not transcribe the audio';
      throw new UpstreamError(status === 'error' ? 'invalid_request' : 'invalid_response', message, { status: 200 });
    },
  };
}

function order(fields: JsonObject, audioUrl: string): TranscriptionAsk {
  return {
    path: '/transcript',
    headers: JSON_HEADERS,
    payload: JSON.stringify({ ...fields, audio_url: audioUrl }),
    is_billed: true,
    read(value) {
      const id = asText(objectOf(value)['id']);
      // A lone surrogate cannot be part of an address.
      if (id === '' || !id.isWellFormed())
        throw new UpstreamError('invalid_response', "The provider's answer has no transcript id");
      return poll(id, TRANSCRIPTION_POLL_MS_MIN);
    },
  };
}

export const assemblyaiTranscription: TranscriptionDialect = {
  wire: 'assemblyai-transcription',
  by_chat: false,
  // Audio from an address was not measured, an answer sent elsewhere is not read, and the rest has prices of its own.
  reserved: new Set([
    ...['audio_url', 'speech_model', 'speech_models', 'webhook_url', 'webhook_auth_header_name', 'multichannel'],
    ...[
      'speaker_labels',
      'summarization',
      'speech_understanding',
      'auto_chapters',
      'auto_highlights',
      'content_safety',
    ],
    ...[
      'entity_detection',
      'iab_categories',
      'sentiment_analysis',
      'redact_pii',
      'redact_pii_audio',
      'keyterms_prompt',
    ],
    ...['prompt', 'language_codes', 'dual_channel', 'domain'],
  ]),
  authAndErrors: {
    authorize: (credential): Record<string, string> => (credential === undefined ? {} : { authorization: credential }),
    decodeError,
  },

  fields({ sound, language, temperature, prompt }, { upstream_model: upstreamModel }) {
    requireFormat(sound.format, FORMATS);
    const fields: JsonObject = { speech_models: [upstreamModel] };
    if (language === undefined) fields['language_detection'] = true;
    else fields['language_code'] = language;
    return { fields, report: dropped({ temperature, prompt }) };
  },

  begin: ({ sound }, _endpoint, fields) => ({
    path: '/upload',
    headers: { 'content-type': 'application/octet-stream' },
    payload: sound.bytes,
    is_billed: false,
    read(value) {
      const url = asText(objectOf(value)['upload_url']);
      if (url === '') throw new UpstreamError('invalid_response', "The provider's answer has no upload address");
      return order(fields, url);
    },
  }),
};
