import type { ImagePart, TextPart, TokenClasses } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import type { DialectEndpoint, Media, MediaNeed, Report } from '../dialect.ts';

/** The wires of embeddings. A provider's credential and errors are those of its chat wire. */
export const embeddingWires = [
  'openai-embeddings',
  'gemini-embeddings',
  'vertex-embeddings',
  'bedrock-embeddings',
  'cohere-embeddings',
  'voyage-embeddings',
  'jina-embeddings',
] as const;
export type EmbeddingWire = (typeof embeddingWires)[number];

/** One thing to embed: a text, a text as tokens of the model's own vocabulary, or text and images that make one vector together. */
export type EmbeddingInput = string | number[] | (TextPart | ImagePart)[];

/** A request for embeddings, past the door. */
export interface EmbeddingRequest {
  inputs: EmbeddingInput[];
  encoding_format: 'float' | 'base64';
  dimensions?: number;
  /** What the vectors are for: a word of the public API, or the provider's own. */
  input_type?: string;
  user?: string;
  /** Fields that the public API does not know: they reach only upstreams whose wire takes them (`EmbeddingDialect.takesRest`). */
  rest?: JsonObject;
}

/** Numbers, or 32-bit floats, little-endian, as base64. */
export type Vector = number[] | string;

/** What one upstream request may hold. */
export interface BatchBounds {
  inputs_max: number;
  /** Over all inputs. Absent: as many as the inputs may have. */
  tokens_max?: number;
}

export interface EncodedEmbedding {
  /** Appended to the provider's base URL; starts with `/`. */
  path: string;
  headers: Record<string, string>;
  body: JsonObject;
  report: Report[];
  /** The model does not bring vectors of these dimensions to length one, as it does others: it is done here. */
  is_unnormalised?: true;
}

export interface EmbeddingAnswer {
  /** In the order of the inputs; undefined: what came for one is no vector. */
  vectors: (Vector | undefined)[];
  /** Absent: not told. */
  usage?: TokenClasses;
  upstream_id?: string;
}

/** Pure: one wire of embeddings. */
export interface EmbeddingDialect {
  wire: EmbeddingWire;
  /** Whether `EmbeddingRequest.rest` goes upstream. */
  takesRest: boolean;
  /** Fields of a body that `provider.options` may not set. */
  reserved: ReadonlySet<string>;
  /** Absent: the wire takes URLs as they are, or no images. */
  requiredMedia?(inputs: readonly EmbeddingInput[]): MediaNeed[];
  batch(endpoint: DialectEndpoint, inputs: readonly EmbeddingInput[]): BatchBounds;
  /**
   * Builds one upstream request; `request.inputs` fit in it. Throws `GatewayError` 400 for what the wire cannot carry: a vector of
   * other dimensions, or of half the input, is not what was asked for. Never changes `request`.
   */
  encodeRequest(request: EmbeddingRequest, endpoint: DialectEndpoint, media: Media): EncodedEmbedding;
  /** Throws `UpstreamError`. Whether there is a vector for each input is the caller's to check: other answers were billed too. */
  decodeResponse(body: JsonValue, headers: Record<string, string | string[] | undefined>): EmbeddingAnswer;
}
