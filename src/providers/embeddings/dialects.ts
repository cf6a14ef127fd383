import type { Wire } from '../../schemas/inner.ts';
import type { Provider } from '../provider.ts';
import { bedrockEmbeddings } from './bedrock.ts';
import { cohereEmbeddings } from './cohere.ts';
import type { EmbeddingDialect, EmbeddingWire } from './dialect.ts';
import { geminiEmbeddings } from './gemini.ts';
import { jinaEmbeddings } from './jina.ts';
import { openaiEmbeddings } from './openai.ts';
import { vertexEmbeddings } from './vertex.ts';
import { voyageEmbeddings } from './voyage.ts';

/** The dialect of each wire of embeddings. */
export const embeddingDialects: Readonly<Record<EmbeddingWire, EmbeddingDialect>> = {
  'openai-embeddings': openaiEmbeddings,
  'gemini-embeddings': geminiEmbeddings,
  'vertex-embeddings': vertexEmbeddings,
  'bedrock-embeddings': bedrockEmbeddings,
  'cohere-embeddings': cohereEmbeddings,
  'voyage-embeddings': voyageEmbeddings,
  'jina-embeddings': jinaEmbeddings,
};

/** The embeddings wire of each chat wire, below the same base URL. */
const SIBLINGS: Readonly<Partial<Record<Wire, EmbeddingWire>>> = {
  'openai-chat': 'openai-embeddings',
  'openai-responses': 'openai-embeddings',
  'gemini-generate-content': 'gemini-embeddings',
  'bedrock-converse': 'bedrock-embeddings',
  'cohere-chat': 'cohere-embeddings',
};

/** The embeddings dialect of a provider: the one its row names, else the one of its chat wire; undefined if it has none. */
export function embeddingDialectOf({
  dialect,
  embeddings_dialect: embeddingsDialect,
}: Provider): EmbeddingDialect | undefined {
  const wire = embeddingsDialect ?? SIBLINGS[dialect];
  return wire === undefined ? undefined : embeddingDialects[wire];
}
