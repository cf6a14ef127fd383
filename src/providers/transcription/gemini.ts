/** A chat model of Gemini that accepts audio, prompted for a transcript (https://ai.google.dev/gemini-api/docs/audio). */
import type { SoundFormat } from '../../audio/sound.ts';
import { limits } from '../../limits.ts';
import { accumulate } from '../../schemas/accumulate.ts';
import type { ChatRequest } from '../../schemas/inner.ts';
import { type DialectEndpoint, UpstreamError } from '../dialect.ts';
import { geminiGenerateContent } from '../gemini-generate-content/index.ts';
import { dropped, requireFormat } from './answer.ts';
import type { TranscriptionDialect, TranscriptionRequest } from './dialect.ts';

/** The least output bound of a transcription, for models that reason before they write. */
const TRANSCRIPT_TOKENS_MIN = 8_192;

const ENCODE_OPTIONS = { media: new Map(), strip_state: true };

const FORMATS: readonly SoundFormat[] = ['wav', 'mp3', 'aac', 'ogg', 'flac'];

/** The most tokens of a transcript: fast speech in a script of one token per character, and the model's thinking before it. */
export function transcriptTokens(
  durationMs: number,
  { max_completion_tokens: maxCompletionTokens }: DialectEndpoint,
): number {
  const bound = Math.ceil((durationMs / 1000) * limits.transcript_tokens_per_second) + TRANSCRIPT_TOKENS_MIN;
  return Math.min(bound, maxCompletionTokens ?? bound);
}

function chatOf({ sound, language, temperature, prompt }: TranscriptionRequest, maxTokens: number): ChatRequest {
  const instructions = [
    'Write down word for word what is said in this audio. Answer with the words alone, without times, names of speakers, comments or formatting; with nothing where nothing is said.',
    language === undefined ? '' : `The language is ${language} (ISO 639-1).`,
    prompt === undefined ? '' : `Words to expect, or what was said before: ${prompt}`,
  ];
  const data = sound.bytes.toString('base64');
  return {
    messages: [
      {
        role: 'user',
        content: [
          { type: 'input_audio', input_audio: { data, format: sound.format } },
          { type: 'text', text: instructions.filter((line) => line !== '').join('\n') },
        ],
      },
    ],
    max_tokens: maxTokens,
    ...(temperature === undefined ? {} : { temperature }),
  };
}

export const geminiTranscription: TranscriptionDialect = {
  wire: 'gemini-transcription',
  by_chat: true,
  // Tools and tiers have prices of their own.
  reserved: new Set([
    ...geminiGenerateContent.reserved,
    'tools',
    'toolConfig',
    'tool_config',
    'serviceTier',
    'service_tier',
  ]),

  fields(request, endpoint) {
    requireFormat(request.sound.format, FORMATS);
    const chat = chatOf(request, transcriptTokens(request.sound.duration_ms, endpoint));
    const { body, report } = geminiGenerateContent.encodeRequest(chat, endpoint, ENCODE_OPTIONS);
    return { fields: body, report: [...report, ...dropped({ timestamp_granularities: request.timestamps })] };
  },

  begin(_request, endpoint, fields) {
    // Path and headers do not depend on the content.
    const chat: ChatRequest = { messages: [{ role: 'user', content: '-' }] };
    const { path, headers, state } = geminiGenerateContent.encodeRequest(chat, endpoint, ENCODE_OPTIONS);
    return {
      path,
      headers,
      payload: JSON.stringify(fields),
      is_billed: true,
      read(body, headers) {
        const attempt = { ...state, generation_id: '', headers };
        const completion = accumulate(geminiGenerateContent.decodeResponse(body, attempt), 0);
        const [{ message, finish_reason: finishReason }] = completion.choices;
        const tokens = completion.ext.usage;
        const text = typeof message.content === 'string' ? message.content.trim() : '';
        const answer = {
          text,
          ...(tokens === undefined ? {} : { tokens }),
          ...(completion.ext.requestId === undefined ? {} : { upstream_id: completion.ext.requestId }),
        };
        if (finishReason === 'stop') return { answer };
        const problem = finishReason === 'length' ? 'is longer than its bound' : 'was not finished';
        const failureMessage = `The provider's transcript ${problem}`;
        return { ...answer, failure: new UpstreamError('invalid_response', failureMessage, { status: 200 }) };
      },
    };
  },
};
