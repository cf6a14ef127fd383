import type { ChatDialect } from '../dialect.ts';
import { gatewayFields } from '../shared/gateway-fields.ts';
import { commonWorstCase } from '../shared/worst-case.ts';
import { decodeError } from './errors.ts';
import { facts } from './facts.ts';
import { encodeRequest } from './request.ts';
import { decodeResponse, reportedUsage } from './response.ts';
import { createStreamDecoder } from './stream.ts';
import { WIRE } from './wire.ts';

/** Version 2 of Cohere's chat: https://docs.cohere.com/reference/chat. */
export const cohereChat: ChatDialect = {
  wire: WIRE,
  facts,
  worstCase: commonWorstCase,
  frames: 'sse',
  reserved: gatewayFields,
  // Images are sent by address.
  requiredMedia: () => [],
  encodeRequest,
  outputBound: ({ max_tokens: maxTokens }) => (typeof maxTokens === 'number' ? maxTokens : undefined),
  // Requests have a queue priority (`priority`), but no tier with a price of its own.
  serviceTier: () => undefined,
  authorize(credential, _request, _now_ms, { api_key_header: apiKeyHeader }): Record<string, string> {
    if (credential === undefined) return {};
    return apiKeyHeader === undefined ? { authorization: `Bearer ${credential}` } : { [apiKeyHeader]: credential };
  },
  decodeResponse,
  reportedUsage,
  createStreamDecoder,
  decodeError,
};
