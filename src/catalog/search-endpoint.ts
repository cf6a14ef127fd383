import { dialectOf } from '../providers/dialects.ts';
import { otherSearchWire } from '../providers/native-search.ts';
import type { Provider } from '../providers/provider.ts';
import type { Endpoint } from './model.ts';

/**
 * The endpoint as it searches, where that is over another wire of its provider's than the one it usually speaks. Undefined: its usual wire is
 * as good, or the price of its searches is not known.
 */
export function searchEndpoint(endpoint: Endpoint, provider: Provider): Endpoint | undefined {
  const wire = otherSearchWire(endpoint.quirks.native_search, endpoint.dialect ?? provider.dialect);
  if (wire === undefined || endpoint.pricing.web_search === undefined) return undefined;
  const { supported_parameters: known } = endpoint;
  const { modelQuirks, lackingParameters } = dialectOf(wire).facts;
  const lacking: ReadonlySet<string> = new Set(lackingParameters(endpoint));
  const thinks = known === undefined || known.includes('reasoning');
  return {
    ...endpoint,
    dialect: wire,
    supported_parameters: known && [...known.filter((name) => !lacking.has(name)), 'web_search_options'],
    quirks: {
      ...endpoint.quirks,
      ...modelQuirks(endpoint.upstream_model),
      ...(thinks ? {} : { no_encrypted_reasoning: true }),
    },
  };
}
