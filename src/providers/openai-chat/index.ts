/**
 * OpenAI's chat completions (https://platform.openai.com/docs/api-reference/chat), and every server that speaks the
 * same wire with quirks of its own.
 */
import type { ChatDialect } from '../dialect.ts';
import { gatewayFields } from '../shared/gateway-fields.ts';
import { commonWorstCase } from '../shared/worst-case.ts';
import { decodeError } from './errors.ts';
import { facts } from './facts.ts';
import { requiredMedia } from './parts.ts';
import { encodeRequest } from './request.ts';
import { decodeResponse } from './response.ts';
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
  outputBound({ max_completion_tokens, max_tokens }) {
    if (typeof max_completion_tokens === 'number') return max_completion_tokens;
    return typeof max_tokens === 'number' ? max_tokens : undefined;
  },
  serviceTier: ({ service_tier }) => (typeof service_tier === 'string' ? service_tier : undefined),
  authorize(credential, _request, _now_ms, quirks): Record<string, string> {
    if (credential === undefined) return {};
    if (quirks.api_key_header !== undefined) return { [quirks.api_key_header]: credential };
    return { authorization: `Bearer ${credential}` };
  },
  decodeResponse,
  createStreamDecoder,
  decodeError,
};
