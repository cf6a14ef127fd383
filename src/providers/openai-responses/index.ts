/** The Responses API of OpenAI and of those who speak it (https://platform.openai.com/docs/api-reference/responses). */
import type { ChatDialect } from '../dialect.ts';
import { commonWorstCase } from '../shared/worst-case.ts';
import { decodeError } from './errors.ts';
import { facts } from './facts.ts';
import { encodeRequest, reserved } from './request.ts';
import { decodeResponse } from './response.ts';
import { createStreamDecoder } from './stream.ts';
import { WIRE } from './wire.ts';

/** The dialect of upstreams that answer in items. */
export const openaiResponses: ChatDialect = {
  wire: WIRE,
  facts,
  worstCase: commonWorstCase,
  frames: 'sse',
  reserved,
  // Images and files go by address.
  requiredMedia: () => [],
  encodeRequest,
  outputBound: ({ max_output_tokens }) => (typeof max_output_tokens === 'number' ? max_output_tokens : undefined),
  serviceTier: ({ service_tier }) => (typeof service_tier === 'string' ? service_tier : undefined),
  authorize(credential, _request, _now_ms, { api_key_header }): Record<string, string> {
    if (credential === undefined) return {};
    return api_key_header === undefined ? { authorization: `Bearer ${credential}` } : { [api_key_header]: credential };
  },
  decodeResponse,
  createStreamDecoder,
  decodeError,
};
