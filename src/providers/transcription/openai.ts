/**
 * OpenAI's transcriptions (https://platform.openai.com/docs/api-reference/audio/createTranscription), and every server that
 * speaks the same wire: Groq (https://console.groq.com/docs/speech-to-text), Mistral
 * (https://docs.mistral.ai/api/endpoint/audio/transcriptions), vLLM and the like.
 */

import type { SoundFormat } from '../../audio/sound.ts';
import { append } from '../../schemas/append.ts';
import type { TokenClasses } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import type { Report } from '../dialect.ts';
import type { Quirks } from '../quirks.ts';
import { gatewayFields } from '../shared/gateway-fields.ts';
import { asObject } from '../shared/json-shape.ts';
import { amount, answerWith, dropped, objectOf, requireFormat, timed } from './answer.ts';
import type { TranscriptionAnswer, TranscriptionDialect } from './dialect.ts';
import { multipart } from './multipart.ts';

const FORMATS: readonly SoundFormat[] = ['wav', 'mp3', 'flac', 'm4a', 'ogg', 'webm'];

/** OpenAI's models after Whisper answer with the text only (documentation page "Speech to text"). */
const TEXT_ONLY = /transcribe/;

function pathOf({ path, query }: Quirks, upstreamModel: string): string {
  const own = path
    ?.replace(/\/chat\/completions$/, '/audio/transcriptions')
    .replace('{model}', encodeURIComponent(upstreamModel));
  return `${own ?? '/audio/transcriptions'}${query === undefined ? '' : `?${query}`}`;
}

/** Tokens of an answer that is billed by tokens: OpenAI's names, or Mistral's, which count audio among the prompt's. */
function tokensOf(usage: JsonObject): TokenClasses | undefined {
  const input = amount(usage['input_tokens']) ?? amount(usage['prompt_tokens']);
  const output = amount(usage['output_tokens']) ?? amount(usage['completion_tokens']);
  if (input === undefined || output === undefined) return undefined;
  const details = asObject(usage['input_token_details']);
  const audio = amount(details?.['audio_tokens']);
  if (audio === undefined || audio > input) return { in_uncached: input, out_text: output };
  return { in_uncached: input - audio, in_audio: audio, out_text: output };
}

export const openaiTranscription: TranscriptionDialect = {
  wire: 'openai-transcription',
  by_chat: false,
  reserved: new Set([...gatewayFields, 'file', 'file_url', 'file_id', 'response_format']),

  fields({ sound, language, temperature, prompt, timestamps }, { upstream_model: upstreamModel, quirks }) {
    requireFormat(sound.format, quirks.transcription_formats ?? FORMATS);
    const report: Report[] = [];
    const fields: JsonObject = { model: upstreamModel };
    if (language !== undefined) fields['language'] = language;
    if (temperature !== undefined) fields['temperature'] = temperature;
    if (prompt !== undefined) {
      if (quirks.transcription_plain) append(report, dropped({ prompt }));
      else fields['prompt'] = prompt;
    }
    const hasTimes = timestamps.length > 0 && !(TEXT_ONLY.test(upstreamModel) && !quirks.transcription_plain);
    if (hasTimes) fields['timestamp_granularities'] = [...timestamps];
    else append(report, dropped({ timestamp_granularities: timestamps }));
    // Mistral has no formats: its answers always contain the requested times.
    if (!quirks.transcription_plain) fields['response_format'] = hasTimes ? 'verbose_json' : 'json';
    return { fields, report };
  },

  begin: ({ sound }, { upstream_model: upstreamModel, quirks }, fields) => ({
    path: pathOf(quirks, upstreamModel),
    ...multipart(sound, fields),
    is_billed: true,
    read(value) {
      const body = objectOf(value);
      const usage = asObject(body['usage']) ?? {};
      const answer: Omit<TranscriptionAnswer, 'text'> = {};
      const { language } = body;
      if (typeof language === 'string') answer.language = language;
      const segments = timed(body['segments'], 'text');
      if (segments !== undefined && segments.length > 0) answer.segments = segments;
      const words = timed(body['words'], 'word');
      if (words !== undefined && words.length > 0) answer.words = words;
      const seconds = amount(usage['seconds']) ?? amount(usage['prompt_audio_seconds']) ?? amount(body['duration']);
      if (seconds !== undefined) answer.seconds = seconds;
      const tokens = tokensOf(usage);
      if (tokens !== undefined) answer.tokens = tokens;
      const id = asObject(body['x_groq'])?.['id'];
      if (typeof id === 'string') answer.upstream_id = id;
      return answerWith(body['text'], answer);
    },
  }),
};
