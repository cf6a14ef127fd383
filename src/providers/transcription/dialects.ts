import type { Wire } from '../../schemas/inner.ts';
import type { Provider } from '../provider.ts';
import { assemblyaiTranscription } from './assemblyai.ts';
import { deepgramTranscription } from './deepgram.ts';
import type { TranscriptionDialect, TranscriptionWire } from './dialect.ts';
import { elevenlabsTranscription } from './elevenlabs.ts';
import { geminiTranscription } from './gemini.ts';
import { openaiTranscription } from './openai.ts';

/** The dialect of each wire of speech to text. */
export const transcriptionDialects: Readonly<Record<TranscriptionWire, TranscriptionDialect>> = {
  'openai-transcription': openaiTranscription,
  'gemini-transcription': geminiTranscription,
  'deepgram-transcription': deepgramTranscription,
  'elevenlabs-transcription': elevenlabsTranscription,
  'assemblyai-transcription': assemblyaiTranscription,
};

/** The transcription wire of each chat wire, below the same base URL. */
const SIBLINGS: Readonly<Partial<Record<Wire, TranscriptionWire>>> = {
  'openai-chat': 'openai-transcription',
  'openai-responses': 'openai-transcription',
  'gemini-generate-content': 'gemini-transcription',
};

/** The transcription dialect of a provider: the one its row names, else the one of its chat wire; undefined if it has none. */
export function transcriptionDialectOf(
  provider: Pick<Provider, 'dialect' | 'transcription_dialect'>,
): TranscriptionDialect | undefined {
  const wire = provider.transcription_dialect ?? SIBLINGS[provider.dialect];
  return wire === undefined ? undefined : transcriptionDialects[wire];
}
