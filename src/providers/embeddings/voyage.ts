/**
 * Voyage AI's embeddings of texts (https://docs.voyageai.com/reference/embeddings-api), and of texts and images together
 * (https://docs.voyageai.com/reference/multimodal-embeddings-api).
 */

import type { JsonObject } from '../../schemas/json.ts';
import { lookupTable } from '../../schemas/lookup-table.ts';
import type { Report } from '../dialect.ts';
import { readDataUrl } from '../shared/data-url.ts';
import { readList } from './answer.ts';
import type { EmbeddingDialect, EmbeddingInput, EmbeddingRequest } from './dialect.ts';
import { requireNoTokens, textsOnly } from './parts.ts';
import { purposeOf } from './purpose.ts';

const MULTIMODAL = /multimodal/;
const WORDS: Readonly<Record<string, string>> = lookupTable({
  query: 'query',
  code_query: 'query',
  document: 'document',
});

/** The most tokens of a request (documentation page "Text embeddings"). */
function tokensMax(upstreamModel: string): number {
  if (/lite/.test(upstreamModel)) return 1_000_000;
  if (/large|code|finance|law|multilingual|context/.test(upstreamModel)) return 120_000;
  return 320_000;
}

function contentOf(input: EmbeddingInput): JsonObject {
  if (typeof input === 'string') return { content: [{ type: 'text', text: input }] };
  requireNoTokens(input);
  return {
    content: input.map((part) => {
      if (part.type === 'text') return { type: 'text', text: part.text };
      const { url } = part.image_url;
      return readDataUrl(url) === undefined
        ? { type: 'image_url', image_url: url }
        : { type: 'image_base64', image_base64: url };
    }),
  };
}

function purposeField({ input_type: inputType }: EmbeddingRequest, report: Report[]): JsonObject {
  if (inputType === undefined) return {};
  const word = WORDS[purposeOf(inputType) ?? ''];
  if (word !== undefined) return { input_type: word };
  report.push({
    kind: 'dropped',
    field: 'input_type',
    reason: 'the endpoint distinguishes only queries from documents',
  });
  return {};
}

export const voyageEmbeddings: EmbeddingDialect = {
  wire: 'voyage-embeddings',
  takesRest: false,
  reserved: new Set([
    ...['model', 'input', 'inputs', 'encoding_format', 'output_encoding', 'output_dtype', 'output_dimension'],
  ]),
  batch: ({ upstream_model: upstreamModel }) => ({ inputs_max: 1_000, tokens_max: tokensMax(upstreamModel) }),

  encodeRequest(request, { upstream_model: upstreamModel }) {
    const { inputs, encoding_format: encodingFormat, dimensions, user } = request;
    const report: Report[] = [];
    if (user !== undefined) report.push({ kind: 'dropped', field: 'user', reason: 'the endpoint does not support it' });
    const shared: JsonObject = { model: upstreamModel, ...purposeField(request, report) };
    if (dimensions !== undefined) shared['output_dimension'] = dimensions;
    if (MULTIMODAL.test(upstreamModel)) {
      if (encodingFormat === 'base64') shared['output_encoding'] = 'base64';
      return { path: '/multimodalembeddings', headers: {}, body: { ...shared, inputs: inputs.map(contentOf) }, report };
    }
    // No `encoding_format` means floats.
    if (encodingFormat === 'base64') shared['encoding_format'] = 'base64';
    return { path: '/embeddings', headers: {}, body: { ...shared, input: textsOnly(inputs) }, report };
  },

  decodeResponse: (body) => readList(body),
};
