import type { JsonObject } from '../../schemas/json.ts';
import type { ChatDialect } from '../dialect.ts';
import { gatewayFields } from '../shared/gateway-fields.ts';
import { isBearer, vertexAddress } from '../transport/google-account.ts';
import { decodeError } from './errors.ts';
import { facts, worstCase } from './facts.ts';
import { requiredMedia } from './media.ts';
import { encodeRequest } from './request.ts';
import { decodeResponse, reportedUsage } from './response.ts';
import { createStreamDecoder } from './stream.ts';
import { WIRE } from './wire.ts';

/** The wire accepts two spellings of every field, `maxOutputTokens` and `max_output_tokens`: both are reserved. */
const RESERVED = [
  ...gatewayFields,
  'contents',
  'systemInstruction',
  'system_instruction',
  // Refers to a prompt that the gateway has neither checked nor counted.
  'cachedContent',
  'cached_content',
  'generation_config',
  // The other spelling is used, so that there is at most one tier.
  'service_tier',
  'generationConfig.maxOutputTokens',
  'generationConfig.max_output_tokens',
  'generationConfig.candidateCount',
  'generationConfig.candidate_count',
];

/** The tier in the notation of answers. */
function serviceTier({ serviceTier }: JsonObject): string | undefined {
  // Google's JSON also accepts the numbers of enum names (https://protobuf.dev/programming-guides/json).
  return serviceTier == null ? undefined : String(serviceTier).toLowerCase();
}

/** The API of Gemini, on AI Studio and Vertex AI: https://ai.google.dev/api/generate-content. */
export const geminiGenerateContent: ChatDialect = {
  wire: WIRE,
  facts,
  worstCase,
  frames: 'sse',
  reserved: new Set(RESERVED),
  requiredMedia,
  encodeRequest,
  outputBound({ generationConfig }) {
    const { maxOutputTokens } = (generationConfig ?? {}) as JsonObject;
    return typeof maxOutputTokens === 'number' ? maxOutputTokens : undefined;
  },
  serviceTier,
  addressFor: (baseUrl, credential) => vertexAddress(baseUrl, credential, 'google'),
  json_credentials: true,
  // Never in the address, which is logged.
  authorize(credential, _request, _now_ms, { api_key_header: apiKeyHeader }) {
    if (credential === undefined) return {};
    if (isBearer(credential)) return { authorization: credential };
    if (apiKeyHeader?.toLowerCase() === 'authorization') return { authorization: `Bearer ${credential}` };
    return { [apiKeyHeader ?? 'x-goog-api-key']: credential };
  },
  decodeResponse,
  reportedUsage,
  createStreamDecoder,
  decodeError,
};
