/**
 * OpenAI's chat completions (https://platform.openai.com/docs/api-reference/chat), and every server that implements the
 * same wire with its own quirks.
 */
import type { ChatDialect } from '../dialect.ts';
import { gatewayFields } from '../shared/gateway-fields.ts';
import { commonWorstCase } from '../shared/worst-case.ts';
import { decodeError } from './errors.ts';
import { facts } from './facts.ts';
import { requiredMedia } from './parts.ts';
import { encodeRequest } from './request.ts';
import { decodeResponse, reportedUsage } from './response.ts';
import { createStreamDecoder } from './stream.ts';

/** The dialect of OpenAI-compatible upstreams. */
export const openaiChat: ChatDialect = {
  wire: 'openai-chat',
  facts,
  worstCase: commonWorstCase,
  frames: 'sse',
  reserved: gatewayFields,
  requiredMedia,
  encodeRequest,
  outputBound({ max_completion_tokens: maxCompletionTokens, max_tokens: maxTokens }) {
    if (typeof maxCompletionTokens === 'number') return maxCompletionTokens;
    return typeof maxTokens === 'number' ? maxTokens : undefined;
  },
  serviceTier: ({ service_tier: serviceTier }) => (typeof serviceTier === 'string' ? serviceTier : undefined),
  authorize(credential, _request, _now_ms, quirks): Record<string, string> {
    if (credential === undefined) return {};
    if (quirks.api_key_header !== undefined) return { [quirks.api_key_header]: credential };
    return { authorization: `Bearer ${credential}` };
  },
  decodeResponse,
  reportedUsage,
  createStreamDecoder,
  decodeError,
};
