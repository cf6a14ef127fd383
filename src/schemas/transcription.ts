/**
 * The public schema of speech to text: what `POST /audio/transcriptions` accepts and answers (specification, section
 * "Speech-to-text"), and the form that OpenAI's clients send instead. `null` means "not set".
 */
import Type, { type Static, type TSchema } from 'typebox';
import { limits } from '../limits.ts';
import { ProviderPreferences } from './chat.ts';
import { RoutingMetadata } from './routing-metadata.ts';

/** Characters of the words to expect, for one request. */
const TRANSCRIPTION_PROMPT_CHARS_MAX = 16_384;

const orNull = <T extends TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]));

const model = Type.String({
  minLength: 1,
  maxLength: limits.model_name_chars_max,
  description: '`author/slug` of a model that transcribes.',
});
const Language = Type.String({
  pattern: '^[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*$',
  maxLength: 20,
  description: 'ISO 639-1, such as `en`; detected if absent.',
});
const prompt = Type.String({
  maxLength: TRANSCRIPTION_PROMPT_CHARS_MAX,
  description: 'Words to expect, or the preceding text.',
});

export const responseFormats = ['json', 'verbose_json', 'text'] as const;
export type ResponseFormat = (typeof responseFormats)[number];
const granularities = ['segment', 'word'] as const;

export const TranscriptionBody = Type.Object(
  {
    input_audio: Type.Object({
      data: Type.String({ minLength: 1, description: 'The bytes of the file as base64, not as a data URI.' }),
      format: Type.String({
        minLength: 1,
        maxLength: 32,
        description: 'wav, mp3, flac, m4a, ogg, webm or aac; not every provider accepts all of them.',
      }),
    }),
    model,
    language: orNull(Language),
    temperature: orNull(Type.Number({ minimum: 0, maximum: 2 })),
    prompt: orNull(prompt),
    response_format: orNull(
      Type.Enum(responseFormats, {
        description: '`verbose_json` adds the language and times, if the provider reports them.',
      }),
    ),
    timestamp_granularities: orNull(Type.Array(Type.Enum(granularities), { maxItems: 2 })),
    provider: orNull(ProviderPreferences),
    stream: orNull(Type.Literal(false, { description: 'Transcripts are not streamed.' })),
  },
  { additionalProperties: true, title: 'TranscriptionRequest' },
);
export type TranscriptionBody = Static<typeof TranscriptionBody>;

/** The form of OpenAI's clients: text fields and a file. */
export const TranscriptionForm = Type.Object(
  {
    // The operation checks that the form's parser returned a file.
    file: Type.Unsafe<{ bytes: Buffer; filename: string; type: string }>({
      contentMediaType: 'application/octet-stream',
      description: 'The file; its name or type determines the format.',
    }),
    model,
    language: Type.Optional(Language),
    temperature: Type.Optional(Type.String({ pattern: '^\\d+(?:\\.\\d+)?$', maxLength: 20, description: '0 to 2' })),
    prompt: Type.Optional(prompt),
    response_format: Type.Optional(Type.Enum(responseFormats)),
    'timestamp_granularities[]': Type.Optional(
      Type.Union([Type.Enum(granularities), Type.Array(Type.Enum(granularities), { maxItems: 2 })]),
    ),
    provider: Type.Optional(Type.String({ maxLength: 65_536, description: 'Provider preferences as JSON.' })),
    stream: Type.Optional(Type.Literal('false')),
  },
  { additionalProperties: true, title: 'TranscriptionForm' },
);
export type TranscriptionForm = Static<typeof TranscriptionForm>;

const count = Type.Integer({ minimum: 0 });
const seconds = Type.Number({ minimum: 0 });
const Times = Type.Object({ start: seconds, end: seconds }, { additionalProperties: true });

export const TranscriptionAnswer = Type.Object(
  {
    text: Type.String(),
    usage: Type.Optional(
      Type.Object(
        {
          type: Type.Enum(['duration', 'tokens']),
          seconds: Type.Number({
            description: 'The seconds that the provider billed, if it reports them, otherwise the length of the audio.',
          }),
          input_tokens: Type.Optional(count),
          output_tokens: Type.Optional(count),
          total_tokens: Type.Optional(count),
          cost: Type.Optional(Type.Number({ description: 'USD.' })),
          is_byok: Type.Boolean(),
        },
        { additionalProperties: true },
      ),
    ),
    task: Type.Optional(Type.Literal('transcribe')),
    language: Type.Optional(Type.String()),
    duration: Type.Optional(Type.Number({ description: 'Seconds.' })),
    segments: Type.Optional(Type.Array(Times)),
    words: Type.Optional(Type.Array(Times)),
    gateway_metadata: Type.Optional(RoutingMetadata),
    openrouter_metadata: Type.Optional(RoutingMetadata),
  },
  { title: 'TranscriptionResponse' },
);
