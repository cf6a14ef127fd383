/** The Responses API of OpenAI and of those who speak it (https://platform.openai.com/docs/api-reference/responses). */
import type { ChatDialect } from '../dialect.ts';
import { commonWorstCase } from '../shared/worst-case.ts';
import { decodeError } from './errors.ts';
import { facts } from './facts.ts';
import { encodeRequest, reserved } from './request.ts';
import { decodeResponse, reportedUsage } from './response.ts';
import { createStreamDecoder } from './stream.ts';
import { WIRE } from './wire.ts';

/** The dialect of upstreams of the Responses API. */
export const openaiResponses: ChatDialect = {
  wire: WIRE,
  facts,
  worstCase: commonWorstCase,
  frames: 'sse',
  reserved,
  // Images and files are sent by address.
  requiredMedia: () => [],
  encodeRequest,
  outputBound: ({ max_output_tokens: maxOutputTokens }) =>
    typeof maxOutputTokens === 'number' ? maxOutputTokens : undefined,
  serviceTier: ({ service_tier: serviceTier }) => (typeof serviceTier === 'string' ? serviceTier : undefined),
  authorize(credential, _request, _now_ms, { api_key_header: apiKeyHeader }): Record<string, string> {
    if (credential === undefined) return {};
    return apiKeyHeader === undefined ? { authorization: `Bearer ${credential}` } : { [apiKeyHeader]: credential };
  },
  decodeResponse,
  reportedUsage,
  createStreamDecoder,
  decodeError,
};
