import type { SoundFormat } from '../../audio/sound.ts';
import type { TokenClasses } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import type { ChatDialect, DialectEndpoint, Report, UpstreamError } from '../dialect.ts';

/** The wires of speech to text. A provider's credential and errors are those of its chat wire, but where one has its own. */
export const transcriptionWires = [
  'openai-transcription',
  'gemini-transcription',
  'deepgram-transcription',
  'elevenlabs-transcription',
  'assemblyai-transcription',
] as const;
export type TranscriptionWire = (typeof transcriptionWires)[number];

/** A sound whose format was seen and whose length was measured. */
export interface Sound {
  bytes: Buffer;
  format: SoundFormat;
  duration_ms: number;
}

/** A request for the text of a sound, past the door. */
export interface TranscriptionRequest {
  sound: Sound;
  /** ISO 639-1; absent: to be found out. */
  language?: string;
  temperature?: number;
  /** Words to expect, or the text before. */
  prompt?: string;
  /** Which times are wanted besides the text. */
  timestamps: readonly ('segment' | 'word')[];
}

/** A stretch of the text, in seconds from the start. */
export interface TimedText {
  text: string;
  start: number;
  end: number;
}

export interface TranscriptionAnswer {
  text: string;
  /** As the upstream names it. */
  language?: string;
  segments?: TimedText[];
  words?: TimedText[];
  /** The length of the sound by the upstream's count, by which it bills. Absent: not told. */
  seconds?: number;
  /** Absent: not told. */
  tokens?: TokenClasses;
  upstream_id?: string;
}

/** An answer that cannot be given out, and is billed all the same. */
export interface BilledFailure extends Pick<TranscriptionAnswer, 'text' | 'seconds' | 'tokens' | 'upstream_id'> {
  failure: UpstreamError;
}

/** One request to the upstream, and what its answer leads to: the next request, or the text. */
export interface TranscriptionAsk {
  method?: 'GET';
  /** Appended to the provider's base URL; starts with `/`. */
  path: string;
  headers: Record<string, string>;
  payload: string | Buffer;
  /** How long to wait before it is sent. */
  wait_ms?: number;
  /** Its answer is what the upstream is billed for: once it is sent, the end has to be known. */
  is_billed: boolean;
  /** Throws `UpstreamError`. */
  read(
    body: JsonValue,
    headers: Record<string, string | string[] | undefined>,
  ): TranscriptionAsk | { answer: TranscriptionAnswer } | BilledFailure;
}

/** Pure: one wire of speech to text. */
export interface TranscriptionDialect {
  wire: TranscriptionWire;
  /** Fields that `provider.options` may not set. */
  reserved: ReadonlySet<string>;
  /** What it asks is a chat model that hears, not one that transcribes alone. */
  by_chat: boolean;
  /** Where the wire shows its credential or tells its errors in another way than the provider's chat. */
  manners?: Pick<ChatDialect, 'authorize' | 'decodeError'>;
  /** The fields of the request, before a client's options are put over them. Throws `GatewayError` 400 for a sound that the wire does not take. */
  fields(request: TranscriptionRequest, endpoint: DialectEndpoint): { fields: JsonObject; report: Report[] };
  /** The first request. Never changes what it is given. */
  begin(request: TranscriptionRequest, endpoint: DialectEndpoint, fields: JsonObject): TranscriptionAsk;
}
