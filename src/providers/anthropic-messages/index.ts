import type { ChatDialect } from '../dialect.ts';
import { isBearer, vertexAddress } from '../transport/google-account.ts';
import { decodeError } from './errors.ts';
import { facts, worstCase } from './facts.ts';
import { DENIED } from './own-request.ts';
import { encodeRequest } from './request.ts';
import { decodeResponse, reportedUsage } from './response.ts';
import { createStreamDecoder } from './stream.ts';
import { requiredMedia } from './to-wire.ts';
import { tokenCounter } from './token-counter.ts';
import { WIRE } from './wire.ts';

/** The Messages API of Anthropic and of compatible servers: https://platform.claude.com/docs/en/api/messages. */
export const anthropicMessages: ChatDialect = {
  wire: WIRE,
  facts,
  worstCase,
  frames: 'sse',
  reserved: DENIED,
  requiredMedia,
  encodeRequest,
  outputBound: ({ max_tokens: maxTokens }) => (typeof maxTokens === 'number' ? maxTokens : undefined),
  serviceTier: ({ service_tier: serviceTier }) => (typeof serviceTier === 'string' ? serviceTier : undefined),
  tokenCounter,
  addressFor: (baseUrl, credential) => vertexAddress(baseUrl, credential, 'anthropic'),
  authorize(credential, _request, _now_ms, { api_key_header: apiKeyHeader }) {
    if (credential === undefined) return {};
    if (isBearer(credential)) return { authorization: credential };
    if (apiKeyHeader?.toLowerCase() === 'authorization') return { authorization: `Bearer ${credential}` };
    return { [apiKeyHeader ?? 'x-api-key']: credential };
  },
  decodeResponse,
  reportedUsage,
  createStreamDecoder,
  decodeError,
};
