import { limits } from '../../limits.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { type TokenCounter, UpstreamError } from '../dialect.ts';
import { asObject } from '../shared/json-shape.ts';

/** The fields that the counting request accepts; others are refused (https://platform.claude.com/docs/en/api/messages-count-tokens). */
const COUNTED = [
  'messages',
  'system',
  'tools',
  'tool_choice',
  'thinking',
  'output_config',
  'output_format',
  'cache_control',
  'context_management',
  'mcp_servers',
] as const;

/**
 * Anthropic counts prompts free of charge (documentation page "Token counting"), and so does Google, at the address of a
 * pseudo-model (https://cloud.google.com/vertex-ai/generative-ai/docs/partner-models/claude/count-tokens).
 */
export const tokenCounter: TokenCounter = {
  request(encoded, { quirks, upstream_model: upstreamModel }) {
    const body: JsonObject = { model: upstreamModel };
    for (const field of COUNTED) {
      const value = encoded.body[field];
      if (value !== undefined) body[field] = value;
    }
    if (quirks.google_cloud === true) {
      body['anthropic_version'] = encoded.body['anthropic_version']!;
      return { ...encoded, path: '/models/count-tokens:rawPredict', body };
    }
    return { ...encoded, path: encoded.path.replace('/messages', '/messages/count_tokens'), body };
  },

  read(body) {
    const answer = asObject(body);
    const count = answer?.['input_tokens'];
    if (typeof count === 'number' && Number.isInteger(count) && count >= 0 && count <= limits.usage_count_max) {
      return { ...answer, input_tokens: count };
    }
    throw new UpstreamError('invalid_response', 'The provider returned no token count');
  },
};
