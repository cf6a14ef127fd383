/** Facts that follow from the names of models in a provider's listing (the shape of models.dev): their wire, and the price of a search. */
import type { Wire } from '../../schemas/inner.ts';
import { modelFacts } from '../gemini-generate-content/model-facts.ts';
import type { ProviderRow } from '../table.ts';

interface ListedModel {
  id: string;
  provider?: { npm?: string; shape?: string };
}

/** OpenAI serves these by its Responses API only (https://platform.openai.com/docs/models). */
const responsesOnly = /^(gpt-[\d.]+-(pro|codex.*)|o\d-pro|.*deep-research|codex-.*)$/;

/** The wire of a listed model if it is not its provider's; null if the provider's address does not serve the model. */
export function listedWire(
  row: Pick<ProviderRow, 'slug' | 'dialect'>,
  { id, provider }: ListedModel,
): Wire | null | undefined {
  if ((row.slug === 'openai' || row.slug === 'azure') && responsesOnly.test(id)) return 'openai-responses';
  // https://docs.x.ai/developers/model-capabilities/text/multi-agent, limitations.
  if (row.slug === 'xai' && /multi-agent/.test(id)) return 'openai-responses';
  const { npm, shape } = provider ?? {};
  if (row.slug === 'google-vertex') {
    if (npm === '@ai-sdk/google-vertex/anthropic') return 'anthropic-messages';
    // Open models have another address, with an API like OpenAI's.
    return id.includes('/') ? null : undefined;
  }
  if (npm === undefined) return undefined;
  return npm === '@ai-sdk/openai-compatible' && row.dialect === 'openai-chat' && shape !== 'responses'
    ? undefined
    : null;
}

/**
 * Models of OpenAI's chat wire that search over the Responses API: those with the tool on their pages, GPT-4.1 nano excepted
 * (https://platform.openai.com/docs/guides/tools-web-search, "Limitations").
 */
const openAiSearches = /^(?:gpt-4o(?:-mini)?|gpt-4\.1(?:-mini)?|gpt-5(?:\.\d+)?(?:-mini|-nano)?|o3|o4-mini)$/;

/**
 * The price of one search by the provider's own tool, in pico-USD; undefined if it has none. OpenAI: 10 USD for a thousand, over the
 * Responses API (https://platform.openai.com/docs/pricing, "Built-in tools"). xAI: 5, of the web or of X, over the same API and for models
 * of Grok 4 (https://docs.x.ai/docs/models, "Tools pricing"). Google: 14 for a thousand searches from Gemini 3 on, 35 for a thousand grounded
 * answers before (https://ai.google.dev/gemini-api/docs/pricing, https://cloud.google.com/vertex-ai/generative-ai/pricing, "Grounding").
 */
export function searchFee(
  { slug }: Pick<ProviderRow, 'slug'>,
  id: string,
  dialect: Wire | undefined,
): number | undefined {
  switch (slug) {
    case 'openai':
      return dialect === 'openai-responses' || openAiSearches.test(id) ? 10_000_000_000 : undefined;
    case 'xai':
      return /^grok-4/.test(id) ? 5_000_000_000 : undefined;
    case 'google-ai-studio':
    case 'google-vertex': {
      if (!/^gemini-/.test(id) || /embedding|-tts|-live|robotics/.test(id)) return undefined;
      const { generation = 0 } = modelFacts(id, slug === 'google-vertex');
      if (generation >= 3) return 14_000_000_000;
      return generation >= 2 && !id.includes('image') ? 35_000_000_000 : undefined;
    }
    default:
      return undefined;
  }
}
