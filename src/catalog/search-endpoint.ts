import { modelQuirks } from '../providers/model-quirks.ts';
import type { Provider } from '../providers/provider.ts';
import type { Endpoint } from './model.ts';
import { takenOver } from './wire-parameters.ts';

const WIRE = 'openai-responses';

/**
 * The endpoint as it searches, where that is over another wire of its provider's than the one it usually speaks: OpenAI's and xAI's
 * models search over the Responses API, at the same address. Undefined: its usual wire is as good, or the price of its searches is not known.
 */
export function searchEndpoint(endpoint: Endpoint, provider: Provider): Endpoint | undefined {
  const { native_search } = endpoint.quirks;
  if (native_search !== 'openai' && native_search !== 'xai') return undefined;
  if ((endpoint.dialect ?? provider.dialect) !== 'openai-chat' || endpoint.pricing.web_search === undefined)
    return undefined;
  const { supported_parameters: known } = endpoint;
  const thinks = known === undefined || known.includes('reasoning');
  return {
    ...endpoint,
    dialect: WIRE,
    supported_parameters: known && [...takenOver(WIRE, known), 'web_search_options'],
    quirks: {
      ...endpoint.quirks,
      ...modelQuirks(WIRE, endpoint.upstream_model),
      ...(thinks ? {} : { no_encrypted_reasoning: true }),
    },
  };
}
