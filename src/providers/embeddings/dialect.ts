import type { ImagePart, TextPart, TokenClasses } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import type { DialectEndpoint, Media, MediaNeed, Report } from '../dialect.ts';

/** The wires of embeddings. Credentials and errors are those of the provider's chat wire. */
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

/** One input: a text, a text as tokens of the model's vocabulary, or text and images that make one vector together. */
export type EmbeddingInput = string | number[] | (TextPart | ImagePart)[];

/** A parsed request for embeddings. */
export interface EmbeddingRequest {
  inputs: EmbeddingInput[];
  encoding_format: 'float' | 'base64';
  dimensions?: number;
  /** The purpose of the vectors: a word of the public API, or the provider's own. */
  input_type?: string;
  user?: string;
  /** Fields that the public API does not define. Sent only to upstreams whose wire accepts them (`EmbeddingDialect.takesRest`). */
  rest?: JsonObject;
}

/** Numbers, or 32-bit floats, little-endian, as base64. */
export type Vector = number[] | string;

/** The most that one upstream request may hold. */
export interface BatchBounds {
  inputs_max: number;
  /** The most tokens over all inputs. Not set if only each input is bounded. */
  tokens_max?: number;
}

export interface EncodedEmbedding {
  /** Appended to the provider's base URL; starts with `/`. */
  path: string;
  headers: Record<string, string>;
  body: JsonObject;
  report: Report[];
  /** Set if the model does not normalise vectors of these dimensions to length one: the gateway does. */
  is_unnormalised?: true;
}

export interface EmbeddingAnswer {
  /** In the order of the inputs; undefined where the answer has no valid vector. */
  vectors: (Vector | undefined)[];
  /** Not set if the upstream reports none. */
  usage?: TokenClasses;
  upstream_id?: string;
}

/** One wire of embeddings. Pure. */
export interface EmbeddingDialect {
  wire: EmbeddingWire;
  /** Whether `EmbeddingRequest.rest` goes upstream. */
  takesRest: boolean;
  /** Fields of a body that `provider.options` may not set. */
  reserved: ReadonlySet<string>;
  /** The images that must be fetched first. Not set if the wire accepts URLs as they are, or no images. */
  requiredMedia?(inputs: readonly EmbeddingInput[]): MediaNeed[];
  batch(endpoint: DialectEndpoint, inputs: readonly EmbeddingInput[]): BatchBounds;
  /**
   * Builds one upstream request; `request.inputs` fit in it. Throws `GatewayError` 400 for requests that the wire cannot carry exactly:
   * other dimensions or a partial input would be a different vector. Never changes `request`.
   */
  encodeRequest(request: EmbeddingRequest, endpoint: DialectEndpoint, media: Media): EncodedEmbedding;
  /** Throws `UpstreamError`. The caller checks that each input has a vector: an answer that lacks some was billed nevertheless. */
  decodeResponse(body: JsonValue, headers: Record<string, string | string[] | undefined>): EmbeddingAnswer;
}
