import type { EndpointParameter } from '../../schemas/endpoint.ts';
import type { JsonObject } from '../../schemas/json.ts';
import type { WireFacts, WorstCase } from '../dialect.ts';
import { aboveBudget, aboveThinking, commonWorstCase } from '../shared/worst-case.ts';
import { anthropicModelQuirks } from './model-quirks.ts';
import { spendBounds } from './spend-bounds.ts';
import { WIRE } from './wire.ts';

/**
 * The most messages of a shortened prompt at upstreams of the Messages API (public service's documentation, "Message
 * transforms").
 */
const COMPRESSED_MESSAGES_MAX = 1_000;

/** Parameters without a field on this wire, whatever the provider accepts on another wire. */
const LACKING: readonly EndpointParameter[] = [
  'seed',
  'frequency_penalty',
  'presence_penalty',
  'logprobs',
  'top_logprobs',
];

export const facts: WireFacts = {
  defaultQuirks: () => ({}),
  modelQuirks: anthropicModelQuirks,
  lackingParameters: () => LACKING,
  variesReasoningFields: false,
  refusesUnsupported: false,
  cachesUnasked: false,
  takesSeveralChoices: false,
  // An output bound of 0 fills a prompt cache (documentation page "Prompt caching").
  takesZeroOutput: true,
  takesAddresses: true,
  listsModels: true,
  takesSearchOptions: false,
  messagesMax: COMPRESSED_MESSAGES_MAX,
  isSearchTool: ({ type }) => String(type).startsWith('web_search'),
  carriesState: () => true,
  // A client of this wire wrote the budget itself, whatever its request has in the inner language.
  leastOutput: (body, request) => (request.ext?.wire === WIRE ? aboveBudget(body) : aboveThinking(body, request)),
};

/**
 * The prompt is read twice, and output generated twice, if Anthropic compacts the conversation: the summary is counted separately
 * (https://platform.claude.com/docs/en/build-with-claude/compaction).
 */
function passes(body: JsonObject): number {
  const { context_management: contextManagement, compaction } = body as {
    context_management?: { edits?: unknown };
    compaction?: unknown;
  };
  const edits = Array.isArray(contextManagement?.edits) ? contextManagement.edits : [];
  const isCompacting = edits.some((edit) => String((edit as JsonObject | null)?.['type']).startsWith('compact'));
  return isCompacting || (compaction ?? null) !== null ? 2 : 1;
}

export const worstCase: WorstCase = {
  ...commonWorstCase,
  // Nothing is written to the cache without a hint (https://platform.claude.com/docs/en/build-with-claude/prompt-caching).
  unmarkedCacheWrites: false,
  passes,
  spendBounds,
};
