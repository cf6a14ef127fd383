/** ElevenLabs' speech to text (https://elevenlabs.io/docs/api-reference/speech-to-text/convert). */
import { type SoundFormat, soundFormats } from '../../audio/sound.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { asArray, asObject } from '../shared/json-shape.ts';
import { amount, answerWith, decodeErrorBy, dropped, objectOf, requireFormat, timed } from './answer.ts';
import type { TranscriptionAnswer, TranscriptionDialect } from './dialect.ts';
import { multipart } from './multipart.ts';

const FORMATS: readonly SoundFormat[] = soundFormats;

export const elevenlabsTranscription: TranscriptionDialect = {
  wire: 'elevenlabs-transcription',
  by_chat: false,
  // Audio from an address, an answer sent elsewhere, and features with prices of their own.
  reserved: new Set([
    ...['model_id', 'file', 'cloud_storage_url', 'source_url', 'webhook', 'webhook_id', 'use_multi_channel'],
    ...['keyterms', 'entity_detection', 'entity_redaction'],
  ]),
  authAndErrors: {
    authorize: (credential): Record<string, string> => (credential === undefined ? {} : { 'xi-api-key': credential }),
    decodeError: decodeErrorBy(({ detail }) => {
      const error = asObject(detail);
      return error === undefined ? undefined : { message: error['message'], code: error['status'] };
    }),
  },

  fields({ sound, language, temperature, prompt }, { upstream_model: upstreamModel }) {
    requireFormat(sound.format, FORMATS);
    const fields: JsonObject = { model_id: upstreamModel, tag_audio_events: false };
    if (language !== undefined) fields['language_code'] = language;
    if (temperature !== undefined) fields['temperature'] = temperature;
    return { fields, report: dropped({ prompt }) };
  },

  begin: ({ sound }, _endpoint, fields) => ({
    path: '/speech-to-text',
    ...multipart(sound, fields, { list_suffix: '' }),
    is_billed: true,
    read(value, headers) {
      const body = objectOf(value);
      const answer: Omit<TranscriptionAnswer, 'text'> = {};
      if (typeof body['language_code'] === 'string') answer.language = body['language_code'];
      // The spaces between words are entries of their own.
      const spoken = asArray(body['words']).filter((word) => asObject(word)?.['type'] === 'word');
      const words = timed(spoken, 'text');
      if (words !== undefined && words.length > 0) answer.words = words;
      const seconds = amount(body['audio_duration_secs']);
      if (seconds !== undefined) answer.seconds = seconds;
      const id = body['transcription_id'] ?? headers['request-id'];
      if (typeof id === 'string') answer.upstream_id = id;
      return answerWith(body['text'], answer);
    },
  }),
};
