/** Deepgram's recorded audio (https://developers.deepgram.com/reference/speech-to-text/listen-pre-recorded). */
import { mediaTypes, type SoundFormat, soundFormats } from '../../audio/sound.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { asArray, asObject } from '../shared/json-shape.ts';
import { amount, answerWith, decodeErrorBy, dropped, objectOf, requireFormat, timed } from './answer.ts';
import type { TranscriptionAnswer, TranscriptionDialect } from './dialect.ts';

const FORMATS: readonly SoundFormat[] = soundFormats;

/** The parameters are in the query; a list repeats its parameter. */
function queryOf(fields: JsonObject): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) {
    for (const item of Array.isArray(value) ? value : [value]) {
      if (item !== null && item !== undefined)
        query.append(name, typeof item === 'string' ? item : JSON.stringify(item));
    }
  }
  return query.toString();
}

function read(value: JsonValue): ReturnType<typeof answerWith> {
  const body = objectOf(value);
  const channels = asArray(asObject(body['results'])?.['channels']).map((channel) => asObject(channel) ?? {});
  const alternatives = channels.map((channel) => asObject(asArray(channel['alternatives'])[0]) ?? {});
  const metadata = asObject(body['metadata']) ?? {};
  const answer: Omit<TranscriptionAnswer, 'text'> = {};
  const language = channels[0]?.['detected_language'];
  if (typeof language === 'string') answer.language = language;
  const words = timed(alternatives[0]?.['words'], 'word');
  if (words !== undefined && words.length > 0) answer.words = words;
  const seconds = amount(metadata['duration']);
  if (seconds !== undefined) answer.seconds = seconds;
  if (typeof metadata['request_id'] === 'string') answer.upstream_id = metadata['request_id'];
  const texts = alternatives.map(({ transcript }) => transcript);
  const hasTexts = texts.length > 0 && texts.every((text) => typeof text === 'string');
  return answerWith(hasTexts ? texts.join('\n') : undefined, answer);
}

export const deepgramTranscription: TranscriptionDialect = {
  wire: 'deepgram-transcription',
  by_chat: false,
  // A callback would send the answer elsewhere; channels and the other fields have prices of their own.
  reserved: new Set([
    ...[
      'model',
      'tier',
      'version',
      'callback',
      'callback_method',
      'url',
      'multichannel',
      'diarize',
      'redact',
      'keyterm',
      'sentiment',
    ],
    ...['summarize', 'topics', 'custom_topic', 'intents', 'custom_intent', 'detect_entities'],
  ]),
  authAndErrors: {
    authorize: (credential): Record<string, string> =>
      credential === undefined ? {} : { authorization: `Token ${credential}` },
    decodeError: decodeErrorBy(({ err_msg: errMsg, err_code: errCode }) =>
      errMsg === undefined ? undefined : { message: errMsg, code: errCode },
    ),
  },

  fields({ sound, language, temperature, prompt }, { upstream_model: upstreamModel }) {
    requireFormat(sound.format, FORMATS);
    const fields: JsonObject = { model: upstreamModel, smart_format: true };
    if (language === undefined) fields['detect_language'] = true;
    else fields['language'] = language;
    return { fields, report: dropped({ temperature, prompt }) };
  },

  begin: ({ sound }, _endpoint, fields) => ({
    path: `/listen?${queryOf(fields)}`,
    headers: { 'content-type': mediaTypes[sound.format] },
    payload: sound.bytes,
    is_billed: true,
    read,
  }),
};
