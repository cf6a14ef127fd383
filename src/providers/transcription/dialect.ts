import type { SoundFormat } from '../../audio/sound.ts';
import type { TokenClasses } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import type { ChatDialect, DialectEndpoint, Report, UpstreamError } from '../dialect.ts';

/** The wires of speech to text. Credentials and errors are those of the provider's chat wire, unless the wire has its own. */
export const transcriptionWires = [
  'openai-transcription',
  'gemini-transcription',
  'deepgram-transcription',
  'elevenlabs-transcription',
  'assemblyai-transcription',
] as const;
export type TranscriptionWire = (typeof transcriptionWires)[number];

/** Audio with its detected format and measured duration. */
export interface Sound {
  bytes: Buffer;
  format: SoundFormat;
  duration_ms: number;
}

/** A parsed request for a transcription. */
export interface TranscriptionRequest {
  sound: Sound;
  /** ISO 639-1; not set if the provider is to detect it. */
  language?: string;
  temperature?: number;
  /** Words to expect, or the preceding text. */
  prompt?: string;
  /** The kinds of timestamps that the client requests. */
  timestamps: readonly ('segment' | 'word')[];
}

/** A piece of the text, with seconds from the start. */
export interface TimedText {
  text: string;
  start: number;
  end: number;
}

export interface TranscriptionAnswer {
  text: string;
  /** In the upstream's notation. */
  language?: string;
  segments?: TimedText[];
  words?: TimedText[];
  /** The upstream's measure of the duration, by which it bills. Not set if it reports none. */
  seconds?: number;
  /** Not set if the upstream reports none. */
  tokens?: TokenClasses;
  upstream_id?: string;
}

/** An answer that is not usable but billed. */
export interface BilledFailure extends Pick<TranscriptionAnswer, 'text' | 'seconds' | 'tokens' | 'upstream_id'> {
  failure: UpstreamError;
}

/** One request to the upstream; reading its answer gives the next request or the text. */
export interface TranscriptionAsk {
  method?: 'GET';
  /** Appended to the provider's base URL; starts with `/`. */
  path: string;
  headers: Record<string, string>;
  payload: string | Buffer;
  /** The delay before it is sent. */
  wait_ms?: number;
  /** Whether the upstream bills for the answer: once the request is sent, its outcome must be learned. */
  is_billed: boolean;
  /** The next request, the answer, or a billed failure. Throws `UpstreamError`. */
  read(
    body: JsonValue,
    headers: Record<string, string | string[] | undefined>,
  ): TranscriptionAsk | { answer: TranscriptionAnswer } | BilledFailure;
}

/** One wire of speech to text. Pure. */
export interface TranscriptionDialect {
  wire: TranscriptionWire;
  /** Fields that `provider.options` may not set. */
  reserved: ReadonlySet<string>;
  /** Whether the model is a chat model that accepts audio, not one that only transcribes. */
  by_chat: boolean;
  /** Set if the wire's credential or errors differ from those of the provider's chat wire. */
  authAndErrors?: Pick<ChatDialect, 'authorize' | 'decodeError'>;
  /** The fields of the request, before a client's options are merged over them. Throws `GatewayError` 400 for an audio format that the wire does not accept. */
  fields(request: TranscriptionRequest, endpoint: DialectEndpoint): { fields: JsonObject; report: Report[] };
  /** The first request. Never changes its arguments. */
  begin(request: TranscriptionRequest, endpoint: DialectEndpoint, fields: JsonObject): TranscriptionAsk;
}
